//! One line of results: how one run ended, and the cell that it belongs to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::batch::plan::Cell;
use crate::batch::tasks::RunText;
use crate::engine::{CallUsage, RunState};
use crate::journal::{Executed, InBatch};
use crate::report::RunResult;
use crypto::Digest;
use protocol::OutcomeKind;

/// The records of a grader's command for a run's text and for its blind vote; `None` where nothing was executed.
pub(in crate::batch) type Grades = [Option<Executed>; 2];

/// A line of results, which states how one run ended.
#[derive(Clone, Debug, Serialize)]
pub struct ResultLine {
    /// The task's id.
    pub task: String,
    /// The model as it was named; empty for that of the roleset or the server.
    pub model: String,
    /// The name of the arm; absent without one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub arm: String,
    pub seed: u64,
    /// The labels of the task; absent without any.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub meta: BTreeMap<String, String>,
    /// Whether the agreed text is the right answer; null if that is not known.
    pub right: Option<bool>,
    /// Whether the plain vote over blind drafts, before any talk, is right; null if that is not known.
    pub blind_right: Option<bool>,
    /// The record of the grader's command for the text; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grade: Option<Executed>,
    /// The same for the plain vote over blind drafts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blind_grade: Option<Executed>,
    /// The usage of each phase of the run.
    pub phases: BTreeMap<&'static str, CallUsage>,
    /// The SHA-256 of what the run started from, according to its task line, roleset and parameters.
    #[serde(rename = "made_of")]
    pub fingerprint: Digest,
    /// The SHA-256 of the plan of the evaluation that the run was made for; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Digest>,
    /// The fields of a `result.json`.
    #[serde(flatten)]
    pub result: RunResult,
}

/// The end of a run, from its records.
#[derive(Debug)]
pub(in crate::batch) struct ResultParts {
    pub(in crate::batch) result: RunResult,
    /// The records of the grader's command.
    pub(in crate::batch) grades: Grades,
    pub(in crate::batch) phases: BTreeMap<&'static str, CallUsage>,
    /// The plan that the run was made for, as its first record states it.
    pub(in crate::batch) plan: Option<Digest>,
}

impl ResultParts {
    pub(in crate::batch) fn new(state: &RunState, journal_head: Digest) -> Self {
        Self {
            result: RunResult::new(state, journal_head),
            grades: [None, None],
            phases: phases(state),
            plan: state.opened().cell.as_ref().and_then(|cell| cell.plan),
        }
    }

    /// Returns the text that the run came to, and that of its blind vote.
    pub(in crate::batch) fn texts(&self) -> [RunText; 2] {
        let RunResult { text, sha256, blind_vote, .. } = &self.result;
        let blind = RunText { text: blind_vote.text.clone(), sha256: blind_vote.sha256 };
        [RunText { text: text.clone(), sha256: *sha256 }, blind]
    }
}

/// Returns the usage of each phase of a run, by its name.
fn phases(state: &RunState) -> BTreeMap<&'static str, CallUsage> {
    state.phases().iter().map(|(phase, used)| (phase.name(), *used)).collect()
}

/// Returns the fields of a run's line that its records determine.
pub(in crate::batch) fn derive_fields(state: &RunState, head: Digest) -> Map<String, Value> {
    let result = serde_json::to_value(RunResult::new(state, head)).unwrap_or_default();
    let mut derived = match result {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    };
    let opened = state.opened();
    derived.insert("seed".to_owned(), opened.setup.seed.into());
    derived.insert("phases".to_owned(), json!(phases(state)));
    if let Some(InBatch { task, model, fingerprint, arm, meta, plan }) = &opened.cell {
        derived.insert("task".to_owned(), task.clone().into());
        derived.insert("model".to_owned(), model.clone().into());
        derived.insert("made_of".to_owned(), fingerprint.to_string().into());
        if !arm.is_empty() {
            derived.insert("arm".to_owned(), arm.clone().into());
        }
        if !meta.is_empty() {
            derived.insert("meta".to_owned(), json!(meta));
        }
        if let Some(plan) = plan {
            derived.insert("plan".to_owned(), json!(plan));
        }
    }
    derived
}

/// The part of a row that says which run it is of.
#[derive(Deserialize)]
#[serde(rename = "RunOnly")]
pub(in crate::batch) struct RowId {
    pub(in crate::batch) run: String,
}

/// The fields of a line that are needed to resume a batch.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename = "Known")]
pub(in crate::batch) struct EndOnRecord {
    pub(in crate::batch) run: Uuid,
    pub(in crate::batch) outcome: OutcomeKind,
    pub(in crate::batch) right: Option<bool>,
    pub(in crate::batch) journal_head: Digest,
}

/// The fields of a line that are needed to grade it again.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename = "Graded")]
pub(in crate::batch) struct ResultOnRecord {
    pub(in crate::batch) outcome: OutcomeKind,
    pub(in crate::batch) right: Option<bool>,
    pub(in crate::batch) blind_right: Option<bool>,
    #[serde(rename = "made_of")]
    pub(in crate::batch) fingerprint: Digest,
    #[serde(default)]
    grade: Option<Executed>,
    #[serde(default)]
    blind_grade: Option<Executed>,
    #[serde(flatten)]
    text: RunText,
    blind_vote: RunText,
}

impl ResultLine {
    /// Makes the line of a run of this cell, which began with this fingerprint.
    pub(in crate::batch) fn new(cell: &Cell<'_>, fingerprint: Digest, ended: ResultParts) -> Self {
        let [text, blind] = ended.texts();
        let ResultParts { result, grades, phases, plan } = ended;
        let [right, blind_right] = rights(cell, result.outcome, [&text, &blind], &grades);
        let [grade, blind_grade] = grades;
        Self {
            task: cell.task.id.clone(),
            model: cell.variant.model.clone(),
            arm: cell.variant.arm.clone(),
            seed: cell.seed,
            meta: cell.meta(),
            right,
            blind_right,
            grade,
            blind_grade,
            phases,
            fingerprint,
            plan,
            result,
        }
    }
}

impl ResultOnRecord {
    /// Returns the records of the grader's command.
    pub(in crate::batch) fn grades(&self) -> Grades {
        [self.grade.clone(), self.blind_grade.clone()]
    }

    /// Returns whether the user's command has graded the text.
    pub(in crate::batch) fn has_grade(&self) -> bool {
        self.grade.is_some() || self.blind_grade.is_some()
    }

    /// Returns the text that the run came to, and that of its blind vote.
    pub(in crate::batch) fn texts(&self) -> [&RunText; 2] {
        [&self.text, &self.blind_vote]
    }

    /// Returns whether the run and its blind vote are right by the current answer of its task and these grades.
    pub(in crate::batch) fn rights(&self, cell: &Cell<'_>, grades: &Grades) -> [Option<bool>; 2] {
        rights(cell, self.outcome, self.texts(), grades)
    }
}

/// Returns whether a run and its blind vote are right, or `None` for a run that was cut off.
fn rights(cell: &Cell<'_>, ending: OutcomeKind, texts: [&RunText; 2], grades: &Grades) -> [Option<bool>; 2] {
    if !ending.is_final() {
        return [None; 2];
    }
    let [text, blind] = texts;
    let [grade, blind_grade] = grades;
    [cell.is_right(text, grade.as_ref()), cell.is_right(blind, blind_grade.as_ref())]
}
