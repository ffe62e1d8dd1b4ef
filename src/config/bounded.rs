//! Reading files that a person has written, up to a size that none of them reaches.
//!
//! In: a path. Out: its text, or an error of the system with words. A device that never ends is not read for ever.

use std::fs::File;
use std::io::{Error, ErrorKind, Read as _};
use std::path::Path;

/// The longest configuration file, roleset or pack, in bytes.
const BYTES_MAX: u64 = 1 << 20;

/// Reads a configuration file, a roleset or a pack.
///
/// # Errors
///
/// Any error in reading it; it is too long, or it is not UTF-8.
pub(super) fn read_to_string(path: &Path) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        let why = format!("it is longer than {BYTES_MAX} bytes, the most that is read of such a file");
        return Err(Error::new(ErrorKind::FileTooLarge, why));
    }
    String::from_utf8(bytes).map_err(|_| Error::new(ErrorKind::InvalidData, "it is not UTF-8 text"))
}
