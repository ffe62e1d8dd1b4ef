//! The inputs of a party, reviewer or orchestrator, and its actions.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::event::Phase;
use super::message::{NodeId, Reviewer, Value, View};
use super::model_opinion::ModelOpinion;
use super::packet::{Packet, Proof, To};
use super::statement::{Change, Sequence, Signed};
use crypto::Digest;

/// An input of a party.
#[derive(Clone, Debug)]
pub enum NodeInput<S> {
    /// A change is to be decided on. This is for an orchestrator.
    Submit(Change),
    /// A packet has come from this party, which may not be its author. A claim to have decisions changes nothing: it is
    /// for the function `answer` of a machine.
    Heard(NodeId, Packet<S>),
    /// The change with this digest has been reviewed for this decision. This is for a reviewer, which keeps the first
    /// opinion.
    Reviewed(Sequence, Digest, Arc<ModelOpinion>),
    /// The time for a phase is over. The phase of an orchestrator is [`Phase::PrePrepare`]. The time should double from
    /// view to view, up to some bound, so that all reviewers meet in one view in the end.
    Expired(Sequence, View, Phase),
    /// Earlier messages may be lost, and it is time to repeat them. This changes nothing in a machine, and need not
    /// be written down.
    Again,
}

/// An action that a party asks for.
#[derive(Clone, Debug)]
pub enum NodeAction<S> {
    /// Send a packet.
    Send(To, Packet<S>),
    /// Review a change.
    Review(Sequence, Change),
    /// Begin the time for a phase.
    Wait(Sequence, View, Phase),
    /// Keep a final decision. A reviewer does not always report decisions in order, and forgets them after a checkpoint.
    Decide(Sequence, Proof<S>),
    /// Keep a final decision that follows on all before it. An orchestrator reports each place once.
    Tell(Sequence, Value, Proof<S>),
    /// Return a change that was submitted, with the reason. Nothing was decided at its place, and it is no longer
    /// proposed.
    Return(Sequence, Change, ReturnReason),
    /// Report the reviewers that did not acknowledge a proposal in time. It has been sent to them again.
    Late(Sequence, View, Vec<Reviewer>),
    /// Send some of the kept decisions after this one to a party that wants them.
    Recall(NodeId, Sequence),
    /// Report that a quorum knows all decisions up to this one.
    Stable(Sequence, Vec<Signed<S>>),
    /// Accuse one author of two statements, of which an honest author makes only one.
    Accuse(Box<(Signed<S>, Signed<S>)>),
}

/// The reason why a change comes back.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ReturnReason {
    /// So many reviewers do not approve it that no quorum can: these.
    Refused(BTreeSet<Reviewer>),
    /// It was proposed as often as a change may be, and no quorum has answered.
    NoQuorum,
}
