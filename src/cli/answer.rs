//! Reports a run's result: the answer on stdout, the story on stderr, and the exit code.

use std::io::IsTerminal;
use std::path::Path;

use super::args::Format;
use super::output::Output;
use crate::config::FileConfig;
use crate::report::{RunResult, describe_check, describe_confidence, describe_stop, describe_votes, worth};
use crate::run::{find_run, folder_name, folder_of_runs, runs_folder};
use protocol::core::{Endpoint, ExitCode};
use protocol::panel::{PanelSection, TOTAL_MAX};
use protocol::review::{ApprovalSection, ReviewerReport};
use protocol::text::{counted, escape, excerpts, grouped};
use protocol::{OutcomeKind, Section};
use quorum::{Opinion, Vote};

pub(super) fn print_answer(
    output: &Output,
    result: &RunResult,
    fail_on_degraded: bool,
) -> anyhow::Result<ExitCode> {
    if output.format == Format::Jsonl {
        output.line(&serde_json::to_string(result)?)?;
    } else if output.format != Format::Text {
        output.print(&result.to_json())?;
    } else if let Some(text) = result.readable() {
        // A program receives the text unchanged. On a terminal it is escaped, so that it cannot control the terminal.
        let is_terminal = std::io::stdout().is_terminal();
        if is_terminal && output.is_live() {
            output.line("")?;
        }
        output.line(&if is_terminal { escape::terminal(text) } else { text.to_owned() })?;
    }
    let is_degraded = result.outcome == OutcomeKind::Agreed && !result.degraded.is_empty();
    Ok(if fail_on_degraded && is_degraded { ExitCode::Degraded } else { exit_code(result.outcome) })
}

pub(super) fn print_result(output: &Output, result: &RunResult, dir: &Path, endpoints: &[Endpoint]) {
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
    print_usage(output, result);
    let is_vote = result.section.votes().is_some();
    let texts: Vec<&str> = result.dissent.iter().map(|dissent| dissent.text.as_str()).collect();
    if !is_one && !is_vote {
        for (dissent, text) in result.dissent.iter().zip(excerpts(&texts)) {
            let agent = &dissent.agent;
            output.status(&match result.text {
                Some(_) => format!("other answer: {agent} ({}): {text}", dissent.stage),
                None => format!("{agent} answered: {text}"),
            });
        }
    }
    let mut section = &result.section;
    if let Section::MapReduce(read) = section {
        section = read.answer.as_deref().unwrap_or(section);
    }
    if let Some(vote) = section.votes() {
        for line in describe_votes(vote) {
            output.status(&line);
        }
        output.status(&describe_stop(vote));
        // An excerpt of a long text answers nothing.
        if result.text.is_none()
            && let Some(texts) = &vote.texts
        {
            output.status("not agreed on, and nearest to all drafts:");
            output.status(&escape::terminal(&texts.nearest));
        }
    }
    if let Section::Panel(panel) = section {
        print_panel(output, panel);
    } else if let Section::Approval(approval) = section {
        print_reviews(output, approval);
    }
    if let Some(confidence) = &result.confidence {
        output.status(&escape::terminal(&describe_confidence(confidence)));
    }
    if let Some(check) = result.check.as_ref().filter(|check| check.refused > 0) {
        output.status(&escape::terminal(&format!("check: {}", describe_check(check))));
    }
    print_losses(output, result);
    print_record(output, result, dir, endpoints);
    // The last line, so that a reader of a long story does not miss it.
    if let Some(worth) = worth(result) {
        output.status(&worth);
    }
}

/// Prints the calls, the tokens and the time that a run used.
pub(super) fn print_usage(output: &Output, result: &RunResult) {
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
pub(super) fn print_record(output: &Output, result: &RunResult, dir: &Path, endpoints: &[Endpoint]) {
    let name = dir.display();
    let flag = match result.outcome {
        OutcomeKind::Interrupted | OutcomeKind::Failed => "",
        OutcomeKind::Budget => flag_to_raise(result.reason.as_deref().unwrap_or_default()),
        OutcomeKind::Agreed | OutcomeKind::NoAgreement | OutcomeKind::Abstained | OutcomeKind::Vetoed => {
            if !output.is_brief() {
                output.status(&format!("record: {name}"));
            }
            return;
        }
    };
    let (run, again) = (short_name(dir), flags_to_repeat(endpoints));
    output.status(&format!("record: {name}; to continue: `consensus resume {run}{again}{flag}`"));
}

/// Prints the score of a panel's best answer, and the notes that a reader needs before trusting it.
fn print_panel(output: &Output, panel: &PanelSection) {
    if let Some(best) = &panel.winner
        && panel.vote.is_none()
    {
        let (name, mean) = (&best.response.member, best.average_score.unwrap_or_default());
        let threshold = panel.consensus_threshold.value() * f64::from(TOTAL_MAX);
        output.status(&format!("best: {name}, {mean:.1} of {TOTAL_MAX} points (threshold {threshold:.1})"));
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
pub(super) fn print_review(output: &Output, result: &RunResult, dir: &Path, endpoints: &[Endpoint]) {
    if let Section::Approval(approval) = &result.section {
        print_findings(output, approval);
        for ReviewerReport { reviewer, opinion, findings } in &approval.reviews {
            let (Opinion::Reject { reason, .. } | Opinion::Abstain { reason }) = opinion else { continue };
            let kind = if opinion.vote() == Vote::Reject { "rejects" } else { "abstains" };
            // A reason that repeats a finding is already on a line above.
            let is_printed = findings.iter().any(|finding| finding.to_string() == *reason);
            let why = if is_printed { String::new() } else { format!(": {reason}") };
            output.status(&escape::terminal(&format!("{reviewer} {kind}{why}")));
        }
    }
    print_usage(output, result);
    print_losses(output, result);
    print_record(output, result, dir, endpoints);
}

/// Prints every loss that makes a result worth less than it looks.
pub(super) fn print_losses(output: &Output, result: &RunResult) {
    for loss in &result.degraded {
        output.status(&format!("{}: {}", output.paint("degraded", "33"), escape::terminal(&loss.detail)));
    }
}

fn print_findings(output: &Output, approval: &ApprovalSection) {
    for ReviewerReport { reviewer, findings, .. } in &approval.reviews {
        for finding in findings {
            output.status(&escape::terminal(&format!("{reviewer}: {finding}")));
        }
    }
}

/// Prints how many reviewers approve, and what each of them found.
fn print_reviews(output: &Output, approval: &ApprovalSection) {
    let approving = approval.reviews.iter().filter(|review| review.opinion.vote() == Vote::Approve).count();
    let ApprovalSection { reviewers, faults, quorum, .. } = approval;
    if *reviewers > 1 {
        output.status(&format!(
            "approve: {approving} of {reviewers} reviewers (quorum {quorum}, tolerates {faults} faulty)"
        ));
    }
    print_findings(output, approval);
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
fn flags_to_repeat(endpoints: &[Endpoint]) -> &'static str {
    if endpoints.iter().any(Endpoint::is_launched) { " --launch COMMAND --model MODEL" } else { "" }
}

/// Returns the flag that raises the limit which a run has reached.
fn flag_to_raise(limit: &str) -> &'static str {
    if limit.contains(" tokens, ") {
        " --max-tokens-total N"
    } else if limit.contains(" cost ") {
        " --max-cost USD"
    } else {
        " --deadline DURATION"
    }
}

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
