//! The places of a shard's results, so that a result can be read again while the shard runs.
//!
//! The input is the file of results, which only grows. The output is the last line of a run, or the run of a task. The lines themselves are
//! not kept.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::batch::folder::BatchError;
use crate::batch::folder::layout::results_file;
use crate::files::{GrowingFile, LinePlace};

/// The places of the results of one shard.
#[derive(Debug)]
pub struct ResultPlaces {
    path: PathBuf,
    file: GrowingFile,
    /// The number of lines that were read.
    count: u64,
    /// The last line of each run.
    rows: HashMap<Uuid, LinePlace>,
    /// The runs of the tasks that are looked for, of which there may be far fewer.
    runs: HashMap<String, Uuid>,
    is_looked_for: fn(&str) -> bool,
}

#[derive(Deserialize)]
struct PlacedResult {
    task: String,
    run: Uuid,
}

impl ResultPlaces {
    /// Opens the results of a shard that is open. None is read yet. Only runs of tasks that are looked for can be found by their task.
    pub fn open(folder: &Path, index: u64, is_looked_for: fn(&str) -> bool) -> Result<Self, BatchError> {
        let path = results_file(folder, index);
        let file = GrowingFile::new(File::open(&path).map_err(BatchError::io("open", &path))?);
        Ok(Self { path, file, count: 0, rows: HashMap::new(), runs: HashMap::new(), is_looked_for })
    }

    /// Reads the lines that were added since the last time, and passes the first line of each run to `each`.
    ///
    /// Returns [`BatchError::Io`] or [`BatchError::Results`].
    pub fn read_new(&mut self, mut each: impl FnMut(&[u8])) -> Result<(), BatchError> {
        let Self { file, count, rows, runs, is_looked_for, .. } = self;
        let mut fault = None;
        let read = file.read_new(|line, bytes| {
            *count += 1;
            let PlacedResult { task, run } = match serde_json::from_slice(bytes) {
                Ok(result) => result,
                Err(why) => {
                    fault = Some(why);
                    return Err(Error::from(ErrorKind::InvalidData));
                }
            };
            if rows.insert(run, line).is_none() {
                each(bytes);
            }
            if is_looked_for(&task) {
                runs.insert(task, run);
            }
            Ok(())
        });
        match fault {
            Some(why) => Err(self.bad_line(self.count, &why)),
            None => read.map_err(BatchError::io("read", &self.path)),
        }
    }

    /// Returns the run of a task, if it has ended.
    pub fn run_of(&self, task: &str) -> Option<Uuid> {
        self.runs.get(task).copied()
    }

    /// Reads the last line of a run, if the run has ended.
    ///
    /// Returns [`BatchError::Io`] or [`BatchError::Results`].
    pub fn line_of(&self, run: Uuid) -> Result<Option<Value>, BatchError> {
        let Some(place) = self.rows.get(&run) else { return Ok(None) };
        let line = self.file.line_at(*place).map_err(BatchError::io("read", &self.path))?;
        // The line was read before, so the file has been changed since then.
        serde_json::from_slice(&line).map(Some).map_err(|why| self.bad_line(0, &why))
    }

    fn bad_line(&self, line: u64, why: &serde_json::Error) -> BatchError {
        BatchError::Results { path: self.path.clone(), line, why: why.to_string() }
    }
}
