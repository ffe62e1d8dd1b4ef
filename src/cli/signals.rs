//! Ctrl-C, SIGTERM and the deadline, on threads of their own: they are heeded whatever the command does meanwhile.
//!
//! In: signals and the time. Out: a request to stop, or the end of the process. Until a command has said that it begins,
//! nothing has been asked or decided, and the first signal ends the process, as the deadline does. From then on the first
//! signal asks the command to stop after its open calls, and the second ends the process at once. A launched server needs
//! no word from here: it hangs on a pipe of this process. No command ends with success once a signal has come.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::low_level;
use tokio::sync::watch;

use super::error::{Interrupted, TooLate};
use super::output::Output;
use crate::core::ExitCode;
use crate::engine::StopRequest;

/// How long the last words of a process may take: their reader may have stopped reading.
const LAST_WORDS_MAX: Duration = Duration::from_millis(500);

/// Whether a signal has come.
static HEARD: AtomicBool = AtomicBool::new(false);

/// Returns true if a signal has come since the command listens.
pub(super) fn was_heard() -> bool {
    HEARD.load(Ordering::SeqCst)
}

/// How far a command is.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Phase {
    /// It reads and makes ready.
    Preparing,
    /// Calls are made and records written.
    Begun,
}

/// The ears of a command.
pub(super) struct Listening {
    phase: Arc<Mutex<Phase>>,
    stop: watch::Receiver<StopRequest>,
}

impl Listening {
    /// Returns where a request to stop will come.
    pub(super) fn stop(&self) -> watch::Receiver<StopRequest> {
        self.stop.clone()
    }

    /// Says that the command begins: from now on a signal asks it to stop. Returns where the request comes.
    pub(super) fn begin(self) -> watch::Receiver<StopRequest> {
        *lock(&self.phase) = Phase::Begun;
        self.stop
    }
}

/// What a command leaves that is ended, in words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaves {
    /// Before it has begun.
    pub(super) unbegun: &'static str,
    /// After that: how it goes on.
    pub(super) begun: &'static str,
}

/// What is said of a run that has begun.
pub(super) const RESUMABLE: &str = "what was answered is kept, and `consensus resume --last` goes on with it";

/// What is said of a batch or a decision that has begun.
pub(super) const REPEATABLE: &str = "what was answered is kept, and the same command goes on with it";

/// Listens for signals and, until the command begins, waits for its deadline, which counts from now.
///
/// # Errors
///
/// Any error of the system in setting up handlers or starting threads.
pub(super) fn listen(
    leaves: Leaves,
    deadline: Option<Duration>,
    output: &Output,
) -> anyhow::Result<Listening> {
    let phase = Arc::new(Mutex::new(Phase::Preparing));
    let (sender, stop) = watch::channel(StopRequest::None);
    // With SIGXFSZ, a file that may not grow is an error with a name and no end without a word.
    let signals = Signals::new([SIGINT, SIGTERM, SIGXFSZ]).context("cannot listen for signals")?;
    let (phase_there, output) = (Arc::clone(&phase), *output);
    let named = |name: &str| thread::Builder::new().name(name.to_owned());
    let heeding = named("signals").spawn(move || heed(signals, &phase_there, &sender, leaves, output));
    heeding.context("cannot start the thread that listens for signals")?;
    if let Some(deadline) = deadline {
        let phase = Arc::clone(&phase);
        let waiting = named("deadline").spawn(move || {
            thread::sleep(deadline);
            let phase = lock(&phase);
            if *phase == Phase::Preparing {
                leave(output, TooLate(leaves.unbegun).into(), ExitCode::Budget);
            }
        });
        waiting.context("cannot start the thread that waits for the deadline")?;
    }
    Ok(Listening { phase, stop })
}

/// Heeds each signal, for as long as the process lives.
fn heed(
    mut signals: Signals,
    phase: &Mutex<Phase>,
    sender: &watch::Sender<StopRequest>,
    leaves: Leaves,
    output: Output,
) {
    let mut has_asked = false;
    for _ in signals.forever().filter(|signal| *signal != SIGXFSZ) {
        HEARD.store(true, Ordering::SeqCst);
        // A command cannot begin while its end is decided on.
        let phase = lock(phase);
        match (*phase, has_asked) {
            (Phase::Preparing, _) => leave(output, Interrupted(leaves.unbegun).into(), ExitCode::Interrupted),
            (Phase::Begun, false) => {
                has_asked = true;
                // The run may be over already.
                let _ = sender.send(StopRequest::Finish);
            }
            (Phase::Begun, true) => {
                last_words(move || output.at_once(&format!("stopping at once; {}", leaves.begun)));
                low_level::exit(u8::from(ExitCode::Interrupted).into());
            }
        }
    }
}

/// Ends the process, with the reason if it can still be said.
fn leave(output: Output, why: anyhow::Error, code: ExitCode) -> ! {
    last_words(move || output.error(&why, code));
    low_level::exit(u8::from(code).into())
}

/// Says something, unless it takes too long: the main thread may hold the stream and wait for its reader.
fn last_words(say: impl FnOnce() + Send + 'static) {
    let (said, is_said) = channel();
    let saying = thread::Builder::new().spawn(move || {
        say();
        let _ = said.send(());
    });
    if saying.is_ok() {
        // The process ends, whether the words are out or not.
        let _ = is_said.recv_timeout(LAST_WORDS_MAX);
    }
}

fn lock(phase: &Mutex<Phase>) -> MutexGuard<'_, Phase> {
    // A phase is whole, also after a panic of the thread that set it.
    phase.lock().unwrap_or_else(PoisonError::into_inner)
}
