//! The parts of the record of a batch that are missing: lines of results of runs that have ended, and lines that were removed from its
//! journals.
//!
//! The input is a folder. The output is numbers, for warnings: figures over the rest could say anything. Nothing is verified here.

use std::collections::HashMap;
use std::path::Path;

use uuid::Uuid;

use crate::batch::folder::{BatchError, layout};
use crate::batch::store::{EndOnRecord, is_live, read_result_ends};
use crate::journal::{RemovedLines, has_removals, read_ends};
use protocol::text::counted;

/// The parts of a record that are missing.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct MissingParts {
    /// The runs that ended without a line of results. Those of a shard that a process is running do not count, because they get theirs.
    pub results: u64,
    /// The lines that were removed from journals.
    pub removed: RemovedLines,
    /// Whether lines are missing from a journal of which no server removes any.
    pub is_damaged: bool,
}

impl MissingParts {
    /// Finds the parts that are missing in the record of the batch in a folder.
    ///
    /// Returns [`BatchError`], for example if there is no batch.
    pub fn find(folder: &Path) -> Result<Self, BatchError> {
        let mut missing = Self::default();
        for index in 0..layout::count(folder)? {
            let journal = layout::journal_file(folder, index);
            if !journal.exists() {
                continue;
            }
            let is_in_use = is_live(&journal) != Some(false);
            // The beginning of the digest of the record with which each run has ended.
            let mut ends: HashMap<Uuid, u64> = HashMap::new();
            let removed = read_ends(&journal, |run, head| {
                let Ok(run) = run.parse() else { return };
                if let Some(head) = head {
                    ends.insert(run, head.leading_u64());
                } else {
                    ends.remove(&run);
                }
            })?;
            missing.is_damaged |= removed.places > 0 && !has_removals(&journal);
            missing.removed.merge(removed);
            if is_in_use {
                continue;
            }
            read_result_ends(&layout::results_file(folder, index), false, |_, _, row: EndOnRecord| {
                if ends.get(&row.run) == Some(&row.journal_head.leading_u64()) {
                    ends.remove(&row.run);
                }
            })?;
            missing.results += ends.len() as u64;
        }
        Ok(missing)
    }

    /// Returns what a reader of figures must know about this, if anything is missing.
    pub fn summary(&self) -> Vec<String> {
        let mut words = Vec::new();
        if self.results > 0 {
            words.push(without_results(self.results));
        }
        if self.is_damaged {
            let lines = counted(self.removed.lines, "line");
            words.push(format!(
                "the record is damaged: {lines} of a journal are missing; `consensus verify` says where"
            ));
        } else {
            words.extend(describe_removals(self.removed));
        }
        words
    }
}

/// Returns the message about so many runs that ended without a line of results.
pub fn without_results(runs: u64) -> String {
    format!(
        "{} ended without a line of results, which says whether an answer is right; repeat the command that began the batch, with any of its arms, to add it",
        counted(runs, "run")
    )
}

/// Returns the message about lines that were removed from journals, if there are any.
pub fn describe_removals(removed: RemovedLines) -> Option<String> {
    let RemovedLines { places, lines } = removed;
    if places == 0 {
        return None;
    }
    let (lines, places) = (counted(lines, "line"), counted(places, "place"));
    Some(format!("runs were removed from the journal: {lines} in {places}; it does not say which runs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_said_about_a_whole_record() {
        assert_eq!(MissingParts::default().summary(), [""; 0]);
        let removed = RemovedLines { places: 2, lines: 1200 };
        let missing = MissingParts { results: 1, removed, is_damaged: false };
        let words = missing.summary();
        let [results, removed] = &words[..] else { panic!("two parts are missing: {words:?}") };
        assert!(results.starts_with("1 run ended without a line of results"), "{results}");
        assert!(removed.contains("1,200 lines in 2 places"), "{removed}");
    }
}
