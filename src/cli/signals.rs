//! Ctrl-C and SIGTERM: the first puts the run down after its open calls, the second at once.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::engine::StopRequest;

/// Listens for signals from now on; must be called inside a runtime.
pub(super) fn listen() -> anyhow::Result<watch::Receiver<StopRequest>> {
    let (sender, receiver) = watch::channel(StopRequest::None);
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    // With this, a file that may not grow is an error with a name and no end without a word.
    let _ = signal(SignalKind::from_raw(nix::sys::signal::Signal::SIGXFSZ as i32))?;
    tokio::spawn(async move {
        for request in [StopRequest::Finish, StopRequest::Abort] {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            // The run may be over already.
            let _ = sender.send(request);
        }
    });
    Ok(receiver)
}
