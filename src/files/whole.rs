//! Writing a file whole or not at all.

use std::fs::{OpenOptions, Permissions};
use std::io::{Error, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use uuid::Uuid;

/// Writes a file whole or not at all. `mode` sets who may read it, such as `0o600`. A device, a pipe or a folder is not replaced.
///
/// # Errors
///
/// Any error of the file system, and [`ErrorKind::InvalidInput`] if there is something other than a file.
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
        .and_then(|()| std::fs::rename(&temporary, path));
    written.inspect_err(|_| {
        // The new file is useless now; the first error is the one that matters.
        let _ = std::fs::remove_file(&temporary);
    })
}
