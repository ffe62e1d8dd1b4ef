//! Files that the program adds to or replaces.
//!
//! The input is the path of such a file. The output is an error if anything other than a regular file is there. A link
//! that came with a folder could redirect the text to any file of the user, and a pipe would make the program wait
//! forever. Nothing is written here.

use std::io::{Error, ErrorKind, Result};
use std::path::Path;

/// Refuses the path of a link, a folder or a special file. A path that does not exist is accepted.
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
