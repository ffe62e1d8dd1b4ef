//! One journal for many runs that go on at the same time.
//!
//! In go records, each of its run, in the order in which they come; out come lines of one chain in one file. A thread of its
//! own writes whatever has come while it wrote before, and one sync makes all of it durable: a thousand runs cost hardly more
//! syncs than one. A run whose line must be written before it goes on writes it itself, with the lines of all runs that have come by
//! then. Nothing is said to be durable that is not, and once the file cannot be written nobody gets further.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;

use super::chain::Chain;
use super::reader::{PlacedRecord, walk};
use super::writer::{create_file, open_file, settle};
use super::{JournalError, Record};
use crate::crypto::Digest;

/// From one sync to the next: the records of a busy batch gather meanwhile, and one that comes alone does not wait.
const BETWEEN_SYNCS: Duration = Duration::from_micros(500);

/// A journal that is shared; whatever has come is written when this is dropped.
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
    /// SHA-256 of the last line of this run.
    head: Digest,
    /// How many lines of the chain there are up to that one.
    lines: u64,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    file: File,
    /// Its holder alone takes lines and writes them, so that they stand in the file in the order of their chain.
    turn: Mutex<()>,
    state: Mutex<State>,
    /// Says that there is something to do.
    work: Condvar,
}

#[derive(Debug, Default)]
struct State {
    chain: Chain,
    /// Lines that are not written yet.
    pending: Vec<u8>,
    /// How many lines of the chain are written.
    written: u64,
    /// Whoever waits until all lines of now are durable.
    waiting: Vec<oneshot::Sender<Result<(), Failure>>>,
    is_closed: bool,
    /// Why nothing more is written.
    failure: Option<Failure>,
}

/// Why a file cannot be written.
type Failure = (std::io::ErrorKind, String);

/// A shared journal that nobody else writes to, and that was not read yet.
#[derive(Debug)]
pub struct LockedJournal {
    file: File,
    path: PathBuf,
}

impl LockedJournal {
    /// Takes the journal at `path`, which is made if there is none.
    ///
    /// # Errors
    ///
    /// [`JournalError::Locked`] if another process has it, [`JournalError::Io`].
    pub fn take(path: &Path) -> Result<Self, JournalError> {
        let file = open_file(path)?.map_or_else(|| create_file(path), Ok)?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Reads what is there, record by record, to go on with it. A torn last line is cut.
    ///
    /// # Errors
    ///
    /// [`JournalError::Damaged`] if its chain does not hold, [`JournalError::Io`].
    pub fn read<E: DeserializeOwned>(
        self,
        each: impl FnMut(Record<E>, PlacedRecord) -> Result<(), String>,
    ) -> Result<SharedJournal, JournalError> {
        let Self { mut file, path } = self;
        let walked = walk(&file, &path, each)?;
        settle(&mut file, &path, &walked)?;
        SharedJournal::start(file, path, walked.chain)
    }
}

impl SharedJournal {
    /// Takes a journal, and reads it.
    ///
    /// # Errors
    ///
    /// As [`LockedJournal::take`] and [`LockedJournal::read`].
    pub fn open<E: DeserializeOwned>(
        path: &Path,
        each: impl FnMut(Record<E>, PlacedRecord) -> Result<(), String>,
    ) -> Result<Self, JournalError> {
        LockedJournal::take(path)?.read(each)
    }

    fn start(file: File, path: PathBuf, chain: Chain) -> Result<Self, JournalError> {
        let state = Mutex::new(State { chain, written: chain.lines, ..State::default() });
        let shared = Arc::new(Shared {
            path: path.clone(),
            file,
            turn: Mutex::default(),
            state,
            work: Condvar::new(),
        });
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("journal".to_owned());
        let thread = thread.spawn(move || of_thread.write_all()).map_err(|source| JournalError::Io {
            action: "start to write to",
            path,
            source,
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// The part of a run, which may have records in it: the SHA-256 of its last line, or zeros.
    #[must_use]
    pub fn writer(&self, run: &str, head: Digest) -> RunWriter {
        RunWriter { shared: Arc::clone(&self.shared), run: run.to_owned(), head, lines: 0 }
    }
}

impl Drop for SharedJournal {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.work.notify_one();
        if let Some(thread) = self.thread.take() {
            // What it could not write it has told to whoever waited for it.
            let _ = thread.join();
        }
    }
}

impl RunWriter {
    /// Appends one record and returns it. It survives the death of this process after [`RunWriter::written`], and that of the machine
    /// after [`RunWriter::sync`]; at the latest it is written when the journal is dropped.
    ///
    /// # Errors
    ///
    /// [`JournalError::Io`].
    pub fn append<E: Serialize>(&mut self, event: E) -> Result<Record<E>, JournalError> {
        let mut state = self.shared.lock();
        if let Some(failure) = state.refusal() {
            return Err(self.shared.error(&failure));
        }
        let State { chain, pending, .. } = &mut *state;
        let record = chain.append(&self.run, event, pending).map_err(|source| self.shared.io(source))?;
        (self.head, self.lines) = (chain.head, chain.lines);
        Ok(record)
    }

    /// Hands everything appended so far to the system, with the lines of other runs that are ready to go on as well.
    ///
    /// # Errors
    ///
    /// [`JournalError::Io`].
    pub async fn written(&self) -> Result<(), JournalError> {
        // Runs that one sync has woken append first, and the first of them writes for all.
        tokio::task::yield_now().await;
        if self.shared.lock().written >= self.lines {
            return Ok(());
        }
        self.shared.write_pending().map_err(|failure| self.shared.error(&failure))
    }

    /// Waits until everything appended so far is durable.
    ///
    /// # Errors
    ///
    /// [`JournalError::Io`].
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
        // It answers whoever waits before it ends.
        let done = done.await.unwrap_or_else(|_| Err(closed()));
        done.map_err(|failure| self.shared.error(&failure))
    }

    /// Returns the SHA-256 of this run's last line.
    #[must_use]
    pub fn head(&self) -> Digest {
        self.head
    }
}

impl State {
    /// Why nothing more is taken.
    fn refusal(&self) -> Option<Failure> {
        self.is_closed.then(|| self.failure.clone().unwrap_or_else(closed))
    }
}

fn closed() -> Failure {
    (std::io::ErrorKind::BrokenPipe, "it is closed".to_owned())
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Whoever panicked while it held this has changed nothing by halves: a line is put in whole, or not at all.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn io(&self, source: std::io::Error) -> JournalError {
        JournalError::Io { action: "write to", path: self.path.clone(), source }
    }

    fn error(&self, (kind, why): &Failure) -> JournalError {
        self.io(std::io::Error::new(*kind, why.clone()))
    }

    /// Waits until there is something to write, and for those who are about to add to it.
    fn wait(&self, synced: Option<Instant>) -> MutexGuard<'_, State> {
        let is_idle = |state: &mut State| state.waiting.is_empty() && !state.is_closed;
        let state = self.work.wait_while(self.lock(), is_idle).unwrap_or_else(PoisonError::into_inner);
        let early = synced.map_or(Duration::ZERO, |synced| BETWEEN_SYNCS.saturating_sub(synced.elapsed()));
        let waited = self.work.wait_timeout_while(state, early, |state| !state.is_closed);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Writes the lines that have come; those that were taken before are written by then.
    fn write_pending(&self) -> Result<(), Failure> {
        // No panic leaves a line half written.
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.lock();
        if let Some(failure) = &state.failure {
            return Err(failure.clone());
        }
        let (lines, count) = (std::mem::take(&mut state.pending), state.chain.lines);
        drop(state);
        (&self.file).write_all(&lines).map_err(|why| self.fail(&why))?;
        self.lock().written = count;
        Ok(())
    }

    /// Takes no line any more: one that came after this would leave a gap.
    fn fail(&self, why: &std::io::Error) -> Failure {
        let mut state = self.lock();
        state.is_closed = true;
        let failure = state.failure.get_or_insert((why.kind(), why.to_string())).clone();
        drop(state);
        self.work.notify_one();
        failure
    }

    /// Writes whatever comes, until there is nothing more to come.
    fn write_all(&self) {
        let (mut is_open, mut synced) = (true, None);
        while is_open {
            let mut state = self.wait(synced);
            let waiting = std::mem::take(&mut state.waiting);
            is_open = !state.is_closed;
            drop(state);
            let sync = || self.file.sync_data().map_err(|why| self.fail(&why));
            let done = self.write_pending().and_then(|()| sync());
            synced = Some(Instant::now());
            let mut late = Vec::new();
            if done.is_err() {
                late = std::mem::take(&mut self.lock().waiting);
                is_open = false;
            }
            for waiting in waiting.into_iter().chain(late) {
                // A run that was put down waits no longer.
                let _ = waiting.send(done.clone());
            }
        }
        // A program that is being started in this very moment holds a copy of the file.
        let _ = self.file.unlock();
    }
}
