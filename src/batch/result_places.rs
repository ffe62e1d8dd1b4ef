//! The places of a shard's results, so that a result can be read again while the shard goes on.
//!
//! The input is the file of results, which only grows. The output is the last line of a run, or the run of a task. The lines themselves
//! are not kept.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Seek as _, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use super::error::BatchError;
use super::layout::results_file;
use crate::files::read_line;

/// The places of the results of one shard.
#[derive(Debug)]
pub struct ResultPlaces {
    path: PathBuf,
    file: File,
    /// The number of bytes that were read, and that of lines.
    read: u64,
    count: u64,
    rows: HashMap<Uuid, (u64, usize)>,
    runs: HashMap<String, Uuid>,
}

#[derive(Deserialize)]
struct PlacedResult {
    task: String,
    run: Uuid,
}

impl ResultPlaces {
    /// Reads the results of a shard that is open.
    ///
    /// # Errors
    ///
    /// Returns [`BatchError::Io`] or [`BatchError::Results`].
    pub fn open(folder: &Path, index: u64) -> Result<Self, BatchError> {
        let path = results_file(folder, index);
        let file = File::open(&path).map_err(BatchError::io("open", &path))?;
        let mut places = Self { path, file, read: 0, count: 0, rows: HashMap::new(), runs: HashMap::new() };
        places.read_new()?;
        Ok(places)
    }

    /// Reads the lines that were added since the last time.
    ///
    /// # Errors
    ///
    /// Returns [`BatchError::Io`] or [`BatchError::Results`].
    pub fn read_new(&mut self) -> Result<(), BatchError> {
        let path = self.path.clone();
        let io = |why| BatchError::io("read", &path)(why);
        (&self.file).seek(SeekFrom::Start(self.read)).map_err(io)?;
        let mut lines = BufReader::new(&self.file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let count = read_line(&mut lines, &mut line).map_err(io)?;
            // A line without its end is still being written.
            if line.pop_if(|last| *last == b'\n').is_none() {
                return Ok(());
            }
            self.count += 1;
            let PlacedResult { task, run } =
                serde_json::from_slice(&line).map_err(|why| self.wrong(self.count, &why))?;
            self.rows.insert(run, (self.read, line.len()));
            self.runs.insert(task, run);
            self.read += count as u64;
        }
    }

    /// Returns the run of a task, if it has ended.
    #[must_use]
    pub fn run_of(&self, task: &str) -> Option<Uuid> {
        self.runs.get(task).copied()
    }

    /// Reads the last line of a run, if the run has ended.
    ///
    /// # Errors
    ///
    /// Returns [`BatchError::Io`] or [`BatchError::Results`].
    pub fn line_of(&self, run: Uuid) -> Result<Option<Value>, BatchError> {
        let Some((offset, bytes)) = self.rows.get(&run) else { return Ok(None) };
        let mut line = vec![0; *bytes];
        self.file.read_exact_at(&mut line, *offset).map_err(BatchError::io("read", &self.path))?;
        // The line was read before, so the file has been changed since then.
        serde_json::from_slice(&line).map(Some).map_err(|why| self.wrong(0, &why))
    }

    fn wrong(&self, line: u64, why: &serde_json::Error) -> BatchError {
        BatchError::Results { path: self.path.clone(), line, why: why.to_string() }
    }
}
