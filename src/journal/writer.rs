//! Appending to a journal.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::chain::Chain;
use super::{FILE_NAME, Journal, JournalError, Record, read};
use crate::files::{private_folder, remove_unfinished, require_regular};
use crypto::Digest;

/// The wait before another attempt to lock a journal. A process that only checks whether a journal is being written
/// holds the lock for less.
const LOOK: Duration = Duration::from_millis(20);

/// The most times that a journal is opened again because another file has taken its place.
const REPLACED_MAX: usize = 3;

/// The only writer of a run's journal. It holds the lock of the run until it is dropped.
#[derive(Debug)]
pub struct Writer {
    file: File,
    path: PathBuf,
    run: String,
    chain: Chain,
    /// The line that is being written.
    line: Vec<u8>,
}

impl Writer {
    /// Creates the run folder `dir`, private to the user, and an empty journal in it.
    ///
    /// Returns [`JournalError::Io`], also if a journal exists already.
    pub fn create(dir: &Path, run: &str) -> Result<Self, JournalError> {
        let path = dir.join(FILE_NAME);
        Ok(Self::at(create_file(&path)?, path, run.to_owned(), Chain::default()))
    }

    /// Opens the journal in the run folder `dir` to continue it. A torn last line is cut, and files of the run that a killed process was
    /// writing are removed.
    ///
    /// Returns [`JournalError::Locked`] if another process has it, [`JournalError::Damaged`] if its chain is broken, and
    /// [`JournalError::Io`].
    pub fn reopen<E: DeserializeOwned>(dir: &Path) -> Result<(Self, Journal<E>), JournalError> {
        let path = dir.join(FILE_NAME);
        let Some(file) = open_file(&path)? else {
            return Err(JournalError::io("open", &path, ErrorKind::NotFound.into()));
        };
        // Only the writer of a run's journal writes the other files of its folder.
        remove_unfinished(dir);
        Self::continue_file(file, path)
    }

    /// Opens the journal in the folder `dir` to continue it. If there is no journal with a whole record, a new one is
    /// started.
    ///
    /// Returns the errors of [`Writer::create`] and [`Writer::reopen`].
    pub fn open<E: DeserializeOwned>(dir: &Path, run: &str) -> Result<(Self, Vec<Record<E>>), JournalError> {
        let path = dir.join(FILE_NAME);
        let Some(file) = open_file(&path)? else { return Ok((Self::create(dir, run)?, Vec::new())) };
        let text = std::fs::read(&path).map_err(|why| JournalError::io("read", &path, why))?;
        if !text.contains(&b'\n') {
            file.set_len(0).map_err(|why| JournalError::io("empty", &path, why))?;
            sync_folder(dir).map_err(|why| JournalError::io("sync the folder of", &path, why))?;
            return Ok((Self::at(file, path, run.to_owned(), Chain::default()), Vec::new()));
        }
        let (writer, journal) = Self::continue_file(file, path)?;
        Ok((writer, journal.records))
    }

    fn at(file: File, path: PathBuf, run: String, chain: Chain) -> Self {
        Self { file, path, run, chain, line: Vec::new() }
    }

    /// Continues a file that is locked.
    fn continue_file<E: DeserializeOwned>(
        mut file: File,
        path: PathBuf,
    ) -> Result<(Self, Journal<E>), JournalError> {
        let journal: Journal<E> = read(&path)?;
        if journal.is_excerpt {
            return Err(JournalError::Excerpt { path });
        }
        let chain = Chain { lines: journal.records.len() as u64, head: journal.head };
        settle(&mut file, &path, journal.whole_bytes, journal.torn_bytes)?;
        let run = journal.records[0].run.clone();
        Ok((Self::at(file, path, run, chain), journal))
    }

    /// Appends one record and returns it. The record survives the death of this process at once, and that of the
    /// machine after [`Writer::sync`].
    pub fn append<E: Serialize>(&mut self, event: E) -> Result<Record<E>, JournalError> {
        self.line.clear();
        let mut chain = self.chain;
        let appended = chain.append(&self.run, None, event, &mut self.line);
        let record = appended.map_err(|why| JournalError::io("write to", &self.path, why))?;
        self.file.write_all(&self.line).map_err(|why| JournalError::io("write to", &self.path, why))?;
        self.chain = chain;
        Ok(record)
    }

    /// Removes a journal without a whole record, so that it is not taken for a run.
    pub(crate) fn discard(self) {
        // An obstacle to the removal has already been reported by the write that failed.
        let _ = std::fs::remove_file(&self.path);
    }

    /// Makes all appended records durable.
    pub fn sync(&self) -> Result<(), JournalError> {
        self.file.sync_data().map_err(|why| JournalError::io("sync", &self.path, why))
    }

    /// Returns the SHA-256 of the last line.
    pub fn head(&self) -> Digest {
        self.chain.head
    }
}

impl Drop for Writer {
    /// Releases the lock. A program that is being started at this moment may hold a copy of the file, and would hold
    /// the lock as well.
    fn drop(&mut self) {
        // If unlocking fails, the file is closed next.
        let _ = self.file.unlock();
    }
}

/// Creates a journal's file, locked, and its folder, private to the user.
pub(super) fn create_file(path: &Path) -> Result<File, JournalError> {
    let dir = path.parent().unwrap_or(Path::new("."));
    private_folder(dir).map_err(|why| JournalError::io("make the folder", dir, why))?;
    let file = OpenOptions::new()
        .read(true)
        .append(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|why| JournalError::io("make a journal in", dir, why))?;
    lock(&file, path)?;
    sync_folder(dir).map_err(|why| JournalError::io("sync the folder", dir, why))?;
    Ok(file)
}

/// Opens a journal's file for reading and appending, locked; returns `None` if it does not exist.
pub(super) fn open_file(path: &Path) -> Result<Option<File>, JournalError> {
    for _ in 0..REPLACED_MAX {
        let file = match OpenOptions::new().read(true).append(true).open(path) {
            Ok(file) => file,
            Err(why) if why.kind() == ErrorKind::NotFound => return Ok(None),
            Err(why) => return Err(JournalError::io("open", path, why)),
        };
        // A pipe that is open for both directions would be read for ever.
        require_regular(&file).map_err(|why| JournalError::reading(path, 1, why))?;
        lock(&file, path)?;
        // The process that had the lock may have put another file in the place of this one.
        let own = file.metadata().map_err(|why| JournalError::io("open", path, why))?;
        let now = path.metadata();
        if now.is_ok_and(|now| (now.dev(), now.ino()) == (own.dev(), own.ino())) {
            return Ok(Some(file));
        }
    }
    Err(JournalError::Locked { path: path.to_owned() })
}

/// Cuts a torn last line off a file that was walked through, and makes the rest durable. Its writer may have died
/// before doing so, and the consequences of these records come next.
pub(super) fn settle(
    file: &mut File,
    path: &Path,
    whole_bytes: u64,
    torn_bytes: u64,
) -> Result<(), JournalError> {
    if torn_bytes > 0 {
        let cut = file.set_len(whole_bytes);
        cut.map_err(|why| JournalError::io("cut the torn last line of", path, why))?;
        file.seek(SeekFrom::End(0)).map_err(|why| JournalError::io("seek in", path, why))?;
    }
    file.sync_data().map_err(|why| JournalError::io("sync", path, why))
}

fn lock(file: &File, path: &Path) -> Result<(), JournalError> {
    // A process that only checks whether a journal is in use holds the lock for a moment.
    for wait in [Some(LOOK), Some(LOOK), None] {
        match (file.try_lock(), wait) {
            (Ok(()), _) => break,
            (Err(TryLockError::WouldBlock), Some(wait)) => std::thread::sleep(wait),
            (Err(TryLockError::WouldBlock), None) => {
                return Err(JournalError::Locked { path: path.to_owned() });
            }
            (Err(TryLockError::Error(source)), _) => {
                return Err(JournalError::io("lock", path, source));
            }
        }
    }
    Ok(())
}

/// Makes a folder's entries durable, and those of the folders above it, which may be new as well. A folder above may be one that cannot be
/// listed, as the homes and projects of clusters are, and some file systems sync no folder.
fn sync_folder(dir: &Path) -> std::io::Result<()> {
    let named = dir.ancestors().take(5).filter(|folder| !folder.as_os_str().is_empty());
    for (height, folder) in named.enumerate() {
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        match synced.map_err(|why| (why.kind(), why)) {
            Ok(()) | Err((ErrorKind::InvalidInput, _)) => {}
            Err((ErrorKind::PermissionDenied, _)) if height > 0 => {}
            Err((_, why)) => return Err(why),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The journal can be opened even while a copy of its file is held.
    #[test]
    fn dropped_writer_frees_its_journal() {
        let dir = std::env::temp_dir().join(format!("consensus-writer-{}", uuid::Uuid::now_v7()));
        let writer = Writer::create(&dir, "run").unwrap();
        let copy = writer.file.try_clone().unwrap();
        assert!(matches!(Writer::open::<u8>(&dir, "run"), Err(JournalError::Locked { .. })));
        drop(writer);
        assert!(Writer::open::<u8>(&dir, "run").is_ok());
        drop(copy);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
