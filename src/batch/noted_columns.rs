//! The columns that the manifest notes, compared with the runs.
//!
//! The input is the manifest and the first record of each run. The output is the first column whose digest is that of none of its runs.
//! The origin of a run, `made_of`, is the digest of its task and its column, so it can be made again from the record and the note. The
//! origin of a redacted run depends on text that no record has, and says nothing.

use std::path::{Path, PathBuf};

use super::error::BatchError;
use super::manifest::{ColumnNote, require_possible};
use super::matrix::origin;
use super::task::DocumentLine;
use crate::journal::{BATCH_FILE, InBatch, RunSpec};
use crypto::Digest;
use protocol::Document;
use protocol::text::escape;

/// The most documents of a run of which each may have been a text or a file of its line.
const MIXED_DOCUMENTS_MAX: usize = 3;

/// The columns of a manifest.
#[derive(Debug)]
pub(super) struct NotedColumns {
    path: PathBuf,
    columns: Vec<NotedColumn>,
}

/// A column, and what its runs say about its note.
#[derive(Debug)]
struct NotedColumn {
    note: ColumnNote,
    /// Whether a run was begun with one of its digests.
    is_confirmed: bool,
    /// Whether a run was begun with none of its digests.
    is_doubtful: bool,
}

impl NotedColumns {
    /// Reads the columns of the batch in a folder.
    ///
    /// # Errors
    ///
    /// Returns [`BatchError`] if the manifest cannot be what this program writes.
    pub(super) fn read(folder: &Path) -> Result<Self, BatchError> {
        let notes = require_possible(folder)?;
        let columns =
            notes.into_iter().map(|note| NotedColumn { note, is_confirmed: false, is_doubtful: false });
        Ok(Self { path: folder.join(BATCH_FILE), columns: columns.collect() })
    }

    /// Compares the origin of a run with the note of its column, unless another run has confirmed it.
    pub(super) fn compare(&mut self, opened: &RunSpec) {
        let Some(cell) = &opened.cell else { return };
        let names = [&opened.setup.roleset, &cell.model, &cell.arm];
        for NotedColumn { note, is_confirmed, is_doubtful } in &mut self.columns {
            let is_its = names == [&note.roleset, &note.model, &note.arm];
            if !is_its || *is_confirmed || opened.redacted {
                continue;
            }
            *is_confirmed = is_begun_with(opened, cell, &note.sha256);
            let is_certain = opened.setup.task.documents.len() <= MIXED_DOCUMENTS_MAX;
            *is_doubtful |= is_certain && !*is_confirmed;
        }
    }

    /// Checks that no column has runs of which none was begun with its digest. A server may have added others to the folder of a batch.
    ///
    /// # Errors
    ///
    /// Returns [`BatchError::Stray`] with the first such column.
    pub(super) fn require_confirmed(self) -> Result<(), BatchError> {
        let Some(NotedColumn { note, .. }) =
            self.columns.into_iter().find(|column| column.is_doubtful && !column.is_confirmed)
        else {
            return Ok(());
        };
        let names = [&note.roleset, &note.model, &note.arm].map(String::as_str);
        let given: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
        let column = escape::excerpt(&given.join(" · "));
        let why =
            format!("none of the runs of the column `{column}` was begun with the digest that it notes");
        Err(BatchError::Stray { path: self.path, why })
    }
}

/// Returns whether a run was begun with one of these columns.
fn is_begun_with(opened: &RunSpec, cell: &InBatch, columns: &[Digest]) -> bool {
    let (task, canonical) = (&opened.setup.task, &opened.setup.canonical);
    for documents in possible_lines(&task.documents) {
        // A line that has no rule of its own takes that of its column.
        for rule in [None, Some(canonical)] {
            for column in columns {
                let origin = origin(&task.prompt, &documents, rule, *column);
                if Digest::new(origin.as_bytes()) == cell.made_of {
                    return true;
                }
            }
        }
    }
    false
}

/// Returns the forms in which a line can have had these documents: all as texts or all as files and, if they are few, each as either.
fn possible_lines(documents: &[Document]) -> Vec<Vec<DocumentLine>> {
    let count = documents.len();
    let forms = if count <= MIXED_DOCUMENTS_MAX {
        (0..1_usize << count).map(|form| (0..count).map(|at| (form >> at) & 1 == 1).collect()).collect()
    } else {
        vec![vec![false; count], vec![true; count]]
    };
    let line = |(document, is_file): (&Document, bool)| {
        if is_file {
            DocumentLine::File(PathBuf::from(&document.name))
        } else {
            DocumentLine::Text(document.clone())
        }
    };
    forms.into_iter().map(|form: Vec<bool>| documents.iter().zip(form).map(line).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_document_is_a_text_or_a_file() {
        let document = |name: &str| Document { name: name.to_owned(), text: "text".into(), redacted: false };
        assert_eq!(possible_lines(&[]), [vec![]]);
        let one = document("a");
        let lines = possible_lines(std::slice::from_ref(&one));
        assert_eq!(lines, [vec![DocumentLine::Text(one)], vec![DocumentLine::File("a".into())]]);
        assert_eq!(possible_lines(&["a", "b", "c"].map(document)).len(), 8);
        assert_eq!(possible_lines(&["a", "b", "c", "d"].map(document)).len(), 2);
    }
}
