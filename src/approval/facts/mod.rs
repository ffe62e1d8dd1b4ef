//! The facts about a change that code can determine: new versions of dependencies, coverage by tests, and findings of other
//! tools.
//!
//! The input is the change, and reports on the tree that it makes. The output is facts for people, which are signed with the
//! change. Nothing is decided here: a figure sorts changes, and a quorum judges them.

mod coverage;
mod dependencies;
mod findings;
mod risk;

use serde::{Deserialize, Serialize};

use super::decision_error::DecisionError;
use crate::repository::{Candidate, FileKind, Repository};

pub use coverage::{Coverage, FileLine};
pub use dependencies::{DependencyChange, Lockfile};
pub use findings::ToolFindings;
pub use risk::Risk;

/// The facts about a change.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// The dependencies whose versions change, by the lock files.
    pub dependencies: Vec<DependencyChange>,
    /// The number of its new lines that tests run, if it was measured.
    pub coverage: Option<Coverage>,
    /// The findings of other tools, if any tool was run.
    pub findings: Option<ToolFindings>,
    /// A figure for how much there is to review.
    pub risk: Risk,
}

impl Facts {
    /// Determines the facts about a change. `lcov` and `sarif` are the reports of other tools on the tree that the change makes: a
    /// tracefile, and a log of findings.
    ///
    /// Returns [`DecisionError`] if a report cannot be read as one, or if git fails.
    pub fn new(
        candidate: &Candidate,
        repository: &Repository,
        is_verified: bool,
        lcov: Option<&str>,
        sarif: Option<&str>,
    ) -> Result<Self, DecisionError> {
        let added = protocol::review::added_lines(&String::from_utf8_lossy(&candidate.diff));
        let coverage = lcov.map(|text| Coverage::from_lcov(text, &added)).transpose()?;
        let findings = sarif.map(|text| ToolFindings::from_sarif(text, &added)).transpose()?;
        let dependencies = dependencies_of(candidate, repository)?;
        let risk =
            Risk::new(&candidate.files, &dependencies, coverage.as_ref(), findings.as_ref(), is_verified);
        Ok(Self { dependencies, coverage, findings, risk })
    }

    /// Returns whether these are the facts of a change, as far as can be known without the reports.
    ///
    /// Returns [`DecisionError`] if git fails.
    pub fn are_of(
        &self,
        candidate: &Candidate,
        repository: &Repository,
        is_verified: bool,
    ) -> Result<bool, DecisionError> {
        let Self { dependencies, coverage, findings, risk } = self;
        let (coverage, findings) = (coverage.as_ref(), findings.as_ref());
        let known = dependencies_of(candidate, repository)?;
        Ok(*risk == Risk::new(&candidate.files, &known, coverage, findings, is_verified)
            && *dependencies == known)
    }
}

/// Reads the lock files on both sides of a change, and returns the differences.
fn dependencies_of(
    candidate: &Candidate,
    repository: &Repository,
) -> Result<Vec<DependencyChange>, DecisionError> {
    let mut changes = Vec::new();
    for file in &candidate.files {
        let Some(kind) = Lockfile::from_path(&file.path) else { continue };
        let mut texts = [String::new(), String::new()];
        let sides = [(file.before, &candidate.base), (file.after, &candidate.tree)];
        for (text, (side, tree)) in texts.iter_mut().zip(sides) {
            // A link leads to another file.
            if matches!(side, Some(FileKind::File | FileKind::Program)) {
                *text = repository.text(tree, &file.path)?;
            }
        }
        let [before, after] = &texts;
        changes.extend(kind.changes(&file.path, before, after));
    }
    Ok(changes)
}
