//! Reading a journal back, and trusting nothing in it until its chain holds.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::{Entry, JournalError, Record, VERSION};
use crate::crypto::Digest;
use crate::text::check_depth;

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

/// Reads the journal at `path` and checks its chain.
///
/// # Errors
///
/// [`JournalError::Io`] if it cannot be read, [`JournalError::Damaged`] with the line's number for
/// anything but a torn last line, and for a journal without one whole line.
pub fn read<E: DeserializeOwned>(path: &Path) -> Result<Journal<E>, JournalError> {
    let io = |source| JournalError::Io { action: "read", path: path.to_owned(), source };
    parse(path, &std::fs::read(path).map_err(io)?)
}

fn parse<E: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<Journal<E>, JournalError> {
    let whole = bytes.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
    let mut journal = Journal {
        path: path.to_owned(),
        records: Vec::new(),
        head: Digest::ZERO,
        whole_bytes: whole as u64,
        torn_bytes: (bytes.len() - whole) as u64,
    };
    for line in bytes[..whole].split_inclusive(|&b| b == b'\n') {
        let line = &line[..line.len() - 1];
        let number = journal.records.len() as u64 + 1;
        let damaged = |why: String| JournalError::Damaged { path: path.to_owned(), line: number, why };
        let record = check_line(line, &journal).map_err(damaged)?;
        journal.head = Digest::of(line);
        journal.records.push(record);
    }
    if journal.records.is_empty() {
        let why = "there is no whole record; nothing was asked yet, so start the run anew".to_owned();
        return Err(JournalError::Damaged { path: path.to_owned(), line: 1, why });
    }
    Ok(journal)
}

fn check_line<E: DeserializeOwned>(line: &[u8], so_far: &Journal<E>) -> Result<Record<E>, String> {
    let text = std::str::from_utf8(line).map_err(|_| "it is not UTF-8".to_owned())?;
    if !check_depth(text) {
        return Err("it nests too deeply".to_owned());
    }
    let record: Record<E> = serde_json::from_str(text).map_err(|e| format!("it cannot be read: {e}"))?;
    if record.v != VERSION {
        return Err(format!("its format is version {}; this program reads version {VERSION}", record.v));
    }
    if record.prev != so_far.head {
        return Err("it does not follow from the line before it: the chain is broken".to_owned());
    }
    if record.seq != so_far.records.len() as u64 {
        return Err(format!("it is numbered {}", record.seq));
    }
    if so_far.records.first().is_some_and(|first| first.run != record.run) {
        return Err("it belongs to another run or repository".to_owned());
    }
    Ok(record)
}
