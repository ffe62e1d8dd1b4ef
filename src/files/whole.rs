//! Writing a file whole or not at all.

use std::ffi::OsStr;
use std::fs::{OpenOptions, Permissions};
use std::io::{Error, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use uuid::Uuid;

/// Writes a file whole or not at all, also if the machine dies. `mode` sets who may read it, such as `0o600`. A device, a pipe or a
/// folder is not replaced.
///
/// Returns any error of the file system, and [`ErrorKind::InvalidInput`] if there is something other than a file.
pub fn write_whole(path: &Path, text: &str, mode: u32) -> std::io::Result<()> {
    let name = path.file_name().ok_or(ErrorKind::InvalidInput)?;
    if path.metadata().is_ok_and(|about| !about.is_file()) {
        return Err(Error::new(ErrorKind::InvalidInput, "it is no file"));
    }
    // No other process knows the name of the temporary file, and a link in its place is not followed.
    let temporary = path.with_file_name(format!(".{}.{}.new", name.to_string_lossy(), Uuid::new_v4()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary)?;
    // The mode is set again, because the umask may have removed bits from it.
    let written = file
        .set_permissions(Permissions::from_mode(mode))
        .and_then(|()| file.write_all(text.as_bytes()))
        // A name that leads to text that is not on disk yet would lead to an empty file after a power cut.
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::rename(&temporary, path));
    written.inspect_err(|_| {
        // The new file is useless now; the first error is the one that matters.
        let _ = std::fs::remove_file(&temporary);
    })
}

/// Returns whether a name is that of a file that [`write_whole`] was writing when its process was killed.
pub fn is_unfinished(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let id = name.strip_prefix('.').and_then(|name| name.strip_suffix(".new")?.rsplit_once('.'));
    id.is_some_and(|(_, id)| Uuid::parse_str(id).is_ok())
}

/// Removes the files that killed processes were writing into a folder. The caller keeps other processes from writing files whole there.
pub fn remove_unfinished(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if is_unfinished(&entry.file_name()) {
            // One that cannot be removed does no harm.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Scratch;

    #[test]
    fn only_a_file_is_replaced_whole() {
        let scratch = Scratch::new(&std::env::temp_dir(), "whole").unwrap();
        let path = scratch.path().join("file");
        for text in ["one", "two"] {
            write_whole(&path, text, 0o600).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let names = || std::fs::read_dir(scratch.path()).unwrap().count();
        assert_eq!(names(), 1, "no temporary file is left");
        let folder = scratch.path().join("folder");
        std::fs::create_dir(&folder).unwrap();
        let device = scratch.path().join("device");
        std::os::unix::fs::symlink("/dev/null", &device).unwrap();
        for other in [&folder, &device] {
            let why = write_whole(other, "text", 0o600).unwrap_err();
            assert_eq!(why.kind(), ErrorKind::InvalidInput, "{}", other.display());
        }
        let unfinished = format!(".plan.json.{}.new", Uuid::new_v4());
        let is_one = |name: &str| is_unfinished(OsStr::new(name));
        assert!(
            is_one(&unfinished)
                && !is_one(".plan.json.new")
                && !is_one(".notes.mine.new")
                && !is_one("x.new")
        );
        assert_eq!(std::fs::read_link(&device).unwrap(), Path::new("/dev/null"));
        assert_eq!(names(), 3);
        std::fs::write(scratch.path().join(unfinished), "half").unwrap();
        remove_unfinished(scratch.path());
        assert_eq!(names(), 3, "the file of a killed process is gone, and all others are there");
    }
}
