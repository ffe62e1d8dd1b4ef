//! The facts about a change that code can determine: new versions of dependencies, coverage by tests, and findings of other
//! tools.
//!
//! The input is the change, and reports on the tree that it makes. The output is facts for people, which are signed with the
//! change. Nothing is decided here: a figure sorts changes, and a quorum judges them.

mod coverage;
mod dependencies;
mod findings;
mod location;
mod risk;

use serde::{Deserialize, Serialize};

use super::decision_error::DecisionError;
use crate::repository::{Candidate, FileKind, Repository};

pub use coverage::Coverage;
pub use dependencies::{DependencyChange, Lockfile};
pub use findings::ToolFindings;
pub use location::Located;
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

/// The reports of other tools on the tree that a change makes, as they were written.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    /// An LCOV tracefile.
    pub coverage: Option<String>,
    /// A SARIF log.
    pub findings: Option<String>,
}

impl Facts {
    /// Determines the facts about a change.
    ///
    /// # Errors
    ///
    /// [`DecisionError`] if a report cannot be read as one, or if git fails.
    pub fn new(
        candidate: &Candidate,
        repository: &Repository,
        is_verified: bool,
        reports: &Reports,
    ) -> Result<Self, DecisionError> {
        let added = protocol::review::added_lines(&String::from_utf8_lossy(&candidate.diff));
        let coverage =
            reports.coverage.as_deref().map(|text| Coverage::from_lcov(text, &added)).transpose()?;
        let findings =
            reports.findings.as_deref().map(|text| ToolFindings::from_sarif(text, &added)).transpose()?;
        let dependencies = dependencies_of(candidate, repository)?;
        let risk =
            Risk::new(&candidate.files, &dependencies, coverage.as_ref(), findings.as_ref(), is_verified);
        Ok(Self { dependencies, coverage, findings, risk })
    }

    /// Returns whether these are the facts of a change, as far as can be known without the reports.
    ///
    /// # Errors
    ///
    /// [`DecisionError`] if git fails.
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
        let read = |side: Option<FileKind>, tree| {
            // A link leads to another file.
            let is_file = matches!(side, Some(FileKind::File | FileKind::Program));
            if is_file { repository.text(tree, &file.path) } else { Ok(String::new()) }
        };
        let (before, after) = (read(file.before, &candidate.base)?, read(file.after, &candidate.tree)?);
        changes.extend(kind.changes(&file.path, &before, &after));
    }
    Ok(changes)
}
