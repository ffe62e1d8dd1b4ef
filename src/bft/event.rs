//! What happens to a reviewer, and what it wants.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::message::{Commit, LeaderProposal, Prepare, Reviewer, SlotMessage, Value, View, Vote};
use crate::crypto::Digest;

/// What a reviewer waits for in a view.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// A quorum, to come to this view. It has no time of its own: whoever went on alone would meet nobody.
    ViewChange,
    /// A proposal.
    PrePrepare,
    /// Votes; its own may need a review.
    Prepare,
    /// Commits.
    Commit,
}

/// What happens to a reviewer.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum SlotInput {
    /// The orchestrator of this very view proposes a value. Of its grounds those are left out whose signatures are wrong.
    Proposed(LeaderProposal),
    /// The change with this digest has been reviewed; only the first opinion on it counts.
    Reviewed(Digest, Vote),
    /// A reviewer has said something; its signature has been checked.
    Said(Reviewer, SlotMessage),
    /// The time for a view is over. The time grows from view to view, so that all are in one at last.
    Expired(View),
    /// There is proof of a decision: the signed commits of these reviewers. Whoever has decided owes it to everybody who
    /// still says something, since nothing else of what it heard is sent on.
    Decided(Decision),
}

/// What a reviewer wants.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum SlotAction {
    /// The orchestrator of this view is to be told that its proposal has come.
    Acknowledge(View, Value),
    /// The change is to be reviewed.
    Review(Digest),
    /// This is to be signed and sent to all, this reviewer among them.
    Say(SlotMessage),
    /// The decision; final.
    Decide(Decision),
    /// Somebody has said two things; once for each of its kinds in each view.
    Accuse(Fraud),
}

/// What was decided.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Decision {
    /// In this view.
    pub view: View,
    /// This value.
    pub value: Value,
    /// The quorum whose messages are the proof.
    pub committers: BTreeSet<Reviewer>,
}

/// Two things of which an honest author says one; with both signatures this is proof.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Fraud {
    /// Of the orchestrator of a view.
    Proposals(View, Value, Value),
    /// Of a reviewer.
    Prepares(Reviewer, Prepare, Prepare),
    /// Of a reviewer.
    Commits(Reviewer, Commit, Commit),
}
