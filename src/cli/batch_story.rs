//! The story of a batch: a moving line on a terminal, a line a minute elsewhere, and a progress file for programs that watch.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{IsTerminal as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use serde_json::json;
use tokio::sync::watch;

use super::args::Format;
use super::output::Output;
use super::spinner;
use crate::batch::{
    BatchEnd, BatchError, BatchObserver, BatchStats, EndCounts, ProcessState, Progress, ReadyBatch,
    ResultLine, ShardOf,
};
use crate::engine::StopRequest;
use crate::files::check_own;
use crate::journal::Executed;
use protocol::OutcomeKind;
use protocol::pacing::{BudgetEnd, BudgetRuling, RoundPlan, SamplePermit};
use protocol::text::{counted, escape, grouped};

/// The time between two lines if no line moves.
const LINE_EVERY: Duration = Duration::from_mins(1);

/// The time between two writes of the progress file.
const FILE_EVERY: Duration = Duration::from_secs(2);

/// The largest number of different reasons that are printed.
const REASONS_MAX: usize = 5;

/// The largest number of lines that cannot be run and are printed one by one.
const REFUSED_PRINTED_MAX: u64 = 20;

/// Runs a batch to its end or until it is to stop, and prints its story.
pub(super) async fn run_batch(
    batch: ReadyBatch,
    stop: &watch::Receiver<StopRequest>,
    output: &Output,
) -> Result<BatchEnd, BatchError> {
    let story = BatchStory::new(*output, &batch.folder, batch.shard())?;
    let (ended, server) = batch.run(stop, &story).await;
    let is_stopped = *stop.borrow() != StopRequest::None;
    Ok(BatchEnd { figures: story.finish(ended, is_stopped)?, is_stopped, server })
}

struct BatchStory {
    output: Output,
    folder: PathBuf,
    shard: ShardOf,
    bar: Option<ProgressBar>,
    /// The file of lines that cannot be run, with an object for each.
    refused: RefCell<File>,
    refused_path: PathBuf,
    refused_count: Cell<u64>,
    /// The reasons why runs failed or reached a limit, and the number of runs for each.
    reasons: RefCell<BTreeMap<String, u64>>,
    /// The numbers of texts that the user's command has graded right and wrong.
    grades: Cell<(u64, u64)>,
    /// What that command said of the last text.
    last_grade: RefCell<String>,
    last: RefCell<BatchStats>,
    line_at: Cell<Instant>,
    file_at: Cell<Option<Instant>>,
}

impl BatchStory {
    fn new(output: Output, folder: &Path, shard: ShardOf) -> Result<Self, BatchError> {
        let refused_path = folder.join(format!("refused-{}.jsonl", shard.index));
        // Only the faults of this invocation count, so the file is emptied.
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600);
        let refused = check_own(&refused_path)
            .and_then(|()| options.open(&refused_path))
            .map_err(|source| BatchError::Refused { path: refused_path.clone(), source })?;
        Ok(Self {
            bar: new_bar(output),
            output,
            folder: folder.to_owned(),
            shard,
            refused: RefCell::new(refused),
            refused_path,
            refused_count: Cell::new(0),
            reasons: RefCell::default(),
            grades: Cell::default(),
            last_grade: RefCell::default(),
            last: RefCell::default(),
            line_at: Cell::new(Instant::now()),
            file_at: Cell::new(None),
        })
    }

    fn warn(&self, text: &str) {
        self.output.warn(&escape::terminal(text));
    }

    /// Prints and returns the last figures, or returns the error that stopped the batch.
    fn finish(
        &self,
        ended: Result<BatchStats, BatchError>,
        is_stopped: bool,
    ) -> Result<BatchStats, BatchError> {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let figures = match ended {
            Ok(figures) => figures,
            Err(why) => {
                self.write(&self.last.borrow(), ProcessState::Stopped);
                return Err(why);
            }
        };
        self.write(&figures, if is_stopped { ProcessState::Stopped } else { ProcessState::Ended });
        self.output.status(&describe_end(&figures));
        if figures.ended.all() + figures.refused == 0 && !is_stopped {
            self.output.warn("there is no task for this shard");
        }
        let refused = self.refused_count.get();
        if refused > 0 {
            let path = self.refused_path.display();
            self.output
                .warn(&format!("{} cannot be run; see {path} for the reasons", counted(refused, "line")));
        }
        for (reason, count) in self.reasons.borrow().iter().filter(|(_, count)| **count > 1) {
            self.output.warn(&escape::terminal(&format!("{count} times: {reason}")));
        }
        if figures.ended.failed + figures.ended.budget > 0 {
            self.output.warn("to continue runs that failed or reached a limit, add --retry failed,budget");
        }
        if figures.rescored > 0 {
            let rescored = counted(figures.rescored, "earlier run");
            self.output.warn(&format!("{rescored} got a different grade"));
        }
        let (passed, failed) = self.grades.get();
        if failed > 1 && passed == 0 {
            self.output.warn(&escape::terminal(&format!(
                "the command of --grader-command passed none of {failed} texts; of the last one it said: {}",
                self.last_grade.borrow()
            )));
        }
        let changed = figures.changed;
        if changed > 0 {
            self.output.warn(&format!(
                "{} kept unchanged, although the task, the roleset or a parameter has changed since; for new runs, give another \
                 --output. A line without an id is identified by its number, so add such lines at the end only",
                counted(changed, "run")
            ));
        }
        let folder = self.folder.display();
        let hint = if is_stopped { "; the same command continues the batch" } else { "" };
        let results = format!("results: {folder}/results-{}.jsonl{hint}", self.shard.index);
        self.output.status(&escape::terminal(&results));
        Ok(figures)
    }

    fn write(&self, figures: &BatchStats, state: ProcessState) {
        let progress = Progress::new(self.shard, state, SystemTime::now(), figures.clone());
        // No run ends because the progress file cannot be written. If the disk is full, the journal reports it.
        if let Err(why) = progress.write(&self.folder, self.shard) {
            tracing::warn!("cannot write the progress file: {why}");
        }
    }
}

impl BatchObserver for BatchStory {
    fn on_refusal(&self, number: u64, id: Option<&str>, why: &str) {
        let count = self.refused_count.get() + 1;
        self.refused_count.set(count);
        let line = json!({"line": number, "task": id, "why": why});
        if let Err(why) = writeln!(self.refused.borrow_mut(), "{line}") {
            tracing::warn!("cannot write to `{}`: {why}", self.refused_path.display());
        }
        if count <= REFUSED_PRINTED_MAX {
            let task = id.map(|id| format!(" (task `{id}`)")).unwrap_or_default();
            self.warn(&format!("line {number}{task} cannot be run: {why}"));
        }
    }

    fn on_end(&self, row: &ResultLine) {
        let outcome = row.result.outcome;
        if matches!(outcome, OutcomeKind::Failed | OutcomeKind::Budget)
            && let Some(reason) = &row.result.reason
        {
            let mut reasons = self.reasons.borrow_mut();
            if let Some(count) = reasons.get_mut(reason) {
                *count += 1;
            } else if reasons.len() < REASONS_MAX {
                self.warn(&format!("task `{}`, {outcome}: {reason}", row.task));
                reasons.insert(reason.clone(), 1);
            }
        }
        if let Some(Executed { result, .. }) = &row.grade {
            let (passed, failed) = self.grades.get();
            let is_right = result.end.is_success();
            self.grades.set((passed + u64::from(is_right), failed + u64::from(!is_right)));
            let printed = escape::excerpt(result.last_line().unwrap_or("nothing"));
            self.last_grade.replace(format!("it {}: {printed}", result.end));
        }
        if self.output.format == Format::Jsonl {
            // A row that was serialised before can be serialised again, and a reader that has gone away is not an error.
            let _ = self.output.line(&serde_json::to_string(row).unwrap_or_default());
        }
    }

    fn on_ruling(&self, plan: &RoundPlan, budget: u64) {
        let (runs, budget) = (counted(plan.runs.len(), "run"), grouped(budget));
        let line = match plan.ruling {
            BudgetRuling::Permit(SamplePermit { round, threshold, spent }) => {
                let spent = grouped(spent);
                format!(
                    "round {round}: one more sample for {runs} below {threshold}, after {spent} of {budget} tokens"
                )
            }
            BudgetRuling::Close(BudgetEnd { spent }) => {
                format!(
                    "{} of {budget} tokens are used; the samples that there are decide {runs}",
                    grouped(spent)
                )
            }
        };
        self.output.status(&line);
    }

    fn on_progress(&self, figures: &BatchStats) {
        figures.clone_into(&mut self.last.borrow_mut());
        if self.file_at.get().is_none_or(|at| at.elapsed() >= FILE_EVERY) {
            self.file_at.set(Some(Instant::now()));
            self.write(figures, ProcessState::Running);
        }
        match &self.bar {
            Some(bar) => {
                let ended = figures.ended.all();
                bar.set_length(figures.cells.map_or(ended, round_count).max(ended));
                bar.set_position(ended);
                bar.set_message(describe_progress(figures));
            }
            None if self.line_at.get().elapsed() >= LINE_EVERY => {
                self.line_at.set(Instant::now());
                self.output.status(&describe_progress(figures));
            }
            None => {}
        }
    }
}

/// Returns an estimated count as a whole number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is a count of lines, and positive"
)]
fn round_count(count: f64) -> u64 {
    count.round() as u64
}

/// Returns a moving line, if a person can see it.
fn new_bar(output: Output) -> Option<ProgressBar> {
    if output.quiet || !std::io::stderr().is_terminal() {
        return None;
    }
    let bar = spinner::lines(Some(1));
    // The template is a valid constant. If it ever were not, the default would do.
    let style = ProgressStyle::with_template("{bar:20} {wide_msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    Some(bar)
}

/// Returns the counts of runs in words, by how they ended. A count of zero is left out.
pub(super) fn describe_ends(tally: &EndCounts) -> String {
    let kinds = [
        (tally.agreed, "agreed"),
        (tally.no_agreement, "without agreement"),
        (tally.abstained, "abstained"),
        (tally.vetoed, "vetoed"),
        (tally.budget, "at a limit"),
        (tally.failed, "failed"),
    ];
    let mut words: Vec<String> =
        kinds.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if words.is_empty() {
        words.push("none ended".to_owned());
    }
    if tally.right + tally.wrong > 0 {
        words.push(format!("{} right and {} wrong", tally.right, tally.wrong));
    }
    words.join(", ")
}

/// Returns the line for a batch that has ended: its runs, their cost and the time.
fn describe_end(figures: &BatchStats) -> String {
    let mut parts = vec![format!("{} ended ({})", figures.ended.all(), describe_ends(&figures.ended))];
    if let Some(cost) = figures.cost_micro_usd.filter(|cost| *cost > 0) {
        parts.push(format!("{:.4} USD", cost as f64 / 1e6));
    }
    parts.push(format!("{:.1} s", figures.seconds));
    parts.join(", ")
}

/// Returns the line for a batch under way, with its speed and the time that is left.
fn describe_progress(figures: &BatchStats) -> String {
    let about = if figures.all_read { "" } else { "about " };
    let of = figures.cells.map_or(String::new(), |cells| format!(" of {about}{}", round_count(cells)));
    let mut parts = vec![format!("{}{of} ended ({})", figures.ended.all(), describe_ends(&figures.ended))];
    if figures.under_way > 0 {
        parts.push(format!("{} under way", figures.under_way));
    }
    parts.push(format!("{:.0} tokens/s", figures.tokens_per_second()));
    if let Some(cost) = figures.cost_micro_usd.filter(|cost| *cost > 0) {
        parts.push(format!("{:.4} USD", cost as f64 / 1e6));
    }
    if figures.under_way > 0
        && let Some(eta) = figures.eta_seconds
    {
        parts.push(format!("{} left", HumanDuration(Duration::from_secs_f64(eta.min(1e9)))));
    }
    parts.join(", ")
}
