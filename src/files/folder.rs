//! Folders that only the user can read, and that one process at a time changes.

use std::fs::{DirBuilder, File, TryLockError};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::whole::remove_unfinished;

/// Creates a folder that only the user can read, and its missing parents likewise. An existing folder is left as it
/// is.
pub fn private_folder(dir: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Returns whether two paths lead to one place that exists.
pub fn is_same_place(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// A folder into which no other process that asks for it writes files whole, until this is dropped.
#[derive(Debug)]
pub struct HeldFolder {
    path: PathBuf,
    /// Whether the file system has locks. Without them, the last writer wins.
    is_locked: bool,
    _lock: File,
}

impl HeldFolder {
    /// Waits until no other process holds the folder.
    pub fn wait(path: &Path) -> std::io::Result<Self> {
        let lock = File::open(path)?;
        if matches!(lock.try_lock(), Err(TryLockError::WouldBlock)) {
            tracing::warn!("another process holds `{}`; waiting until it ends", path.display());
        }
        let is_locked = lock.lock().is_ok();
        Ok(Self { path: path.to_owned(), is_locked, _lock: lock })
    }

    /// Removes the files that killed processes were writing. Without locks they stay, since another process may be writing one.
    pub fn remove_unfinished(&self) {
        if self.is_locked {
            remove_unfinished(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Scratch;

    #[test]
    fn held_folder_loses_unfinished_files() {
        let scratch = Scratch::new(&std::env::temp_dir(), "held").unwrap();
        let folder = scratch.path().join("folder");
        private_folder(&folder).unwrap();
        let unfinished = folder.join(format!(".batch.json.{}.new", uuid::Uuid::new_v4()));
        for path in [&unfinished, &folder.join("batch.json")] {
            std::fs::write(path, "{}").unwrap();
        }
        let held = HeldFolder::wait(&folder).unwrap();
        assert!(File::open(&folder).unwrap().try_lock().is_err(), "no other process has it meanwhile");
        held.remove_unfinished();
        assert!(!unfinished.exists() && folder.join("batch.json").exists());
    }
}
