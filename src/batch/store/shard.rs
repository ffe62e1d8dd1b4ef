//! The part of a batch's folder that belongs to one shard: its existing records and new ones.
//!
//! The journal is the truth, and a line of results follows from it. A crash may leave the two out of step. The gap is closed when
//! the run's cell comes by: an ended run without a line gets one, and an unfinished run continues.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{BufReader, Error, ErrorKind, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::watch;
use uuid::Uuid;

use super::result_line::{EndOnRecord, Grades, ResultOnRecord};
use crate::batch::folder::layout::{PRIVATE, claim, journal_file, redactions_file, results_file};
use crate::batch::folder::manifest::noted_plan;
use crate::batch::folder::{BatchError, ShardOf};
use crate::files::{LINE_BYTES_MAX, check_own, open_own, read_line, require_regular};
use crate::journal::{
    Entry, Journal, JournalError, LockedJournal, PlacedRecord, Record, Replied, RunPlaces, RunSpec,
    RunWriter, SharedJournal, read_from, require_own_build,
};
use crypto::Digest;
use protocol::OutcomeKind;

/// The fault of a second `opened` record of a run.
pub(in crate::batch) const OPENED_TWICE: &str =
    "its run has begun on an earlier line, and a run begins once in a journal";

/// The ends that are tried again.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Retry {
    /// Whether to retry runs whose provider failed.
    pub failed: bool,
    /// Whether to retry runs that reached a limit.
    pub budget: bool,
}

impl Retry {
    /// Returns true if a run that ended like this is continued.
    pub(in crate::batch) fn wants(self, ending: OutcomeKind) -> bool {
        match ending {
            OutcomeKind::Failed => self.failed,
            OutcomeKind::Budget => self.budget,
            OutcomeKind::Agreed
            | OutcomeKind::NoAgreement
            | OutcomeKind::Abstained
            | OutcomeKind::Vetoed
            | OutcomeKind::Interrupted => false,
        }
    }
}

/// One shard of a batch, in its folder. No other process has it meanwhile.
#[derive(Debug)]
pub struct Shard {
    journal: SharedJournal,
    /// The same file, open for reading.
    records: File,
    journal_path: PathBuf,
    results: File,
    results_path: PathBuf,
    /// The place of the last line of results of each run. The lines themselves are not kept, since there may be millions.
    rows: HashMap<Uuid, RowPlace>,
    /// The runs in the journal without a final line: they have no line, or records beyond their line.
    begun: HashMap<Uuid, RecordPlaces>,
    /// The rolesets and models with a run that has tokens in place of text that must not leave the machine.
    redacted: BTreeSet<(String, String)>,
    /// The runs with tokens in place of such text.
    redacted_runs: HashSet<Uuid>,
    /// The SHA-256 of the plan of the evaluation to which the batch belongs, if it belongs to one.
    plan: Option<Digest>,
    /// The places of the lines of runs that this process has left, once one of them continues.
    places: Option<RunPlaces>,
}

/// The place of a line of results, and the end that it states.
#[derive(Clone, Copy, Debug)]
struct RowPlace {
    offset: u64,
    bytes: u32,
    /// The beginning of the SHA-256 of the record with which the run ended.
    head: u64,
}

/// A run without a final line of results, when a batch or a server opens its shard.
#[derive(Clone, Debug)]
pub struct UnfinishedRun {
    /// The start of the run.
    pub spec: RunSpec,
    /// Whether the run has ended all the same.
    pub has_ended: bool,
    /// The tokens of its replies and their prompts.
    pub tokens: u64,
    /// The time of its first record.
    pub began_at: String,
    /// The time of its last record.
    pub last_at: String,
}

/// The places of a run's records.
#[derive(Debug, Default)]
struct RecordPlaces {
    lines: Vec<PlacedRecord>,
    /// The end of the run; `None` if it was interrupted on request or its process died.
    ended: Option<OutcomeKind>,
    /// Whether its line of results states this end, not one before it was tried again.
    is_reported: bool,
}

/// The state of a cell's run.
#[derive(Clone, Debug)]
pub(in crate::batch) enum CellState {
    /// The run has not begun.
    New,
    /// The run can continue.
    Begun,
    /// The run has ended, and no line of results says so.
    Unreported,
    /// The run has ended, as its line of results says.
    Ended(Box<ResultOnRecord>),
}

impl Shard {
    /// Opens a shard of the batch in this folder, or makes it.
    pub fn open(folder: &Path, which: ShardOf) -> Result<Self, BatchError> {
        let results_path = results_file(folder, which.index);
        let journal_path = journal_file(folder, which.index);
        let mut begun: HashMap<Uuid, RecordPlaces> = HashMap::new();
        check_own(&results_path).map_err(BatchError::io("open", &results_path))?;
        require_own_build(&journal_path)?;
        let journal = LockedJournal::take(&journal_path)?;
        if let Err(why) = claim(folder, which) {
            journal.discard_empty();
            return Err(why);
        }
        let plan = noted_plan(folder)?;
        let mut rows = HashMap::new();
        read_result_ends(&results_path, true, |offset, bytes, row| {
            // For a run that was tried again, the last line counts.
            let head = row.journal_head.leading_u64();
            rows.insert(row.run, RowPlace { offset, bytes, head });
        })?;
        let mut confirmed = 0;
        let (mut redacted, mut redacted_runs) = (BTreeSet::new(), HashSet::new());
        let mut opened_runs: HashSet<Uuid> = HashSet::new();
        let journal = journal.read(|record: Record, line| {
            let run = record.run.parse().map_err(|_| "its `run` is not the id of a batch run".to_owned())?;
            if let Entry::Opened(opened) = &record.event {
                if !opened_runs.insert(run) {
                    return Err(OPENED_TWICE.to_owned());
                }
                if opened.redacted {
                    let model = opened.cell.as_ref().map(|cell| cell.model.clone());
                    redacted_runs.insert(run);
                    redacted.insert((opened.setup.roleset.clone(), model.unwrap_or_default()));
                }
            }
            let this = begun.entry(run).or_default();
            this.lines.push(line);
            this.ended = ending_of(&record.event);
            this.is_reported = rows.get(&run).is_some_and(|place| place.head == line.sha256.leading_u64());
            confirmed += usize::from(this.is_reported);
            if this.is_reported && this.ended.is_some_and(OutcomeKind::is_final) {
                begun.remove(&run);
            }
            Ok(())
        })?;
        if confirmed < rows.len() {
            let missing = rows.len() - confirmed;
            return Err(BatchError::Evidence { results: results_path, journal: journal_path, missing });
        }
        let results =
            OpenOptions::new().read(true).append(true).create(true).mode(PRIVATE).open(&results_path);
        let results = results.map_err(BatchError::io("open", &results_path))?;
        let records = File::open(&journal_path).map_err(BatchError::io("open", &journal_path))?;
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
            plan,
            places: None,
        })
    }

    /// Returns the SHA-256 of the plan of the evaluation to which the batch belongs, if it belongs to one.
    pub(in crate::batch) fn plan(&self) -> Option<Digest> {
        self.plan
    }

    /// Returns the runs without a final line of results.
    ///
    /// Returns [`BatchError::Io`] or [`BatchError::Journal`].
    pub fn unfinished(&self) -> Result<Vec<UnfinishedRun>, BatchError> {
        let mut unfinished = Vec::new();
        for begun in self.begun.values() {
            if begun.ended.is_some() && begun.is_reported {
                continue;
            }
            let (mut spec, mut tokens, mut times) = (None, 0_u64, Vec::new());
            for line in &begun.lines {
                let record = self.record(line)?;
                times.push(record.at);
                match record.event {
                    Entry::Opened(opened) => spec = Some(*opened),
                    Entry::Replied(Replied { usage, .. }) => {
                        tokens = tokens.saturating_add(usage.prompt).saturating_add(usage.completion);
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
            let (began_at, last_at) = (times.first().cloned(), times.pop());
            if let (Some(spec), Some(began_at), Some(last_at)) = (spec, began_at, last_at) {
                let has_ended = begun.ended.is_some();
                unfinished.push(UnfinishedRun { spec, has_ended, tokens, began_at, last_at });
            }
        }
        Ok(unfinished)
    }

    /// Returns the lines of each run in the journal, as they are written.
    pub fn run_places(&self) -> Result<RunPlaces, BatchError> {
        Ok(RunPlaces::open(&self.journal_path)?)
    }

    /// Returns the path of the journal.
    pub fn journal_path(&self) -> &Path {
        &self.journal_path
    }

    /// Returns the number of lines of the journal that are written, as it grows.
    pub fn written(&self) -> watch::Receiver<u64> {
        self.journal.written()
    }

    /// Reads the record at this place.
    fn record(&self, line: &PlacedRecord) -> Result<Record, BatchError> {
        let mut bytes = vec![0; line.bytes];
        let path = &self.journal_path;
        self.records.read_exact_at(&mut bytes, line.offset).map_err(BatchError::io("read", path))?;
        serde_json::from_slice(&bytes).map_err(|why| {
            // The record was read before with a whole chain, so the file has been changed since then.
            let why = why.to_string();
            JournalError::Damaged { path: path.clone(), line: line.number, why }.into()
        })
    }

    /// Returns the state of a run.
    ///
    /// Returns [`BatchError::Io`] or [`BatchError::Results`].
    pub(in crate::batch) fn state_of(&self, run: Uuid, retry: Retry) -> Result<CellState, BatchError> {
        let begun = self.begun.get(&run);
        if let Some(RecordPlaces { ended, is_reported, .. }) = begun {
            match ended {
                None => return Ok(CellState::Begun),
                Some(ending) if retry.wants(*ending) => return Ok(CellState::Begun),
                Some(_) if !is_reported => return Ok(CellState::Unreported),
                Some(_) => {}
            }
        }
        Ok(match self.rows.get(&run) {
            Some(place) => CellState::Ended(Box::new(self.row(*place)?)),
            None => CellState::New,
        })
    }

    /// Reads the line of results at this place.
    fn row<R: DeserializeOwned>(&self, place: RowPlace) -> Result<R, BatchError> {
        let mut line = vec![0; place.bytes as usize];
        let path = &self.results_path;
        self.results.read_exact_at(&mut line, place.offset).map_err(BatchError::io("read", path))?;
        serde_json::from_slice(&line).map_err(|why| {
            let all = std::fs::read(path).unwrap_or_default();
            let end = usize::try_from(place.offset).unwrap_or(usize::MAX).min(all.len());
            let line = all[..end].split(|byte| *byte == b'\n').count() as u64;
            BatchError::Results { path: path.clone(), line, why: why.to_string() }
        })
    }

    /// Returns whether a run of this roleset on this model has tokens in place of text that must not leave the machine.
    pub(in crate::batch) fn has_redacted(&self, roleset: &str, model: &str) -> bool {
        self.redacted.contains(&(roleset.to_owned(), model.to_owned()))
    }

    /// Notes a run that begins with tokens in place of text that must not leave the machine.
    pub(in crate::batch) fn begin_redacted(&mut self, run: Uuid) {
        self.redacted_runs.insert(run);
    }

    /// Returns whether a run was begun with tokens in place of text that must not leave the machine.
    pub(in crate::batch) fn is_redacted(&self, run: Uuid) -> bool {
        self.redacted_runs.contains(&run)
    }

    /// Returns the path of a run's table of redactions, which exists only for a redacted run.
    pub(in crate::batch) fn redactions(&self, run: Uuid) -> PathBuf {
        redactions_file(self.journal_path.parent().unwrap_or(Path::new("")), &run.to_string())
    }

    /// Returns the path of a run's table of redactions, if the run is redacted.
    pub(in crate::batch) fn table_of(&self, run: Uuid) -> Option<PathBuf> {
        if self.is_redacted(run) { Some(self.redactions(run)) } else { None }
    }

    /// Returns the writer of a new run's part of the journal.
    pub(in crate::batch) fn writer(&self, run: Uuid) -> RunWriter {
        self.journal.writer(&run.to_string(), Digest::ZERO)
    }

    /// Takes the existing records of a run, to continue it.
    ///
    /// Returns [`BatchError::Io`] or [`BatchError::Journal`].
    pub(in crate::batch) fn take(&mut self, run: Uuid) -> Result<(RunWriter, Vec<Record>), BatchError> {
        let RecordPlaces { lines, .. } = self.begun.remove(&run).unwrap_or_default();
        let mut records = Vec::new();
        let mut head = Digest::ZERO;
        for line in lines {
            records.push(self.record(&line)?);
            head = line.sha256;
        }
        Ok((self.journal.writer(&run.to_string(), head), records))
    }

    /// Takes the records of a run that this process has left while it waited, to continue it.
    ///
    /// Returns [`BatchError::Journal`].
    pub(in crate::batch) fn take_again(&mut self, run: Uuid) -> Result<(RunWriter, Vec<Record>), BatchError> {
        let mut places = match self.places.take() {
            Some(places) => places,
            None => self.run_places()?,
        };
        let run = run.to_string();
        let lines = places.all_lines_of(&run)?;
        let journal: Journal = read_from(lines.as_slice(), &self.journal_path)?;
        self.places = Some(places);
        Ok((self.journal.writer(&run, journal.head), journal.records))
    }

    /// Adds a line of results.
    pub(in crate::batch) fn append(&mut self, row: &impl Serialize) -> Result<(), BatchError> {
        let mut line = serde_json::to_vec(row).unwrap_or_default();
        line.push(b'\n');
        let written = if line.len() as u64 > LINE_BYTES_MAX {
            let why = format!("a line is longer than {LINE_BYTES_MAX} bytes, and no reader would take it");
            Err(Error::new(ErrorKind::FileTooLarge, why))
        } else {
            self.results.write_all(&line)
        };
        written.map_err(BatchError::io("write to", &self.results_path))
    }

    /// Adds a run's line again, with a new verdict on whether it is right, and the grades behind it.
    ///
    /// Returns [`BatchError::Io`] or [`BatchError::Results`].
    pub(in crate::batch) fn rescore(
        &mut self,
        run: Uuid,
        rights: [Option<bool>; 2],
        grades: &Grades,
    ) -> Result<(), BatchError> {
        let Some(place) = self.rows.get(&run) else { return Ok(()) };
        let mut row: serde_json::Map<String, Value> = self.row(*place)?;
        for (name, right) in ["right", "blind_right"].into_iter().zip(rights) {
            row.insert(name.to_owned(), right.into());
        }
        for (name, grade) in ["grade", "blind_grade"].into_iter().zip(grades) {
            match grade {
                Some(grade) => row.insert(name.to_owned(), json!(grade)),
                None => row.remove(name),
            };
        }
        self.append(&row)
    }

    /// Makes the results durable.
    pub(in crate::batch) fn sync(&self) -> Result<(), BatchError> {
        self.results.sync_data().map_err(BatchError::io("sync", &self.results_path))
    }
}

/// Returns how a record ends its run, unless the run was interrupted and can continue.
fn ending_of(event: &Entry) -> Option<OutcomeKind> {
    match event {
        Entry::Stopped { outcome } => {
            let ending = outcome.kind();
            if ending == OutcomeKind::Interrupted { None } else { Some(ending) }
        }
        Entry::Opened(_)
        | Entry::Asked(_)
        | Entry::Replied(_)
        | Entry::Lost(_)
        | Entry::Found(_)
        | Entry::Executed(_)
        | Entry::LeftOut(_)
        | Entry::Permitted(_)
        | Entry::Closed(_)
        | Entry::Resumed { .. } => None,
    }
}

/// Reads the ends that lines of results state: the offset, the length and the fields of each. Ignores a torn last line, and cuts it off if
/// `is_cut` is set.
pub(in crate::batch) fn read_result_ends(
    path: &Path,
    is_cut: bool,
    mut each: impl FnMut(u64, u32, EndOnRecord),
) -> Result<(), BatchError> {
    let opened = if is_cut { OpenOptions::new().read(true).write(true).open(path) } else { open_own(path) };
    let file = match opened {
        Ok(file) => file,
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(()),
        Err(why) => return Err(BatchError::of_results(path, 1, why)),
    };
    require_regular(&file).map_err(|why| BatchError::of_results(path, 1, why))?;
    let mut lines = BufReader::with_capacity(1 << 16, &file);
    let (mut line, mut whole, mut number) = (Vec::new(), 0, 0);
    let torn = loop {
        line.clear();
        number += 1;
        let count =
            read_line(&mut lines, &mut line).map_err(|why| BatchError::of_results(path, number, why))?;
        if line.pop_if(|last| *last == b'\n').is_none() {
            break count;
        }
        let row: EndOnRecord = serde_json::from_slice(&line)
            .map_err(|why| BatchError::bad_result(path, number, why.to_string()))?;
        let bytes = u32::try_from(line.len())
            .map_err(|_| BatchError::bad_result(path, number, "it is too long".to_owned()))?;
        each(whole, bytes, row);
        whole += count as u64;
    };
    if torn > 0 && is_cut {
        file.set_len(whole).map_err(BatchError::io("cut the torn last line of", path))?;
    }
    Ok(())
}
