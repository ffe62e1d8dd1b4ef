//! The places of each run's lines in a shared journal, so that they can be read while it grows.
//!
//! The input is the file, whose only writer is this process. The output is the lines of one run, unchanged. Their chain is not checked:
//! the writer has just made it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::JournalError;
use crate::files::{GrowingFile, LinePlace, open_own};

/// The most bytes that are read at a time, unless one line is longer.
const PART_BYTES_MAX: u64 = 1 << 20;

/// The places of the lines of all runs of a journal.
#[derive(Debug)]
pub struct RunPlaces {
    path: PathBuf,
    file: GrowingFile,
    lines: HashMap<String, Vec<LinePlace>>,
}

impl RunPlaces {
    /// Opens a shared journal. None of its lines is read yet.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let file = open_own(path).map_err(io(path))?;
        Ok(Self { path: path.to_owned(), file: GrowingFile::new(file), lines: HashMap::new() })
    }

    /// Reads the first line of a run, if it is written by now.
    pub fn first_line_of(&mut self, run: &str) -> Result<Option<Vec<u8>>, JournalError> {
        self.read_new()?;
        let first = self.lines.get(run).and_then(|places| places.first());
        first.map(|place| self.file.line_at(*place).map_err(io(&self.path))).transpose()
    }

    /// Reads the lines of a run that are written by now, without the first `skipped` ones: at least one if there is one, and further ones
    /// up to 1 MiB.
    pub fn lines_of(&mut self, run: &str, skipped: usize) -> Result<Vec<Vec<u8>>, JournalError> {
        self.read_new()?;
        let Self { path, file, lines } = self;
        let places = lines.get(run).and_then(|places| places.get(skipped..)).unwrap_or_default();
        let mut bytes = 0;
        let fit = places.iter().take_while(|place| {
            let is_first = bytes == 0;
            bytes += u64::from(place.bytes) + 1;
            is_first || bytes <= PART_BYTES_MAX
        });
        fit.map(|place| file.line_at(*place).map_err(io(path))).collect()
    }

    /// Reads all lines of a run that are written by now, each with its line break.
    pub fn all_lines_of(&mut self, run: &str) -> Result<Vec<u8>, JournalError> {
        let (mut all, mut count) = (Vec::new(), 0);
        loop {
            let lines = self.lines_of(run, count)?;
            if lines.is_empty() {
                return Ok(all);
            }
            count += lines.len();
            for line in lines {
                all.extend_from_slice(&line);
                all.push(b'\n');
            }
        }
    }

    /// Reads the places of the lines that were added since the last time.
    fn read_new(&mut self) -> Result<(), JournalError> {
        let Self { path, file, lines } = self;
        file.read_new(|place, line| {
            let LineOfRun { run } = serde_json::from_slice(line)?;
            match lines.get_mut(run) {
                Some(places) => places.push(place),
                None => drop(lines.insert(run.to_owned(), vec![place])),
            }
            Ok::<(), std::io::Error>(())
        })
        .map_err(io(path))
    }
}

/// The run of a line. The rest of the line is not read.
#[derive(Deserialize)]
struct LineOfRun<'a> {
    run: &'a str,
}

fn io(path: &Path) -> impl Fn(std::io::Error) -> JournalError {
    move |source| JournalError::Io { action: "read", path: path.to_owned(), source }
}
