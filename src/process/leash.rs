//! A command that does not outlive the process that started it.

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
/// # Errors
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
