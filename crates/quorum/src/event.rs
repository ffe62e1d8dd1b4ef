//! The inputs of a reviewer in one decision, and its actions.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::message::{Commit, LeaderProposal, Prepare, Reviewer, SlotMessage, Value, View, Vote};
use crypto::Digest;

/// The event that a reviewer waits for in a view.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// A quorum, to come to this view. The phase has no time-out: a reviewer that moved on alone would find no other
    /// there.
    ViewChange,
    /// A proposal.
    PrePrepare,
    /// Votes; the reviewer's own may need a review first.
    Prepare,
    /// Commits.
    Commit,
}

/// An input of a reviewer.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum SlotInput {
    /// The orchestrator of this very view proposes a value. Grounds with wrong signatures have been left out.
    Proposed(LeaderProposal),
    /// The change with this digest has been reviewed. Only the first opinion on it counts.
    Reviewed(Digest, Vote),
    /// A reviewer has sent a message, whose signature has been checked.
    Said(Reviewer, SlotMessage),
    /// The time for a view is over. The time grows from view to view, so that all reviewers are in one view in the
    /// end.
    Expired(View),
    /// A decision is proven by the signed commits of these reviewers. A reviewer that has decided sends the proof to
    /// all that still send messages, since it passes on nothing else that it heard.
    Decided(Decision),
}

/// An action that a reviewer asks for.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum SlotAction {
    /// Acknowledge to the orchestrator of this view that its proposal has come.
    Acknowledge(View, Value),
    /// Review the change.
    Review(Digest),
    /// Sign this message and send it to all, this reviewer among them.
    Say(SlotMessage),
    /// Carry out the decision, which is final.
    Decide(Decision),
    /// Accuse an author of two contradictory messages, once for each kind in each view.
    Accuse(Fraud),
}

/// A decision and the quorum that proves it.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Decision {
    /// The view in which it was made.
    pub view: View,
    /// The value that was decided.
    pub value: Value,
    /// The quorum whose commits are the proof.
    pub committers: BTreeSet<Reviewer>,
}

/// Two messages of which an honest author sends only one. With both signatures this is proof of fraud.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Fraud {
    /// Two proposals by the orchestrator of a view.
    Proposals(View, Value, Value),
    /// Two votes by a reviewer.
    Prepares(Reviewer, Prepare, Prepare),
    /// Two commits by a reviewer.
    Commits(Reviewer, Commit, Commit),
}
