//! `consensus approve`: has a change reviewed and decided on by a quorum, and lands it on its branch.

use std::path::Path;
use std::time::Instant;

use serde_json::json;

use crate::approval::{
    ApprovalRequest, CutOff, DecisionEnd, ProposalOutcome, ProposingNode, ReviewingNode, UNBEGUN,
    check_readiness,
};
use crate::cli::answer::exit_code;
use crate::cli::args::{ApproveArgs, Format};
use crate::cli::commands::review::plan_review;
use crate::cli::metrics;
use crate::cli::output::Output;
use crate::cli::run_to_end::block_on;
use crate::cli::signals::{self, REPEATABLE, StopMessages};
use crate::config::FileConfig;
use crate::process::hide_memory;
use crate::report::DecisionOutcome;
use protocol::OutcomeKind;
use protocol::core::ExitCode;
use protocol::text::escape;

/// The message if a signal ends a reviewer that does not listen yet.
const UNSEATED: &str = "before this reviewer took part; it signed nothing";

pub(crate) fn approve(args: &ApproveArgs, output: &Output) -> anyhow::Result<ExitCode> {
    hide_memory();
    if args.dry_run {
        let file = FileConfig::load_to_read()?;
        return plan_review(&args.review_request(&file), &file, output);
    }
    block_on(async {
        match &args.replica {
            Some(name) => Box::pin(run_replica(name, args, output)).await,
            None if args.check => print_readiness(args, output).await,
            None => Box::pin(propose(args, output)).await,
        }
    })?
}

async fn propose(args: &ApproveArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let listening =
        signals::listen(StopMessages { unbegun: UNBEGUN, begun: REPEATABLE }, args.limits.deadline, output)?;
    let file = FileConfig::load()?;
    let request = args.request(&file)?;
    let node = ProposingNode::open(&request, file, output).await?;
    let cut = CutOff { stop: listening.begin(), deadline: args.limits.deadline.map(|after| began + after) };
    let proposed = Box::pin(node.propose(cut, began)).await?;
    let (code, run) = match proposed {
        ProposalOutcome::BegunBefore(end) => return print_end(&end, output),
        ProposalOutcome::LandedBefore(end) => {
            output.warn(&format!("decision {} has landed this change already", end.sequence));
            return print_end(&end, output);
        }
        ProposalOutcome::Unverified { how, said, log } => return print_unverified(&how, &said, &log, output),
        ProposalOutcome::Decided(end) => (print_end(&end, output)?, end.run),
        ProposalOutcome::NotReviewed { outcome, reason, run } => {
            (print_not_reviewed(outcome, &reason, &run, output)?, run)
        }
    };
    metrics::write(args.metrics.metrics_file.as_deref(), &request.review.runs_dir.join(run), output);
    Ok(code)
}

/// Runs one reviewer in a process of its own, for `consensus approve --replica NAME`.
async fn run_replica(name: &str, args: &ApproveArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let listening = signals::listen(StopMessages { unbegun: UNSEATED, begun: REPEATABLE }, None, output)?;
    let file = FileConfig::load()?;
    let request: ApprovalRequest = args.request(&file)?;
    let node = ReviewingNode::open(name, &request, file, listening.stop(), output).await?;
    let cut = CutOff { stop: listening.begin(), deadline: args.limits.deadline.map(|after| began + after) };
    let is_stopped = node.run(cut).await?;
    Ok(if is_stopped { ExitCode::Interrupted } else { ExitCode::Success })
}

/// Prints which reviewers could take part in a decision, for `consensus approve --check`.
async fn print_readiness(args: &ApproveArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let report = check_readiness(&args.request(&FileConfig::load()?)?).await?;
    if output.format == Format::Text {
        let lines = report.lines();
        let width = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
        for (name, words) in &lines {
            output.line(&escape::terminal(&format!("{name:width$}  {words}")))?;
        }
        output.status(&report.summary());
    } else {
        output.json(&report.to_json())?;
    }
    Ok(if report.has_quorum() { ExitCode::Success } else { ExitCode::NoAgreement })
}

fn print_end(end: &DecisionEnd, output: &Output) -> anyhow::Result<ExitCode> {
    let commit = end.commit.as_ref().map(ToString::to_string);
    let line = commit.as_deref().unwrap_or(end.outcome.name());
    output.line_or_json(line, &serde_json::to_value(end)?)?;
    Ok(match end.outcome {
        DecisionOutcome::Landed => ExitCode::Success,
        DecisionOutcome::NotLanded | DecisionOutcome::Rejected => ExitCode::NoAgreement,
    })
}

fn print_not_reviewed(
    outcome: OutcomeKind,
    reason: &str,
    run: &str,
    output: &Output,
) -> anyhow::Result<ExitCode> {
    output.warn(&escape::terminal(&format!("not proposed, {outcome}: {reason}")));
    if outcome != OutcomeKind::Vetoed {
        output.warn(&format!("run `consensus resume {run}`, then repeat this command with `--review {run}`"));
    }
    if output.format != Format::Text {
        output.json(&json!({"outcome": outcome, "reason": reason, "run": run}))?;
    }
    Ok(exit_code(outcome))
}

fn print_unverified(how: &str, printed: &str, log: &Path, output: &Output) -> anyhow::Result<ExitCode> {
    let reason = format!("the verification failed: {how}");
    if !printed.is_empty() {
        output.warn(&escape::terminal(printed));
    }
    output.warn(&format!("not proposed: {reason}; its whole output is in {}", log.display()));
    let row = json!({"outcome": "unverified", "reason": reason, "log": log.display().to_string()});
    output.line_or_json("unverified", &row)?;
    Ok(ExitCode::NoAgreement)
}
