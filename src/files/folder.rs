//! Folders that only the user can read.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Creates a folder that only the user can read, and its missing parents likewise. An existing folder is left as it
/// is.
///
/// # Errors
///
/// Any error of the file system.
pub fn private_folder(dir: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}
