//! The result lines of a shard, compared with its journal.
//!
//! The input is a file of results, and each end of each run as the journal gives it. The output is whether the run's last line
//! agrees, or the first line that does not. Every line of a run is checked, not only the last: each line describes one end of the
//! run, and the lines are in the order of these ends. Lines of different runs may be in any order, since nothing follows from it.
//! Two lines may describe one end if the task's answer has changed in between: whether a run is right depends on the answer, which
//! is not in the journal.

use std::collections::hash_map::Entry as Slot;
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::batch::folder::BatchError;
use crate::batch::plan::run_id;
use crate::batch::results::{ResultRow, lines};
use crate::batch::store::derive_fields;
use crate::engine::RunState;
use crate::files::open_own;
use crate::journal::{Executed, Executor};
use crypto::Digest;
use protocol::{OUTPUT_BYTES_MAX, TAIL_BYTES_MAX};

/// The fields that say whether a run and its blind vote are right, each with the path of the digest of its text, and with the field
/// that holds the record of the grader's command.
const RIGHTS: [(&str, &str, &str); 2] =
    [("right", "/sha256", "grade"), ("blind_right", "/blind_vote/sha256", "blind_grade")];

/// The place of a line of results in its file.
#[derive(Clone, Copy, Debug)]
struct PlaceInResults {
    number: u64,
    offset: u64,
    bytes: usize,
    /// The beginning of the SHA-256 of the record with which the run ended.
    head: u64,
}

/// The result lines of a shard, ready for lookup.
#[derive(Debug)]
pub(super) struct ResultLines<'a> {
    path: &'a Path,
    file: Option<File>,
    /// The lines of each run whose ends have not come yet, in their order. A run that was tried again or rescored has several.
    runs: HashMap<Uuid, VecDeque<PlaceInResults>>,
}

impl<'a> ResultLines<'a> {
    /// Reads the place of each run's lines.
    ///
    /// Returns [`BatchError::Io`] or [`BatchError::Results`].
    pub(super) fn read(path: &'a Path) -> Result<Self, BatchError> {
        let mut runs: HashMap<Uuid, VecDeque<PlaceInResults>> = HashMap::new();
        if !path.exists() {
            return Ok(Self { path, file: None, runs });
        }
        lines(path, |number, offset, bytes, row: ResultRow| {
            let run: Uuid =
                row.run.parse().map_err(|_| "its `run` is not the id of a batch run".to_owned())?;
            let head = row.journal_head.leading_u64();
            runs.entry(run).or_default().push_back(PlaceInResults { number, offset, bytes, head });
            Ok(())
        })?;
        let file = Some(open_own(path).map_err(|why| BatchError::of_results(path, 1, why))?);
        Ok(Self { path, file, runs })
    }

    /// Takes the lines about this end of a run and compares them with it. Returns true if they are the run's last lines.
    ///
    /// Returns [`BatchError::Results`] for the first line that disagrees, or that follows a line about a later end.
    pub(super) fn check(&mut self, run: Uuid, state: &RunState, head: Digest) -> Result<bool, BatchError> {
        let Slot::Occupied(mut slot) = self.runs.entry(run) else { return Ok(false) };
        let Some(file) = &self.file else { return Ok(false) };
        while let Some(place) = slot.get().front().copied()
            && place.head == head.leading_u64()
        {
            compare(file, self.path, place, run, state, head)?;
            slot.get_mut().pop_front();
        }
        if slot.get().is_empty() {
            slot.remove();
            return Ok(true);
        }
        match slot.get().iter().find(|place| place.head == head.leading_u64()) {
            Some(place) => {
                let why = "it follows a line about a later end of the run".to_owned();
                Err(wrong(self.path, *place, why))
            }
            None => Ok(false),
        }
    }

    /// Checks that no line is left without an end in the journal.
    ///
    /// Returns [`BatchError::Evidence`] if a line is left.
    pub(super) fn require_all_found(&self, journal: &Path) -> Result<(), BatchError> {
        let missing: usize = self.runs.values().map(VecDeque::len).sum();
        if missing == 0 {
            return Ok(());
        }
        let (results, journal) = (self.path.to_owned(), journal.to_owned());
        Err(BatchError::Evidence { results, journal, missing })
    }
}

fn wrong(path: &Path, place: PlaceInResults, why: String) -> BatchError {
    BatchError::Results { path: path.to_owned(), line: place.number, why }
}

/// Compares a line with the records of its run.
fn compare(
    file: &File,
    path: &Path,
    place: PlaceInResults,
    run: Uuid,
    state: &RunState,
    head: Digest,
) -> Result<(), BatchError> {
    let mut bytes = vec![0; place.bytes];
    file.read_exact_at(&mut bytes, place.offset).map_err(BatchError::io("read", path))?;
    let said: Map<String, Value> =
        serde_json::from_slice(&bytes).map_err(|why| wrong(path, place, why.to_string()))?;
    let derived = derive_fields(state, head);
    for (name, value) in &derived {
        if said.get(name) != Some(value) {
            return Err(wrong(path, place, format!("`{name}` is not what the journal gives")));
        }
    }
    if !is_named_so(&said, run, state) {
        let why = "its `task`, `model`, `arm` and `seed` do not give the id of its run".to_owned();
        return Err(wrong(path, place, why));
    }
    let is_final = state.outcome().is_some_and(|outcome| outcome.kind().is_final());
    for (name, digest, _) in RIGHTS {
        let has_text = said_at(&said, digest).is_some_and(Value::is_string);
        let can_be = match said.get(name) {
            Some(Value::Null) => true,
            Some(Value::Bool(is_right)) => is_final && (has_text || !is_right),
            Some(_) | None => false,
        };
        if !can_be {
            return Err(wrong(path, place, format!("`{name}` contradicts the rest of the line")));
        }
    }
    require_fitting_grades(&said).map_err(|why| wrong(path, place, why))?;
    for name in said.keys() {
        let is_of_grading = RIGHTS.iter().any(|(right, _, grade)| name == right || name == grade);
        if !is_of_grading && !derived.contains_key(name) {
            return Err(wrong(path, place, format!("a result has no field `{name}`")));
        }
    }
    Ok(())
}

/// Checks that the records of the grader's command fit the verdicts in a line, and each other.
fn require_fitting_grades(said: &Map<String, Value>) -> Result<(), String> {
    let mut known: Option<Executed> = None;
    for (right, _, name) in RIGHTS {
        let Some(grade) = said.get(name) else { continue };
        let grade: Executed =
            serde_json::from_value(grade.clone()).map_err(|why| format!("`{name}`: {why}"))?;
        let Executed { key, by, result, .. } = &grade;
        if said.get(right) != Some(&result.end.is_success().into()) {
            return Err(format!("`{right}` contradicts `{name}`"));
        }
        let is_too_long = result.output.len() > OUTPUT_BYTES_MAX || result.tail.len() > TAIL_BYTES_MAX;
        if is_too_long || !matches!(by, Executor::Command(_)) {
            return Err(format!("`{name}` is not what a command leaves"));
        }
        if known.as_ref().is_some_and(|known| known.key == *key && *known != grade) {
            return Err(format!("`{name}` says something else of the same text"));
        }
        known = Some(grade);
    }
    Ok(())
}

/// Returns whether the run's id is made of the names in the line.
fn is_named_so(said: &Map<String, Value>, run: Uuid, state: &RunState) -> bool {
    let setup = &state.opened().setup;
    let [task, model, arm] = ["task", "model", "arm"].map(|name| said.get(name).and_then(Value::as_str));
    let (Some(task), Some(model)) = (task, model) else { return false };
    run_id(task, &setup.roleset, model, arm.unwrap_or_default(), setup.seed) == run
}

/// Returns the value at a path of names, such as `/blind_vote/sha256`.
fn said_at<'a>(said: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let mut names = path.split('/').skip(1);
    let first = said.get(names.next()?)?;
    names.try_fold(first, |value, name| value.get(name))
}
