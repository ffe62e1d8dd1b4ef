//! The process between this program and a model server.

use std::collections::BTreeSet;
use std::io::{Read, stdin};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

/// The time that a server has to end by itself.
const GRACE: Duration = Duration::from_secs(8);

/// The same time for processes that the server has left behind, which have seen the end coming.
const DESCENDANTS_GRACE: Duration = Duration::from_secs(2);

/// The interval between two checks for remaining processes.
const POLL: Duration = Duration::from_millis(20);

/// Runs a command in a process group of its own, until it ends, standard input closes, or a signal arrives. It then
/// ends the group and, on Linux, all other descendants. Returns the exit code to leave with.
///
/// The caller must leave the process right after this, because a thread still reads standard input.
///
/// # Errors
///
/// Any error in starting the command.
pub async fn guard(command: &[String]) -> std::io::Result<u8> {
    // Processes that lose their parent then become children of this one, and are ended with the rest.
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_child_subreaper(true)?;
    let (mut interrupt, mut terminate, mut hang_up) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
    let mut child = Command::new(std::env::current_exe()?)
        .args(["leash", "--"])
        .args(command)
        .stdin(std::process::Stdio::null())
        .process_group(0)
        .spawn()?;
    let group = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
    let ended = tokio::select! {
        status = child.wait() => Some(status),
        () = owner_gone() => None,
        _ = interrupt.recv() => None,
        _ = terminate.recv() => None,
        _ = hang_up.recv() => None,
    };
    let send = |signal| {
        // The call fails if the group has no members, which is the goal.
        let _ = group.map(|group| killpg(group, signal));
    };
    if ended.is_none() {
        send(Signal::SIGTERM);
        // A server that has not ended by then is killed below.
        let _ = tokio::time::timeout(GRACE, child.wait()).await;
    }
    // This also ends workers that the server left behind.
    send(Signal::SIGKILL);
    let status = child.wait().await?;
    end_descendants().await;
    Ok(code(status))
}

/// Ends every process of the server that did not end with its group, and has become a child of this process. Such a
/// process was started in a group or a session of its own.
async fn end_descendants() {
    let began = Instant::now();
    let mut told = BTreeSet::new();
    // A process that even SIGKILL does not end hangs in the kernel, and is not awaited.
    while began.elapsed() < 2 * DESCENDANTS_GRACE {
        let left = children();
        if left.is_empty() {
            return;
        }
        for child in left {
            // Many servers take a second signal for an order to drop everything.
            if told.insert(child) {
                let _ = kill(child, Signal::SIGTERM);
            }
            if began.elapsed() > DESCENDANTS_GRACE {
                let _ = kill(child, Signal::SIGKILL);
            }
            // The process is collected here, because no other process does it. One that has not ended yet is met again.
            let _ = waitpid(child, Some(WaitPidFlag::WNOHANG));
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Returns the child processes of this process; empty if the kernel does not list them.
fn children() -> Vec<Pid> {
    let id = std::process::id();
    let tasks = std::fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let lists: Vec<String> = lists.collect();
    let ids = lists.iter().flat_map(|list| list.split_whitespace());
    ids.filter_map(|id| id.parse().ok()).map(Pid::from_raw).collect()
}

/// Becomes a command that does not outlive the process that started it, even if that process is killed.
///
/// Returns only on failure. The kernel watches the thread that started this process, so that thread must live as long
/// as its process does. On systems other than Linux, the guard alone ends the command.
#[must_use]
pub fn leash(command: &[String]) -> std::io::Error {
    use std::os::unix::process::CommandExt;
    let Some((program, arguments)) = command.split_first() else {
        return std::io::ErrorKind::InvalidInput.into();
    };
    #[cfg(target_os = "linux")]
    {
        let parent = nix::unistd::getppid();
        let asked = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
        if let Err(why) = asked {
            return why.into();
        }
        // The parent may have ended before the kernel was asked.
        if nix::unistd::getppid() != parent {
            return std::io::ErrorKind::BrokenPipe.into();
        }
    }
    std::process::Command::new(program).args(arguments).exec()
}

/// Resolves when the holder of the other end of standard input has closed it.
async fn owner_gone() {
    let (sender, receiver) = oneshot::channel();
    std::thread::spawn(move || {
        let mut byte = [0];
        while stdin().read(&mut byte).is_ok_and(|count| count > 0) {}
        // The guard may have ended in the meantime.
        let _ = sender.send(());
    });
    let _ = receiver.await;
}

/// Returns the exit code as a shell would show it: 128 and the signal for a process that a signal ended.
fn code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
