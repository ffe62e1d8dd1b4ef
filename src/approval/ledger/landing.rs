//! Brings a decided change onto its branch: exactly once, or not at all.

use super::log::{Case, CaseOutcome, DecisionLog, RecordedDecision};
use crate::approval::decision_error::DecisionError;
use crate::repository::{Landing, LandingMark, Repository, RepositoryError};
use quorum::Vote;

impl Case {
    /// Brings the approved change onto its branch, and finishes a landing that was begun before.
    ///
    /// The branch may have moved since. Then it stays where it is, and the reason is returned. If the branch is checked out,
    /// `with_checkout` lets the files there be updated; without it, a checkout is an error.
    ///
    /// Returns [`DecisionError`] if git fails, a user works on the branch, or a lock is in the way. The landing can be tried again.
    pub fn land(
        &self,
        decided: &RecordedDecision,
        repository: &Repository,
        ledger: &DecisionLog,
        with_checkout: bool,
    ) -> Result<CaseOutcome, DecisionError> {
        let proposal = &self.proposal;
        let votes = decided.verified.votes.iter().filter(|vote| vote.opinion.vote() == Vote::Approve);
        let approvers: Vec<&str> = votes.map(|vote| vote.reviewer.as_str()).collect();
        // The tree is made here and now from the signed diff and its base. Unreferenced objects may have been pruned since, or
        // never were in this copy.
        let candidate = repository.candidate_of_patch(proposal.base.as_str(), proposal.diff.as_bytes())?;
        if candidate.tree != proposal.tree {
            let why = format!("its diff makes the tree {}, but {} was signed", candidate.tree, proposal.tree);
            return Err(DecisionError::NotProven(why));
        }
        let branch = repository.branch(&proposal.branch)?;
        let roster = ledger.membership().digest();
        let message = proposal.commit_message(decided.record.sequence, self.change(), roster, &approvers);
        // The commit is the same however often it is made.
        let commit = repository.commit(
            &proposal.base,
            &proposal.tree,
            &message,
            proposal.at,
            proposal.author.as_ref(),
        )?;
        let landing = Landing { branch, from: proposal.base.clone(), to: commit.clone(), with_checkout };
        let mark = LandingMark::new(ledger.name(), decided.record.sequence);
        let landed = match repository.settle(&landing, &mark) {
            Ok(true) => Ok(()),
            Ok(false) => repository.land(&landing, &mark),
            Err(why) => Err(why),
        };
        match landed {
            Ok(()) => {
                if with_checkout {
                    repository.update_checkouts(&landing)?;
                }
                Ok(CaseOutcome::Landed { commit })
            }
            Err(why @ RepositoryError::Stale { .. }) => Ok(CaseOutcome::NotLanded { why: why.to_string() }),
            Err(why) => Err(why.into()),
        }
    }
}
