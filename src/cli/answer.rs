//! Reports a run's result: the answer on stdout, the story on stderr, and the exit code.

use std::io::IsTerminal;
use std::path::Path;

use super::args::Format;
use super::output::Output;
use crate::config::FileConfig;
use crate::report::{RunResult, check_in_words, confidence_in_words, stop_in_words, votes_in_words, worth};
use crate::run::{find_run, folder_name, folder_of_runs, runs_folder};
use protocol::core::{Endpoint, ExitCode};
use protocol::panel::{PanelSection, TOTAL_MAX};
use protocol::review::{ApprovalSection, Reviewed};
use protocol::text::{counted, escape, excerpts, grouped};
use protocol::{OutcomeKind, Section};
use quorum::{Opinion, Vote};

/// Prints the answer and returns the exit code.
pub(super) fn print_answer(
    output: &Output,
    result: &RunResult,
    fail_on_degraded: bool,
) -> anyhow::Result<ExitCode> {
    match output.format {
        Format::Text => {
            if let Some(text) = result.readable() {
                // A program receives the text unchanged. On a terminal it is escaped, so that it cannot control the terminal.
                let is_terminal = std::io::stdout().is_terminal();
                if is_terminal && output.is_live() {
                    output.line("")?;
                }
                output.line(&if is_terminal { escape::terminal(text) } else { text.to_owned() })?;
            }
        }
        Format::Json | Format::Own(_) => output.print(&result.to_json())?,
        Format::Jsonl => output.line(&serde_json::to_string(result)?)?,
    }
    let is_degraded = result.outcome == OutcomeKind::Agreed && !result.degraded.is_empty();
    Ok(if fail_on_degraded && is_degraded { ExitCode::Degraded } else { exit_code(result.outcome) })
}

/// Prints on stderr how the run ended.
pub(super) fn tell_result(output: &Output, result: &RunResult, dir: &Path, endpoints: &[Endpoint]) {
    let detail = match (&result.how, &result.reason) {
        (Some(how), _) => format!(" ({})", how.name()),
        (None, Some(reason)) => format!(": {}", escape::terminal(reason)),
        (None, None) => String::new(),
    };
    let color = if result.text.is_some() { "1;32" } else { "1;33" };
    let ending = format!("{}{detail}", output.paint(&result.outcome.name().replace('_', " "), color));
    // A reviewer in a process of its own is not a quorum. Its vote is reported with the decision.
    let is_one = matches!(&result.section, Section::Approval(approval) if approval.reviewers == 1);
    match result.outcome {
        OutcomeKind::Agreed | OutcomeKind::NoAgreement if is_one => {}
        // Without this line, a script would see nothing but an exit code.
        OutcomeKind::Failed
        | OutcomeKind::Budget
        | OutcomeKind::NoAgreement
        | OutcomeKind::Abstained
        | OutcomeKind::Vetoed => {
            output.warn(&ending);
        }
        OutcomeKind::Agreed | OutcomeKind::Interrupted => output.status(&ending),
    }
    tell_usage(output, result);
    let is_vote = matches!(&result.section, Section::Vote(_));
    let texts: Vec<&str> = result.dissent.iter().map(|dissent| dissent.text.as_str()).collect();
    for (dissent, text) in result.dissent.iter().zip(excerpts(&texts)).filter(|_| !is_one && !is_vote) {
        match result.text {
            Some(_) => output.status(&format!("other answer: {} ({}): {text}", dissent.agent, dissent.stage)),
            None => output.status(&format!("{} answered: {text}", dissent.agent)),
        }
    }
    let mut section = &result.section;
    if let Section::MapReduce(read) = section {
        section = read.answer.as_deref().unwrap_or(section);
    }
    if let Section::Panel(panel) = section {
        tell_panel(output, panel);
    } else if let Section::Vote(vote) = section {
        for line in votes_in_words(vote) {
            output.status(&line);
        }
        output.status(&stop_in_words(vote));
    } else if let Section::Approval(approval) = section {
        tell_reviews(output, approval);
    }
    if let Some(confidence) = &result.confidence {
        output.status(&escape::terminal(&confidence_in_words(confidence)));
    }
    if let Some(check) = result.check.as_ref().filter(|check| check.refused > 0) {
        output.status(&escape::terminal(&format!("check: {}", check_in_words(check))));
    }
    tell_losses(output, result);
    tell_record(output, result, dir, endpoints);
    // The last line, so that a reader of a long story does not miss it.
    if let Some(worth) = worth(result) {
        output.status(&worth);
    }
}

/// Prints the calls, the tokens and the time that a run used.
pub(super) fn tell_usage(output: &Output, result: &RunResult) {
    let RunResult { usage, timing, .. } = result;
    let cached =
        if usage.cached > 0 { format!(" ({} cached)", grouped(usage.cached)) } else { String::new() };
    output.status(&format!(
        "{} · {} tokens in{cached}, {} out · {:.1} s",
        counted(usage.calls, "call"),
        grouped(usage.prompt),
        grouped(usage.completion),
        timing.total_ms as f64 / 1000.0,
    ));
}

/// Prints where a run is recorded and, if it was cut off, how to continue it.
pub(super) fn tell_record(output: &Output, result: &RunResult, dir: &Path, endpoints: &[Endpoint]) {
    let name = dir.display();
    let again = |more: &str| {
        let run = short_name(dir);
        format!("; to continue: `consensus resume {run}{}{more}`", needed_again(endpoints))
    };
    let hint = match result.outcome {
        OutcomeKind::Interrupted | OutcomeKind::Failed => again(""),
        OutcomeKind::Budget => again(raised(result.reason.as_deref().unwrap_or_default())),
        OutcomeKind::Agreed | OutcomeKind::NoAgreement | OutcomeKind::Abstained | OutcomeKind::Vetoed => {
            String::new()
        }
    };
    if !hint.is_empty() || !output.is_brief() {
        output.status(&format!("record: {name}{hint}"));
    }
}

/// Prints the score of a panel's best answer, and the notes that a reader needs before trusting it.
fn tell_panel(output: &Output, panel: &PanelSection) {
    if let Some(best) = &panel.winner {
        let (name, mean) = (&best.response.member, best.average_score.unwrap_or_default());
        let wanted = panel.consensus_threshold.value() * f64::from(TOTAL_MAX);
        output.status(&format!("best: {name}, {mean:.1} of {TOTAL_MAX} points (threshold {wanted:.1})"));
    }
    let saved = panel.cancelled_ballots;
    if saved > 0 {
        output.status(&format!("saved: {saved} ballots that could not change the result"));
    }
    for note in &panel.notes {
        output.status(&format!("note: {}", escape::terminal(note)));
    }
}

/// Prints what reviewers found before a decision follows from their votes. The votes are counted with the decision.
pub(super) fn tell_review(output: &Output, result: &RunResult, dir: &Path, endpoints: &[Endpoint]) {
    if let Section::Approval(approval) = &result.section {
        tell_findings(output, approval);
        for Reviewed { reviewer, opinion, findings } in &approval.reviews {
            let (Opinion::Reject { reason, .. } | Opinion::Abstain { reason }) = opinion else { continue };
            let kind = if opinion.vote() == Vote::Reject { "rejects" } else { "abstains" };
            // A reason that repeats a finding is already on a line above.
            let is_told = findings.iter().any(|finding| finding.to_string() == *reason);
            let why = if is_told { String::new() } else { format!(": {reason}") };
            output.status(&escape::terminal(&format!("{reviewer} {kind}{why}")));
        }
    }
    tell_usage(output, result);
    tell_losses(output, result);
    tell_record(output, result, dir, endpoints);
}

/// Prints every loss that makes a result worth less than it looks.
pub(super) fn tell_losses(output: &Output, result: &RunResult) {
    for loss in &result.degraded {
        output.status(&format!("{}: {}", output.paint("degraded", "33"), escape::terminal(&loss.detail)));
    }
}

fn tell_findings(output: &Output, approval: &ApprovalSection) {
    for Reviewed { reviewer, findings, .. } in &approval.reviews {
        for finding in findings {
            output.status(&escape::terminal(&format!("{reviewer}: {finding}")));
        }
    }
}

/// Prints how many reviewers approve, and what each of them found.
fn tell_reviews(output: &Output, approval: &ApprovalSection) {
    let approving = approval.reviews.iter().filter(|review| review.opinion.vote() == Vote::Approve).count();
    let ApprovalSection { reviewers, faults, quorum, .. } = approval;
    if *reviewers > 1 {
        output.status(&format!(
            "approve: {approving} of {reviewers} reviewers (quorum {quorum}, tolerates {faults} faulty)"
        ));
    }
    tell_findings(output, approval);
}

/// Returns the end of a run's id, if it means this run where commands look for runs, or else the path of its folder.
fn short_name(dir: &Path) -> String {
    const SHORT: usize = 6;
    let (id, runs) = (folder_name(dir), folder_of_runs(dir));
    let short = &id[id.len().saturating_sub(SHORT)..];
    let is_found = runs == runs_folder(None, &FileConfig::default())
        && find_run(Some(short), &runs).is_ok_and(|found| found == dir);
    if is_found { short.to_owned() } else { dir.display().to_string() }
}

/// Returns the flags that a journal does not hold and that a resume must repeat.
fn needed_again(endpoints: &[Endpoint]) -> &'static str {
    if endpoints.iter().any(Endpoint::is_launched) { " --launch COMMAND --model MODEL" } else { "" }
}

/// Returns the flag that raises the limit which a run has reached.
fn raised(limit: &str) -> &'static str {
    if limit.contains(" tokens, ") {
        " --max-tokens-total N"
    } else if limit.contains(" cost ") {
        " --max-cost USD"
    } else {
        " --deadline DURATION"
    }
}

/// Returns the exit code of an outcome.
pub(super) fn exit_code(outcome: OutcomeKind) -> ExitCode {
    match outcome {
        OutcomeKind::Agreed => ExitCode::Success,
        OutcomeKind::NoAgreement | OutcomeKind::Abstained => ExitCode::NoAgreement,
        OutcomeKind::Vetoed => ExitCode::Vetoed,
        OutcomeKind::Budget => ExitCode::Budget,
        OutcomeKind::Failed => ExitCode::Provider,
        OutcomeKind::Interrupted => ExitCode::Interrupted,
    }
}
