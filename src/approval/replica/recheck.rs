//! Compares a proposal with a reviewer's own copy of the repository before the reviewer, who trusts no one, reads it.
//!
//! The input is the text that is voted on, and a copy of the repository. The output is the change that would land, made here,
//! or an opinion that needs no reading. Every part of a proposal that can be known from a copy is made anew and compared; the
//! rest is its author's word.

use crate::approval::decision_error::DecisionError;
use crate::approval::ledger::Proposal;
use crate::repository::{Candidate, Oid, Repository, RepositoryError};
use crypto::Digest;
use quorum::{Opinion, Severity};

/// The result of an examination.
#[derive(Clone, Debug, PartialEq)]
pub enum Examination {
    /// The proposal is as it claims to be, and is to be read. This is its change, made here.
    Readable(Box<Candidate>),
    /// There is nothing to read, and this is the opinion.
    Settled(Opinion),
}

impl Proposal {
    /// Compares a text that is voted on with a copy of the repository, for a reviewer of this branch, which is at `tip`.
    ///
    /// Returns [`DecisionError`] if git fails.
    pub fn examine(
        text: &str,
        repository: &Repository,
        branch: &str,
        tip: &Oid,
    ) -> Result<Examination, DecisionError> {
        let proposal = match Self::read(text) {
            Ok(proposal) => proposal,
            Err(why) => return Ok(reject(format!("it is not a proposal: {why}"))),
        };
        let Self { base, tree, .. } = &proposal;
        if proposal.branch != branch {
            return Ok(abstain(format!(
                "it is for `{}`, but this reviewer reviews for `{branch}`",
                proposal.branch
            )));
        }
        let candidate = match repository.candidate_of_patch(base.as_str(), proposal.diff.as_bytes()) {
            Ok(candidate) => candidate,
            Err(RepositoryError::NoCommit(_)) => {
                return Ok(abstain(format!(
                    "its base {} is not in this copy of the repository; --fetch REMOTE gets it",
                    short(base)
                )));
            }
            Err(why @ (RepositoryError::DoesNotApply { .. } | RepositoryError::Nothing(_))) => {
                return Ok(reject(why.to_string()));
            }
            Err(why) => return Err(why.into()),
        };
        // Earlier decisions must not be left behind.
        if !repository.is_ancestor(tip, base)? {
            return Ok(abstain(format!(
                "its base {} lacks commits of `{branch}`, which is at {}",
                short(base),
                short(tip)
            )));
        }
        if candidate.tree != *tree {
            return Ok(reject("its diff does not lead to its tree".to_owned()));
        }
        // Each reviewer reads for itself, so no one has read the change before.
        let is_unread = proposal.reviewers.is_empty() && proposal.review == Digest::ZERO;
        let is_so = proposal.files == candidate.files
            && is_unread
            && proposal.facts.are_of(&candidate, repository, proposal.is_verified())?;
        if !is_so {
            return Ok(reject("its files, readers or facts are not as it claims".to_owned()));
        }
        Ok(Examination::Readable(Box::new(candidate)))
    }
}

/// Returns a name that is distinct from all others here, and leaves room in a line.
fn short(oid: &Oid) -> &str {
    oid.as_str().get(..12).unwrap_or_default()
}

/// Rejects a false proposal. Its author is a liar, or has a fault that no one should build on.
fn reject(reason: String) -> Examination {
    Examination::Settled(Opinion::Reject { reason, severity: Severity::Critical })
}

fn abstain(reason: String) -> Examination {
    Examination::Settled(Opinion::Abstain { reason })
}
