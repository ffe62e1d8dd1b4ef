//! What code knows of a change: what it depends on from now on, what is tested of it, what other tools found in it.
//!
//! In go the change and reports on the tree that it makes; out come facts for people, which are signed with the change. Nothing
//! in here decides: a figure sorts changes, and a quorum judges them.

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

/// What code knows of a change.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// What its lock files say that is used from now on in other versions than before.
    pub dependencies: Vec<DependencyChange>,
    /// How many of its new lines are run by tests; none, if nobody has measured it.
    pub coverage: Option<Coverage>,
    /// What other tools found; none, if none was run.
    pub findings: Option<ToolFindings>,
    /// How much there is to look at.
    pub risk: Risk,
}

/// Reports of other tools on the tree that a change makes, as they were written.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    /// An LCOV tracefile.
    pub coverage: Option<String>,
    /// A SARIF log.
    pub findings: Option<String>,
}

impl Facts {
    /// Finds out what there is to know of a change.
    ///
    /// # Errors
    ///
    /// [`DecisionError`] if a report is none, or git cannot be asked.
    pub fn new(
        candidate: &Candidate,
        repository: &Repository,
        is_verified: bool,
        reports: &Reports,
    ) -> Result<Self, DecisionError> {
        let added = crate::protocol::review::added_lines(&String::from_utf8_lossy(&candidate.diff));
        let coverage =
            reports.coverage.as_deref().map(|text| Coverage::from_lcov(text, &added)).transpose()?;
        let findings =
            reports.findings.as_deref().map(|text| ToolFindings::from_sarif(text, &added)).transpose()?;
        let dependencies = dependencies_of(candidate, repository)?;
        let risk =
            Risk::new(&candidate.files, &dependencies, coverage.as_ref(), findings.as_ref(), is_verified);
        Ok(Self { dependencies, coverage, findings, risk })
    }

    /// Whether these are the facts of a change, as far as it can be known without the reports.
    ///
    /// # Errors
    ///
    /// [`DecisionError`] if git cannot be asked.
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

/// Reads the lock files on both sides of a change.
fn dependencies_of(
    candidate: &Candidate,
    repository: &Repository,
) -> Result<Vec<DependencyChange>, DecisionError> {
    let mut changes = Vec::new();
    for file in &candidate.files {
        let Some(kind) = Lockfile::from_path(&file.path) else { continue };
        let read = |side: Option<FileKind>, tree| {
            // What a link leads to is another file.
            let is_file = matches!(side, Some(FileKind::File | FileKind::Program));
            if is_file { repository.text(tree, &file.path) } else { Ok(String::new()) }
        };
        let (before, after) = (read(file.before, &candidate.base)?, read(file.after, &candidate.tree)?);
        changes.extend(kind.changes(&file.path, &before, &after));
    }
    Ok(changes)
}
