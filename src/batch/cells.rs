//! The cells of a task line, and the documents of its task.
//!
//! The input is a line and the columns in which it is run. The output is one piece of work after another. No run is begun here.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::watch;
use uuid::Uuid;

use super::matrix::{Cell, Column, run_id};
use super::task::{DocumentLine, LINE_BYTES_MAX, TaskLine};
use crate::engine::StopRequest;
use protocol::Document;

/// What one task is run with, in place of the columns and the seeds of the batch.
#[derive(Clone, Debug)]
pub struct OwnCell {
    /// The roleset on its model.
    pub column: Column,
    pub seed: u64,
    /// The requests to stop this run alone.
    pub stop: watch::Receiver<StopRequest>,
}

impl OwnCell {
    /// Returns the id of the run of a task with this id.
    pub fn run(&self, task: &str) -> Uuid {
        let Column { roleset, model, arm, .. } = &self.column;
        run_id(task, roleset, model, arm, self.seed)
    }
}

/// An iterator over the cells of one line; each cell is returned once.
pub(super) struct Cells {
    pub(super) number: u64,
    pub(super) task: Arc<TaskLine>,
    pub(super) columns: Arc<[Column]>,
    pub(super) seeds: std::ops::Range<u64>,
    /// The requests to stop these runs alone, if there are any besides those to stop the batch.
    pub(super) stop: Option<watch::Receiver<StopRequest>>,
    /// The number of cells already returned.
    pub(super) passed: u64,
}

impl Cells {
    /// Returns the number of cells still to come.
    pub(super) fn left(&self) -> u64 {
        let seeds = self.seeds.end - self.seeds.start;
        (self.columns.len() as u64).saturating_mul(seeds).saturating_sub(self.passed)
    }
}

impl Iterator for Cells {
    type Item = Work;

    fn next(&mut self) -> Option<Work> {
        let seeds = self.seeds.end - self.seeds.start;
        let column = usize::try_from(self.passed.checked_div(seeds)?).ok()?;
        let seed = self.seeds.start + self.passed % seeds;
        let run = Cell { task: &self.task, column: self.columns.get(column)?, seed }.run();
        self.passed += 1;
        let (task, columns, stop) = (Arc::clone(&self.task), Arc::clone(&self.columns), self.stop.clone());
        Some(Work { task, column, columns, seed, run, stop })
    }
}

/// The data that a run of a task needs, kept while the run is under way.
pub(super) struct Work {
    pub(super) task: Arc<TaskLine>,
    pub(super) column: usize,
    pub(super) columns: Arc<[Column]>,
    pub(super) seed: u64,
    pub(super) run: Uuid,
    pub(super) stop: Option<watch::Receiver<StopRequest>>,
}

impl Work {
    pub(super) fn cell(&self) -> Cell<'_> {
        Cell { task: &self.task, column: &self.columns[self.column], seed: self.seed }
    }
}

/// Reads the documents of a task.
pub(super) fn documents(lines: &[DocumentLine], folder: &Path) -> Result<Vec<Document>, String> {
    let read = |line: &DocumentLine| match line {
        DocumentLine::Text(document) => Ok(document.clone()),
        DocumentLine::File(path) => {
            let place = folder.join(path);
            let wrong = |why: &dyn std::fmt::Display| format!("its document `{}`: {why}", place.display());
            // A pipe or a device may have no end, and opening one may block.
            if !std::fs::metadata(&place).map_err(|why| wrong(&why))?.is_file() {
                return Err(wrong(&"it is not a file"));
            }
            let mut bytes = Vec::new();
            let file = std::fs::File::open(&place).map_err(|why| wrong(&why))?;
            file.take(LINE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(|why| wrong(&why))?;
            if bytes.len() > LINE_BYTES_MAX {
                return Err(wrong(&format!("it is longer than {LINE_BYTES_MAX} bytes")));
            }
            let text = String::from_utf8(bytes).map_err(|_| wrong(&"it is not UTF-8"))?;
            Ok(Document { name: path.display().to_string(), text: text.into(), redacted: false })
        }
    };
    let documents: Vec<Document> = lines.iter().map(read).collect::<Result<_, String>>()?;
    for (at, document) in documents.iter().enumerate() {
        if documents[..at].iter().any(|other| other.name == document.name) {
            return Err(format!("two of its documents are called `{}`", document.name));
        }
    }
    Ok(documents)
}
