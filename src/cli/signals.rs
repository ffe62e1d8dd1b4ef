//! Ctrl-C, SIGTERM and the deadline, on threads of their own, so that they take effect whatever the command is doing.
//!
//! The input is signals and the time. The output is a request to stop, or the end of the process. Until a command declares that it
//! begins, nothing has been asked or decided, and the first signal or the deadline ends the process. From then on the first signal asks
//! the command to stop after its open calls, and the second ends the process at once. A launched server needs no message from here: it
//! ends when a pipe of this process closes. No command but a server ends with success once a signal has come.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::low_level;
use tokio::sync::watch;

use super::error::EarlyEnd;
use super::output::Output;
use crate::engine::StopRequest;
use protocol::core::ExitCode;

/// The longest time that the last message of a process may take, since its reader may have stopped reading.
const LAST_WORDS_MAX: Duration = Duration::from_millis(500);

/// Whether a signal has come.
static HEARD: AtomicBool = AtomicBool::new(false);

/// Returns true if a signal has come since the command began to listen.
pub(super) fn was_heard() -> bool {
    HEARD.load(Ordering::SeqCst)
}

/// A command's connection to the threads that wait for signals.
pub(super) struct Listening {
    /// Whether the command makes calls and writes records. Before that, it reads its input and prepares.
    has_begun: Arc<Mutex<bool>>,
    stop: watch::Receiver<StopRequest>,
}

impl Listening {
    pub(super) fn stop(&self) -> watch::Receiver<StopRequest> {
        self.stop.clone()
    }

    /// Declares that the command begins: from now on a signal asks it to stop. Returns the receiver of that request.
    pub(super) fn begin(self) -> watch::Receiver<StopRequest> {
        *lock(&self.has_begun) = true;
        self.stop
    }
}

/// The messages of a command that ends early, about the state that it leaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct StopMessages {
    /// The message before the command has begun.
    pub(super) unbegun: &'static str,
    /// The message after that, with the way to continue.
    pub(super) begun: &'static str,
}

/// The message of a run that has begun.
pub(super) const RESUMABLE: &str = "all replies received are kept; to continue: `consensus resume --last`";

/// The message of a batch or a decision that has begun.
pub(super) const REPEATABLE: &str = "all replies received are kept; to continue, repeat the command";

/// Listens for signals and, until the command begins, waits for its deadline, counted from now.
pub(super) fn listen(
    messages: StopMessages,
    deadline: Option<Duration>,
    output: &Output,
) -> anyhow::Result<Listening> {
    let has_begun = Arc::new(Mutex::new(false));
    let (sender, stop) = watch::channel(StopRequest::None);
    // Since SIGXFSZ is caught, a file that may not grow is a named error. Otherwise the process would die without a message.
    let signals = Signals::new([SIGINT, SIGTERM, SIGXFSZ]).context("cannot listen for signals")?;
    let (begun, output) = (Arc::clone(&has_begun), *output);
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || heed(signals, &begun, &sender, messages, output))
        .context("cannot start the thread that listens for signals")?;
    if let Some(deadline) = deadline {
        let begun = Arc::clone(&has_begun);
        let waiting = thread::Builder::new().name("deadline".to_owned()).spawn(move || {
            thread::sleep(deadline);
            // While this lock is held, the command cannot begin.
            let has_begun = lock(&begun);
            if !*has_begun {
                leave(output, EarlyEnd::Deadline(messages.unbegun));
            }
        });
        waiting.context("cannot start the thread that waits for the deadline")?;
    }
    Ok(Listening { has_begun, stop })
}

/// Acts on each signal, for as long as the process lives.
fn heed(
    mut signals: Signals,
    begun: &Mutex<bool>,
    sender: &watch::Sender<StopRequest>,
    messages: StopMessages,
    output: Output,
) {
    let mut has_asked = false;
    for _ in signals.forever().filter(|signal| *signal != SIGXFSZ) {
        HEARD.store(true, Ordering::SeqCst);
        // While this lock is held, the command cannot begin.
        let has_begun = lock(begun);
        if !*has_begun {
            leave(output, EarlyEnd::Signal(messages.unbegun));
        }
        if has_asked {
            print_last_words(move || output.print_last(&format!("stopping now; {}", messages.begun)));
            low_level::exit(u8::from(ExitCode::Interrupted).into());
        }
        has_asked = true;
        // The run may be over already.
        let _ = sender.send(StopRequest::Finish);
    }
}

/// Ends the process, and prints the reason if that is still possible.
fn leave(output: Output, why: EarlyEnd) -> ! {
    let code = why.exit_code();
    print_last_words(move || output.error(&why.into(), code));
    low_level::exit(u8::from(code).into())
}

/// Prints a last message, unless that takes too long: the main thread may hold the stream and wait for its reader.
fn print_last_words(print: impl FnOnce() + Send + 'static) {
    let (done, is_done) = channel();
    let printing = thread::Builder::new().spawn(move || {
        print();
        let _ = done.send(());
    });
    if printing.is_ok() {
        // The process ends, whether or not the message is out.
        let _ = is_done.recv_timeout(LAST_WORDS_MAX);
    }
}

fn lock(has_begun: &Mutex<bool>) -> MutexGuard<'_, bool> {
    // The value is valid even after a panic of the thread that set it.
    has_begun.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reports that a signal has come, since the open calls may take minutes.
pub(super) async fn print_stopping(mut stop: watch::Receiver<StopRequest>, output: Output) {
    if stop.changed().await.is_ok() && *stop.borrow() == StopRequest::Finish {
        output.status("finishing calls in flight; press Ctrl-C again to stop now");
    }
}

/// Returns a receiver of requests to stop, which come from signals and from the deadline.
pub(super) fn stop_at_deadline(
    mut signals: watch::Receiver<StopRequest>,
    deadline: Option<Duration>,
    began: Instant,
) -> watch::Receiver<StopRequest> {
    let Some(deadline) = deadline else { return signals };
    let (sender, stop) = watch::channel(StopRequest::None);
    tokio::spawn(async move {
        let late = tokio::time::sleep_until((began + deadline).into());
        tokio::pin!(late);
        let mut is_late = false;
        loop {
            tokio::select! {
                () = &mut late, if !is_late => is_late = true,
                Ok(()) = signals.changed() => {}
            }
            let asked = *signals.borrow_and_update();
            let request = if is_late { StopRequest::Abort } else { asked };
            if sender.send(request).is_err() || request == StopRequest::Abort {
                return;
            }
        }
    });
    stop
}
