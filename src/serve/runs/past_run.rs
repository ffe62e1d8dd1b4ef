//! Runs that are over: those that have ended, and those that were put down before their end.
//!
//! The input is lines of results, and the records of runs that have none. A run is put down when its client has gone, when someone stops
//! it, or when its server dies. Without a key it does not go on. It has used tokens all the same, so it has a row in the lists of its
//! caller, which is made of its records.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::batch::{UnfinishedRun, Variant};
use crate::journal::{Entry, InBatch, Journal, between, read_from};
use crate::serve::http::{ApiError, CALLER_LABEL, Caller};
use protocol::OutcomeKind;
use protocol::core::Usage;

/// The name of the records in an error message.
pub(in crate::serve) const RECORDS: &str = "the records of the run";

/// A run that is over, or that an earlier server has left: its caller, its tokens and its times.
#[derive(Clone, Debug)]
pub(in crate::serve) struct PastRun {
    pub(in crate::serve) run: Uuid,
    pub(in crate::serve) caller: Caller,
    /// The tokens of all prompts and replies.
    pub(in crate::serve) tokens: u64,
    /// The time of its first record.
    pub(in crate::serve) started_at: String,
    /// The time of its last record.
    pub(in crate::serve) ended_at: String,
}

/// The parts of a row of results that name the caller, the time and the tokens of its run.
#[derive(Deserialize)]
struct PastRow {
    run: Uuid,
    #[serde(default)]
    meta: HashMap<String, String>,
    /// Its tokens count as far as they are numbers. A row with a damaged usage is still the run of its caller.
    #[serde(default)]
    usage: Value,
    timing: RowTimes,
}

#[derive(Deserialize)]
struct RowTimes {
    #[serde(default)]
    started_at: String,
    ended_at: String,
}

impl PastRun {
    /// Returns the run of a row of results, if it has a caller. A row that is no result is found by `consensus verify`.
    pub(in crate::serve) fn of_row(row: &[u8]) -> Option<Self> {
        let PastRow { run, meta, usage, timing } = serde_json::from_slice(row).ok()?;
        let caller = Caller::of_label(meta.get(CALLER_LABEL))?;
        let prompt = usage["prompt"].as_u64().unwrap_or_default();
        let tokens = prompt.saturating_add(usage["completion"].as_u64().unwrap_or_default());
        Some(Self { run, caller, tokens, started_at: timing.started_at, ended_at: timing.ended_at })
    }

    /// Returns a run without a row of results, if it is one of a batch and has a caller.
    pub(in crate::serve) fn of_unfinished(run: &UnfinishedRun) -> Option<Self> {
        let meta = &run.spec.cell.as_ref()?.meta;
        let caller = Caller::of_label(meta.get(CALLER_LABEL))?;
        Some(Self {
            run: Variant::run_of(&run.spec)?,
            caller,
            tokens: run.tokens,
            started_at: run.began_at.clone(),
            ended_at: run.last_at.clone(),
        })
    }
}

/// Reads the journal of a run from its lines.
pub(in crate::serve) fn journal_of(lines: &[u8]) -> Result<Journal, ApiError> {
    read_from(lines, Path::new(RECORDS)).map_err(|why| ApiError::internal(&why))
}

/// Returns the row of a run that was put down, from its lines in the journal. It has those fields of a row of results that follow from the
/// records alone. The protocol does not run again for it, since a fault of it may have broken the run.
pub(super) fn row_of_records(lines: &[u8]) -> Result<Value, ApiError> {
    let Journal { records, head, .. } = journal_of(lines)?;
    let mut usage = Usage::default();
    let mut calls = 0_u64;
    let mut roleset = String::new();
    let mut cell: Option<InBatch> = None;
    for record in &records {
        match &record.event {
            Entry::Opened(opened) => {
                roleset.clone_from(&opened.setup.roleset);
                cell.clone_from(&opened.cell);
            }
            Entry::Replied(replied) => {
                usage.prompt = usage.prompt.saturating_add(replied.usage.prompt);
                usage.cached = usage.cached.saturating_add(replied.usage.cached);
                usage.completion = usage.completion.saturating_add(replied.usage.completion);
                calls += 1;
            }
            Entry::Asked(_)
            | Entry::Lost(_)
            | Entry::Found(_)
            | Entry::Executed(_)
            | Entry::LeftOut(_)
            | Entry::Permitted(_)
            | Entry::Closed(_)
            | Entry::Resumed { .. }
            | Entry::Stopped { .. } => {}
        }
    }
    let (Some(first), Some(last)) = (records.first(), records.last()) else {
        return Err(ApiError::internal(&"a journal has no record"));
    };
    let InBatch { task, model, .. } = cell.ok_or_else(|| ApiError::internal(&"a run has no task"))?;
    let total_ms = u64::try_from(between(&first.at, &last.at).as_millis()).unwrap_or(u64::MAX);
    Ok(json!({
        "run": first.run,
        "task": task,
        "roleset": roleset,
        "model": model,
        "outcome": OutcomeKind::Interrupted.name(),
        "usage": {
            "prompt": usage.prompt,
            "cached": usage.cached,
            "completion": usage.completion,
            "calls": calls,
        },
        "timing": {"started_at": first.at, "ended_at": last.at, "total_ms": total_ms},
        "journal_head": head,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row with damaged usage or without a beginning is still the run of its caller.
    #[test]
    fn damaged_rows_keep_their_caller() {
        let run = Uuid::nil();
        let caller = "0".repeat(64);
        let whole = json!({
            "run": run,
            "meta": {CALLER_LABEL: caller},
            "usage": {"prompt": 70, "completion": 20},
            "timing": {"started_at": "2026-11-30T10:00:00Z", "ended_at": "2026-11-30T10:01:00Z"},
        });
        for (place, damage, tokens) in [
            ("/run", json!(run), 90),
            ("/usage", json!(5), 0),
            ("/usage", Value::Null, 0),
            ("/usage/prompt", json!("many"), 20),
            ("/timing/started_at", json!(""), 90),
        ] {
            let mut row = whole.clone();
            *row.pointer_mut(place).unwrap() = damage;
            let past = PastRun::of_row(&serde_json::to_vec(&row).unwrap());
            assert_eq!(past.map(|past| past.tokens), Some(tokens), "{row}");
        }
        let mut row = whole.clone();
        row["timing"] = json!({"ended_at": "2026-11-30T10:01:00Z"});
        assert!(PastRun::of_row(&serde_json::to_vec(&row).unwrap()).is_some(), "{row}");
        row["meta"] = json!({CALLER_LABEL: "someone"});
        assert!(PastRun::of_row(&serde_json::to_vec(&row).unwrap()).is_none(), "{row}");
    }
}
