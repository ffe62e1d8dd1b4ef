//! The story of a batch: a moving line on a terminal, a line a minute elsewhere, and a file for whoever watches.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{IsTerminal as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context as _;
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use serde_json::json;

use super::args::Format;
use super::moving;
use super::output::Output;
use crate::batch::{BatchError, BatchStats, EndCounts, Progress, ResultLine, ShardOf, State, Watcher};
use crate::files::check_own;
use crate::protocol::OutcomeKind;
use crate::text::{counted, escape};

/// How often a line is told where nothing moves.
const LINE_EVERY: Duration = Duration::from_mins(1);

/// How often the file for watchers is written.
const FILE_EVERY: Duration = Duration::from_secs(2);

/// So many different reasons are told.
const REASONS_MAX: usize = 5;

/// So many lines that cannot be run are told one by one.
const REFUSED_TOLD: u64 = 20;

/// Tells how far a batch is.
pub(super) struct BatchStory {
    output: Output,
    folder: PathBuf,
    shard: ShardOf,
    bar: Option<ProgressBar>,
    /// Lines that cannot be run, one a line.
    refused: RefCell<File>,
    refused_path: PathBuf,
    refused_count: Cell<u64>,
    /// Why runs have failed, or come to a limit, and how many for each reason.
    reasons: RefCell<BTreeMap<String, u64>>,
    /// The last figures.
    last: RefCell<BatchStats>,
    line_at: Cell<Instant>,
    file_at: Cell<Option<Instant>>,
}

impl BatchStory {
    pub(super) fn new(output: Output, folder: &Path, shard: ShardOf) -> anyhow::Result<Self> {
        let refused_path = folder.join(format!("refused-{}.jsonl", shard.index));
        // What is wrong now counts, and not what was.
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600);
        let refused = check_own(&refused_path)
            .and_then(|()| options.open(&refused_path))
            .with_context(|| format!("cannot write `{}`", refused_path.display()))?;
        Ok(Self {
            bar: bar(output),
            output,
            folder: folder.to_owned(),
            shard,
            refused: RefCell::new(refused),
            refused_path,
            refused_count: Cell::new(0),
            reasons: RefCell::default(),
            last: RefCell::default(),
            line_at: Cell::new(Instant::now()),
            file_at: Cell::new(None),
        })
    }

    fn warn(&self, text: &str) {
        self.output.warn(&escape::terminal(text));
    }

    /// Ends with the last figures, or with what kept it from going on.
    pub(super) fn finish(
        &self,
        ended: Result<BatchStats, BatchError>,
        is_stopped: bool,
    ) -> anyhow::Result<BatchStats> {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let figures = match ended {
            Ok(figures) => figures,
            Err(why) => {
                self.write(&self.last.borrow(), State::Stopped);
                return Err(why.into());
            }
        };
        self.write(&figures, if is_stopped { State::Stopped } else { State::Ended });
        self.output.status(&last_line(&figures));
        if figures.ended.all() + figures.refused == 0 && !is_stopped {
            self.output.warn("there is no task for this shard");
        }
        let refused = self.refused_count.get();
        if refused > 0 {
            let path = self.refused_path.display();
            self.output.warn(&format!("{} cannot be run; {path} has the reasons", counted(refused, "line")));
        }
        for (reason, count) in self.reasons.borrow().iter().filter(|(_, count)| **count > 1) {
            self.output.warn(&escape::terminal(&format!("{count} times: {reason}")));
        }
        if figures.ended.failed + figures.ended.budget > 0 {
            self.output.warn("--retry failed,budget goes on with what has failed or come to a limit");
        }
        if figures.rescored > 0 {
            let rescored = counted(figures.rescored, "earlier run");
            self.output.warn(&format!("{rescored} graded again, since the answers have changed"));
        }
        let changed = figures.changed;
        if changed > 0 {
            self.output.warn(&format!(
                "{} kept as made and as graded, although the task, the roleset or a parameter has changed since; new ones need another \
                 --output. A line without an id is known by its number, so lines may be added at the end only",
                counted(changed, "run")
            ));
        }
        let folder = self.folder.display();
        let hint = if is_stopped { "; the same command goes on with it" } else { "" };
        self.output.status(&format!("results: {folder}/results-{}.jsonl{hint}", self.shard.index));
        Ok(figures)
    }

    fn write(&self, figures: &BatchStats, state: State) {
        let updated_at = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let shard = self.shard.to_string();
        let progress = Progress { v: 1, shard, state, updated_at, figures: figures.clone() };
        // Nobody's run ends because a watcher's file cannot be written; where the disk is full, the journal says so.
        if let Err(why) = progress.write(&self.folder, self.shard) {
            tracing::warn!("how far it is cannot be written: {why}");
        }
    }
}

impl Watcher for BatchStory {
    fn refused(&self, number: u64, id: Option<&str>, why: &str) {
        let count = self.refused_count.get() + 1;
        self.refused_count.set(count);
        let line = json!({"line": number, "task": id, "why": why});
        if let Err(why) = writeln!(self.refused.borrow_mut(), "{line}") {
            tracing::warn!("cannot write to `{}`: {why}", self.refused_path.display());
        }
        if count <= REFUSED_TOLD {
            let task = id.map(|id| format!(" (task `{id}`)")).unwrap_or_default();
            self.warn(&format!("line {number}{task} cannot be run: {why}"));
        }
    }

    fn ended(&self, row: &ResultLine) {
        if let Some(reason) = row
            .result
            .reason
            .as_ref()
            .filter(|_| matches!(row.result.outcome, OutcomeKind::Failed | OutcomeKind::Budget))
        {
            let mut reasons = self.reasons.borrow_mut();
            if let Some(count) = reasons.get_mut(reason) {
                *count += 1;
            } else if reasons.len() < REASONS_MAX {
                let outcome = row.result.outcome;
                self.warn(&format!("task `{}`, {outcome}: {reason}", row.task));
                reasons.insert(reason.clone(), 1);
            }
        }
        if self.output.format == Format::Jsonl {
            // A row that was written can be written again; a reader that left is no error.
            let _ = self.output.line(&serde_json::to_string(row).unwrap_or_default());
        }
    }

    fn so_far(&self, figures: &BatchStats) {
        figures.clone_into(&mut self.last.borrow_mut());
        if self.file_at.get().is_none_or(|at| at.elapsed() >= FILE_EVERY) {
            self.file_at.set(Some(Instant::now()));
            self.write(figures, State::Running);
        }
        match &self.bar {
            Some(bar) => {
                let ended = figures.ended.all();
                bar.set_length(figures.cells.map_or(ended, whole).max(ended));
                bar.set_position(ended);
                bar.set_message(line(figures));
            }
            None if self.line_at.get().elapsed() >= LINE_EVERY => {
                self.line_at.set(Instant::now());
                self.output.status(&line(figures));
            }
            None => {}
        }
    }
}

/// A count that was estimated.
fn whole(count: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is a count of lines, and positive"
    )]
    let whole = count.round() as u64;
    whole
}

/// Returns a moving line, where somebody can see it.
fn bar(output: Output) -> Option<ProgressBar> {
    let live = !output.quiet && std::io::stderr().is_terminal();
    live.then(|| {
        let bar = moving::lines(Some(1));
        // The template is a constant and valid; the default serves if it ever were not.
        let style = ProgressStyle::with_template("{bar:20} {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar
    })
}

/// Runs in words, by how they ended; what did not happen is left out.
pub(super) fn in_words(tally: &EndCounts) -> String {
    let kinds = [
        (tally.agreed, "agreed"),
        (tally.no_agreement, "without agreement"),
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

/// How far it has come, in a line.
fn last_line(figures: &BatchStats) -> String {
    let mut parts = vec![format!("{} ended ({})", figures.ended.all(), in_words(&figures.ended))];
    if let Some(cost) = figures.cost_micro_usd.filter(|cost| *cost > 0) {
        parts.push(format!("{:.4} USD", cost as f64 / 1e6));
    }
    parts.push(format!("{:.1} s", figures.seconds));
    parts.join(", ")
}

/// How far it is, in a line.
fn line(figures: &BatchStats) -> String {
    let about = if figures.all_read { "" } else { "about " };
    let of = figures.cells.map_or(String::new(), |cells| format!(" of {about}{}", whole(cells)));
    let mut parts = vec![format!("{}{of} ended ({})", figures.ended.all(), in_words(&figures.ended))];
    if figures.under_way > 0 {
        parts.push(format!("{} under way", figures.under_way));
    }
    parts.push(format!("{:.0} tokens/s", figures.tokens_per_second()));
    if let Some(cost) = figures.cost_micro_usd.filter(|cost| *cost > 0) {
        parts.push(format!("{:.4} USD", cost as f64 / 1e6));
    }
    if let Some(eta) = figures.eta_seconds.filter(|_| figures.under_way > 0) {
        parts.push(format!("{} left", HumanDuration(Duration::from_secs_f64(eta.min(1e9)))));
    }
    parts.join(", ")
}
