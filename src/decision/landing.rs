//! From a decision to its branch: exactly once, or not at all.

use super::error::DecisionError;
use super::ledger::{Case, Ended};
use crate::protocol::approval::Registry;
use crate::repository::{Landing, Mark, Repository, RepositoryError};

impl Case {
    /// Brings the approved change onto its branch; a landing that was begun before is brought to its end.
    ///
    /// The branch may have gone on since, or somebody may work on it: then it stays where it is, and why is returned.
    ///
    /// # Errors
    ///
    /// [`DecisionError`] if git cannot be asked, or a lock stands in the way: it can be tried again.
    pub fn land(&self, repository: &Repository, registry: &Registry) -> Result<Ended, DecisionError> {
        let proposal = &self.proposal;
        let approvers = self.approvers(registry);
        let message = proposal.commit_message(self.sequence, self.change(), &approvers);
        // The same commit, however often it is made.
        let commit = repository.commit(&proposal.base, &proposal.tree, &message, proposal.at)?;
        let landing =
            Landing { branch: proposal.branch.clone(), from: proposal.base.clone(), to: commit.clone() };
        let mark = Mark::of(registry.digest(), self.sequence);
        let landed = match repository.settle(&landing, &mark) {
            Ok(true) => Ok(()),
            Ok(false) => repository.land(&landing, &mark),
            Err(why) => Err(why),
        };
        match landed {
            Ok(()) => Ok(Ended::Landed { commit }),
            Err(
                why @ (RepositoryError::Stale { .. }
                | RepositoryError::CheckedOut { .. }
                | RepositoryError::NoBranch(_)),
            ) => Ok(Ended::NotLanded { why: why.to_string() }),
            Err(why) => Err(why.into()),
        }
    }
}
