//! Folders of the user that a command has closed to the user itself, by their modes.
//!
//! The input is the path of such a folder. The output is the folder, open or removed. Links are not followed, so that nothing outside of
//! the folder changes its mode. On systems other than Linux a closed folder remains.

use std::fs::File;
use std::io::{ErrorKind, Result};
use std::path::Path;

/// Opens a folder of the user, whatever its mode is.
pub(super) fn open_closed(folder: &Path) -> Result<File> {
    match File::open(folder) {
        Err(why) if why.kind() == ErrorKind::PermissionDenied => {
            modes::unlock(folder)?;
            File::open(folder)
        }
        done => done,
    }
}

/// Removes a folder of the user and all that is in it, whatever the modes of its folders are.
pub fn remove_tree(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(why) if why.kind() == ErrorKind::PermissionDenied => {
            modes::unlock_all(folder)?;
            std::fs::remove_dir_all(folder)
        }
        done => done,
    }
}

#[cfg(target_os = "linux")]
mod modes {
    use std::fs::{Permissions, read_dir, set_permissions};
    use std::io::Result;
    use std::os::fd::{AsRawFd, OwnedFd};
    use std::os::unix::fs::PermissionsExt;
    use std::path::{Path, PathBuf};

    use nix::fcntl::{OFlag, open, openat};
    use nix::sys::stat::Mode;

    /// The way to open a folder without a right to read it.
    const CLOSED: OFlag = OFlag::O_PATH.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW);

    /// Gives the user all rights to a folder.
    pub(super) fn unlock(folder: &Path) -> Result<OwnedFd> {
        unlock_opened(open(folder, CLOSED, Mode::empty())?)
    }

    /// Gives the user all rights to a folder and to all folders in it. Each is opened from the one above it, since a path may be
    /// longer than the kernel takes.
    pub(super) fn unlock_all(folder: &Path) -> Result<()> {
        unlock_below(&unlock(folder)?)
    }

    fn unlock_below(folder: &OwnedFd) -> Result<()> {
        for entry in read_dir(place(folder))?.flatten() {
            if entry.file_type().is_ok_and(|of| of.is_dir()) {
                let below = openat(folder, entry.file_name().as_os_str(), CLOSED, Mode::empty())?;
                unlock_below(&unlock_opened(below)?)?;
            }
        }
        Ok(())
    }

    fn unlock_opened(folder: OwnedFd) -> Result<OwnedFd> {
        set_permissions(place(&folder), Permissions::from_mode(0o700))?;
        Ok(folder)
    }

    /// Returns a path of an open folder that does not depend on its name.
    fn place(folder: &OwnedFd) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()))
    }
}

#[cfg(not(target_os = "linux"))]
mod modes {
    use std::io::Result;
    use std::path::Path;

    pub(super) fn unlock(_: &Path) -> Result<()> {
        Ok(())
    }

    pub(super) fn unlock_all(_: &Path) -> Result<()> {
        Ok(())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::files::Scratch;

    /// Folders are removed even if they are closed to their own user.
    #[test]
    fn closed_folders_are_removed_too() {
        let parent = Scratch::new(&std::env::temp_dir(), "closed").unwrap();
        let (inner, elsewhere) = (parent.path().join("a/b"), parent.path().join("elsewhere"));
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::create_dir(&elsewhere).unwrap();
        std::fs::write(inner.join("file"), "x").unwrap();
        std::os::unix::fs::symlink(&elsewhere, parent.path().join("a/link")).unwrap();
        for path in [&inner, &parent.path().join("a"), &elsewhere] {
            set_permissions(path, Permissions::from_mode(0o000)).unwrap();
        }
        modes::unlock_all(&parent.path().join("a")).unwrap();
        for (path, mode) in [(&inner, 0o700), (&elsewhere, 0)] {
            let now = path.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(now, mode, "{}", path.display());
        }
        remove_tree(&parent.path().join("a")).unwrap();
        assert!(!inner.exists());
    }
}
