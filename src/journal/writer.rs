//! Appending to a journal.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{FILE_NAME, Journal, JournalError, Record, VERSION, read};
use crate::crypto::Digest;

/// The one writer of a run's journal; holds the run's lock until it is dropped.
#[derive(Debug)]
pub struct Writer {
    file: File,
    path: PathBuf,
    run: String,
    seq: u64,
    head: Digest,
}

impl Writer {
    /// Makes the run folder `dir`, private to the user, and an empty journal in it.
    ///
    /// # Errors
    ///
    /// [`JournalError::Io`], also if there is a journal already.
    pub fn create(dir: &Path, run: &str) -> Result<Self, JournalError> {
        let path = dir.join(FILE_NAME);
        let io = |action| move |source| JournalError::Io { action, path: dir.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(io("make the folder"))?;
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(io("make a journal in"))?;
        lock(&file, &path)?;
        sync_folder(dir).map_err(io("sync the folder"))?;
        Ok(Self { file, path, run: run.to_owned(), seq: 0, head: Digest::ZERO })
    }

    /// Opens the journal in the run folder `dir` to go on with it; a torn last line is cut.
    ///
    /// # Errors
    ///
    /// [`JournalError::Locked`] if another process has it, [`JournalError::Damaged`] if its chain
    /// does not hold, [`JournalError::Io`].
    pub fn reopen<E: DeserializeOwned>(dir: &Path) -> Result<(Self, Journal<E>), JournalError> {
        let path = dir.join(FILE_NAME);
        let io = |action| {
            let path = path.clone();
            move |source| JournalError::Io { action, path, source }
        };
        let file = OpenOptions::new().read(true).append(true).open(&path).map_err(io("open"))?;
        lock(&file, &path)?;
        Self::go_on(file, path)
    }

    /// Opens the journal in the folder `dir` to go on with it, or makes one, where there is none with a whole record.
    ///
    /// # Errors
    ///
    /// As [`Writer::create`] and [`Writer::reopen`].
    pub fn open<E: DeserializeOwned>(dir: &Path, run: &str) -> Result<(Self, Vec<Record<E>>), JournalError> {
        let path = dir.join(FILE_NAME);
        let io = |action| {
            let path = path.clone();
            move |source| JournalError::Io { action, path, source }
        };
        let found = OpenOptions::new().read(true).append(true).open(&path);
        let file = match found {
            Ok(file) => file,
            Err(why) if why.kind() == ErrorKind::NotFound => {
                return Ok((Self::create(dir, run)?, Vec::new()));
            }
            Err(why) => return Err(io("open")(why)),
        };
        lock(&file, &path)?;
        if !std::fs::read(&path).map_err(io("read"))?.contains(&b'\n') {
            file.set_len(0).map_err(io("empty"))?;
            sync_folder(dir).map_err(io("sync the folder of"))?;
            return Ok((Self { file, path, run: run.to_owned(), seq: 0, head: Digest::ZERO }, Vec::new()));
        }
        let (writer, journal) = Self::go_on(file, path)?;
        Ok((writer, journal.records))
    }

    /// Goes on with a file that is locked.
    fn go_on<E: DeserializeOwned>(mut file: File, path: PathBuf) -> Result<(Self, Journal<E>), JournalError> {
        let io = |action| {
            let path = path.clone();
            move |source| JournalError::Io { action, path, source }
        };
        let journal = read(&path)?;
        if journal.torn_bytes > 0 {
            file.set_len(journal.whole_bytes).map_err(io("cut the torn last line of"))?;
            file.seek(SeekFrom::End(0)).map_err(io("seek in"))?;
            file.sync_data().map_err(io("sync"))?;
        }
        let (seq, head) = (journal.records.len() as u64, journal.head);
        let run = journal.records[0].run.clone();
        Ok((Self { file, path, run, seq, head }, journal))
    }

    /// Appends one record and returns it. It survives the death of this process at once, and that
    /// of the machine after [`Writer::sync`].
    ///
    /// # Errors
    ///
    /// [`JournalError::Io`].
    pub fn append<E: Serialize>(&mut self, event: E) -> Result<Record<E>, JournalError> {
        let at = humantime::format_rfc3339_micros(SystemTime::now()).to_string();
        let record = Record { v: VERSION, run: self.run.clone(), seq: self.seq, at, event, prev: self.head };
        let io = |source| JournalError::Io { action: "write to", path: self.path.clone(), source };
        let mut line = serde_json::to_vec(&record).map_err(|e| io(e.into()))?;
        let head = Digest::of(&line);
        line.push(b'\n');
        self.file.write_all(&line).map_err(io)?;
        (self.head, self.seq) = (head, self.seq + 1);
        Ok(record)
    }

    /// Removes a journal that holds nothing whole, so that nobody takes it for a run.
    pub(crate) fn discard(self) {
        // Whatever stands in the way has been reported by the write that failed.
        let _ = std::fs::remove_file(&self.path);
    }

    /// Makes everything appended so far durable.
    ///
    /// # Errors
    ///
    /// [`JournalError::Io`].
    pub fn sync(&self) -> Result<(), JournalError> {
        let io = |source| JournalError::Io { action: "sync", path: self.path.clone(), source };
        self.file.sync_data().map_err(io)
    }

    /// Returns the SHA-256 of the last line.
    #[must_use]
    pub fn head(&self) -> Digest {
        self.head
    }
}

impl Drop for Writer {
    /// A program that is being started in this very moment holds a copy of the file; the lock is not to last as long as that.
    fn drop(&mut self) {
        // Whoever cannot unlock it closes it next.
        let _ = self.file.unlock();
    }
}

fn lock(file: &File, path: &Path) -> Result<(), JournalError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(JournalError::Locked { path: path.to_owned() }),
        Err(TryLockError::Error(source)) => {
            Err(JournalError::Io { action: "lock", path: path.to_owned(), source })
        }
    }
}

/// Makes a folder's entries durable, and those of the folders around it, which may be new as well.
fn sync_folder(dir: &Path) -> std::io::Result<()> {
    let named = dir.ancestors().take(5).filter(|folder| !folder.as_os_str().is_empty());
    named.map(File::open).try_for_each(|folder| folder?.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_that_is_done_with_can_be_opened_while_a_copy_of_its_file_is_held() {
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
