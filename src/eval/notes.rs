//! The notes on a summary, in words.
//!
//! The input is a summary. The output is sentences for a terminal and for a page.

use super::arm_spec::MAJORITY_MAX;
use super::comparison::TalkOfArm;
use super::summary::{ArmSummary, Summary};
use super::verdict::items_to_decide;
use protocol::text::counted;
use statistics::Interval;

/// Returns the sentences without which the table would be misread.
pub fn notes(summary: &Summary) -> Vec<String> {
    let mut notes = vec![format!(
        "“majority” says how often a majority of samples is right that takes as many tokens as the arm, over {}; 95 % intervals",
        counted(summary.items, "item")
    )];
    let judged: Vec<&ArmSummary> = summary.arms.iter().filter(|arm| arm.verdict.is_some()).collect();
    if let Some(primary) = judged.iter().find(|arm| arm.is_primary)
        && judged.len() > 1
    {
        notes.push(format!(
            "* {} is the primary comparison; the p-values of the others are corrected by Holm, and a verdict needs one below 5 %",
            primary.name
        ));
    }
    if !summary.is_complete() {
        notes.push(format!(
            "{} of {} are not complete: they are in no figure, and there is no verdict",
            summary.planned - summary.items,
            counted(summary.planned, "item")
        ));
    }
    for arm in summary.arms.iter().filter(|arm| !arm.has_same_models) {
        let models: Vec<&str> = arm.models.iter().map(String::as_str).collect();
        notes.push(format!(
            "there is no verdict on {}: its runs were answered by {}, and not all samples of its curve by the same",
            arm.name,
            models.join(", ")
        ));
    }
    let is_unjudged = summary.pilot || !summary.is_complete();
    let mut dearer = Vec::new();
    for arm in &summary.arms {
        let is_judged = arm.verdict.is_some() || is_unjudged && arm.has_same_models;
        if is_judged && arm.against.is_some_and(|against| against.is_dearer) {
            dearer.push(arm.name.as_str());
        }
    }
    if !dearer.is_empty() {
        let most = summary.curves.iter().map(|curve| curve.points.len()).max().unwrap_or_default();
        let more = if most < MAJORITY_MAX as usize {
            format!("; --samples draws up to {MAJORITY_MAX} in another folder")
        } else {
            String::new()
        };
        notes.push(format!(
            "< stands for more tokens than all {most} samples, where no comparison can show that an arm helps: {}{more}",
            dearer.join(", ")
        ));
    }
    for arm in &summary.arms {
        let Some(talk) = &arm.talk else { continue };
        notes.push(format!(
            "talk of {}, against the vote over its own drafts: {}",
            arm.name,
            describe_talk(talk)
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
        notes.push(format!("this is a pilot, without a verdict; {}", pilot_note(summary)));
    }
    if summary.is_public {
        notes.push(format!(
            "`{}` has the name of a public set, which models may have read while they were trained",
            summary.data
        ));
    }
    notes
}

/// Returns the number of items that a pilot finds needed.
fn pilot_note(summary: &Summary) -> String {
    let none = "no item is complete".to_owned();
    let Some(arm) = summary.arms.iter().find(|arm| arm.is_primary) else { return none };
    if !arm.has_same_models {
        return "its primary arm has other models than its curve".to_owned();
    }
    let Some(against) = &arm.against else { return none };
    format!(
        "{} items would decide about a difference of {:.1} points for {}",
        items_to_decide(against.found, summary.units, summary.items, summary.effect),
        summary.effect * 100.0,
        arm.name
    )
}

/// Returns the effect of the talk of an arm.
pub(super) fn describe_talk(talk: &TalkOfArm) -> String {
    let TalkOfArm { lost, gained, untied, untied_wrong, difference, found, .. } = talk;
    let ties = match untied + untied_wrong {
        0 => String::new(),
        ties => format!(", and of {} with a right draft {untied} became right", counted(ties, "tie")),
    };
    format!("{gained} became right and {lost} wrong{ties}: {}", points(*difference, found.interval))
}

/// Returns a difference of shares in points, with its interval.
pub fn points(difference: f64, Interval { low, high }: Interval) -> String {
    format!("{:+.1} [{:+.1}, {:+.1}]", difference * 100.0, low * 100.0, high * 100.0)
}

/// Returns a p-value to three digits. One near 0.05 from a bootstrap of 10,000 selections has an error of about 0.003.
pub fn format_p(p: f64) -> String {
    if p < 0.001 { "<0.001".to_owned() } else { format!("{p:.3}") }
}
