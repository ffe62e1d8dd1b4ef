//! A line of a file, and whether a report means a file.

use serde::{Deserialize, Serialize};

/// A line of a file.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Located {
    /// The file.
    pub path: String,
    /// The line in it, from 1.
    pub line: u64,
}

/// Whether a report, which may name files by their whole path, means this one.
pub(super) fn is_file(named: &str, path: &str) -> bool {
    let named = named.trim_start_matches("./");
    named == path || named.ends_with(&format!("/{path}"))
}
