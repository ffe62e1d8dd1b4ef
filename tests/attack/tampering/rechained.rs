//! A change with the chain of digests computed anew.
//!
//! In: a journal. Out: one in which a drawn place of those is another that `verify` promises to see, with a chain that holds: the task,
//! the agents, the seed, each prompt with its budget, and the outcome. Endpoints, models' names, token counts, costs and
//! times are never touched: README says that the record does not cover them.

use std::collections::BTreeMap;

use crypto::Digest;
use fastrand::Rng;
use serde_json::{Value, json};

use super::bend::change;
use crate::sweep::places;

fn read(journal: &[u8]) -> Vec<Value> {
    journal
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

/// Returns the places of a record that `verify` promises to see.
fn covered(record: &Value) -> &'static [&'static str] {
    match record["event"]["type"].as_str() {
        Some("opened") => &["/event/setup/task", "/event/setup/agents", "/event/setup/seed"],
        Some("asked") => &["/event/call", "/event/sha256", "/event/tokens_max"],
        Some("replied") => &["/event/call"],
        Some("stopped") => &["/event/outcome"],
        Some(_) | None => &[],
    }
}

/// Changes one value at or below a covered place, and returns where it is.
fn bend(record: &mut Value, draw: &mut Rng) -> Option<String> {
    let all = covered(record).iter().flat_map(|at| {
        let below = places(record.pointer(at).unwrap_or(&Value::Null));
        std::iter::once((*at).to_owned())
            .chain(below.into_iter().map(|place| format!("{at}{place}")))
            .collect::<Vec<_>>()
    });
    let is_leaf =
        |at: &String| record.pointer(at).is_some_and(|value| !value.is_object() && !value.is_array());
    // The instruction to compare texts is in no prompt of a run that compares no texts.
    let leaves: Vec<String> = all.filter(is_leaf).filter(|at| !at.ends_with("/comparing")).collect();
    let at = leaves.get(draw.usize(..leaves.len().max(1)))?;
    change(record.pointer_mut(at)?);
    Some(at.clone())
}

/// Returns the journal with one covered place changed and a chain that holds, and the place in words.
pub(super) fn run(journal: &[u8], draw: &mut Rng) -> (Vec<u8>, String) {
    let mut records = read(journal);
    let (number, place) = loop {
        let at = draw.usize(..records.len());
        if let Some(place) = bend(&mut records[at], draw) {
            break (at + 1, place);
        }
    };
    let (mut prev, mut text) = (Digest::ZERO, String::new());
    let mut heads: BTreeMap<String, Digest> = BTreeMap::new();
    for mut record in records {
        let head = heads.entry(record["run"].to_string()).or_insert(Digest::ZERO);
        record["prev"] = json!(prev);
        if record.get("run_prev").is_some() {
            record["run_prev"] = json!(head);
        }
        let line = record.to_string();
        prev = Digest::new(line.as_bytes());
        *head = prev;
        text.extend([&line, "\n"]);
    }
    (text.into_bytes(), format!("{place} of line {number}, with a chain computed anew"))
}

/// Returns the digest of the last line of each run.
pub(super) fn heads(journal: &[u8]) -> BTreeMap<String, Digest> {
    let lines = journal.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines
        .zip(read(journal))
        .map(|(line, record)| (record["run"].as_str().unwrap().to_owned(), Digest::new(line)))
        .collect()
}
