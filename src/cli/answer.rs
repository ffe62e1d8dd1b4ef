//! What a finished run leaves: its files, its answer on stdout, its exit code.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::Path;

use anyhow::Context;

use super::error::UsageError;
use super::global::Format;
use super::output::Output;
use crate::bft::Vote;
use crate::core::{Endpoint, ExitCode, OpenAiEndpoint};
use crate::engine::{Redaction, RunState};
use crate::journal::Record;
use crate::protocol::panel::{PanelSection, TOTAL_MAX};
use crate::protocol::review::{ApprovalSection, Reviewed};
use crate::protocol::{Outcome, Section};
use crate::report::{RunResult, worth, write_run};
use crate::text::{CanonicalKind, escape};

/// Writes `result.json` and `transcript.md` into the run folder.
pub(super) fn write_files(dir: &Path, result: &RunResult, records: &[Record]) -> anyhow::Result<()> {
    write_run(dir, result, records).with_context(|| format!("cannot write into `{}`", dir.display()))
}

/// Adds the answer with the originals in place of their tokens, where there are any: for its reader alone.
pub(super) fn restore(mut result: RunResult, ledger: &RunState, dir: &Path, output: &Output) -> RunResult {
    let Some(text) = result.text.as_ref().filter(|_| ledger.opened().redacted) else { return result };
    match Redaction::load(dir) {
        Ok(redaction) if ledger.opened().setup.canonical.kind == CanonicalKind::Json => {
            result.restored_text = Some(redaction.redactions().restore_json(text));
        }
        Ok(redaction) => result.restored_text = Some(redaction.redactions().restore(text)),
        Err(why) => output.insist(&format!("the answer has tokens in place of its originals: {why}")),
    }
    result
}

/// A file for the answer, besides stdout.
pub(super) struct AnswerFile(Option<File>);

impl AnswerFile {
    /// Opens the file before anything is spent or started; what it holds stays until [`Self::empty`], since it may
    /// be what the run is about.
    pub(super) fn open(path: Option<&Path>) -> anyhow::Result<Self> {
        let open = |path: &Path| {
            let why = |e| UsageError(format!("cannot write the answer to `{}`: {e}", path.display()));
            File::options().create(true).append(true).open(path).map_err(why)
        };
        Ok(Self(path.map(open).transpose()?))
    }

    /// Empties the file: without an answer nobody shall read an older one. A pipe or a device has nothing to empty.
    pub(super) fn empty(&self) -> anyhow::Result<()> {
        match &self.0 {
            Some(file) if file.metadata()?.is_file() => {
                file.set_len(0).context("cannot empty the file for the copy of the answer")
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Writes the answer, if there is one.
    pub(super) fn write(&mut self, result: &RunResult) -> anyhow::Result<()> {
        result.readable().map_or(Ok(()), |text| self.write_text(text))
    }

    /// Writes a text.
    pub(super) fn write_text(&mut self, text: &str) -> anyhow::Result<()> {
        let Some(file) = &mut self.0 else { return Ok(()) };
        writeln!(file, "{text}").context("cannot write the copy of the answer")
    }
}

/// Prints the answer and returns the exit code.
pub(super) fn print(output: &Output, result: &RunResult, fail_on_degraded: bool) -> anyhow::Result<ExitCode> {
    match output.format {
        Format::Text => {
            if let Some(text) = result.readable() {
                // A program gets the text as it is; a terminal must not be driven by it.
                let is_terminal = std::io::stdout().is_terminal();
                output.line(&if is_terminal { escape::terminal(text) } else { text.to_owned() })?;
            }
        }
        Format::Json | Format::Csv | Format::Html => output.print(&result.to_json())?,
        Format::Jsonl => output.line(&serde_json::to_string(result)?)?,
    }
    Ok(exit_code(result, fail_on_degraded))
}

/// Tells on stderr how the run ended.
pub(super) fn tell(output: &Output, result: &RunResult, dir: &Path, endpoints: &[Endpoint]) {
    let detail = match (&result.how, &result.reason) {
        (Some(how), _) => format!(" ({})", how.name()),
        (None, Some(reason)) => format!(": {}", escape::terminal(reason)),
        (None, None) => String::new(),
    };
    let color = if result.text.is_some() { "1;32" } else { "1;33" };
    let usage = &result.usage;
    let ending = format!("{}{detail}", output.paint(result.outcome, color));
    match result.outcome {
        // Without these words a script has a number and nothing else.
        "failed" | "budget" => output.insist(&ending),
        _ => output.tell(&ending),
    }
    output.tell(&format!(
        "rounds {}, calls {}, tokens {} + {} ({} cached), {:.1} s",
        result.rounds,
        usage.calls,
        usage.prompt,
        usage.completion,
        usage.cached,
        result.timing.total_ms as f64 / 1000.0,
    ));
    for dissent in &result.dissent {
        let text = escape::excerpt(&dissent.text);
        output.tell(&format!("other answer: {} ({}): {text}", dissent.agent, dissent.stage));
    }
    let mut section = &result.section;
    if let Section::MapReduce(spread) = section {
        section = spread.answer.as_deref().unwrap_or(section);
    }
    if let Section::Panel(panel) = section {
        tell_panel(output, panel);
    } else if let Section::Approval(approval) = section {
        tell_reviews(output, approval);
    }
    for loss in &result.degraded {
        output.tell(&format!("{}: {}", output.paint("degraded", "33"), escape::terminal(&loss.detail)));
    }
    let name = dir.display();
    let again = format!("; go on with `consensus resume {name}`{}", needed_again(endpoints));
    let hint = match result.outcome {
        "interrupted" | "failed" => again,
        "budget" => format!("{again}, and a higher --max-tokens-total, --max-cost or --deadline"),
        _ => String::new(),
    };
    output.tell(&format!("record: {name}{hint}"));
    // The last line, so that a reader of a long story does not miss it.
    if let Some(worth) = worth(result, endpoints) {
        output.tell(&worth);
    }
}

/// Tells how a panel's best answer did, and what to know before trusting it.
fn tell_panel(output: &Output, panel: &PanelSection) {
    if let Some(best) = &panel.winner {
        let (name, mean) = (&best.response.member, best.average_score.unwrap_or_default());
        let wanted = panel.consensus_threshold.value() * f64::from(TOTAL_MAX);
        output.tell(&format!("best: {name}, {mean:.1} of {TOTAL_MAX} points (wanted {wanted:.1})"));
    }
    let saved = panel.cancelled_ballots;
    if saved > 0 {
        output.tell(&format!("saved: {saved} ballots that could change nothing"));
    }
    for note in &panel.notes {
        output.tell(&format!("note: {}", escape::terminal(note)));
    }
}

/// Tells what each reviewer found.
fn tell_reviews(output: &Output, approval: &ApprovalSection) {
    let approving = approval.reviews.iter().filter(|review| review.opinion.vote() == Vote::Approve).count();
    let ApprovalSection { reviewers, faults, quorum, .. } = approval;
    output.tell(&format!(
        "approve: {approving} of {reviewers} reviewers (wanted {quorum}, of whom {faults} may be wrong)"
    ));
    for Reviewed { reviewer, findings, .. } in &approval.reviews {
        for finding in findings {
            output.tell(&escape::terminal(&format!("{reviewer}: {finding}")));
        }
    }
}

/// What a journal does not hold, and whoever resumes must say again.
fn needed_again(endpoints: &[Endpoint]) -> &'static str {
    let any = |is: fn(&OpenAiEndpoint) -> bool| {
        endpoints.iter().any(|endpoint| matches!(endpoint, Endpoint::OpenAi(e) if is(e)))
    };
    if any(|endpoint| endpoint.launched) {
        " with the same --launch and --model"
    } else if any(|endpoint| endpoint.api_key_env.is_some() || endpoint.api_key_file.is_some()) {
        ", with --base-url if it was given"
    } else {
        ""
    }
}

pub(super) fn exit_code(result: &RunResult, fail_on_degraded: bool) -> ExitCode {
    match result.outcome {
        "agreed" if fail_on_degraded && !result.degraded.is_empty() => ExitCode::Degraded,
        "agreed" => ExitCode::Success,
        "no_agreement" => ExitCode::NoAgreement,
        "vetoed" => ExitCode::Vetoed,
        "budget" => ExitCode::Budget,
        "failed" => ExitCode::Provider,
        _ => ExitCode::Interrupted,
    }
}

/// Returns true if an outcome leaves nothing to do.
pub(super) fn is_complete(outcome: Option<&Outcome>) -> bool {
    outcome.is_some_and(Outcome::is_final)
}
