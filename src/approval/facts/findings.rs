//! The findings of other tools: a SARIF log, of which the results on new lines count.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::coverage::{FileLine, is_file};
use crate::approval::decision_error::DecisionError;
use crypto::Digest;
use protocol::text::escape;

/// The most findings that are listed.
const LISTED_MAX: usize = 50;

/// The findings of other tools in a tree.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ToolFindings {
    /// The names of the tools.
    pub tools: Vec<String>,
    /// The number of findings in the whole tree.
    pub total: u64,
    /// The number of errors on new lines.
    pub errors: u64,
    /// The number of warnings on new lines.
    pub warnings: u64,
    /// The number of all other findings on new lines.
    pub notes: u64,
    /// The first fifty findings on new lines, each with its place.
    #[serde(rename = "told")]
    pub listed: Vec<(FileLine, String)>,
    /// The SHA-256 of the report.
    pub report_sha256: Digest,
}

impl ToolFindings {
    /// Reads a report on the tree that a change makes. `added` are the lines that the change adds.
    ///
    /// Returns [`DecisionError::Unreadable`] if the text is not a SARIF log.
    pub fn from_sarif(text: &str, added: &[(String, u64)]) -> Result<Self, DecisionError> {
        let log: Json = serde_json::from_str(text).map_err(|why| not_sarif(&why.to_string()))?;
        let runs = log["runs"].as_array().ok_or_else(|| not_sarif("it has no runs"))?;
        let mut found = Self {
            tools: Vec::new(),
            total: 0,
            errors: 0,
            warnings: 0,
            notes: 0,
            listed: Vec::new(),
            report_sha256: Digest::new(text.as_bytes()),
        };
        let mut new: BTreeMap<u64, Vec<&String>> = BTreeMap::new();
        for (path, line) in added {
            new.entry(*line).or_default().push(path);
        }
        for run in runs {
            let tool =
                run["tool"]["driver"]["name"].as_str().ok_or_else(|| not_sarif("a run has no tool"))?;
            found.tools.push(escape::excerpt(tool));
            for result in run["results"].as_array().into_iter().flatten() {
                found.total += 1;
                let place = &result["locations"][0]["physicalLocation"];
                let (file, line) =
                    (place["artifactLocation"]["uri"].as_str(), place["region"]["startLine"].as_u64());
                let (Some(file), Some(line)) = (file, line) else { continue };
                let paths = new.get(&line).into_iter().flatten().copied();
                let Some(path) = paths.into_iter().find(|path| is_file(file, path)) else { continue };
                // A result that names no level is a warning, by the standard.
                match result["level"].as_str().unwrap_or("warning") {
                    "error" => found.errors += 1,
                    "warning" => found.warnings += 1,
                    _ => found.notes += 1,
                }
                if found.listed.len() < LISTED_MAX {
                    let message = result["message"]["text"].as_str().unwrap_or_default();
                    found.listed.push((FileLine { path: path.clone(), line }, escape::excerpt(message)));
                }
            }
        }
        Ok(found)
    }
}

fn not_sarif(why: &str) -> DecisionError {
    let why = format!("it is not a SARIF log: {why}");
    DecisionError::Unreadable { path: "the report of findings".into(), why }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Findings elsewhere only add to the total.
    #[test]
    fn only_findings_on_added_lines_count() {
        let result = |uri: &str, line: u64, level: Option<&str>| {
            let place = json!({"artifactLocation": {"uri": uri}, "region": {"startLine": line}});
            let mut result = json!({"message": {"text": "bad"}, "locations": [{"physicalLocation": place}]});
            if let Some(level) = level {
                result["level"] = json!(level);
            }
            result
        };
        let results = [
            result("src/a.rs", 1, Some("error")),
            result("file:///build/src/a.rs", 2, None),
            result("src/a.rs", 3, Some("note")),
            result("src/a.rs", 99, Some("error")),
            json!({"message": {"text": "nowhere"}}),
        ];
        let log = json!({"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "a linter"}}, "results": results}]});
        let added = [1, 2, 3].map(|line| ("src/a.rs".to_owned(), line));
        let found = ToolFindings::from_sarif(&log.to_string(), &added).unwrap();
        assert_eq!((found.total, found.errors, found.warnings, found.notes), (5, 1, 1, 1));
        assert_eq!((found.listed.len(), found.tools.as_slice()), (3, &["a linter".to_owned()][..]));
        for none in ["", "{}", "[]", "{\"runs\":[{}]}"] {
            assert!(ToolFindings::from_sarif(none, &added).is_err(), "{none}");
        }
    }
}
