//! An evaluation in words for a terminal: its table, its notes, and one item.
//!
//! The input is a summary or an item. The output is lines. Nothing is read or printed here.

use super::table::Table;
use crate::batch::TaskLine;
use crate::eval::{Against, ArmSummary, EvalPlan, Item, ShareOf, Summary};
use crate::statistics::{Interval, items_needed};
use crate::text::{counted, escape};

/// The shares of discordant items for which a plan tells the number of items that are needed.
const DISCORDANT: [f64; 2] = [0.1, 0.2];

/// Returns the table of the arms.
pub(super) fn table(summary: &Summary, width: usize) -> Vec<String> {
    let heading = ["arm", "right", "answered", "tokens", "majority", "difference", "p", "verdict"];
    let rows = summary.arms.iter().map(row).collect();
    Table { heading, rows, shares: [1, 0, 0, 0, 0, 0, 0, 0] }.lines(width)
}

fn row(arm: &ArmSummary) -> [String; 8] {
    let against = arm.against.filter(|_| arm.verdict.is_some());
    let answered = arm.answered.share.map_or("-".to_owned(), |share| format!("{:.0} %", share * 100.0));
    let mark = if arm.is_primary { " *" } else { "" };
    [
        format!("{}{mark}", arm.name),
        share(&arm.right),
        answered,
        format!("{:.0}", arm.cost.tokens),
        against.map_or("-".to_owned(), |of| {
            format!("{:.1} %{}", of.curve * 100.0, if of.is_dearer { " <" } else { "" })
        }),
        against.map_or("-".to_owned(), |of| points(of.difference, of.found.interval)),
        against.map_or("-".to_owned(), |of| format!("{:.3}", arm.p_holm.unwrap_or(of.test.p))),
        arm.verdict.map_or("-".to_owned(), |verdict| verdict.in_words()),
    ]
}

fn share(of: &ShareOf) -> String {
    of.share.zip(of.interval).map_or("-".to_owned(), |(share, Interval { low, high })| {
        format!("{:.1} % [{:.1}, {:.1}]", share * 100.0, low * 100.0, high * 100.0)
    })
}

/// Returns a difference of shares in points, with its interval.
fn points(difference: f64, Interval { low, high }: Interval) -> String {
    format!("{:+.1} [{:+.1}, {:+.1}]", difference * 100.0, low * 100.0, high * 100.0)
}

/// Returns what a reader of the table must know.
pub(super) fn notes(summary: &Summary) -> Vec<String> {
    let mut notes = vec![format!(
        "“majority” is the share of right answers by the majority of as many samples as the arm's tokens would buy, over {}; 95 % intervals",
        counted(summary.items, "item")
    )];
    if let Some(primary) = summary.arms.iter().find(|arm| arm.is_primary && arm.verdict.is_some()) {
        notes.push(format!(
            "* {} is the primary comparison; the p-values of the others are corrected by Holm",
            primary.name
        ));
    }
    if summary.items < summary.planned {
        let missing = summary.planned - summary.items;
        notes.push(format!(
            "{} of {} are not complete and are in no figure",
            missing,
            counted(summary.planned, "item")
        ));
    }
    let is_dearer = |arm: &&ArmSummary| arm.against.is_some_and(|of: Against| of.is_dearer);
    let dearer: Vec<&str> = summary.arms.iter().filter(is_dearer).map(|arm| arm.name.as_str()).collect();
    if !dearer.is_empty() {
        let most = summary.curves.iter().map(|curve| curve.points.len()).max().unwrap_or_default();
        notes.push(format!(
            "< {} costs more than {most} samples, and is compared with their majority",
            dearer.join(", ")
        ));
    }
    for arm in &summary.arms {
        let Some(talk) = &arm.talk else { continue };
        notes.push(format!(
            "talk of {}: {} became right and {} wrong, {} against the vote over its own drafts",
            arm.name,
            talk.gained,
            talk.lost,
            points(talk.difference, talk.found.interval)
        ));
    }
    for curve in &summary.curves {
        if let Some((difference, interval)) = curve.control {
            notes.push(format!(
                "two samples that are alike differ by {}: what is within is noise",
                points(difference, interval)
            ));
        }
    }
    if summary.pilot {
        notes.push(format!("this is a pilot, without a verdict; {}", pilot(summary)));
    }
    if summary.is_public {
        notes.push(format!(
            "`{}` is a public set, which models may have read while they were trained",
            summary.data
        ));
    }
    notes
}

/// Returns the number of items that a pilot finds needed.
fn pilot(summary: &Summary) -> String {
    let primary = summary.arms.iter().find(|arm| arm.is_primary).and_then(|arm| arm.against);
    primary.map_or("no item is complete".to_owned(), |of| {
        let variance = of.found.error.powi(2) * summary.units as f64;
        format!(
            "{} items would find a difference of {:.1} points with a power of 80 %",
            items_needed(variance, summary.effect),
            summary.effect * 100.0
        )
    })
}

/// Returns how many items are needed before anything is known about them.
pub(super) fn power(plan: &EvalPlan) -> Vec<String> {
    let effect = plan.effect;
    let line = |discordant: &f64| {
        format!(
            "if the arm and the majority differ on {:.0} % of the items, {} items find {:.1} points with a power of 80 %; the plan has {}",
            discordant * 100.0,
            items_needed(discordant - effect * effect, effect),
            effect * 100.0,
            plan.items
        )
    };
    DISCORDANT.iter().map(line).collect()
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
        let tokens = run.prompt + run.completion;
        let answer = run
            .answer
            .as_ref()
            .map(|answer| format!("“{}”, {}", escape::excerpt(answer), word(run.is_right)));
        let before =
            run.blind_is_right.map(|blind| format!("; the vote over its drafts was {}", word(blind)));
        lines.push(format!(
            "{}: {}, {}{}, {tokens} tokens",
            arm.name,
            run.outcome.name(),
            answer.unwrap_or_else(|| "no answer".to_owned()),
            before.unwrap_or_default()
        ));
    }
    lines
}
