//! Reading a journal back. Nothing in it is trusted until its chain has been checked.

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::chain::{Chain, Links};
use super::gaps::{GapRule, Gaps, RemovedLines};
use super::{Entry, JournalError, Record};
use crate::files::{open_own, read_line};
use crate::program::PROGRAM;
use crypto::Digest;
use protocol::text::escape;

/// A journal whose chain is intact.
#[derive(Clone, Debug)]
pub struct Journal<E = Entry> {
    /// The path that it was read from.
    pub path: PathBuf,
    /// The records, oldest first; at least one.
    pub records: Vec<Record<E>>,
    /// The SHA-256 of the last line.
    pub head: Digest,
    /// The length of all whole lines, in bytes.
    pub whole_bytes: u64,
    /// The length of a torn last line, which does not count, in bytes; 0 if every line is whole.
    pub torn_bytes: u64,
    /// Whether the lines are an excerpt from the journal of many runs, whose chain is that of the run alone.
    pub is_excerpt: bool,
}

/// The place of a line in its file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PlacedRecord {
    /// The number of the line, from 1.
    pub number: u64,
    /// The offset of the line, in bytes.
    pub offset: u64,
    /// The length of the line in bytes, without its line break.
    pub bytes: usize,
    /// The SHA-256 of the line.
    pub sha256: Digest,
}

/// The result of a walk through a file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReadLines {
    pub(super) chain: Chain,
    /// The number of whole lines in the file.
    pub(super) lines: u64,
    /// The length of all whole lines, in bytes.
    pub(super) whole_bytes: u64,
    /// The length of a torn last line, in bytes.
    pub(super) torn_bytes: u64,
    /// The lines that the gaps skip.
    pub(super) removed: RemovedLines,
}

/// Reads the journal of one run at `path` and checks its chain. The file may also be the lines of one run from a shared journal.
///
/// Returns [`JournalError::Io`] if it cannot be read, and [`JournalError::Damaged`], with the number of the line, for any damage
/// except a torn last line, and for a journal without a whole line.
pub fn read<E: DeserializeOwned>(path: &Path) -> Result<Journal<E>, JournalError> {
    read_from(open_own(path).map_err(|why| JournalError::reading(path, 1, why))?, path)
}

/// Reads the journal of one run from its lines, as [`read`] does. Errors call them by `path`.
///
/// Returns the errors of [`read`].
pub fn read_from<E: DeserializeOwned>(lines: impl Read, path: &Path) -> Result<Journal<E>, JournalError> {
    let mut records: Vec<Record<E>> = Vec::new();
    let walked = walk(lines, path, Links::AsFirst, &Gaps::default(), |record, _| {
        if records.first().is_some_and(|first| first.run != record.run) {
            return Err("it belongs to another run or repository".to_owned());
        }
        records.push(record);
        Ok(())
    })?;
    if records.is_empty() {
        let why =
            "the journal has no complete record, so no model was called yet; start the run again".to_owned();
        return Err(JournalError::Damaged { path: path.to_owned(), line: 1, why });
    }
    let ReadLines { chain, whole_bytes, torn_bytes, .. } = walked;
    let is_excerpt = records[0].run_prev.is_some();
    Ok(Journal { path: path.to_owned(), records, head: chain.head, whole_bytes, torn_bytes, is_excerpt })
}

/// Reads a journal that many runs share at `path`, record by record, and checks its chain. Only one line is in memory
/// at a time. A torn last line does not count.
///
/// Returns [`JournalError::Io`] and [`JournalError::Damaged`]; the latter also for a record that `each` rejects.
pub fn read_shared<E: DeserializeOwned>(
    path: &Path,
    each: impl FnMut(Record<E>, PlacedRecord) -> Result<(), String>,
) -> Result<(), JournalError> {
    read_with_gaps(path, GapRule::OfServer, each).map(drop)
}

/// Reads a journal as [`read_shared`] does, and takes the gaps that this rule allows. Returns the lines that they skip.
///
/// Returns the errors of [`read_shared`].
pub fn read_with_gaps<E: DeserializeOwned>(
    path: &Path,
    rule: GapRule,
    each: impl FnMut(Record<E>, PlacedRecord) -> Result<(), String>,
) -> Result<RemovedLines, JournalError> {
    let file = open_own(path).map_err(|why| JournalError::reading(path, 1, why))?;
    // A journal that is replaced at this moment has its new list already, which has the old gaps too.
    Ok(walk(&file, path, Links::OfFile, &Gaps::of(path, rule)?, each)?.removed)
}

/// Reads a file from its current position to its end, and passes each record to `each`.
pub(super) fn walk<E: DeserializeOwned>(
    file: impl Read,
    path: &Path,
    mut by: Links,
    gaps: &Gaps,
    mut each: impl FnMut(Record<E>, PlacedRecord) -> Result<(), String>,
) -> Result<ReadLines, JournalError> {
    let mut lines = BufReader::with_capacity(1 << 16, file);
    let (mut line, mut walked) = (Vec::new(), ReadLines::default());
    loop {
        line.clear();
        let number = walked.lines + 1;
        let count =
            read_line(&mut lines, &mut line).map_err(|why| JournalError::reading(path, number, why))?;
        if line.pop_if(|last| *last == b'\n').is_none() {
            walked.torn_bytes = count as u64;
            return Ok(walked);
        }
        require_build(&line, path)?;
        let before = walked.chain.lines;
        let record = walked.chain.check(&line, by, gaps).map_err(|why| damaged(path, number, why))?;
        walked.removed.add(walked.chain.lines - before - 1);
        if by == Links::AsFirst {
            by = if record.run_prev.is_some() { Links::OfRun } else { Links::OfFile };
        }
        let (offset, bytes, sha256) = (walked.whole_bytes, line.len(), walked.chain.head);
        let placed = PlacedRecord { number, offset, bytes, sha256 };
        each(record, placed).map_err(|why| damaged(path, number, why))?;
        walked.lines = number;
        walked.whole_bytes += count as u64;
    }
}

fn damaged(path: &Path, line: u64, why: String) -> JournalError {
    JournalError::Damaged { path: path.to_owned(), line, why }
}

/// Refuses a journal whose first line another build has written, without reading the rest.
///
/// Returns [`JournalError::OtherBuild`], and [`JournalError::Io`] if the journal is there and cannot be read.
pub fn require_own_build(path: &Path) -> Result<(), JournalError> {
    if !path.exists() {
        return Ok(());
    }
    let mut header = Vec::new();
    let limit = HEADER_BYTES_MAX as u64;
    let read = open_own(path).and_then(|file| file.take(limit).read_to_end(&mut header));
    read.map_err(|why| JournalError::reading(path, 1, why))?;
    require_build(&header, path)
}

/// Refuses the opening record of another build.
fn require_build(line: &[u8], path: &Path) -> Result<(), JournalError> {
    match find_program(line) {
        Some(program) if program != PROGRAM => {
            Err(JournalError::OtherBuild { path: path.to_owned(), program: escape::terminal(program) })
        }
        Some(_) | None => Ok(()),
    }
}

/// The starts of an opening event: of a run or a ledger, and of the log of a reviewer.
const OPENINGS: [&str; 2] =
    ["\"event\":{\"type\":\"opened\",\"program\":\"", "\"event\":{\"opened\":{\"program\":\""];

/// The most bytes in a line before its event.
const HEADER_BYTES_MAX: usize = 512;

/// Returns the program that an opening record names. The line is read as every build writes it, because another build may have other
/// fields.
fn find_program(line: &[u8]) -> Option<&str> {
    let header = take_header(line);
    let from = OPENINGS.iter().find_map(|opening| Some(header.find(opening)? + opening.len()))?;
    let (program, _) = header[from..].split_once('"')?;
    Some(program)
}

/// Returns the beginning of a line, in which its event begins.
pub(super) fn take_header(line: &[u8]) -> &str {
    let header = &line[..line.len().min(HEADER_BYTES_MAX)];
    // A long line may be cut within a character.
    header.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}
