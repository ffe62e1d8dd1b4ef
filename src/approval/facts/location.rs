//! A line of a file, and the comparison of a file's name with the names in a report.

use serde::{Deserialize, Serialize};

/// A line of a file.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Located {
    /// The file.
    pub path: String,
    /// The number of the line, from 1.
    pub line: u64,
}

/// Returns whether a report, which may name files by their whole path, means this file.
pub(super) fn is_file(named: &str, path: &str) -> bool {
    let named = named.trim_start_matches("./");
    named == path || named.ends_with(&format!("/{path}"))
}
