//! Folders for what is needed for a while, which only the user can read.
//!
//! A folder goes when it is dropped. Its process holds a lock on it, which ends with the process: one whose process was killed is
//! removed when the next is made beside it.

use std::fs::{DirBuilder, File};
use std::io::Result;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The beginning of every such name.
const PREFIX: &str = "consensus-";

/// A folder of this process alone, which goes when it is not needed any more.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// Says to others that the folder is in use, also in another container.
    _lock: File,
}

impl Scratch {
    /// Makes an empty folder below `parent`; `kind` says in its name what it is for.
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
            // Before it was locked, another process may have taken it for one that was left.
            let Ok(lock) = File::open(&path) else { continue };
            // Where folders cannot be locked, none that was left is removed either.
            let _ = lock.lock();
            if path.exists() {
                return Ok(Self { path, _lock: lock });
            }
        }
    }

    /// Returns the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed now is removed beside the next one.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Removes the folders of this kind whose process is gone.
fn sweep(parent: &Path, kind: &str) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_named_so = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.strip_prefix(kind)?.strip_prefix('-'))
            .is_some();
        let is_ours = is_named_so && entry.file_type().is_ok_and(|of| of.is_dir());
        let Some(lock) = is_ours.then(|| File::open(entry.path()).ok()).flatten() else { continue };
        if lock.try_lock().is_ok() {
            // Another process may do the same, and a stranger's folder stays.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_is_private_and_goes_also_after_a_kill() {
        let parent = Scratch::new(&std::env::temp_dir(), "test").unwrap();
        let make = |name: &str| {
            let path = parent.path().join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        // What a killed process leaves is a folder that nobody holds.
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
