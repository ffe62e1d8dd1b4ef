//! A file of lines that only grows, read while another part of the program adds to it.

use std::fs::File;
use std::io::{BufReader, Result, Seek as _, SeekFrom};
use std::os::unix::fs::FileExt as _;

use super::read_line;

/// The place of a line in its file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LinePlace {
    /// The offset of the line, in bytes.
    pub offset: u64,
    /// The length of the line in bytes, without its line break.
    pub bytes: u32,
}

/// A file of lines that only grows.
#[derive(Debug)]
pub struct GrowingFile {
    file: File,
    /// The number of bytes of whole lines that were read.
    read: u64,
}

impl GrowingFile {
    /// Reads a file from its beginning.
    pub fn new(file: File) -> Self {
        Self { file, read: 0 }
    }

    /// Passes each whole line that was added since the last time to `each`, without its line break. A line without its end is still
    /// being written, and comes the next time.
    ///
    /// Returns any error while reading, and those of `each`, whose line then counts as read.
    pub fn read_new<E: From<std::io::Error>>(
        &mut self,
        mut each: impl FnMut(LinePlace, &[u8]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        (&self.file).seek(SeekFrom::Start(self.read))?;
        let mut lines = BufReader::with_capacity(1 << 16, &self.file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let count = read_line(&mut lines, &mut line)?;
            if line.pop_if(|last| *last == b'\n').is_none() {
                return Ok(());
            }
            // A line has 64 MiB at most.
            let bytes = u32::try_from(line.len()).unwrap_or(u32::MAX);
            let place = LinePlace { offset: self.read, bytes };
            self.read += count as u64;
            each(place, &line)?;
        }
    }

    /// Reads the line at a place again.
    pub fn line_at(&self, place: LinePlace) -> Result<Vec<u8>> {
        let mut line = vec![0; place.bytes as usize];
        self.file.read_exact_at(&mut line, place.offset)?;
        Ok(line)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write as _;

    use super::*;

    /// A line comes only when it is whole.
    #[test]
    fn whole_line_comes_exactly_once() {
        let path = std::env::temp_dir().join(format!("consensus-growing-{}", uuid::Uuid::now_v7()));
        let mut writer = OpenOptions::new().create(true).append(true).open(&path).unwrap();
        let mut growing = GrowingFile::new(File::open(&path).unwrap());
        let mut new = || {
            let mut lines = Vec::new();
            let each = |place: LinePlace, line: &[u8]| {
                lines.push((place, String::from_utf8(line.to_vec()).unwrap()));
                Ok::<(), std::io::Error>(())
            };
            growing.read_new(each).unwrap();
            lines
        };
        writer.write_all(b"one\ntw").unwrap();
        assert_eq!(new(), [(LinePlace { offset: 0, bytes: 3 }, "one".to_owned())]);
        assert_eq!(new(), []);
        writer.write_all(b"o\n\n").unwrap();
        let (two, empty) = (LinePlace { offset: 4, bytes: 3 }, LinePlace { offset: 8, bytes: 0 });
        assert_eq!(new(), [(two, "two".to_owned()), (empty, String::new())]);
        assert_eq!(growing.line_at(two).unwrap(), b"two");
        std::fs::remove_file(&path).unwrap();
    }
}
