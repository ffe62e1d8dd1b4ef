//! One journal for many runs at the same time.
//!
//! The input is records, each of its run, in the order in which they come. The output is lines of one chain in one
//! file. A thread of the journal's own writes everything that came during its last write, and one sync makes all of
//! it durable: a thousand runs cost hardly more syncs than one. A run whose line must be written before it continues
//! writes that line itself, with the waiting lines of all other runs. No record is ever reported as durable before it
//! is, and once the file cannot be written, no run continues.

use std::collections::HashSet;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{oneshot, watch};

use super::chain::{Chain, Links};
use super::gaps::{GapRule, Gaps};
use super::reader::{PlacedRecord, walk};
use super::removal::remove;
use super::writer::{create_file, open_file, settle};
use super::{JournalError, Record};
use crate::files::check_own;
use crypto::Digest;

/// The time from one sync to the next. The records of a busy batch gather in it, and a record that comes alone does
/// not wait.
const BETWEEN_SYNCS: Duration = Duration::from_micros(500);

/// A shared journal. All records that have come are written when it is dropped.
#[derive(Debug)]
pub struct SharedJournal {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// One run's part of a shared journal.
#[derive(Debug)]
pub struct RunWriter {
    shared: Arc<Shared>,
    run: String,
    /// The SHA-256 of the last line of this run.
    head: Digest,
    /// The number of lines in the chain up to that one.
    lines: u64,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    file: File,
    /// The lock for writing: only its holder takes lines and writes them, so the file keeps the order of the chain.
    turn: Mutex<()>,
    state: Mutex<SharedState>,
    /// The number of lines of the chain that are written.
    written: watch::Sender<u64>,
    /// The signal that there is work to do.
    work: Condvar,
}

#[derive(Debug, Default)]
struct SharedState {
    chain: Chain,
    /// The lines that are not written yet.
    pending: Vec<u8>,
    /// The runs that wait until all lines appended by now are durable.
    waiting: Vec<oneshot::Sender<Result<(), Arc<std::io::Error>>>>,
    is_closed: bool,
    /// The reason why nothing more is written.
    failure: Option<Arc<std::io::Error>>,
}

/// A shared journal that is locked against other writers, and that has not been read yet.
#[derive(Debug)]
pub struct LockedJournal {
    file: File,
    path: PathBuf,
}

impl LockedJournal {
    /// Returns true if another process has the journal at `path` at this moment.
    pub fn is_held(path: &Path) -> bool {
        matches!(open_file(path), Err(JournalError::Locked { .. }))
    }

    /// Removes the journal if it holds nothing.
    pub fn discard_empty(self) {
        if self.file.metadata().is_ok_and(|about| about.len() == 0) {
            // An empty journal that remains does no harm.
            let _ = std::fs::remove_file(&self.path);
        }
    }

    /// Removes all lines of these runs. Returns the number of bytes that are gone.
    ///
    /// Returns [`JournalError`]; the journal is then as it was.
    pub fn remove(self, runs: &HashSet<String>) -> Result<u64, JournalError> {
        remove(self.file, &self.path, runs)
    }

    /// Locks the journal at `path`, and creates it if it does not exist.
    ///
    /// Returns [`JournalError::Locked`] if another process has it, and [`JournalError::Io`].
    pub fn take(path: &Path) -> Result<Self, JournalError> {
        check_own(path).map_err(|source| JournalError::io("open", path, source))?;
        let file = match open_file(path)? {
            Some(file) => file,
            None => create_file(path)?,
        };
        Ok(Self { file, path: path.to_owned() })
    }

    /// Reads the existing records, one by one, and prepares the journal for more. A torn last line is cut.
    ///
    /// Returns [`JournalError::Damaged`] if its chain is broken, and [`JournalError::Io`].
    pub fn read<E: DeserializeOwned>(
        self,
        each: impl FnMut(Record<E>, PlacedRecord) -> Result<(), String>,
    ) -> Result<SharedJournal, JournalError> {
        let Self { mut file, path } = self;
        let walked = walk(&file, &path, Links::OfFile, &Gaps::of(&path, GapRule::OfServer)?, each)?;
        settle(&mut file, &path, walked.whole_bytes, walked.torn_bytes)?;
        SharedJournal::start(file, path, walked.chain)
    }
}

impl SharedJournal {
    /// Locks a journal and reads it.
    ///
    /// Returns the errors of [`LockedJournal::take`] and [`LockedJournal::read`].
    pub fn open<E: DeserializeOwned>(
        path: &Path,
        each: impl FnMut(Record<E>, PlacedRecord) -> Result<(), String>,
    ) -> Result<Self, JournalError> {
        LockedJournal::take(path)?.read(each)
    }

    fn start(file: File, path: PathBuf, chain: Chain) -> Result<Self, JournalError> {
        let state = Mutex::new(SharedState { chain, ..SharedState::default() });
        let shared = Arc::new(Shared {
            path,
            file,
            turn: Mutex::default(),
            state,
            written: watch::Sender::new(chain.lines),
            work: Condvar::new(),
        });
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("journal".to_owned());
        let thread = thread
            .spawn(move || of_thread.write_all())
            .map_err(|source| JournalError::io("start to write to", &shared.path, source))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Returns the number of lines that are written, as it grows.
    pub fn written(&self) -> watch::Receiver<u64> {
        self.shared.written.subscribe()
    }

    /// Returns the writer of one run; `head` is the SHA-256 of the run's last line, or zeros if it has none yet.
    pub fn writer(&self, run: &str, head: Digest) -> RunWriter {
        RunWriter { shared: Arc::clone(&self.shared), run: run.to_owned(), head, lines: 0 }
    }
}

impl Drop for SharedJournal {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.work.notify_one();
        if let Some(thread) = self.thread.take() {
            // The thread has reported a failed write to each run that waited for it.
            let _ = thread.join();
        }
    }
}

impl RunWriter {
    /// Appends one record and returns it. The record survives the death of this process after [`RunWriter::written`],
    /// and that of the machine after [`RunWriter::sync`]. It is written at the latest when the journal is dropped.
    pub fn append<E: Serialize>(&mut self, event: E) -> Result<Record<E>, JournalError> {
        let mut state = self.shared.lock();
        if let Some(failure) = state.refusal() {
            return Err(self.shared.error(&failure));
        }
        let SharedState { chain, pending, .. } = &mut *state;
        let record = chain
            .append(&self.run, Some(self.head), event, pending)
            .map_err(|source| self.shared.io(source))?;
        (self.head, self.lines) = (chain.head, chain.lines);
        Ok(record)
    }

    /// Hands all appended records to the operating system, together with the lines of other runs that are ready.
    pub async fn written(&self) -> Result<(), JournalError> {
        // Runs that were woken by one sync append first, and the first of them writes for all.
        tokio::task::yield_now().await;
        if *self.shared.written.borrow() >= self.lines {
            return Ok(());
        }
        self.shared.write_pending().map_err(|failure| self.shared.error(&failure))
    }

    /// Waits until all appended records are durable.
    pub async fn sync(&self) -> Result<(), JournalError> {
        let (sender, done) = oneshot::channel();
        let is_first = {
            let mut state = self.shared.lock();
            if let Some(failure) = state.refusal() {
                return Err(self.shared.error(&failure));
            }
            state.waiting.push(sender);
            state.waiting.len() == 1
        };
        if is_first {
            self.shared.work.notify_one();
        }
        // The thread answers every waiting run before it ends.
        let done = done.await.unwrap_or_else(|_| Err(closed()));
        done.map_err(|failure| self.shared.error(&failure))
    }

    /// Returns the SHA-256 of this run's last line.
    pub fn head(&self) -> Digest {
        self.head
    }
}

impl SharedState {
    /// Returns the reason why nothing more is accepted, if there is one.
    fn refusal(&self) -> Option<Arc<std::io::Error>> {
        if self.is_closed { Some(self.failure.clone().unwrap_or_else(closed)) } else { None }
    }
}

fn closed() -> Arc<std::io::Error> {
    Arc::new(std::io::Error::new(std::io::ErrorKind::BrokenPipe, "the journal is closed"))
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, SharedState> {
        // A panic while the lock was held has left nothing half changed: a line is added whole, or not at all.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn io(&self, source: std::io::Error) -> JournalError {
        JournalError::io("write to", &self.path, source)
    }

    fn error(&self, failure: &std::io::Error) -> JournalError {
        self.io(std::io::Error::new(failure.kind(), failure.to_string()))
    }

    /// Waits until there is something to write, and a little longer for runs that are about to add to it.
    fn wait(&self, synced: Option<Instant>) -> MutexGuard<'_, SharedState> {
        let state = self.work.wait_while(self.lock(), |state| state.waiting.is_empty() && !state.is_closed);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        let early = synced.map_or(Duration::ZERO, |synced| BETWEEN_SYNCS.saturating_sub(synced.elapsed()));
        let waited = self.work.wait_timeout_while(state, early, |state| !state.is_closed);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Writes the lines that have come. Lines that another thread took before are written when this returns.
    fn write_pending(&self) -> Result<(), Arc<std::io::Error>> {
        // A panic never leaves a line half written.
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.lock();
        if let Some(failure) = &state.failure {
            return Err(failure.clone());
        }
        let (lines, count) = (std::mem::take(&mut state.pending), state.chain.lines);
        drop(state);
        (&self.file).write_all(&lines).map_err(|why| self.fail(why))?;
        self.written.send_replace(count);
        Ok(())
    }

    /// Closes the journal to further lines: a line after the failed one would leave a gap.
    fn fail(&self, why: std::io::Error) -> Arc<std::io::Error> {
        let mut state = self.lock();
        state.is_closed = true;
        let failure = state.failure.get_or_insert_with(|| Arc::new(why)).clone();
        drop(state);
        self.work.notify_one();
        failure
    }

    /// Writes lines as they come, until the journal is closed.
    fn write_all(&self) {
        let (mut is_open, mut synced) = (true, None);
        while is_open {
            let mut state = self.wait(synced);
            let waiting = std::mem::take(&mut state.waiting);
            is_open = !state.is_closed;
            drop(state);
            let done = self.write_pending();
            let done = done.and_then(|()| self.file.sync_data().map_err(|why| self.fail(why)));
            synced = Some(Instant::now());
            let mut late = Vec::new();
            if done.is_err() {
                late = std::mem::take(&mut self.lock().waiting);
                is_open = false;
            }
            for waiting in waiting.into_iter().chain(late) {
                // A run that was put down no longer waits.
                let _ = waiting.send(done.clone());
            }
        }
        // A program that is being started at this moment may hold a copy of the file, so the lock is released
        // explicitly.
        let _ = self.file.unlock();
    }
}
