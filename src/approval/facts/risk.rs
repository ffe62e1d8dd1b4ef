//! A figure for how much there is to review in a change, with its reasons.
//!
//! The weights are a convention. A small, tested change of plain code scores 0. A change that touches how everything is built,
//! adds packages and is tested by nothing comes to 100. Reviewers find less in a change the longer it is: beyond some 400 lines
//! they find hardly anything (Cohen, Best Kept Secrets of Peer Code Review, 2006).

use serde::{Deserialize, Serialize};

use super::coverage::Coverage;
use super::dependencies::DependencyChange;
use super::findings::ToolFindings;
use crate::repository::{FileChange, FileKind};

/// A figure for how much there is to review.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Risk {
    /// The score, from 0 to 100.
    pub score: u8,
    /// The reasons for the score, each with its part.
    pub reasons: Vec<String>,
}

/// Returns whether a file says how everything is built, run or reviewed.
fn is_sensitive(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let folders = [".github/", ".gitlab/", ".ci/", ".circleci/", "ci/"];
    let names = [
        "build.rs",
        "Dockerfile",
        "Makefile",
        "setup.py",
        "Jenkinsfile",
        ".gitattributes",
        ".gitmodules",
        ".gitlab-ci.yml",
        "CODEOWNERS",
        "package.json",
        "Cargo.toml",
        "pyproject.toml",
    ];
    folders.iter().any(|folder| path.starts_with(folder)) || names.contains(&name)
}

impl Risk {
    pub(super) fn new(
        files: &[FileChange],
        dependencies: &[DependencyChange],
        coverage: Option<&Coverage>,
        findings: Option<&ToolFindings>,
        is_verified: bool,
    ) -> Self {
        let churn =
            files.iter().map(|file| file.added.saturating_add(file.removed)).fold(0, u64::saturating_add);
        let mut parts: Vec<(u64, String)> = Vec::new();
        match churn {
            0..=100 => {}
            101..=400 => parts.push((10, format!("{churn} lines"))),
            _ => parts.push((20, format!("{churn} lines; beyond 400 reviewers find little"))),
        }
        if files.len() > 10 {
            parts.push((10, format!("{} files", files.len())));
        }
        let sensitive: Vec<&str> =
            files.iter().map(|file| file.path.as_str()).filter(|path| is_sensitive(path)).collect();
        if let Some(first) = sensitive.first() {
            parts.push((15, format!("says how things are built or run: {first}")));
        }
        let mut programs = files.iter().filter(|file| file.after == Some(FileKind::Program));
        if let Some(file) = programs.find(|file| file.before != Some(FileKind::Program)) {
            parts.push((10, format!("can be run from now on: {}", file.path)));
        }
        if files.iter().any(|file| file.after == Some(FileKind::Link)) {
            parts.push((10, "brings or changes a link".to_owned()));
        }
        let new = dependencies.iter().filter(|change| change.before.is_empty()).count() as u64;
        let other = dependencies.len() as u64 - new;
        if new > 0 {
            parts.push(((10 + 5 * new).min(25), format!("{new} new dependencies")));
        }
        if other > 0 {
            parts.push((10, format!("{other} dependencies in other versions")));
        }
        if let Some(Coverage { lines, covered, .. }) = coverage
            && covered < lines
        {
            let open = lines - covered;
            parts.push((
                20_u64.saturating_mul(open) / lines,
                format!("{open} of {lines} new lines are run by no test"),
            ));
        }
        if let Some(ToolFindings { errors, warnings, .. }) = findings {
            if *errors > 0 {
                parts.push((20, format!("{errors} errors that other tools found")));
            }
            if *warnings > 0 {
                parts.push((10, format!("{warnings} warnings of other tools")));
            }
        }
        if !is_verified {
            parts.push((10, "no command was run on it".to_owned()));
        }
        let score = parts.iter().map(|(part, _)| *part).fold(0, u64::saturating_add).min(100);
        let reasons = parts.into_iter().filter(|(part, _)| *part > 0);
        Self {
            score: u8::try_from(score).unwrap_or(100),
            reasons: reasons.map(|(part, reason)| format!("{reason} (+{part})")).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn file(path: &str, added: u64) -> FileChange {
        FileChange {
            path: path.to_owned(),
            added,
            removed: 0,
            is_binary: false,
            before: Some(FileKind::File),
            after: Some(FileKind::File),
        }
    }

    /// A small tested change has no risk.
    #[test]
    fn risk_score_sums_its_reasons() {
        assert_eq!(Risk::new(&[file("a.rs", 5)], &[], None, None, true), Risk { score: 0, reasons: vec![] });
        let new = DependencyChange {
            file: "Cargo.lock".to_owned(),
            name: "x".to_owned(),
            before: BTreeSet::new(),
            after: BTreeSet::from(["1".to_owned()]),
        };
        let coverage =
            Coverage { lines: 4, covered: 1, uncovered: vec![], report_sha256: crypto::Digest::ZERO };
        let files = [file(".github/workflows/ci.yml", 500)];
        let risk = Risk::new(&files, &[new], Some(&coverage), None, false);
        assert_eq!(
            risk.reasons,
            [
                "500 lines; beyond 400 reviewers find little (+20)",
                "says how things are built or run: .github/workflows/ci.yml (+15)",
                "1 new dependencies (+15)",
                "3 of 4 new lines are run by no test (+15)",
                "no command was run on it (+10)"
            ]
        );
        assert_eq!(risk.score, 75);
    }
}
