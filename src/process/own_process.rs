//! What this process asks of the kernel about itself: to end with its parent, and to keep its memory from other programs.

/// Becomes a command that does not outlive the process that started it, even if that process is killed.
///
/// Returns only on failure. On systems other than Linux, the guard alone ends the command.
pub fn leash(command: &[String]) -> std::io::Error {
    use std::os::unix::process::CommandExt;
    let Some((program, arguments)) = command.split_first() else {
        return std::io::ErrorKind::InvalidInput.into();
    };
    match die_with_parent() {
        Ok(()) => std::process::Command::new(program).args(arguments).exec(),
        Err(why) => why,
    }
}

/// Asks the kernel to kill this process when the process that started it ends.
///
/// The kernel watches the thread that started this process, so that thread must live as long as its process does. A
/// change of the user cancels the request. Other systems than Linux do not know it.
///
/// The kernel's error, or [`BrokenPipe`](std::io::ErrorKind::BrokenPipe) if that process has ended already.
pub fn die_with_parent() -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        let parent = nix::unistd::getppid();
        nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
        // The parent may have ended before the kernel was asked.
        if nix::unistd::getppid() != parent {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        }
    }
    Ok(())
}

/// Keeps programs of the same user from looking into this process and its keys for providers, by a debugger or through `/proc`. Such a
/// program may come from a change or from a model.
pub fn hide_memory() {
    // If the system refuses, nothing else can be done here.
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_dumpable(false);
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    /// Other programs of the same user cannot look into this process.
    #[test]
    fn hidden_memory_is_not_dumpable() {
        super::hide_memory();
        assert!(!nix::sys::prctl::get_dumpable().unwrap());
    }
}
