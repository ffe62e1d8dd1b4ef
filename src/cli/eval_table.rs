//! An evaluation in words for a terminal: its table, and one item.
//!
//! The input is a summary or an item. The output is lines. Nothing is read or printed here.

use std::fmt::Write as _;

use console::measure_text_width;
use serde_json::{Value, json};

use super::table::Table;
use crate::batch::TaskLine;
use crate::eval::{ArmSummary, EvalPlan, EvalVerdict, Item, ShareOf, Summary, format_p, points};
use protocol::text::{counted, escape};
use statistics::{Interval, items_needed};

/// The shares of discordant items for which a plan tells the number of items that are needed.
const DISCORDANT: [f64; 2] = [0.1, 0.2];

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

fn lines(row: &[String; 11]) -> Vec<String> {
    let [name, right, answered, tokens, calls, seconds, usd, majority, difference, p, verdict] = row;
    let mut known = String::new();
    for (cell, unit) in [(seconds, " seconds"), (usd, " USD")] {
        if cell != "-" {
            let _ = write!(known, ", {cell}{unit}");
        }
    }
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
    let (mut majority, mut difference) = (None, None);
    if arm.verdict.is_some()
        && let Some(against) = arm.against
    {
        let mark = if against.is_dearer { " <" } else { "" };
        majority = Some(format!("{:.1} %{mark}", against.curve * 100.0));
        difference = Some(points(against.difference, against.found.interval));
    }
    let mark = if arm.is_primary { " *" } else { "" };
    [
        format!("{}{mark}", arm.name),
        share_cell(&arm.right),
        or_dash(arm.answered.share.map(|share| format!("{:.0} %", share * 100.0))),
        format!("{:.0}", arm.cost.tokens),
        format!("{:.1}", arm.cost.calls),
        or_dash(arm.cost.seconds.map(|seconds| format!("{seconds:.1}"))),
        or_dash(arm.cost.usd.map(|usd| format!("{usd:.6}"))),
        or_dash(majority),
        or_dash(difference),
        or_dash(arm.p.map(format_p)),
        or_dash(arm.verdict.map(EvalVerdict::summary)),
    ]
}

fn or_dash(cell: Option<String>) -> String {
    cell.unwrap_or_else(|| "-".to_owned())
}

fn share_cell(of: &ShareOf) -> String {
    of.share.zip(of.interval).map_or("-".to_owned(), |(share, Interval { low, high })| {
        format!("{:.1} % [{:.1}, {:.1}]", share * 100.0, low * 100.0, high * 100.0)
    })
}

/// Returns how many items are needed before anything is known about them, if two ways differ on this share of them. Two ways that
/// differ on fewer items than `effect` cannot differ by so much.
fn needed_items(discordant: f64, effect: f64) -> Option<u64> {
    if discordant < effect {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast of floats saturates")]
    let items = items_needed(discordant - effect * effect, effect) as u64;
    Some(items)
}

/// Returns how many items find the smallest difference of interest, for programs.
pub(super) fn power_rows(plan: &EvalPlan) -> Vec<Value> {
    let mut rows = Vec::new();
    for discordant in DISCORDANT {
        if let Some(items) = needed_items(discordant, plan.effect) {
            rows.push(json!({"discordant": discordant, "items": items}));
        }
    }
    rows
}

/// Returns the same in lines.
pub(super) fn power_lines(plan: &EvalPlan) -> Vec<String> {
    let mut lines = Vec::new();
    for discordant in DISCORDANT {
        if let Some(items) = needed_items(discordant, plan.effect) {
            lines.push(format!(
                "if the arm and the majority differ on {:.0} % of the items, {items} items find {:.1} points with a power of 80 %; the plan has {}",
                discordant * 100.0,
                plan.effect * 100.0,
                plan.items
            ));
        }
    }
    lines
}

/// Returns one item: its task, its samples, and what each arm answered.
pub(super) fn item_lines(plan: &EvalPlan, task: &TaskLine, item: &Item) -> Vec<String> {
    let mut lines = vec![
        format!("item {}", item.id),
        task.prompt.clone(),
        format!("the right answer is “{}”", escape::excerpt(task.answer.as_deref().unwrap_or_default())),
        String::new(),
    ];
    for (bank, drawn) in plan.banks.iter().zip(&item.banks) {
        let Some(drawn) = drawn else { continue };
        if !bank.is_curve {
            continue;
        }
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
        let right = if run.is_right { "right" } else { "wrong" };
        let answer = match &run.answer {
            Some(answer) => format!("“{}”, {right}", escape::excerpt(answer)),
            None => "no answer".to_owned(),
        };
        lines.push(format!(
            "{}: {}, {answer}{}, {tokens} tokens",
            arm.name,
            run.outcome.name(),
            run.describe_draft_vote()
        ));
        lines.extend(run.describe_drafts().map(|drafts| format!("  drafts: {drafts}")));
    }
    lines
}
