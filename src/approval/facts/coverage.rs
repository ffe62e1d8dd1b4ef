//! The coverage of the added lines: an LCOV tracefile, compared with the change.

use std::collections::BTreeMap;

use lcov::record::Record;
use serde::{Deserialize, Serialize};

use super::super::decision_error::DecisionError;
use super::Located;
use super::location::is_file;
use crypto::Digest;

/// The most uncovered lines that are named.
const NAMED_MAX: usize = 50;

/// The number of added lines that tests run.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Coverage {
    /// The number of added lines that could be run, by the report.
    pub lines: u64,
    /// The number of those lines that were run.
    pub covered: u64,
    /// The first fifty of those lines that were not run.
    pub uncovered: Vec<Located>,
    /// The SHA-256 of the report.
    pub report_sha256: Digest,
}

impl Coverage {
    /// Reads a report on the tree that a change makes. `added` are the lines that the change adds.
    ///
    /// # Errors
    ///
    /// [`DecisionError::Unreadable`] if the text is not a tracefile, or has no lines.
    pub fn from_lcov(text: &str, added: &[(String, u64)]) -> Result<Self, DecisionError> {
        let wrong = |why: String| DecisionError::Unreadable { path: "the coverage report".into(), why };
        let mut counts: BTreeMap<u64, BTreeMap<String, u64>> = BTreeMap::new();
        let mut file = String::new();
        for record in lcov::Reader::new(text.as_bytes()) {
            let record = record.map_err(|why| wrong(format!("it is not an LCOV tracefile: {why}")))?;
            if let Record::SourceFile { path } = &record {
                file = path.to_string_lossy().into_owned();
            }
            if let Record::LineData { line, count, .. } = record {
                let of_line = counts.entry(u64::from(line)).or_default();
                let known = of_line.entry(file.clone()).or_default();
                *known = known.saturating_add(count);
            }
        }
        if counts.is_empty() {
            return Err(wrong("it has no lines".to_owned()));
        }
        let mut new: Vec<(&String, u64, u64)> = Vec::new();
        for (path, line) in added {
            let mut of_line = counts.get(line).into_iter().flatten();
            let found = of_line.find(|(file, _)| is_file(file, path));
            new.extend(found.map(|(_, count)| (path, *line, *count)));
        }
        let uncovered = new.iter().filter(|(.., count)| *count == 0);
        let place = |(path, line, _): &(&String, u64, u64)| Located { path: (*path).clone(), line: *line };
        Ok(Self {
            lines: new.len() as u64,
            covered: new.iter().filter(|(.., count)| *count > 0).count() as u64,
            uncovered: uncovered.take(NAMED_MAX).map(place).collect(),
            report_sha256: Digest::new(text.as_bytes()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uncovered_added_lines_are_named() {
        let report = "TN:\nSF:/build/src/a.rs\nDA:1,3\nDA:2,0\nDA:9,0\nend_of_record\nSF:src/b.rs\nDA:1,1\nend_of_record\n";
        let added = [("src/a.rs", 1), ("src/a.rs", 2), ("src/a.rs", 3), ("b.rs", 1), ("other.rs", 1)];
        let added = added.map(|(path, line)| (path.to_owned(), line));
        let coverage = Coverage::from_lcov(report, &added).unwrap();
        assert_eq!((coverage.lines, coverage.covered), (3, 2));
        assert_eq!(coverage.uncovered, [Located { path: "src/a.rs".to_owned(), line: 2 }]);
        for none in ["", "no report", "{}", "DA:x,y\n"] {
            assert!(Coverage::from_lcov(none, &added).is_err(), "{none}");
        }
    }
}
