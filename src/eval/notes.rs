//! What a reader of a summary must know, in words.
//!
//! The input is a summary. The output is sentences for a terminal and for a page.

use super::comparison::Against;
use super::summary::{ArmSummary, Summary};
use crate::statistics::{Interval, items_needed};
use crate::text::counted;

/// Returns what a reader of the table must know.
#[must_use]
pub fn notes(summary: &Summary) -> Vec<String> {
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
            talk.gained + talk.untied,
            talk.lost + talk.untied_wrong,
            points(talk.difference, talk.found.interval)
        ));
    }
    for curve in &summary.curves {
        if let Some((difference, interval)) = curve.control {
            let of = if summary.curves.len() > 1 { format!(" of `{}`", curve.model) } else { String::new() };
            notes.push(format!(
                "the second sample of each item differs from the first{of} by {}, which is the size of noise",
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

/// Returns a difference of shares in points, with its interval.
#[must_use]
pub fn points(difference: f64, Interval { low, high }: Interval) -> String {
    format!("{:+.1} [{:+.1}, {:+.1}]", difference * 100.0, low * 100.0, high * 100.0)
}
