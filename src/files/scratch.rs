//! Temporary folders that only the user can read.
//!
//! A folder is removed when its [`Scratch`] is dropped. The process holds a lock on the folder, which ends with the
//! process. If a process is killed, its folder is removed when the next one is made beside it.

use std::fs::{DirBuilder, File};
use std::io::Result;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::closed::{open_closed, remove_tree};

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
        let id =
            name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.strip_prefix(kind)?.strip_prefix('-'));
        if id.is_none() || !entry.file_type().is_ok_and(|of| of.is_dir()) {
            continue;
        }
        let Ok(lock) = open_closed(&entry.path()) else { continue };
        if lock.try_lock().is_ok() {
            // Errors are ignored: another process may be removing the same folder, and a folder of another user
            // stays.
            let _ = remove_tree(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A folder that a killed process left is removed too.
    #[test]
    fn scratch_folder_is_private_and_removed() {
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
