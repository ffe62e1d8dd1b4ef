//! The variants that the manifest notes, compared with the runs.
//!
//! The input is the manifest and the first record of each run. The output is the first variant whose digest is that of none of its runs.
//! The origin of a run, `made_of`, is the digest of its task and its variant, so it can be made again from the record and the note. The
//! origin of a redacted run depends on text that no record has, and says nothing.

use std::path::{Path, PathBuf};

use crate::batch::folder::manifest::require_possible;
use crate::batch::folder::{BatchError, VariantNote};
use crate::batch::plan::origin;
use crate::batch::tasks::DocumentLine;
use crate::journal::{BATCH_FILE, InBatch, RunSpec};
use crypto::Digest;
use protocol::Document;
use protocol::text::escape;

/// The most documents of a run of which each may have been a text or a file of its line.
const MIXED_DOCUMENTS_MAX: usize = 3;

/// A variant of a manifest, and what its runs say about its note.
#[derive(Debug)]
pub(super) struct NotedVariant {
    note: VariantNote,
    /// Whether a run was begun with one of its digests.
    is_confirmed: bool,
    /// Whether a run was begun with none of its digests.
    is_doubtful: bool,
}

impl NotedVariant {
    /// Reads the variants of the batch in a folder.
    ///
    /// Returns [`BatchError`] if the manifest cannot be what this program writes.
    pub(super) fn read_all(folder: &Path) -> Result<Vec<Self>, BatchError> {
        let notes = require_possible(folder)?.into_iter();
        Ok(notes.map(|note| Self { note, is_confirmed: false, is_doubtful: false }).collect())
    }

    /// Compares the origin of a run with the note, if the run is of this variant and no other run has confirmed the note.
    pub(super) fn compare(&mut self, opened: &RunSpec) {
        let Some(cell) = &opened.cell else { return };
        let note = &self.note;
        let is_its =
            [&opened.setup.roleset, &cell.model, &cell.arm] == [&note.roleset, &note.model, &note.arm];
        if !is_its || self.is_confirmed || opened.redacted {
            return;
        }
        self.is_confirmed = is_begun_with(opened, cell, &note.sha256);
        let is_certain = opened.setup.task.documents.len() <= MIXED_DOCUMENTS_MAX;
        self.is_doubtful |= is_certain && !self.is_confirmed;
    }

    /// Checks that the variant does not have runs of which none was begun with its digest. A server may have added others to the folder
    /// of a batch.
    ///
    /// Returns [`BatchError::Stray`].
    pub(super) fn require_confirmed(&self, folder: &Path) -> Result<(), BatchError> {
        if self.is_confirmed || !self.is_doubtful {
            return Ok(());
        }
        let variant = escape::excerpt(&self.note.name());
        let why =
            format!("none of the runs of the column `{variant}` was begun with the digest that it notes");
        Err(BatchError::Stray { path: folder.join(BATCH_FILE), why })
    }
}

/// Returns whether a run was begun with one of these variants.
fn is_begun_with(opened: &RunSpec, cell: &InBatch, variants: &[Digest]) -> bool {
    let (task, canonical) = (&opened.setup.task, &opened.setup.canonical);
    for documents in possible_lines(&task.documents) {
        // A line that has no rule of its own takes that of its variant.
        for rule in [None, Some(canonical)] {
            for variant in variants {
                let origin = origin(&task.prompt, &documents, rule, *variant);
                if Digest::new(origin.as_bytes()) == cell.fingerprint {
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
    let forms: Vec<Vec<bool>> = if count <= MIXED_DOCUMENTS_MAX {
        (0..1_usize << count).map(|form| (0..count).map(|at| (form >> at) & 1 == 1).collect()).collect()
    } else {
        vec![vec![false; count], vec![true; count]]
    };
    let mut lines = Vec::new();
    for form in forms {
        let mut line = Vec::new();
        for (document, is_file) in documents.iter().zip(form) {
            line.push(if is_file {
                DocumentLine::File(PathBuf::from(&document.name))
            } else {
                DocumentLine::Text(document.clone())
            });
        }
        lines.push(line);
    }
    lines
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
