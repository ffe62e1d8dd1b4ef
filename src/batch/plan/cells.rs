//! The cells of a task line, and the documents of its task.
//!
//! The input is a line and the variants in which it is run. The output is one piece of work after another. No run is begun here.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::watch;
use uuid::Uuid;

use super::matrix::{Cell, Variant, run_id};
use crate::batch::tasks::{DocumentLine, LINE_BYTES_MAX, TaskLine};
use crate::engine::StopRequest;
use protocol::Document;

/// What one task is run with, in place of the variants and the seeds of the batch.
#[derive(Clone, Debug)]
pub struct OwnCell {
    /// The roleset on its model.
    pub variant: Variant,
    pub seed: u64,
    /// The requests to stop this run alone.
    pub stop: watch::Receiver<StopRequest>,
}

impl OwnCell {
    /// Returns the id of the run of a task with this id.
    pub fn run(&self, task: &str) -> Uuid {
        let Variant { roleset, model, arm, .. } = &self.variant;
        run_id(task, roleset, model, arm, self.seed)
    }
}

/// An iterator over the cells of one line; each cell is returned once.
pub(in crate::batch) struct Cells {
    pub(in crate::batch) number: u64,
    pub(in crate::batch) task: Arc<TaskLine>,
    pub(in crate::batch) variants: Arc<[Variant]>,
    pub(in crate::batch) seeds: std::ops::Range<u64>,
    /// The requests to stop these runs alone, if there are any besides those to stop the batch.
    pub(in crate::batch) stop: Option<watch::Receiver<StopRequest>>,
    /// The number of cells already returned.
    pub(in crate::batch) passed: u64,
}

impl Cells {
    /// Returns the number of cells still to come.
    pub(in crate::batch) fn left(&self) -> u64 {
        let seeds = self.seeds.end - self.seeds.start;
        (self.variants.len() as u64).saturating_mul(seeds).saturating_sub(self.passed)
    }
}

impl Iterator for Cells {
    type Item = Work;

    fn next(&mut self) -> Option<Work> {
        let seeds = self.seeds.end - self.seeds.start;
        let variant = usize::try_from(self.passed.checked_div(seeds)?).ok()?;
        let seed = self.seeds.start + self.passed % seeds;
        let run = Cell { task: &self.task, variant: self.variants.get(variant)?, seed }.run();
        self.passed += 1;
        let (task, variants, stop) = (Arc::clone(&self.task), Arc::clone(&self.variants), self.stop.clone());
        Some(Work { task, variant, variants, seed, run, stop })
    }
}

/// The data that a run of a task needs, kept while the run is under way.
pub(in crate::batch) struct Work {
    pub(in crate::batch) task: Arc<TaskLine>,
    pub(in crate::batch) variant: usize,
    pub(in crate::batch) variants: Arc<[Variant]>,
    pub(in crate::batch) seed: u64,
    pub(in crate::batch) run: Uuid,
    pub(in crate::batch) stop: Option<watch::Receiver<StopRequest>>,
}

impl Work {
    pub(in crate::batch) fn cell(&self) -> Cell<'_> {
        Cell { task: &self.task, variant: &self.variants[self.variant], seed: self.seed }
    }
}

/// Reads the documents of a task.
pub(in crate::batch) fn read_documents(
    lines: &[DocumentLine],
    folder: &Path,
) -> Result<Vec<Document>, String> {
    let mut documents: Vec<Document> = Vec::new();
    for line in lines {
        documents.push(match line {
            DocumentLine::Text(document) => document.clone(),
            DocumentLine::File(path) => {
                let place = folder.join(path);
                let text = read_document(&place)
                    .map_err(|why| format!("its document `{}`: {why}", place.display()))?;
                Document { name: path.display().to_string(), text: text.into(), redacted: false }
            }
        });
    }
    for (at, document) in documents.iter().enumerate() {
        if documents[..at].iter().any(|other| other.name == document.name) {
            return Err(format!("two of its documents are called `{}`", document.name));
        }
    }
    Ok(documents)
}

/// Reads a file of text that is no longer than a line may be.
fn read_document(place: &Path) -> Result<String, String> {
    // A pipe or a device may have no end, and opening one may block.
    if !std::fs::metadata(place).map_err(|why| why.to_string())?.is_file() {
        return Err("it is not a file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(place).map_err(|why| why.to_string())?;
    file.take(LINE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(|why| why.to_string())?;
    if bytes.len() > LINE_BYTES_MAX {
        return Err(format!("it is longer than {LINE_BYTES_MAX} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}
