//! The coverage of the added lines: an LCOV tracefile, compared with the change.

use std::collections::BTreeMap;

use lcov::record::Record;
use serde::{Deserialize, Serialize};

use crate::approval::decision_error::DecisionError;
use crypto::Digest;

/// The most uncovered lines that are named.
const NAMED_MAX: usize = 50;

/// A line of a file.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FileLine {
    pub path: String,
    /// The number of the line, from 1.
    pub line: u64,
}

/// The number of added lines that tests run.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Coverage {
    /// The number of added lines that could be run, by the report.
    pub lines: u64,
    /// The number of those lines that were run.
    pub covered: u64,
    /// The first fifty of those lines that were not run.
    pub uncovered: Vec<FileLine>,
    /// The SHA-256 of the report.
    pub report_sha256: Digest,
}

impl Coverage {
    /// Reads a report on the tree that a change makes. `added` are the lines that the change adds.
    ///
    /// Returns [`DecisionError::Unreadable`] if the text is not a tracefile, or has no lines.
    pub fn from_lcov(text: &str, added: &[(String, u64)]) -> Result<Self, DecisionError> {
        let mut counts: BTreeMap<u64, BTreeMap<String, u64>> = BTreeMap::new();
        let mut file = String::new();
        for record in lcov::Reader::new(text.as_bytes()) {
            let record = record.map_err(|why| unreadable(format!("it is not an LCOV tracefile: {why}")))?;
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
            return Err(unreadable("it has no lines".to_owned()));
        }
        let report_sha256 = Digest::new(text.as_bytes());
        let mut coverage = Self { lines: 0, covered: 0, uncovered: Vec::new(), report_sha256 };
        for (path, line) in added {
            let mut of_line = counts.get(line).into_iter().flatten();
            let Some((_, count)) = of_line.find(|(file, _)| is_file(file, path)) else { continue };
            coverage.lines += 1;
            if *count > 0 {
                coverage.covered += 1;
            } else if coverage.uncovered.len() < NAMED_MAX {
                coverage.uncovered.push(FileLine { path: path.clone(), line: *line });
            }
        }
        Ok(coverage)
    }
}

fn unreadable(why: String) -> DecisionError {
    DecisionError::Unreadable { path: "the coverage report".into(), why }
}

/// Returns whether a report, which may name files by their whole path, means this file.
pub(super) fn is_file(named: &str, path: &str) -> bool {
    let named = named.trim_start_matches("./");
    named == path || named.ends_with(&format!("/{path}"))
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
        assert_eq!(coverage.uncovered, [FileLine { path: "src/a.rs".to_owned(), line: 2 }]);
        for none in ["", "no report", "{}", "DA:x,y\n"] {
            assert!(Coverage::from_lcov(none, &added).is_err(), "{none}");
        }
    }
}
