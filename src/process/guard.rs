//! The process between this program and a command that it started.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, stdin};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::sync::oneshot;

use super::descendants::{all_descendants, children, shared_size, use_more_than};
use protocol::core::CommandEnd;

/// The time that a command has to end by itself.
const GRACE: Duration = Duration::from_secs(8);

/// The same time for processes that the command has left behind, which have seen the end coming.
const DESCENDANTS_GRACE: Duration = Duration::from_secs(2);

/// The time after which processes are no longer awaited. One that even SIGKILL does not end hangs in the kernel.
const END_MAX: Duration = Duration::from_secs(4);

/// The interval between two checks for remaining processes.
const POLL: Duration = Duration::from_millis(20);

/// The interval between two readings of the memory that a command uses.
const MEMORY_POLL: Duration = Duration::from_millis(100);

/// A command, and what its guard knows of it.
#[derive(Debug)]
pub struct GuardedCommand<'a> {
    /// The policy of the wall that the process builds around itself before it becomes the command. Without one the command may do
    /// everything that its user may.
    pub wall: Option<String>,
    /// The command, never empty.
    pub command: &'a [String],
    /// The file that the command reads as its standard input, if any.
    pub stdin: Option<PathBuf>,
    /// Whether both outputs of the command go to this process's standard output.
    pub joins_outputs: bool,
    /// The most memory that the command and its descendants may use together, in bytes.
    pub memory_max: Option<u64>,
}

impl GuardedCommand<'_> {
    /// Runs the command in a process group of its own, until it ends, standard input closes, or a signal arrives. It
    /// then ends the group and, on Linux, all other descendants.
    ///
    /// Returns the way in which the command ended, or `None` if it had to stop at an order.
    ///
    /// The caller must leave the process right after this, because threads still read standard input and the lists of
    /// memory.
    pub async fn run(&self) -> std::io::Result<Option<CommandEnd>> {
        // Processes that lose their parent then become children of this one, and are ended with the rest.
        #[cfg(target_os = "linux")]
        nix::sys::prctl::set_child_subreaper(true)?;
        let (mut interrupt, mut terminate, mut hang_up) = (
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        );
        let mut child = self.spawn()?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        let ended = tokio::select! {
            status = child.wait() => Some(command_end(status?)),
            () = wait_for_owner_end() => None,
            () = wait_for_excess(self.memory_max) => Some(CommandEnd::Memory),
            () = collect_others(group, signal(SignalKind::child())?) => None,
            _ = interrupt.recv() => None,
            _ = terminate.recv() => None,
            _ = hang_up.recv() => None,
        };
        // A command behind a wall is owed nothing, and gets no time to fill the machine.
        let is_trusted = self.wall.is_none();
        if is_trusted && ended.is_none() {
            send(group, Signal::SIGTERM);
            // A command that has not ended by then is killed below.
            let _ = tokio::time::timeout(GRACE, child.wait()).await;
        }
        // This also ends workers that the command left behind.
        send(group, Signal::SIGKILL);
        let _ = tokio::time::timeout(END_MAX, child.wait()).await;
        if is_trusted {
            end_descendants().await;
        } else {
            kill_descendants().await;
        }
        Ok(ended)
    }

    fn spawn(&self) -> std::io::Result<Child> {
        let mut command = Command::new(std::env::current_exe()?);
        match &self.wall {
            None => command.arg("leash"),
            Some(policy) => command.args(["wall", "--policy", policy]),
        };
        command.arg("--").args(self.command).process_group(0);
        command.stdin(match &self.stdin {
            Some(file) => Stdio::from(File::open(file)?),
            None => Stdio::null(),
        });
        if self.joins_outputs {
            command.stderr(Stdio::from(std::io::stdout().as_fd().try_clone_to_owned()?));
        }
        command.spawn()
    }
}

/// Sends a signal to the group of the command, if it is known.
fn send(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group {
        // The call fails if the group has no members, which is the goal.
        let _ = killpg(group, signal);
    }
}

/// Ends every process of the command that did not end with its group. Such a process was started in a group or a
/// session of its own, and has become a child of this process.
async fn end_descendants() {
    let began = Instant::now();
    let mut warned = BTreeSet::new();
    while began.elapsed() < END_MAX {
        let left = children();
        if left.is_empty() {
            return;
        }
        for child in left {
            // Many servers take a second signal for an order to drop everything.
            if warned.insert(child) {
                let _ = kill(child, Signal::SIGTERM);
            }
            if began.elapsed() > DESCENDANTS_GRACE {
                let _ = kill(child, Signal::SIGKILL);
            }
            collect(child);
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Kills every descendant. All are stopped before the first is killed, so that none starts another in the meantime.
async fn kill_descendants() {
    let began = Instant::now();
    let mut stopped = BTreeSet::new();
    while began.elapsed() < END_MAX {
        let left = all_descendants();
        if left.is_empty() {
            return;
        }
        let fresh: Vec<Pid> = left.iter().copied().filter(|process| stopped.insert(*process)).collect();
        for process in &fresh {
            let _ = kill(*process, Signal::SIGSTOP);
        }
        if !fresh.is_empty() {
            continue;
        }
        for process in left {
            let _ = kill(process, Signal::SIGKILL);
            collect(process);
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Collects a process, because no other process does it. One that has not ended yet is met again.
fn collect(process: Pid) {
    let _ = waitpid(process, Some(WaitPidFlag::WNOHANG));
}

/// Resolves when all descendants together use more memory than they may.
async fn wait_for_excess(memory_max: Option<u64>) {
    let Some(max) = memory_max else { return std::future::pending().await };
    let shared = Arc::new(AtomicU64::new(0));
    let newest = Arc::clone(&shared);
    // A hostile command can have lists that take long to read. They must not hold up the rest of the count.
    std::thread::spawn(move || {
        loop {
            newest.store(shared_size(), Ordering::Relaxed);
            std::thread::sleep(MEMORY_POLL);
        }
    });
    while !use_more_than(max, shared.load(Ordering::Relaxed)) {
        tokio::time::sleep(MEMORY_POLL).await;
    }
}

/// Collects processes that the command has left behind, as soon as they end, because they would fill the table of processes. The
/// command itself is awaited elsewhere. Ends only if no signal can come any more.
async fn collect_others(command: Option<Pid>, mut ended: Signals) {
    while ended.recv().await.is_some() {
        children().into_iter().filter(|child| Some(*child) != command).for_each(collect);
    }
}

/// Resolves when the holder of the other end of standard input has closed it.
async fn wait_for_owner_end() {
    let (sender, receiver) = oneshot::channel();
    std::thread::spawn(move || {
        let mut byte = [0];
        while stdin().read(&mut byte).is_ok_and(|count| count > 0) {}
        // The guard may have ended in the meantime.
        let _ = sender.send(());
    });
    let _ = receiver.await;
}

fn command_end(status: ExitStatus) -> CommandEnd {
    use std::os::unix::process::ExitStatusExt;
    match status.signal() {
        Some(signal) => CommandEnd::Signal(signal),
        None => CommandEnd::Exit(status.code().unwrap_or(i32::from(u8::MAX))),
    }
}
