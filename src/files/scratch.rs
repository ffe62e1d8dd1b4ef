//! Folders for what is needed for a while, which only the user can read.
//!
//! A folder goes when it is dropped. One whose process was killed is removed a day later, when the next is made beside it:
//! its name holds the number of its process.

use std::fs::DirBuilder;
use std::io::Result;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::kill;
use nix::unistd::Pid;

/// How long a folder stays whose process seems to be gone: in another container it may be at work.
const LEFT_MAX: Duration = Duration::from_hours(24);

/// The beginning of every such name.
const PREFIX: &str = "consensus-";

/// A folder of this process alone, which goes when it is not needed any more.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes an empty folder below `parent`; `kind` says in its name what it is for.
    ///
    /// # Errors
    ///
    /// Any error of the file system.
    pub fn new(parent: &Path, kind: &str) -> Result<Self> {
        sweep(parent, kind);
        let name = format!("{PREFIX}{kind}-{}-{}", std::process::id(), uuid::Uuid::new_v4().simple());
        let path = parent.join(name);
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    /// Returns the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed now is removed beside the next one.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Removes the folders of this kind whose process is gone.
fn sweep(parent: &Path, kind: &str) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner =
            name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.strip_prefix(kind)?.strip_prefix('-'));
        let owner = owner.and_then(|rest| rest.split('-').next()?.parse().ok()).map(Pid::from_raw);
        let age = entry.metadata().and_then(|about| about.modified()).ok().and_then(|at| at.elapsed().ok());
        let is_old = age.is_some_and(|age| age > LEFT_MAX);
        if is_old && owner.is_some_and(|owner| kill(owner, None) == Err(nix::errno::Errno::ESRCH)) {
            // Another process may do the same, and a stranger's folder stays.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn a_folder_is_private_and_goes_also_after_a_kill() {
        let parent = Scratch::new(&std::env::temp_dir(), "test").unwrap();
        let make = |pid: i64, age: Duration| {
            let path = parent.path().join(format!("{PREFIX}tree-{pid}-{}", age.as_secs()));
            std::fs::create_dir(&path).unwrap();
            std::fs::File::open(&path).unwrap().set_modified(SystemTime::now() - age).unwrap();
            path
        };
        // The number of no process: the kernel gives out no higher ones.
        let (nobody, me) = (i64::from(i32::MAX), i64::from(std::process::id()));
        let left = make(nobody, 2 * LEFT_MAX);
        let kept = [make(nobody, Duration::ZERO), make(me, 2 * LEFT_MAX)];
        let scratch = Scratch::new(parent.path(), "tree").unwrap();
        let place = scratch.path().to_owned();
        assert_eq!(place.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert!(!left.exists(), "its process is gone");
        assert!(kept.iter().all(|kept| kept.exists()), "one is new, the process of the other is alive");
        drop(scratch);
        assert!(!place.exists());
    }
}
