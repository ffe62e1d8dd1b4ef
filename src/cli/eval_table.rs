//! An evaluation in words for a terminal: its table, and one item.
//!
//! The input is a summary or an item. The output is lines. Nothing is read or printed here.

use console::measure_text_width;
use serde::Serialize;

use super::table::Table;
use crate::batch::TaskLine;
use crate::eval::{Against, ArmSummary, EvalPlan, EvalVerdict, Item, ShareOf, Summary, p_in_words, points};
use protocol::text::{counted, escape};
use statistics::{Interval, items_needed};

/// The shares of discordant items for which a plan tells the number of items that are needed.
const DISCORDANT: [f64; 2] = [0.1, 0.2];

/// The names of the columns.
const HEADING: [&str; 11] = [
    "arm",
    "right",
    "answered",
    "tokens",
    "calls",
    "seconds",
    "USD",
    "majority",
    "difference",
    "p",
    "verdict",
];

/// Returns the arms as a table; where it would be wider than the terminal, each arm has lines of its own.
pub(super) fn table(summary: &Summary, width: usize) -> Vec<String> {
    let rows: Vec<[String; 11]> = summary.arms.iter().map(row).collect();
    let table = Table { heading: HEADING, rows: rows.clone(), shares: [0; 11] }.lines(width);
    if table.iter().all(|line| measure_text_width(line) <= width) {
        return table;
    }
    rows.iter().flat_map(lines).collect()
}

/// Returns the lines of one arm.
fn lines(row: &[String; 11]) -> Vec<String> {
    let [name, right, answered, tokens, calls, seconds, usd, majority, difference, p, verdict] = row;
    let known = [(seconds, " seconds"), (usd, " USD")].into_iter().filter(|(cell, _)| *cell != "-");
    let known = known.fold(String::new(), |text, (cell, unit)| text + ", " + cell + unit);
    let mut lines = vec![
        name.clone(),
        format!("  right {right}, answered {answered}"),
        format!("  {tokens} tokens, {calls} calls{known}"),
    ];
    if verdict != "-" {
        lines.push(format!("  majority {majority}, difference {difference}, p {p}: {verdict}"));
    }
    lines
}

fn row(arm: &ArmSummary) -> [String; 11] {
    let against = arm.against.filter(|_| arm.verdict.is_some());
    let none = || "-".to_owned();
    let answered = arm.answered.share.map_or_else(none, |share| format!("{:.0} %", share * 100.0));
    let mark = if arm.is_primary { " *" } else { "" };
    let majority = |of: Against| format!("{:.1} %{}", of.curve * 100.0, if of.is_dearer { " <" } else { "" });
    [
        format!("{}{mark}", arm.name),
        share(&arm.right),
        answered,
        format!("{:.0}", arm.cost.tokens),
        format!("{:.1}", arm.cost.calls),
        arm.cost.seconds.map_or_else(none, |seconds| format!("{seconds:.1}")),
        arm.cost.usd.map_or_else(none, |usd| format!("{usd:.6}")),
        against.map_or_else(none, majority),
        against.map_or_else(none, |of| points(of.difference, of.found.interval)),
        arm.p.map_or_else(none, p_in_words),
        arm.verdict.map_or_else(none, EvalVerdict::in_words),
    ]
}

fn share(of: &ShareOf) -> String {
    of.share.zip(of.interval).map_or("-".to_owned(), |(share, Interval { low, high })| {
        format!("{:.1} % [{:.1}, {:.1}]", share * 100.0, low * 100.0, high * 100.0)
    })
}

/// The items that find the smallest difference of interest, if two ways differ on this share of them.
#[derive(Serialize)]
pub(super) struct Power {
    discordant: f64,
    items: u64,
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast of floats saturates")]
fn whole(items: f64) -> u64 {
    items as u64
}

/// Returns how many items are needed before anything is known about them.
pub(super) fn power(plan: &EvalPlan) -> Vec<Power> {
    let effect = plan.effect;
    let items = |discordant: f64| items_needed(discordant - effect * effect, effect);
    // Two ways that differ on fewer items than that cannot differ by so much.
    let possible = DISCORDANT.iter().filter(|discordant| **discordant >= effect);
    possible.map(|discordant| Power { discordant: *discordant, items: whole(items(*discordant)) }).collect()
}

impl Power {
    pub(super) fn in_words(&self, plan: &EvalPlan) -> String {
        format!(
            "if the arm and the majority differ on {:.0} % of the items, {} items find {:.1} points with a power of 80 %; the plan has {}",
            self.discordant * 100.0,
            self.items,
            plan.effect * 100.0,
            plan.items
        )
    }
}

/// Returns one item: its task, its samples, and what each arm answered.
pub(super) fn item_lines(plan: &EvalPlan, task: &TaskLine, item: &Item) -> Vec<String> {
    let word = |is_right: bool| if is_right { "right" } else { "wrong" };
    let mut lines = vec![
        format!("item {}", item.id),
        task.prompt.clone(),
        format!("the right answer is “{}”", escape::excerpt(task.answer.as_deref().unwrap_or_default())),
        String::new(),
    ];
    for (bank, drawn) in plan.banks.iter().zip(&item.banks).filter(|(bank, _)| bank.is_curve) {
        let Some(drawn) = drawn else { continue };
        let right = drawn.samples.iter().filter(|sample| sample.is_right).count();
        lines.push(format!(
            "{right} of {} are right ({})",
            counted(drawn.samples.len(), "sample"),
            bank.folder
        ));
    }
    for (arm, run) in plan.arms.iter().zip(&item.arms) {
        let Some(run) = run else {
            lines.push(format!("{}: no run has ended", arm.name));
            continue;
        };
        let tokens = run.tokens();
        let answer = run
            .answer
            .as_ref()
            .map(|answer| format!("“{}”, {}", escape::excerpt(answer), word(run.is_right)));
        lines.push(format!(
            "{}: {}, {}{}, {tokens} tokens",
            arm.name,
            run.outcome.name(),
            answer.unwrap_or_else(|| "no answer".to_owned()),
            run.before_in_words()
        ));
        lines.extend(run.drafts_in_words().map(|drafts| format!("  drafts: {drafts}")));
    }
    lines
}
