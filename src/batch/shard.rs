//! The folder of a batch, as far as it is one shard's: what is in it already, and what is added.
//!
//! The journal is the truth; a line of results follows from it. Whatever a crash has left between the two is made up for when the
//! run's cell comes by: a run that has ended without a line gets one, and one that has not ended goes on.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{BufReader, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;
use uuid::Uuid;

use super::error::BatchError;
use super::layout::{PRIVATE, claim, journal_file, redactions_file, results_file};
use super::result_line::{Graded, Known, ResultLine};
use super::shard_id::ShardOf;
use crate::crypto::Digest;
use crate::files::read_line;
use crate::journal::{Entry, JournalError, LockedJournal, PlacedRecord, Record, RunWriter, SharedJournal};
use crate::protocol::OutcomeKind;

/// Which ends are not taken as they are.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Retry {
    /// Runs whose provider failed.
    pub failed: bool,
    /// Runs that came to a limit.
    pub budget: bool,
}

impl Retry {
    fn wants(self, ending: OutcomeKind) -> bool {
        match ending {
            OutcomeKind::Failed => self.failed,
            OutcomeKind::Budget => self.budget,
            OutcomeKind::Agreed
            | OutcomeKind::NoAgreement
            | OutcomeKind::Vetoed
            | OutcomeKind::Interrupted => false,
        }
    }
}

/// One shard of a batch, in its folder. Nobody else has it meanwhile.
#[derive(Debug)]
pub struct Shard {
    journal: SharedJournal,
    /// The same file, to be read.
    records: File,
    journal_path: PathBuf,
    results: File,
    results_path: PathBuf,
    /// Where the last line of results is of each run that has one: of millions it is not kept what they say.
    rows: HashMap<Uuid, Place>,
    /// Runs in the journal that have more to them than their line says, or have none.
    begun: HashMap<Uuid, Begun>,
    /// The rolesets and models of which a run was begun with tokens in place of what must not leave the machine.
    redacted: BTreeSet<(String, String)>,
    /// Those runs.
    redacted_runs: HashSet<Uuid>,
}

/// Where a line of results is, and of what it speaks.
#[derive(Clone, Copy, Debug)]
struct Place {
    offset: u64,
    bytes: u32,
    /// The beginning of the SHA-256 of the record with which it ended so.
    head: u64,
}

/// Where a run's records are.
#[derive(Debug, Default)]
struct Begun {
    lines: Vec<PlacedRecord>,
    /// How it has ended; none, where it was put down on request, or its process died.
    ended: Option<OutcomeKind>,
    /// Whether its line of results says so, and not how it ended before it was tried again.
    is_told: bool,
}

/// What there is of a run.
#[derive(Clone, Debug)]
pub(super) enum CellState {
    /// Nothing.
    New,
    /// It can go on.
    Begun,
    /// It has ended, and no line of results says so.
    Unreported,
    /// It has ended, as its line of results says.
    Ended(Graded),
}

impl Shard {
    /// Opens a shard of the batch in this folder, or makes it.
    ///
    /// # Errors
    ///
    /// [`BatchError`].
    pub fn open(folder: &Path, which: ShardOf) -> Result<Self, BatchError> {
        let results_path = results_file(folder, which.index);
        let journal_path = journal_file(folder, which.index);
        let mut begun: HashMap<Uuid, Begun> = HashMap::new();
        claim(folder, which)?;
        let journal = LockedJournal::take(&journal_path)?;
        let mut rows = HashMap::new();
        known(&results_path, true, |offset, bytes, row| {
            // Of a run that was tried again the last line counts.
            let head = row.journal_head.leading_u64();
            rows.insert(row.run, Place { offset, bytes, head });
        })?;
        let mut borne_out = 0;
        let (mut redacted, mut redacted_runs) = (BTreeSet::new(), HashSet::new());
        let journal = journal.read(|record: Record, line| {
            let run = record.run.parse().map_err(|_| "its run is none of a batch".to_owned())?;
            let this = begun.entry(run).or_default();
            this.lines.push(line);
            if let Entry::Opened(opened) = &record.event
                && opened.redacted
            {
                let model = opened.cell.as_ref().map(|cell| cell.model.clone());
                redacted_runs.insert(run);
                redacted.insert((opened.setup.roleset.clone(), model.unwrap_or_default()));
            }
            this.ended = match &record.event {
                Entry::Stopped { outcome } => {
                    Some(outcome.kind()).filter(|ending| *ending != OutcomeKind::Interrupted)
                }
                Entry::Opened(_)
                | Entry::Asked(_)
                | Entry::Replied(_)
                | Entry::Found(_)
                | Entry::Resumed { .. } => None,
            };
            this.is_told = rows.get(&run).is_some_and(|place| place.head == line.sha256.leading_u64());
            borne_out += usize::from(this.is_told);
            if this.is_told && this.ended.is_some_and(OutcomeKind::is_final) {
                begun.remove(&run);
            }
            Ok(())
        })?;
        if borne_out < rows.len() {
            let missing = rows.len() - borne_out;
            return Err(BatchError::Evidence { results: results_path, journal: journal_path, missing });
        }
        let open = |options: &mut OpenOptions, path: &Path| {
            options.mode(PRIVATE).open(path).map_err(BatchError::io("open", path))
        };
        let results = open(OpenOptions::new().read(true).append(true).create(true), &results_path)?;
        let records = open(OpenOptions::new().read(true), &journal_path)?;
        Ok(Self {
            journal,
            records,
            journal_path,
            results,
            results_path,
            rows,
            begun,
            redacted,
            redacted_runs,
        })
    }

    /// What there is of a run.
    ///
    /// # Errors
    ///
    /// [`BatchError::Io`], [`BatchError::Results`].
    pub(super) fn standing(&self, run: Uuid, retry: Retry) -> Result<CellState, BatchError> {
        let begun = self.begun.get(&run);
        if let Some(Begun { ended, is_told, .. }) = begun {
            match ended {
                None => return Ok(CellState::Begun),
                Some(ending) if retry.wants(*ending) => return Ok(CellState::Begun),
                Some(_) if !is_told => return Ok(CellState::Unreported),
                Some(_) => {}
            }
        }
        Ok(match self.rows.get(&run) {
            Some(place) => CellState::Ended(self.row(*place)?),
            None => CellState::New,
        })
    }

    /// Reads the line of results at this place.
    fn row<R: DeserializeOwned>(&self, place: Place) -> Result<R, BatchError> {
        let mut line = vec![0; place.bytes as usize];
        let path = &self.results_path;
        self.results.read_exact_at(&mut line, place.offset).map_err(BatchError::io("read", path))?;
        serde_json::from_slice(&line).map_err(|why| BatchError::Results {
            path: path.clone(),
            line: 0,
            why: why.to_string(),
        })
    }

    /// Whether a run of this roleset on this model was begun with tokens in place of what must not leave the machine.
    pub(super) fn has_redacted(&self, roleset: &str, model: &str) -> bool {
        self.redacted.contains(&(roleset.to_owned(), model.to_owned()))
    }

    /// Takes a run that begins with tokens in place of what must not leave the machine.
    pub(super) fn begin_redacted(&mut self, run: Uuid) {
        self.redacted_runs.insert(run);
    }

    /// Whether a run was begun with tokens in place of what must not leave the machine.
    pub(super) fn is_redacted(&self, run: Uuid) -> bool {
        self.redacted_runs.contains(&run)
    }

    /// Where the table of redactions of a run is, if it has one.
    pub(super) fn redactions(&self, run: Uuid) -> PathBuf {
        redactions_file(self.journal_path.parent().unwrap_or(Path::new("")), &run.to_string())
    }

    /// The part of the journal that is a new run's.
    pub(super) fn writer(&self, run: Uuid) -> RunWriter {
        self.journal.writer(&run.to_string(), Digest::ZERO)
    }

    /// Takes what there is of a run, to go on with it.
    ///
    /// # Errors
    ///
    /// [`BatchError::Io`], [`BatchError::Journal`].
    pub(super) fn take(&mut self, run: Uuid) -> Result<(RunWriter, Vec<Record>), BatchError> {
        let Begun { lines, .. } = self.begun.remove(&run).unwrap_or_default();
        let mut records = Vec::new();
        let mut head = Digest::ZERO;
        for line in lines {
            let mut bytes = vec![0; line.bytes];
            self.records
                .read_exact_at(&mut bytes, line.offset)
                .map_err(BatchError::io("read", &self.journal_path))?;
            // It was read once, and its chain has held: somebody has changed it since then.
            let damaged = |why: String| JournalError::Damaged {
                path: self.journal_path.clone(),
                line: line.number,
                why,
            };
            records.push(serde_json::from_slice(&bytes).map_err(|why| damaged(why.to_string()))?);
            head = line.sha256;
        }
        Ok((self.journal.writer(&run.to_string(), head), records))
    }

    /// Adds a line of results.
    ///
    /// # Errors
    ///
    /// [`BatchError::Io`].
    pub(super) fn add(&mut self, row: &ResultLine) -> Result<(), BatchError> {
        let mut line = serde_json::to_vec(row).unwrap_or_default();
        line.push(b'\n');
        self.results.write_all(&line).map_err(BatchError::io("write to", &self.results_path))
    }

    /// Adds a run's line again, with another word on whether it is right.
    ///
    /// # Errors
    ///
    /// [`BatchError::Io`], [`BatchError::Results`].
    pub(super) fn rescore(&mut self, run: Uuid, rights: [Option<bool>; 2]) -> Result<(), BatchError> {
        let Some(place) = self.rows.get(&run) else { return Ok(()) };
        let mut row: serde_json::Map<String, Value> = self.row(*place)?;
        for (name, right) in ["right", "blind_right"].into_iter().zip(rights) {
            row.insert(name.to_owned(), right.into());
        }
        let mut line = serde_json::to_vec(&row).unwrap_or_default();
        line.push(b'\n');
        self.results.write_all(&line).map_err(BatchError::io("write to", &self.results_path))
    }

    /// Makes the results durable.
    ///
    /// # Errors
    ///
    /// [`BatchError::Io`].
    pub(super) fn sync(&self) -> Result<(), BatchError> {
        self.results.sync_data().map_err(BatchError::io("sync", &self.results_path))
    }
}

/// Reads which runs have a line of results: where it begins, how long it is, and what it says. A torn last line does not count,
/// and is cut if that is wanted.
pub(super) fn known(
    path: &Path,
    is_cut: bool,
    mut each: impl FnMut(u64, u32, Known),
) -> Result<(), BatchError> {
    let file = match OpenOptions::new().read(true).write(is_cut).open(path) {
        Ok(file) => file,
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(why) => return Err(BatchError::io("open", path)(why)),
    };
    let mut lines = BufReader::with_capacity(1 << 16, &file);
    let (mut line, mut whole, mut number) = (Vec::new(), 0, 0);
    loop {
        line.clear();
        let count = read_line(&mut lines, &mut line).map_err(BatchError::io("read", path))?;
        if line.pop_if(|last| *last == b'\n').is_none() {
            break;
        }
        number += 1;
        let wrong = |why: String| BatchError::Results { path: path.to_owned(), line: number, why };
        let row: Known = serde_json::from_slice(&line).map_err(|why| wrong(why.to_string()))?;
        let bytes = u32::try_from(line.len()).map_err(|_| wrong("it is too long".to_owned()))?;
        each(whole, bytes, row);
        whole += count as u64;
    }
    if !line.is_empty() && is_cut {
        file.set_len(whole).map_err(BatchError::io("cut the torn last line of", path))?;
    }
    Ok(())
}
