//! What a reviewer that trusts nobody holds a proposal against, before it reads it: its own copy of the repository.
//!
//! In go the text that is voted on and a copy of the repository; out comes what would land, made here, or an opinion that needs
//! no reading. Whatever a proposal says that can be known from a copy is made anew and compared; the rest is its author's word.

use super::decision_error::DecisionError;
use super::proposal::Proposal;
use crate::bft::{Opinion, Severity};
use crate::crypto::Digest;
use crate::repository::{Candidate, ChangeSource, Oid, Repository, RepositoryError};

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Examined {
    /// It is what it says it is, and is to be read: this is its change, made here.
    Readable(Box<Candidate>),
    /// There is nothing to read.
    Settled(Opinion),
}

impl Proposal {
    /// Holds a text that is voted on against a copy of the repository, by a reviewer of this branch, which is at `tip`.
    ///
    /// # Errors
    ///
    /// [`DecisionError`] if git cannot be asked.
    pub fn examine(
        text: &str,
        repository: &Repository,
        branch: &str,
        tip: &Oid,
    ) -> Result<Examined, DecisionError> {
        let proposal = match Self::read(text) {
            Ok(proposal) => proposal,
            Err(why) => return Ok(reject(format!("it is no proposal: {why}"))),
        };
        let Self { base, tree, .. } = &proposal;
        if proposal.branch != branch {
            return Ok(abstain(format!(
                "it is for `{}`, and this one reviews for `{branch}`",
                proposal.branch
            )));
        }
        let candidate =
            match repository.candidate(base.as_str(), ChangeSource::Patch(proposal.diff.as_bytes())) {
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
        // What was decided before must not be left behind.
        if !repository.is_ancestor(tip, base)? {
            return Ok(abstain(format!(
                "its base {} is not what `{branch}` is at by now: {}",
                short(base),
                short(tip)
            )));
        }
        if candidate.tree != *tree {
            return Ok(reject("its diff is not what leads to its tree".to_owned()));
        }
        // Where each reads for itself, nobody has read before.
        let is_unread = proposal.reviewers.is_empty() && proposal.review == Digest::ZERO;
        let is_so = proposal.files == candidate.files
            && is_unread
            && proposal.facts.are_of(&candidate, repository, proposal.is_verified())?;
        if !is_so {
            return Ok(reject("what it says of itself is not so".to_owned()));
        }
        Ok(Examined::Readable(Box::new(candidate)))
    }
}

/// A name that can be told from all others here, and leaves room in a line.
fn short(oid: &Oid) -> &str {
    oid.as_str().get(..12).unwrap_or_default()
}

/// Whoever proposes what is not so is no fool, or has a fault that nobody should build on.
fn reject(reason: String) -> Examined {
    Examined::Settled(Opinion::Reject { reason, severity: Severity::Critical })
}

fn abstain(reason: String) -> Examined {
    Examined::Settled(Opinion::Abstain { reason })
}
