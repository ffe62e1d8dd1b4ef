//! Reading files up to a limit.

use std::fs::File;
use std::io::{BufRead, Error, ErrorKind, Read as _, Result};
use std::path::Path;

/// The size limit of a file that a person writes, such as a configuration, a roleset or a key, in bytes.
pub const SMALL_BYTES_MAX: u64 = 1 << 20;

/// The size limit of a file that a program writes whole, such as a result or a report of another tool, in bytes.
pub const LARGE_BYTES_MAX: u64 = 64 << 20;

/// The size limit of a line in a journal or in results, in bytes. The first line of a journal holds all documents of
/// its run.
pub const LINE_BYTES_MAX: u64 = 1 << 30;

/// Reads a file of at most `bytes_max` bytes.
///
/// # Errors
///
/// Any error while reading, and [`ErrorKind::FileTooLarge`].
pub fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(too_large("the file", bytes_max, "the limit for such a file"));
    }
    Ok(bytes)
}

/// Reads a file of text of at most `bytes_max` bytes.
///
/// # Errors
///
/// The errors of [`read()`], and [`ErrorKind::InvalidData`] if the file is not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> Result<String> {
    let text = String::from_utf8(read(path, bytes_max)?);
    text.map_err(|_| Error::new(ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// Appends the next line, with its line break, to `line` and returns its length, or 0 at the end.
///
/// # Errors
///
/// Any error while reading, and [`ErrorKind::FileTooLarge`] if the line is longer than [`LINE_BYTES_MAX`].
pub fn read_line(lines: &mut impl BufRead, line: &mut Vec<u8>) -> Result<usize> {
    let count = lines.take(LINE_BYTES_MAX + 1).read_until(b'\n', line)?;
    if count as u64 > LINE_BYTES_MAX {
        return Err(too_large("a line", LINE_BYTES_MAX, "the limit for a line"));
    }
    Ok(count)
}

fn too_large(what: &str, bytes_max: u64, why: &str) -> Error {
    Error::new(ErrorKind::FileTooLarge, format!("{what} is longer than {bytes_max} bytes, {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_file_is_refused_by_limit() {
        let why = read_text(Path::new("/dev/zero"), 4096).unwrap_err();
        assert_eq!(why.kind(), ErrorKind::FileTooLarge);
        assert!(why.to_string().contains("4096 bytes"), "{why}");
    }
}
