//! The runs in the list of the page.
//!
//! The input is the runs of a caller. The output is a row for each: those under way first, then the ended ones, the last one first.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::serve::http::{ApiError, Caller};
use crate::serve::runs::{OpenRunState, Service, past_row};
use protocol::text::{escape, grouped};

/// The most runs in the list.
const LISTED_MAX: usize = 1_000;

/// A run in the list.
#[derive(Serialize)]
pub(super) struct ListRow {
    run: Uuid,
    /// The beginning of the task; empty if no record of the run is written yet.
    task: String,
    roleset: String,
    outcome: String,
    how: String,
    answer: String,
    tokens: String,
    seconds: String,
    began: String,
    /// Whether the answer is right, if that is known.
    pub(super) right: Option<bool>,
    /// The words by which the list is filtered.
    flags: String,
}

/// Returns the runs of a caller.
pub(super) fn list_runs(service: &Service, caller: Caller) -> Result<Vec<ListRow>, ApiError> {
    let mut listed = Vec::new();
    for live in service.live_runs_of(caller) {
        listed.push(list_open_run(service, &OpenRunState::new(&live))?);
    }
    listed.sort_by(|a, b| b.began.cmp(&a.began));
    let (ended, _) = service.past_runs_of(caller, None, LISTED_MAX.saturating_sub(listed.len()));
    let mut rows: Vec<(Uuid, Value)> = Vec::new();
    for run in ended {
        // Other requests take their turn between two rows.
        rows.push((run, past_row(service, run)?));
    }
    let right_answers = find_right_answers(rows.iter().map(|(_, row)| row));
    for (run, row) in &rows {
        listed.push(list_ended_run(service, *run, row, &right_answers)?);
    }
    Ok(listed)
}

/// Returns the SHA-256 of the answers that a grader called right, each with its task.
fn find_right_answers<'a>(rows: impl Iterator<Item = &'a Value>) -> HashSet<(String, String)> {
    let mut known = HashSet::new();
    for row in rows {
        if row["right"] == true {
            known.insert((words(&row["task"]), words(&row["sha256"])));
        }
        if row["blind_right"] == true {
            known.insert((words(&row["task"]), words(&row["blind_vote"]["sha256"])));
        }
    }
    known
}

/// Returns whether an agent held a right answer against the others, in its first draft or to the end.
fn has_right_dissent(row: &Value, right_answers: &HashSet<(String, String)>) -> bool {
    let mut dissent = row["dissent"].as_array().into_iter().flatten();
    dissent.any(|answer| right_answers.contains(&(words(&row["task"]), words(&answer["sha256"]))))
}

fn words(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The parts of a run's first record that the list has. Its documents may be long, and are not read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct FirstRecord {
    at: String,
    event: OpenedTask,
}

/// The task of a run, as its first record has it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct OpenedTask {
    setup: ListedSetup,
}

/// The parts of a setup that the list has.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ListedSetup {
    roleset: String,
    task: ListedTask,
}

/// The prompt of a task.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ListedTask {
    prompt: String,
}

/// Returns the first record of a run. It is empty until it is written.
fn first_record(service: &Service, run: Uuid) -> Result<FirstRecord, ApiError> {
    let line = service.records().first_line_of(&run.to_string());
    let line = line.map_err(|why| ApiError::internal(&why))?;
    Ok(line.and_then(|line| serde_json::from_slice(&line).ok()).unwrap_or_default())
}

fn list_open_run(service: &Service, state: &OpenRunState) -> Result<ListRow, ApiError> {
    let FirstRecord { at, event: OpenedTask { setup } } = first_record(service, state.run)?;
    Ok(ListRow {
        run: state.run,
        task: escape::excerpt(&setup.task.prompt),
        roleset: setup.roleset,
        outcome: state.status.to_owned(),
        how: String::new(),
        answer: String::new(),
        tokens: String::new(),
        seconds: String::new(),
        began: minute(&at),
        right: None,
        flags: "open".to_owned(),
    })
}

fn list_ended_run(
    service: &Service,
    run: Uuid,
    row: &Value,
    right_answers: &HashSet<(String, String)>,
) -> Result<ListRow, ApiError> {
    let record = first_record(service, run)?;
    let tokens = ["prompt", "completion"].map(|name| row["usage"][name].as_u64().unwrap_or_default());
    let seconds = row["timing"]["total_ms"].as_f64().unwrap_or_default() / 1e3;
    Ok(ListRow {
        run,
        task: escape::excerpt(&record.event.setup.task.prompt),
        roleset: match row["arm"].as_str() {
            Some(arm) => format!("{}, {arm}", words(&row["roleset"])),
            None => words(&row["roleset"]),
        },
        outcome: words(&row["outcome"]),
        how: words(&row["how"]),
        answer: row["text"].as_str().map(escape::excerpt).unwrap_or_default(),
        tokens: grouped(tokens[0] + tokens[1]),
        seconds: format!("{seconds:.1}"),
        began: minute(row["timing"]["started_at"].as_str().unwrap_or_default()),
        right: row["right"].as_bool(),
        flags: flags(row, right_answers),
    })
}

/// Returns the words by which a list with this row of results is filtered.
fn flags(row: &Value, right_answers: &HashSet<(String, String)>) -> String {
    let has_degraded = row["degraded"].as_array().is_some_and(|list| !list.is_empty());
    let has_dissent = row["dissent"].as_array().is_some_and(|list| !list.is_empty());
    let moved = row["agents"].as_array().into_iter().flatten().any(|agent| agent["changes"] != 0);
    let [blind, end] = ["blind_right", "right"].map(|name| row[name].as_bool());
    let flags = [
        ("degraded", has_degraded),
        ("dissent", has_dissent),
        ("moved", moved),
        ("right", end == Some(true)),
        // A run without an answer has none that is wrong.
        ("wrong", end == Some(false) && row["text"].is_string()),
        ("to_right", (blind, end) == (Some(false), Some(true))),
        ("to_wrong", (blind, end) == (Some(true), Some(false))),
        ("dissent_right", end == Some(false) && has_right_dissent(row, right_answers)),
    ];
    let set: Vec<&str> = flags.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| *name).collect();
    set.join(" ")
}

/// Returns a time in UTC up to its second.
fn minute(at: &str) -> String {
    at.chars().take(19).collect::<String>().replace('T', " ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn filters_find_abandoned_right_answer() {
        let row = |blind: Option<bool>, end: Option<bool>| {
            json!({"task": "t", "blind_right": blind, "right": end, "text": "4", "sha256": "b", "blind_vote": {"sha256": "b"},
                "dissent": [{"sha256": "a"}], "agents": [{"changes": 1}], "degraded": []})
        };
        let none = HashSet::new();
        assert_eq!(flags(&row(None, None), &none), "dissent moved");
        assert_eq!(flags(&row(Some(true), Some(false)), &none), "dissent moved wrong to_wrong");
        assert_eq!(flags(&row(Some(false), Some(true)), &none), "dissent moved right to_right");
        // Another run has shown that the answer of the minority was right.
        let other = json!({"task": "t", "right": true, "sha256": "a"});
        let known = find_right_answers([&other].into_iter());
        assert_eq!(flags(&row(Some(false), Some(false)), &known), "dissent moved wrong dissent_right");
    }
}
