//! Reading files up to a limit.

use std::fs::File;
use std::io::{BufRead, Error, ErrorKind, Read, Result};
use std::path::Path;

use super::own::open_own;

/// The size limit of a file that a person writes, such as a configuration, a roleset or a key, in bytes.
pub const SMALL_BYTES_MAX: u64 = 1 << 20;

/// The size limit of a file that a program writes whole, such as a result or a report of another tool, in bytes.
pub const LARGE_BYTES_MAX: u64 = 64 << 20;

/// The size limit of a line in a journal or in results with its line break, in bytes. The first line of a journal holds all documents
/// of its run.
pub const LINE_BYTES_MAX: u64 = 64 << 20;

/// Reads a file of at most `bytes_max` bytes.
///
/// Returns any error while reading, and [`ErrorKind::FileTooLarge`].
pub fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>> {
    read_to_end(File::open(path)?, bytes_max)
}

/// Reads a file of a record, of at most `bytes_max` bytes.
///
/// Returns the errors of [`open_own`], any error while reading, and [`ErrorKind::FileTooLarge`].
pub fn read_own(path: &Path, bytes_max: u64) -> Result<Vec<u8>> {
    read_to_end(open_own(path)?, bytes_max)
}

fn read_to_end(file: File, bytes_max: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(too_large("the file", bytes_max, "the limit for such a file"));
    }
    Ok(bytes)
}

/// Returns whether a file of a record is damaged, and not only out of reach: no such file is so long, and none has such content.
pub fn is_damage(why: &Error) -> bool {
    matches!(why.kind(), ErrorKind::FileTooLarge | ErrorKind::InvalidData)
}

/// Reads a file of text of at most `bytes_max` bytes.
///
/// Returns the errors of [`read()`], and [`ErrorKind::InvalidData`] if the file is not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> Result<String> {
    let text = String::from_utf8(read(path, bytes_max)?);
    text.map_err(|_| Error::new(ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// Appends the next line, with its line break, to `line` and returns its length, or 0 at the end.
///
/// The end of a file without a line break is a torn line. If it is longer than a line may be, its length is returned, and `line` stays as
/// it was.
///
/// Returns any error while reading, and [`ErrorKind::FileTooLarge`] if a whole line is longer than [`LINE_BYTES_MAX`].
pub fn read_line(lines: &mut impl BufRead, line: &mut Vec<u8>) -> Result<usize> {
    let begin = line.len();
    let count = Read::by_ref(lines).take(LINE_BYTES_MAX + 1).read_until(b'\n', line)?;
    if count as u64 <= LINE_BYTES_MAX {
        return Ok(count);
    }
    let mut is_whole = line.ends_with(b"\n");
    line.truncate(begin);
    line.shrink_to_fit();
    let mut skipped = 0;
    while !is_whole {
        let bytes = match lines.fill_buf() {
            Ok([]) => return Ok(count + skipped),
            Ok(bytes) => bytes,
            Err(why) if why.kind() == ErrorKind::Interrupted => continue,
            Err(why) => return Err(why),
        };
        let mut passed = bytes.len();
        // This search is faster than that for a position.
        if bytes.contains(&b'\n')
            && let Some(at) = bytes.iter().position(|byte| *byte == b'\n')
        {
            is_whole = true;
            passed = at + 1;
        }
        lines.consume(passed);
        skipped += passed;
    }
    Err(too_large("a line", LINE_BYTES_MAX, "the limit for a line"))
}

fn too_large(what: &str, bytes_max: u64, why: &str) -> Error {
    Error::new(ErrorKind::FileTooLarge, format!("{what} is longer than {bytes_max} bytes, {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads all lines, and returns their lengths with those that were kept, or the kind of the error.
    fn lengths(file: impl Read) -> std::result::Result<Vec<[usize; 2]>, ErrorKind> {
        let mut lines = std::io::BufReader::new(file);
        let mut found = Vec::new();
        loop {
            let mut line = Vec::new();
            match read_line(&mut lines, &mut line) {
                Ok(0) => return Ok(found),
                Ok(count) => found.push([count, line.len()]),
                Err(why) => return Err(why.kind()),
            }
        }
    }

    /// A torn line of any length is skipped, and a whole one that is too long is refused.
    #[test]
    fn long_tail_is_skipped_unkept() {
        let most = usize::try_from(LINE_BYTES_MAX).unwrap();
        let zeros = |count: usize| std::io::repeat(0).take(count as u64);
        let tail = (&b"a\n"[..]).chain(zeros(2 * most));
        assert_eq!(lengths(tail), Ok(vec![[2, 2], [2 * most, 0]]));
        assert_eq!(lengths(zeros(most - 1).chain(&b"\nb"[..])), Ok(vec![[most, most], [1, 1]]));
        for too_long in [most, 2 * most] {
            assert_eq!(lengths(zeros(too_long).chain(&b"\nb\n"[..])), Err(ErrorKind::FileTooLarge));
        }
    }

    #[test]
    fn endless_file_is_refused_by_limit() {
        let why = read_text(Path::new("/dev/zero"), 4096).unwrap_err();
        assert_eq!(why.kind(), ErrorKind::FileTooLarge);
        assert!(why.to_string().contains("4096 bytes"), "{why}");
    }
}
