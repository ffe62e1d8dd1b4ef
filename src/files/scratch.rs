//! Temporary folders that only the user can read.
//!
//! A folder is removed when its [`Scratch`] is dropped. The process holds a lock on the folder, which ends with the
//! process. If a process is killed, its folder is removed when the next one is made beside it.

use std::fs::{DirBuilder, File, Permissions};
use std::io::{ErrorKind, Result};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The beginning of the name of every such folder.
const PREFIX: &str = "consensus-";

/// A folder of this process alone, which is removed when it is no longer needed.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// The lock that shows other processes that the folder is in use, even in another container.
    _lock: File,
}

impl Scratch {
    /// Creates an empty folder below `parent`; `kind` is the part of its name that says what it is for.
    ///
    /// # Errors
    ///
    /// Any error of the file system.
    pub fn new(parent: &Path, kind: &str) -> Result<Self> {
        sweep(parent, kind);
        loop {
            let name = format!("{PREFIX}{kind}-{}-{}", std::process::id(), uuid::Uuid::new_v4().simple());
            let path = parent.join(name);
            DirBuilder::new().mode(0o700).create(&path)?;
            // Until the folder is locked, another process may take it for an abandoned one and remove it.
            let Ok(lock) = File::open(&path) else { continue };
            // Where folders cannot be locked, abandoned ones are not removed either.
            let _ = lock.lock();
            if path.exists() {
                return Ok(Self { path, _lock: lock });
            }
        }
    }

    /// Returns the path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // If the folder cannot be removed now, the next process that makes one beside it removes it.
        let _ = remove_tree(&self.path);
    }
}

/// Removes the folders of this kind whose process has ended.
fn sweep(parent: &Path, kind: &str) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_named_so = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.strip_prefix(kind)?.strip_prefix('-'))
            .is_some();
        let is_ours = is_named_so && entry.file_type().is_ok_and(|of| of.is_dir());
        let Some(lock) = is_ours.then(|| opened(&entry.path()).ok()).flatten() else { continue };
        if lock.try_lock().is_ok() {
            // Errors are ignored: another process may be removing the same folder, and a folder of another user
            // stays.
            let _ = remove_tree(&entry.path());
        }
    }
}

/// Opens a folder, even if a command has closed it to its own user.
fn opened(folder: &Path) -> Result<File> {
    match File::open(folder) {
        Err(why) if why.kind() == ErrorKind::PermissionDenied => {
            // It was private to the user before.
            open_up(folder)?;
            File::open(folder)
        }
        done => done,
    }
}

/// Removes a folder and all that is in it, even folders that a command has closed to its own user.
///
/// # Errors
///
/// Any error of the file system.
pub fn remove_tree(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(why) if why.kind() == ErrorKind::PermissionDenied => {
            open_up(folder)?;
            std::fs::remove_dir_all(folder)
        }
        done => done,
    }
}

/// Gives the user all rights to a folder and to the folders in it. Links are not followed, and a path may be longer than the kernel takes.
#[cfg(target_os = "linux")]
fn open_up(folder: &Path) -> Result<()> {
    let opened = unlocked(nix::fcntl::open(folder, CLOSED, nix::sys::stat::Mode::empty())?)?;
    open_up_below(&opened)
}

/// How a folder that is closed even to its user can still be named.
#[cfg(target_os = "linux")]
const CLOSED: nix::fcntl::OFlag =
    nix::fcntl::OFlag::O_PATH.union(nix::fcntl::OFlag::O_DIRECTORY).union(nix::fcntl::OFlag::O_NOFOLLOW);

/// Gives the user all rights to a folder, and returns its path by the open file.
#[cfg(target_os = "linux")]
fn unlocked(folder: std::os::fd::OwnedFd) -> Result<(std::os::fd::OwnedFd, PathBuf)> {
    use std::os::fd::AsRawFd;
    let place = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    std::fs::set_permissions(&place, Permissions::from_mode(0o700))?;
    Ok((folder, place))
}

#[cfg(target_os = "linux")]
fn open_up_below((folder, place): &(std::os::fd::OwnedFd, PathBuf)) -> Result<()> {
    for entry in std::fs::read_dir(place)?.flatten().filter(|e| e.file_type().is_ok_and(|of| of.is_dir())) {
        let below =
            nix::fcntl::openat(folder, entry.file_name().as_os_str(), CLOSED, nix::sys::stat::Mode::empty())?;
        open_up_below(&unlocked(below)?)?;
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn open_up(_: &Path) -> Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_are_closed_to_their_own_user_go_too() {
        let parent = Scratch::new(&std::env::temp_dir(), "closed").unwrap();
        let (inner, elsewhere) = (parent.path().join("a/b"), parent.path().join("elsewhere"));
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::create_dir(&elsewhere).unwrap();
        std::fs::write(inner.join("file"), "x").unwrap();
        std::os::unix::fs::symlink(&elsewhere, parent.path().join("a/link")).unwrap();
        let close = |path: &Path| std::fs::set_permissions(path, Permissions::from_mode(0o000)).unwrap();
        for path in [&inner, &parent.path().join("a"), &elsewhere] {
            close(path);
        }
        open_up(&parent.path().join("a")).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&inner), mode(&elsewhere)), (0o700, 0), "a link is not followed");
        remove_tree(&parent.path().join("a")).unwrap();
        assert!(!inner.exists());
    }

    #[test]
    fn a_folder_is_private_and_goes_also_after_a_kill() {
        let parent = Scratch::new(&std::env::temp_dir(), "test").unwrap();
        let make = |name: &str| {
            let path = parent.path().join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        // A killed process leaves a folder that is not locked.
        let left = make("consensus-tree-1-a");
        let kept = [make("consensus-tree-1-b"), make("consensus-index-1-c"), make("another")];
        let held = File::open(&kept[0]).unwrap();
        held.lock().unwrap();
        let scratch = Scratch::new(parent.path(), "tree").unwrap();
        let other = Scratch::new(parent.path(), "tree").unwrap();
        let place = scratch.path().to_owned();
        assert_eq!(place.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert!(!left.exists(), "its process is gone");
        assert!(kept.iter().all(|kept| kept.exists()), "one is in use, and the others are of another kind");
        assert!(place.exists(), "it is in use while others are made");
        drop((scratch, other));
        assert!(!place.exists());
    }
}
