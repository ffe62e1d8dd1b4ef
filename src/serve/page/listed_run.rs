//! The runs in the list of the page.
//!
//! The input is the runs of a caller. The output is a row for each: those under way first, then the ended ones, the last one first.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::serve::api_error::ApiError;
use crate::serve::caller::Caller;
use crate::serve::known_run::{OpenRunState, past_row};
use crate::serve::service::Service;
use protocol::text::{escape, grouped};

/// The most runs in the list.
const LISTED_MAX: usize = 1_000;

/// A run in the list.
#[derive(Serialize)]
pub(super) struct ListedRun {
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

/// The parts of a run's first record that the list has.
#[derive(Deserialize)]
struct First {
    at: String,
    event: Opened,
}

#[derive(Deserialize)]
struct Opened {
    setup: Setup,
}

#[derive(Deserialize)]
struct Setup {
    roleset: String,
    task: Task,
}

#[derive(Deserialize)]
struct Task {
    prompt: String,
}

/// Returns the runs of a caller.
pub(super) fn listed_runs(service: &Service, caller: Caller) -> Result<Vec<ListedRun>, ApiError> {
    let open: Vec<OpenRunState> = {
        let live = service.live();
        live.values()
            .filter(|live| live.origin.caller == caller)
            .map(|live| OpenRunState::new(live))
            .collect()
    };
    let mut listed =
        open.into_iter().map(|state| open_run(service, &state)).collect::<Result<Vec<_>, _>>()?;
    listed.sort_by(|a, b| b.began.cmp(&a.began));
    let (ended, _) = service.own_ended(caller, None, LISTED_MAX.saturating_sub(listed.len()));
    let mut rows: Vec<(Uuid, Value)> = Vec::new();
    for run in ended {
        // Other requests take their turn between two rows.
        rows.push((run, past_row(service, run)?));
    }
    let right_answers = RightAnswers::new(rows.iter().map(|(_, row)| row));
    for (run, row) in &rows {
        listed.push(ended_run(service, *run, row, &right_answers)?);
    }
    Ok(listed)
}

/// The answers that a grader called right, for each task.
#[derive(Default)]
struct RightAnswers(HashSet<(String, String)>);

impl RightAnswers {
    fn new<'a>(rows: impl Iterator<Item = &'a Value>) -> Self {
        let mut known = HashSet::new();
        for row in rows {
            let graded =
                [(&row["right"], &row["sha256"]), (&row["blind_right"], &row["blind_vote"]["sha256"])];
            let right = graded.into_iter().filter(|(is_right, _)| **is_right == Value::Bool(true));
            known.extend(right.map(|(_, sha256)| (words(&row["task"]), words(sha256))));
        }
        Self(known)
    }

    /// Returns whether an agent held such an answer against the others, in its first draft or to the end.
    fn are_among_dissent(&self, row: &Value) -> bool {
        let dissent = row["dissent"].as_array().into_iter().flatten();
        let mut held = dissent.map(|dissent| (words(&row["task"]), words(&dissent["sha256"])));
        held.any(|answer| self.0.contains(&answer))
    }
}

fn words(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns the beginning of a run's first record.
fn first(service: &Service, run: Uuid) -> Result<Option<First>, ApiError> {
    let line = service.records().first_line_of(&run.to_string());
    let line = line.map_err(|why| ApiError::internal(&why))?;
    Ok(line.and_then(|line| serde_json::from_slice(&line).ok()))
}

fn open_run(service: &Service, state: &OpenRunState) -> Result<ListedRun, ApiError> {
    let (task, roleset, began) = match first(service, state.run)? {
        Some(First { at, event: Opened { setup } }) => {
            (escape::excerpt(&setup.task.prompt), setup.roleset, minute(&at))
        }
        None => (String::new(), String::new(), String::new()),
    };
    Ok(ListedRun {
        run: state.run,
        task,
        roleset,
        outcome: state.status.to_owned(),
        how: String::new(),
        answer: String::new(),
        tokens: String::new(),
        seconds: String::new(),
        began,
        right: None,
        flags: "open".to_owned(),
    })
}

fn ended_run(
    service: &Service,
    run: Uuid,
    row: &Value,
    right_answers: &RightAnswers,
) -> Result<ListedRun, ApiError> {
    let task = first(service, run)?.map(|first| escape::excerpt(&first.event.setup.task.prompt));
    let tokens = ["prompt", "completion"].map(|name| row["usage"][name].as_u64().unwrap_or_default());
    let seconds = row["timing"]["total_ms"].as_f64().unwrap_or_default() / 1e3;
    Ok(ListedRun {
        run,
        task: task.unwrap_or_default(),
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
fn flags(row: &Value, right_answers: &RightAnswers) -> String {
    let has = |name: &str| row[name].as_array().is_some_and(|list| !list.is_empty());
    let moved = row["agents"].as_array().into_iter().flatten().any(|agent| agent["changes"] != 0);
    let [blind, end] = ["blind_right", "right"].map(|name| row[name].as_bool());
    let flags = [
        ("degraded", has("degraded")),
        ("dissent", has("dissent")),
        ("moved", moved),
        ("right", end == Some(true)),
        // A run without an answer has none that is wrong.
        ("wrong", end == Some(false) && row["text"].is_string()),
        ("to_right", (blind, end) == (Some(false), Some(true))),
        ("to_wrong", (blind, end) == (Some(true), Some(false))),
        ("dissent_right", end == Some(false) && right_answers.are_among_dissent(row)),
    ];
    let flags: Vec<&str> = flags.into_iter().filter_map(|(name, is_so)| is_so.then_some(name)).collect();
    flags.join(" ")
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
        let none = RightAnswers::default();
        assert_eq!(flags(&row(None, None), &none), "dissent moved");
        assert_eq!(flags(&row(Some(true), Some(false)), &none), "dissent moved wrong to_wrong");
        assert_eq!(flags(&row(Some(false), Some(true)), &none), "dissent moved right to_right");
        // Another run has shown that the answer of the minority was right.
        let other = json!({"task": "t", "right": true, "sha256": "a"});
        let known = RightAnswers::new([&other].into_iter());
        assert_eq!(flags(&row(Some(false), Some(false)), &known), "dissent moved wrong dissent_right");
    }
}
