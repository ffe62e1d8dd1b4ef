//! The verification of a batch: everything that it claims is derived again from its journals and compared.
//!
//! The input is a folder. The output is how many runs hold, or the first fault. Runs are followed through a journal record by
//! record, so only runs that have not ended are in memory.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::path::Path;

use serde::Serialize;
use uuid::Uuid;

use super::error::BatchError;
use super::evidence::ResultLines;
use super::matrix::run_id;
use super::shard_id::ShardOf;
use super::{layout, strays};
use crate::engine::RunState;
use crate::journal::{Entry, Record, has_gaps, read_shared, require_own_build};
use crate::protocol::Outcome;
use crypto::Digest;

/// The fault of a run in the journal of a batch that is of no cell.
pub(super) const NO_CELL: &str = "its run names no task of a batch";

/// The result of a verification.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct VerifiedBatch {
    /// The runs whose records follow from each other and lead to their line of results.
    pub ended: u64,
    /// The runs that have ended without a line of results yet.
    pub untold: u64,
    /// The runs that are under way, or were cut off.
    pub open: u64,
    /// The shards without any file.
    pub absent_shards: u64,
    /// The shards from whose journals runs were removed.
    pub shards_with_gaps: u64,
}

impl VerifiedBatch {
    fn count(&mut self, run: &Open) {
        let has_ended = run.state.outcome().is_some_and(|outcome| *outcome != Outcome::Interrupted);
        if run.is_told {
            self.ended += 1;
        } else if has_ended {
            self.untold += 1;
        } else {
            self.open += 1;
        }
    }
}

/// A function that examines a run that has ended, for good or at a limit.
pub type Examine<'a> = dyn FnMut(&RunState) -> Result<(), String> + 'a;

/// A run that can still continue.
struct Open {
    state: RunState,
    /// The SHA-256 of its last line.
    head: Digest,
    /// Whether its line of results states its end, and no record has come since then.
    is_told: bool,
}

/// Verifies the batch in a folder. The function `examine` sees each run that has ended, for good or at a limit, and may find a
/// fault that records alone do not show.
///
/// # Errors
///
/// Returns [`BatchError`] for a broken chain, an impossible record, a line of results that differs, a file of a shard that the batch
/// does not count, or a fault that `examine` finds.
pub fn verify(folder: &Path, examine: &mut Examine<'_>) -> Result<VerifiedBatch, BatchError> {
    let mut verified = VerifiedBatch::default();
    let count = layout::count(folder)?;
    for index in 0..count {
        verify_shard(folder, ShardOf { index, count }, &mut verified, examine)?;
    }
    match strays::find(folder, count)?.into_iter().next() {
        Some(stray) => Err(stray.into()),
        None => Ok(verified),
    }
}

fn verify_shard(
    folder: &Path,
    which: ShardOf,
    verified: &mut VerifiedBatch,
    examine: &mut Examine<'_>,
) -> Result<(), BatchError> {
    let (results, journal) =
        (layout::results_file(folder, which.index), layout::journal_file(folder, which.index));
    require_own_build(&journal)?;
    let mut claims = ResultLines::read(&results)?;
    if !journal.exists() {
        verified.absent_shards += 1;
        return claims.are_all_found(&journal);
    }
    let mut open: HashMap<Uuid, Open> = HashMap::new();
    let mut differs = None;
    verified.shards_with_gaps += u64::from(has_gaps(&journal));
    read_shared(&journal, |record: Record, line| {
        let run: Uuid =
            record.run.parse().map_err(|_| "its `run` is not the id of a batch run".to_owned())?;
        let head = open.get(&run).map_or(Digest::ZERO, |this| this.head);
        if record.run_prev.is_some_and(|before| before != head) {
            return Err("its `run_prev` is not the digest of the line before it of the same run".to_owned());
        }
        let this = match open.entry(run) {
            Slot::Occupied(slot) => {
                let this = slot.into_mut();
                this.state.apply(&record).map_err(|why| why.to_string())?;
                this
            }
            Slot::Vacant(slot) => {
                let state = RunState::open(&record).map_err(|why| why.to_string())?;
                is_of(run, &state, which)?;
                slot.insert(Open { state, head, is_told: false })
            }
        };
        (this.head, this.is_told) = (line.sha256, false);
        if let Entry::Stopped { outcome } = &record.event {
            let told = claims.check(run, &this.state, line.sha256);
            this.is_told = told.unwrap_or_else(|why| {
                differs = differs.take().or(Some(why));
                false
            });
            // A run that has ended for good is dropped from memory.
            if outcome.is_final() {
                examine(&this.state)?;
                verified.count(this);
                open.remove(&run);
            }
        }
        Ok(())
    })?;
    differs.map_or(Ok(()), Err)?;
    let mut open: Vec<(Uuid, Open)> = open.into_iter().collect();
    open.sort_by_key(|(run, _)| *run);
    for (_, run) in &open {
        if matches!(run.state.outcome(), Some(Outcome::Budget { .. })) {
            examine(&run.state).map_err(|why| BatchError::Stray { path: journal.clone(), why })?;
        }
        verified.count(run);
    }
    claims.are_all_found(&journal)
}

/// Checks that the id of a run follows from its record, and that the run belongs to this shard.
fn is_of(run: Uuid, state: &RunState, which: ShardOf) -> Result<(), String> {
    if !which.has(run) {
        return Err(format!("its run does not belong to shard {which}"));
    }
    let setup = &state.opened().setup;
    let cell = state.opened().cell.as_ref().ok_or(NO_CELL)?;
    let is_named_so = run_id(&cell.task, &setup.roleset, &cell.model, &cell.arm, setup.seed) == run;
    if is_named_so {
        Ok(())
    } else {
        Err("its run has the id of another task, model, arm or seed".to_owned())
    }
}
