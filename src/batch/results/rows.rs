//! The results of a batch, run by run.
//!
//! The input is the results of all shards. The output is one row per run. A run that was tried again counts by its last end.

use std::collections::hash_map::Entry as Slot;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::BufReader;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::batch::folder::{BatchError, layout};
use crate::batch::store::{RowId, derive_fields};
use crate::engine::RunState;
use crate::files::{open_own, read_line};
use crate::journal::{Entry, Record, read_shared, require_own_build};
use crypto::Digest;
use protocol::core::Endpoint;
use protocol::{DegradedKind, OutcomeKind};

/// The row of a run: how it ended, and the cell that it belongs to.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename = "Told")]
pub struct ResultRow {
    /// The task's id.
    pub task: String,
    pub roleset: String,
    /// The model as it was named.
    pub model: String,
    /// The name of the arm; empty without one.
    #[serde(default)]
    pub arm: String,
    pub seed: u64,
    /// The labels of the task, by name.
    #[serde(default)]
    pub meta: BTreeMap<String, String>,
    /// The run's id.
    pub run: String,
    /// The end of the run.
    pub outcome: OutcomeKind,
    /// The way in which the agents agreed, by its name.
    pub how: Option<String>,
    /// The reason, if the outcome alone does not say it.
    pub reason: Option<String>,
    /// The agreed text.
    pub text: Option<String>,
    /// The digest of its canonical form.
    pub sha256: Option<Digest>,
    /// Whether the run came to the right answer, if that is known.
    #[serde(default)]
    pub right: Option<bool>,
    /// Whether the plain vote over blind drafts is right, if that is known.
    #[serde(default)]
    pub blind_right: Option<bool>,
    /// The confidence in the answer, by a calibration.
    #[serde(default)]
    confidence: Option<ConfidenceRow>,
    /// The number of rounds.
    pub rounds: u32,
    /// What the run used.
    pub usage: UsageRow,
    /// The times of the run.
    pub timing: TimingRow,
    pub(in crate::batch) journal_head: Digest,
    /// The SHA-256 of the plan of the evaluation that the run was made for, if any.
    #[serde(default)]
    pub plan: Option<Digest>,
    /// The folder of the batch, as it was named.
    #[serde(skip)]
    pub folder: String,
    #[serde(default)]
    pub(super) phases: BTreeMap<String, PhaseRow>,
    #[serde(default)]
    agents: Vec<AgentRow>,
    /// The plain vote over blind drafts.
    #[serde(default)]
    pub blind_vote: BlindVoteRow,
    /// The samples and votes of a run in which no agent talks to another.
    #[serde(default)]
    pub vote: Option<VoteRow>,
    /// The losses of the run.
    #[serde(default)]
    degraded: Vec<LossRow>,
}

/// The model of the replies before a run was resumed on another one.
const ANOTHER_MODEL: &str = "another model";

/// A loss of a run.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename = "LossTold")]
struct LossRow {
    kind: String,
}

/// The confidence in an answer.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename = "ConfidenceTold")]
struct ConfidenceRow {
    value: f64,
}

/// An agent of a run.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename = "AgentTold")]
struct AgentRow {
    /// The model with its place.
    #[serde(default)]
    endpoint: String,
}

/// The plain vote over the blind drafts of a run.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename = "BlindTold")]
pub struct BlindVoteRow {
    /// Every text with its number of votes, the most votes first.
    pub tally: Vec<TallyRow>,
}

/// The votes for one text.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename = "TallyTold")]
pub struct TallyRow {
    pub text: String,
    /// The digest of its canonical form.
    pub sha256: Digest,
    /// The number of votes.
    pub votes: u32,
}

/// The votes of a run.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename = "VotesTold")]
pub struct VoteRow {
    /// The grounds on which the votes ended the run, by their letter.
    pub class: Option<String>,
    /// The probability that the first answer is the more frequent one.
    pub certainty_value: f64,
    /// The samples, in the order in which they are looked at.
    pub samples: Vec<SampleRow>,
}

/// One sample of a vote.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename = "SampleTold")]
pub struct SampleRow {
    /// Whether it counts.
    pub counts: bool,
    /// The answer; `None` for a sample that is no vote.
    pub text: Option<String>,
    /// The digest of the answer.
    pub sha256: Option<Digest>,
}

/// The usage of one phase of a run.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename = "PhaseTold")]
pub(super) struct PhaseRow {
    pub(super) prompt: u64,
    pub(super) completion: u64,
}

/// What a run used.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename = "UsageTold")]
pub struct UsageRow {
    /// The tokens of all prompts.
    pub prompt: u64,
    /// The prompt tokens that servers had computed before.
    pub cached: u64,
    /// The tokens of all replies.
    pub completion: u64,
    /// The number of replies.
    pub calls: u64,
    /// The cost in millionths of a US dollar; `None` if a price is not known.
    pub cost_micro_usd: Option<u64>,
}

/// The times of a run.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename = "TimingTold")]
pub struct TimingRow {
    /// The milliseconds from begin to end.
    pub total_ms: u64,
}

/// A run as a flat row, for tables.
#[derive(Clone, Debug, Serialize)]
pub struct FlatRow<'a> {
    task: &'a str,
    roleset: &'a str,
    model: &'a str,
    seed: u64,
    outcome: &'static str,
    how: Option<&'a str>,
    reason: Option<&'a str>,
    text: Option<&'a str>,
    right: Option<bool>,
    blind_right: Option<bool>,
    rounds: u32,
    calls: u64,
    prompt_tokens: u64,
    cached_tokens: u64,
    completion_tokens: u64,
    cost_micro_usd: Option<u64>,
    milliseconds: u64,
    run: &'a str,
    arm: &'a str,
    folder: &'a str,
    meta: &'a BTreeMap<String, String>,
    confidence: Option<f64>,
}

impl ResultRow {
    /// Returns true if its agents talk to one another where they do not agree.
    pub(super) fn can_talk(&self) -> bool {
        self.vote.is_none()
    }

    /// Returns the models of the agents, without their places, each once and in order.
    pub fn models(&self) -> BTreeSet<String> {
        self.agents.iter().map(|agent| Endpoint::model_in(&agent.endpoint).to_owned()).collect()
    }

    /// Returns the models of the agents, and another one for a run that was resumed on other models than it began with.
    pub fn all_models(&self) -> BTreeSet<String> {
        let mut models = self.models();
        if self.degraded.iter().any(|loss| loss.kind == DegradedKind::ModelChanged.name()) {
            models.insert(ANOTHER_MODEL.to_owned());
        }
        models
    }

    /// Returns the run as a flat row.
    pub fn flat(&self) -> FlatRow<'_> {
        let UsageRow { prompt, cached, completion, calls, cost_micro_usd } = self.usage;
        FlatRow {
            task: &self.task,
            roleset: &self.roleset,
            model: &self.model,
            seed: self.seed,
            outcome: self.outcome.name(),
            how: self.how.as_deref(),
            reason: self.reason.as_deref(),
            text: self.text.as_deref(),
            right: self.right,
            blind_right: self.blind_right,
            rounds: self.rounds,
            calls,
            prompt_tokens: prompt,
            cached_tokens: cached,
            completion_tokens: completion,
            cost_micro_usd,
            milliseconds: self.timing.total_ms,
            run: &self.run,
            arm: &self.arm,
            folder: &self.folder,
            meta: &self.meta,
            confidence: self.confidence.as_ref().map(|confidence| confidence.value),
        }
    }
}

/// Reads all results of the batch in a folder, and passes each run to `each`, in the order of its shard's file.
///
/// If the results of a shard are missing, they are derived from its journal. Whether a run is right is then not known, since no journal
/// holds the right answer.
///
/// Returns [`BatchError`], for example if there is no batch.
pub fn results(folder: &Path, mut each: impl FnMut(ResultRow)) -> Result<(), BatchError> {
    for index in 0..layout::count(folder)? {
        require_own_build(&layout::journal_file(folder, index))?;
        let path = layout::results_file(folder, index);
        if !path.exists() {
            derive_rows(folder, index, &mut each)?;
            continue;
        }
        // The number of each run's last line, which is the one that counts.
        let mut last: HashMap<String, u64> = HashMap::new();
        lines(&path, |number, _, _, RowId { run }| {
            last.insert(run, number);
            Ok(())
        })?;
        lines(&path, |number, _, _, row: ResultRow| {
            if last.get(&row.run) == Some(&number) {
                each(ResultRow { folder: folder.display().to_string(), ..row });
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Passes each run of a shard that has ended to `each`, with the row that follows from its records.
fn derive_rows(folder: &Path, index: u64, each: &mut impl FnMut(ResultRow)) -> Result<(), BatchError> {
    let journal = layout::journal_file(folder, index);
    if !journal.exists() {
        return Ok(());
    }
    let mut open: HashMap<String, RunState> = HashMap::new();
    let mut unfinished: BTreeMap<String, ResultRow> = BTreeMap::new();
    read_shared(&journal, |record: Record, line| {
        unfinished.remove(&record.run);
        let state = match open.entry(record.run.clone()) {
            Slot::Occupied(slot) => {
                let state = slot.into_mut();
                state.apply(&record).map_err(|why| why.to_string())?;
                state
            }
            Slot::Vacant(slot) => slot.insert(RunState::open(&record).map_err(|why| why.to_string())?),
        };
        if let Entry::Stopped { outcome } = &record.event {
            let row = Value::Object(derive_fields(state, line.sha256));
            let row: ResultRow = serde_json::from_value(row).map_err(|why| why.to_string())?;
            let row = ResultRow { folder: folder.display().to_string(), ..row };
            if outcome.is_final() {
                each(row);
                open.remove(&record.run);
            } else {
                unfinished.insert(record.run, row);
            }
        }
        Ok(())
    })?;
    for row in unfinished.into_values() {
        each(row);
    }
    Ok(())
}

/// Passes each line of results to `each`: its number, its offset and length in bytes, and its row, or the part of it that `T` takes.
pub(in crate::batch) fn lines<T: DeserializeOwned>(
    path: &Path,
    mut each: impl FnMut(u64, u64, usize, T) -> Result<(), String>,
) -> Result<(), BatchError> {
    let file = open_own(path).map_err(|why| BatchError::of_results(path, 1, why))?;
    let mut lines = BufReader::with_capacity(1 << 16, file);
    let (mut line, mut number, mut offset) = (Vec::new(), 0, 0);
    loop {
        line.clear();
        number += 1;
        let bytes =
            read_line(&mut lines, &mut line).map_err(|why| BatchError::of_results(path, number, why))?;
        // A line that is only half written does not count yet.
        if line.last() != Some(&b'\n') {
            return Ok(());
        }
        let row = serde_json::from_slice(&line)
            .map_err(|why| BatchError::bad_result(path, number, why.to_string()))?;
        each(number, offset, bytes, row).map_err(|why| BatchError::bad_result(path, number, why))?;
        offset += bytes as u64;
    }
}
