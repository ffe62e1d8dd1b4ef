//! Everything that a batch claims, derived again from its journals and compared.
//!
//! In: a folder. Out: how many runs hold, or the first thing that does not. Runs are followed through a journal as their records come,
//! so that only those are held that have not ended yet.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::error::BatchError;
use super::results::lines;
use super::shard;
use crate::crypto::Digest;
use crate::engine::Ledger;
use crate::journal::{Entry, Record, read_shared};
use crate::protocol::Outcome;
use crate::report::RunResult;

/// What was found.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Verified {
    /// Runs whose records follow from each other and lead to their line of results.
    pub ended: u64,
    /// Runs that have ended, and whose line of results does not say so yet.
    pub untold: u64,
    /// Runs that are under way, or were cut off.
    pub open: u64,
}

impl Verified {
    fn count(&mut self, run: &Open) {
        let has_ended = run.ledger.outcome().is_some_and(|outcome| *outcome != Outcome::Interrupted);
        *match () {
            () if run.is_told => &mut self.ended,
            () if has_ended => &mut self.untold,
            () => &mut self.open,
        } += 1;
    }
}

/// Where a run's line of results is.
struct Place {
    number: u64,
    offset: u64,
    bytes: usize,
    /// The beginning of the SHA-256 of the record with which the run ended so.
    head: u64,
}

/// A run that can go on yet.
struct Open {
    ledger: Ledger,
    /// Whether it has ended as its line of results says, and nothing has come since then.
    is_told: bool,
}

/// The results of a shard, to be looked up.
struct Rows<'a> {
    path: &'a Path,
    file: Option<File>,
    places: HashMap<Uuid, Place>,
}

/// Verifies the batch in a folder.
///
/// # Errors
///
/// [`BatchError`]: a chain that is broken, a record that cannot have come about, or a line of results that says something else.
pub fn verify(folder: &Path) -> Result<Verified, BatchError> {
    let mut verified = Verified::default();
    for index in 0..shard::count(folder)? {
        let (results, journal) = (shard::results_file(folder, index), shard::journal_file(folder, index));
        let mut rows = Rows::read(&results)?;
        if !journal.exists() {
            rows.are_all_found(&journal)?;
            continue;
        }
        let mut open: HashMap<Uuid, Open> = HashMap::new();
        let mut differs = None;
        read_shared(&journal, |record: Record, line| {
            let run: Uuid = record.run.parse().map_err(|_| "its run is none of a batch".to_owned())?;
            let this = match open.entry(run) {
                Slot::Occupied(slot) => {
                    let this = slot.into_mut();
                    this.ledger.apply(&record).map_err(|why| why.to_string())?;
                    this
                }
                Slot::Vacant(slot) => {
                    let ledger = Ledger::open(&record).map_err(|why| why.to_string())?;
                    slot.insert(Open { ledger, is_told: false })
                }
            };
            this.is_told = false;
            if let Entry::Stopped { outcome } = &record.event {
                let told = rows.check(run, &this.ledger, line.sha256);
                this.is_told = told.unwrap_or_else(|why| {
                    differs = differs.take().or(Some(why));
                    false
                });
                // One that has ended for good is not held any longer.
                if outcome.is_final() {
                    verified.count(this);
                    open.remove(&run);
                }
            }
            Ok(())
        })?;
        differs.map_or(Ok(()), Err)?;
        for run in open.values() {
            verified.count(run);
        }
        rows.are_all_found(&journal)?;
    }
    Ok(verified)
}

impl<'a> Rows<'a> {
    fn read(path: &'a Path) -> Result<Self, BatchError> {
        let mut places = HashMap::new();
        if !path.exists() {
            return Ok(Self { path, file: None, places });
        }
        lines(path, |number, offset, bytes, told| {
            let run = told.run.parse().map_err(|_| "its run is none of a batch".to_owned())?;
            places.insert(run, Place { number, offset, bytes, head: told.journal_head.leading_u64() });
            Ok(())
        })?;
        let file = Some(File::open(path).map_err(BatchError::io("open", path))?);
        Ok(Self { path, file, places })
    }

    /// Nothing is left that the journal does not have.
    fn are_all_found(&self, journal: &Path) -> Result<(), BatchError> {
        let (results, journal, missing) = (self.path.to_owned(), journal.to_owned(), self.places.len());
        if missing > 0 { Err(BatchError::Evidence { results, journal, missing }) } else { Ok(()) }
    }

    /// Compares a run's line with what its records give up to this one; false if the line does not speak of that.
    fn check(&mut self, run: Uuid, ledger: &Ledger, head: Digest) -> Result<bool, BatchError> {
        let Slot::Occupied(slot) = self.places.entry(run) else { return Ok(false) };
        let (true, Some(file)) = (slot.get().head == head.leading_u64(), &self.file) else {
            return Ok(false);
        };
        let place = slot.remove();
        let mut bytes = vec![0; place.bytes];
        file.read_exact_at(&mut bytes, place.offset).map_err(BatchError::io("read", self.path))?;
        let said: Value =
            serde_json::from_slice(&bytes).map_err(|why| self.wrong(&place, why.to_string()))?;
        let derived = serde_json::to_value(RunResult::new(ledger, head)).unwrap_or_default();
        for (name, value) in derived.as_object().into_iter().flatten() {
            if said[name] != *value {
                return Err(self.wrong(&place, format!("`{name}` is not what the journal gives")));
            }
        }
        Ok(true)
    }

    fn wrong(&self, place: &Place, why: String) -> BatchError {
        BatchError::Results { path: self.path.to_owned(), line: place.number, why }
    }
}
