//! Files that the program adds to or replaces.
//!
//! The input is the path of such a file. The output is an error where something other than a regular file is there: a link that came
//! with a folder could lead what is written to any file of the user, and a pipe would make the program wait forever.

use std::io::{Error, ErrorKind, Result};
use std::path::Path;

/// Refuses a path at which there is a link, a folder or a special file. A path at which there is nothing passes.
///
/// # Errors
///
/// An error with advice, and any error of the system.
pub fn check_own(path: &Path) -> Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(about) if about.is_file() => Ok(()),
        Ok(_) => Err(Error::other("it is a link or a special file; put a regular file in its place")),
        Err(why) if why.kind() == ErrorKind::NotFound => Ok(()),
        Err(why) => Err(why),
    }
}
