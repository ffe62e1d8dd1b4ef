//! The calls of a batch as table rows for analysis, one row per reply; and the prompts and times of its runs, for logs of other tools.
//!
//! The input is the journals of all shards. The chains are checked on the way.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::inspect::PromptAndTimes;
use crate::batch::folder::{BatchError, layout};
use crate::journal::{Entry, Record, Replied, RunSpec, between, read_shared};
use protocol::{CallId, CallPhase};

/// A reply, as a row.
#[derive(Clone, Debug, Serialize)]
pub struct CallRow {
    task: String,
    roleset: String,
    model: String,
    arm: String,
    seed: u64,
    run: String,
    /// The name of the call within its run.
    call: CallId,
    agent: String,
    phase: &'static str,
    round: u32,
    attempt: u32,
    prompt_tokens: u64,
    cached_tokens: u64,
    completion_tokens: u64,
    /// Whether the server reported no counts, so that these counts are estimates.
    estimated: bool,
    /// The time from the record of the call to the record of its reply.
    milliseconds: u64,
    /// The time at which the reply was recorded, RFC 3339.
    at: String,
}

/// The fault of a call whose run has no first record.
const NOT_BEGUN: &str = "its run has not begun";

/// A run that has not ended.
struct CallContext {
    spec: Box<RunSpec>,
    /// The time at which each open call was made.
    asked: BTreeMap<CallId, String>,
}

/// Passes a row for each reply in a batch to `each`, in the order of the journals.
///
/// Returns [`BatchError`], for example if there is no batch or a chain is broken.
pub fn calls(folder: &Path, mut each: impl FnMut(CallRow)) -> Result<(), BatchError> {
    for path in layout::journals(folder)? {
        let mut open: HashMap<String, CallContext> = HashMap::new();
        read_shared(&path, |record: Record, _| {
            match record.event {
                Entry::Opened(spec) => {
                    open.insert(record.run, CallContext { spec, asked: BTreeMap::new() });
                }
                Entry::Asked(asked) => {
                    let run = open.get_mut(&record.run).ok_or(NOT_BEGUN)?;
                    run.asked.insert(asked.call, record.at);
                }
                Entry::Replied(replied) => {
                    let run = open.get_mut(&record.run).ok_or(NOT_BEGUN)?;
                    let asked_at = run.asked.remove(&replied.call);
                    let took = asked_at.map_or(Duration::ZERO, |asked_at| between(&asked_at, &record.at));
                    each(row(record.run, record.at, &replied, &run.spec, took));
                }
                Entry::Stopped { outcome } if outcome.kind().is_final() => {
                    open.remove(&record.run);
                }
                Entry::Lost(_)
                | Entry::Found(_)
                | Entry::Executed(_)
                | Entry::LeftOut(_)
                | Entry::Permitted(_)
                | Entry::Closed(_)
                | Entry::Stopped { .. }
                | Entry::Resumed { .. } => {}
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn row(run: String, at: String, replied: &Replied, spec: &RunSpec, took: Duration) -> CallRow {
    let Replied { call, usage, .. } = replied;
    let agent = spec.setup.everybody().nth(call.agent);
    let cell = spec.cell.as_ref();
    CallRow {
        task: cell.map(|cell| cell.task.clone()).unwrap_or_default(),
        roleset: spec.setup.roleset.clone(),
        model: cell.map(|cell| cell.model.clone()).unwrap_or_default(),
        arm: cell.map(|cell| cell.arm.clone()).unwrap_or_default(),
        seed: spec.setup.seed,
        run,
        call: *call,
        agent: agent.map(|agent| agent.name.clone()).unwrap_or_default(),
        phase: CallPhase::of(&spec.setup, *call).name(),
        round: call.round,
        attempt: call.attempt,
        prompt_tokens: usage.prompt,
        cached_tokens: usage.cached,
        completion_tokens: usage.completion,
        estimated: usage.estimated,
        milliseconds: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        at,
    }
}

/// The record that begins a run, and any other.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Beginning {
    Opened(Box<RunSpec>),
    #[serde(other)]
    Later,
}

/// Returns the prompt and the times of each run of the batch in a folder.
///
/// Returns [`BatchError`] if there is no batch or a chain is broken.
pub fn prompts_and_times(folder: &Path) -> Result<HashMap<String, PromptAndTimes>, BatchError> {
    let mut runs: HashMap<String, PromptAndTimes> = HashMap::new();
    for path in layout::journals(folder)? {
        read_shared(&path, |record: Record<Beginning>, _| {
            let run = runs.entry(record.run).or_default();
            if let Beginning::Opened(opened) = record.event {
                run.prompt = opened.setup.task.prompt;
                run.started_at.clone_from(&record.at);
            }
            run.ended_at = record.at;
            Ok(())
        })?;
    }
    Ok(runs)
}
