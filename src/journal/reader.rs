//! Reading a journal back, and trusting nothing in it until its chain holds.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::chain::Chain;
use super::{Entry, JournalError, Record};
use crate::crypto::Digest;
use crate::files::read_line;

/// A journal whose chain holds.
#[derive(Clone, Debug)]
pub struct Journal<E = Entry> {
    /// Where it was read from.
    pub path: PathBuf,
    /// Its records, oldest first; at least one.
    pub records: Vec<Record<E>>,
    /// SHA-256 of the last line.
    pub head: Digest,
    /// Bytes of whole lines.
    pub whole_bytes: u64,
    /// Bytes of a torn last line, which do not count; 0 if there is none.
    pub torn_bytes: u64,
}

/// Where a line is in its file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PlacedRecord {
    /// Its number, from 1.
    pub number: u64,
    /// Where it begins, in bytes.
    pub offset: u64,
    /// How long it is, without its line break.
    pub bytes: usize,
    /// Its SHA-256.
    pub sha256: Digest,
}

/// What a walk through a file has found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Walked {
    pub(super) chain: Chain,
    /// Bytes of whole lines.
    pub(super) whole_bytes: u64,
    /// Bytes of a torn last line.
    pub(super) torn_bytes: u64,
}

/// Reads the journal of one run at `path` and checks its chain.
///
/// # Errors
///
/// [`JournalError::Io`] if it cannot be read, [`JournalError::Damaged`] with the line's number for
/// anything but a torn last line, and for a journal without one whole line.
pub fn read<E: DeserializeOwned>(path: &Path) -> Result<Journal<E>, JournalError> {
    let file = File::open(path).map_err(|source| JournalError::Io {
        action: "read",
        path: path.to_owned(),
        source,
    })?;
    let mut records: Vec<Record<E>> = Vec::new();
    let walked = walk(&file, path, |record, _| {
        if records.first().is_some_and(|first| first.run != record.run) {
            return Err("it belongs to another run or repository".to_owned());
        }
        records.push(record);
        Ok(())
    })?;
    if records.is_empty() {
        let why = "there is no whole record; nothing was asked yet, so start the run anew".to_owned();
        return Err(JournalError::Damaged { path: path.to_owned(), line: 1, why });
    }
    let Walked { chain, whole_bytes, torn_bytes } = walked;
    Ok(Journal { path: path.to_owned(), records, head: chain.head, whole_bytes, torn_bytes })
}

/// Reads a journal that many runs share at `path`, record by record, and checks its chain. Only one line is held at a time. A torn
/// last line does not count.
///
/// # Errors
///
/// [`JournalError::Io`] and [`JournalError::Damaged`]; the latter also for a record that `each` finds wrong.
pub fn read_shared<E: DeserializeOwned>(
    path: &Path,
    each: impl FnMut(Record<E>, PlacedRecord) -> Result<(), String>,
) -> Result<(), JournalError> {
    let io = |source| JournalError::Io { action: "read", path: path.to_owned(), source };
    walk(&File::open(path).map_err(io)?, path, each).map(drop)
}

/// Goes through a file from where it stands.
pub(super) fn walk<E: DeserializeOwned>(
    file: &File,
    path: &Path,
    mut each: impl FnMut(Record<E>, PlacedRecord) -> Result<(), String>,
) -> Result<Walked, JournalError> {
    let mut lines = BufReader::with_capacity(1 << 16, file);
    let (mut line, mut walked) = (Vec::new(), Walked::default());
    loop {
        line.clear();
        let count = read_line(&mut lines, &mut line);
        let count =
            count.map_err(|source| JournalError::Io { action: "read", path: path.to_owned(), source })?;
        if line.pop_if(|last| *last == b'\n').is_none() {
            walked.torn_bytes = count as u64;
            return Ok(walked);
        }
        let number = walked.chain.lines + 1;
        let damaged = |why: String| JournalError::Damaged { path: path.to_owned(), line: number, why };
        let record = walked.chain.check(&line).map_err(damaged)?;
        let (offset, bytes, sha256) = (walked.whole_bytes, line.len(), walked.chain.head);
        each(record, PlacedRecord { number, offset, bytes, sha256 }).map_err(damaged)?;
        walked.whole_bytes += count as u64;
    }
}
