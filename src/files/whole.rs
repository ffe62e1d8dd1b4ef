//! Writing a file whole or not at all.

use std::fs::{OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Writes a file whole or not at all. `mode` sets who may read it, such as `0o600`.
///
/// # Errors
///
/// Any error of the file system.
pub fn write_whole(path: &Path, text: &str, mode: u32) -> std::io::Result<()> {
    let name = path.file_name().ok_or(std::io::ErrorKind::InvalidInput)?;
    // When several processes write the same file, each has a temporary file of its own.
    let temporary = path.with_file_name(format!(".{}.{}.new", name.to_string_lossy(), std::process::id()));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&temporary)?;
    // The mode is set again, because the umask may have removed bits from it.
    file.set_permissions(Permissions::from_mode(mode))?;
    file.write_all(text.as_bytes())?;
    std::fs::rename(&temporary, path).inspect_err(|_| {
        // The new file is useless now; the first error is the one that matters.
        let _ = std::fs::remove_file(&temporary);
    })
}
