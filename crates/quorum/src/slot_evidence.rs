//! One decision as a reviewer sees it, with the evidence for its steps.
//!
//! The slot decides which messages are to be sent. This module keeps the signed statements that they follow from,
//! which are shown to others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::event::{Decision, Phase};
use super::message::{Commit, Prepare, Reviewer, SlotMessage, Value, View, ViewChange, Vote};
use super::model_opinion::ModelOpinion;
use super::opinion::Opinion;
use super::packet::{Commits, Proof};
use super::quorum::Quorum;
use super::slot::Slot;
use super::statement::{Change, Sequence, Signed, SignedMessage, Signer, Statement};
use crypto::Digest;

/// The reason why a reviewer has no opinion on one more change.
const TOO_MANY: &str = "more changes were proposed for this decision than are reviewed for one";

/// One decision, with the evidence for its steps.
#[derive(Clone, Debug)]
pub(super) struct SlotEvidence<S> {
    pub(super) slot: Slot,
    pub(super) changes: BTreeMap<Digest, Change>,
    pub(super) opinions: BTreeMap<Digest, Arc<ModelOpinion>>,
    pub(super) proposals: BTreeMap<View, Signed<S>>,
    pub(super) prepares: BTreeMap<(View, Reviewer), SignedMessage<S>>,
    pub(super) commits: Commits<S>,
    /// The votes behind its lock.
    pub(super) locked_by: Arc<[SignedMessage<S>]>,
    /// The messages that this reviewer has sent, by view.
    pub(super) own: Vec<(View, SignedMessage<S>)>,
    /// Whether a party with the right to do so has asked for a decision. Until then no time-out begins.
    pub(super) is_wanted: bool,
    pub(super) waits: Option<(View, Phase)>,
    pub(super) proof: Option<Proof<S>>,
}

impl<S: Clone> SlotEvidence<S> {
    pub(super) fn new(quorum: Quorum) -> Self {
        Self {
            slot: Slot::new(quorum),
            changes: BTreeMap::new(),
            opinions: BTreeMap::new(),
            proposals: BTreeMap::new(),
            prepares: BTreeMap::new(),
            commits: Commits::default(),
            locked_by: Arc::new([]),
            own: Vec::new(),
            is_wanted: false,
            waits: None,
            proof: None,
        }
    }

    pub(super) fn change(&self, value: Value) -> Option<Change> {
        match value {
            Value::Change(digest) => self.changes.get(&digest).cloned(),
            Value::Nothing => None,
        }
    }

    /// Returns true if the decision has been made. Its proof is then enough.
    pub(super) fn is_decided(&self) -> bool {
        self.proof.is_some()
    }

    /// Forgets all but the proof and this reviewer's own opinions, which an orchestrator that was away may want for
    /// the record.
    pub(super) fn forget(&mut self) {
        self.changes.clear();
        self.opinions.clear();
        self.proposals.clear();
        self.prepares.clear();
        self.commits = Commits::default();
        self.locked_by = Arc::new([]);
        self.own.retain(|(_, message)| message.opinion.is_some());
    }

    /// Forgets the evidence of views that were left.
    pub(super) fn prune(&mut self) {
        let view = self.slot.view();
        let first = self.proposals.first_key_value().map_or(view, |(first, _)| *first);
        if first < view {
            self.proposals.retain(|other, _| *other >= view);
        }
        if self.prepares.first_key_value().is_some_and(|((first, _), _)| *first < view) {
            self.prepares.retain(|(other, _), _| *other >= view);
        }
        let mut voted_on = BTreeSet::new();
        self.own.retain(|(other, message)| match message.signed.statement {
            Statement::Commit(_) => true,
            // Its opinion is kept for the record, once for each change.
            Statement::Prepare { opinion: Some(_), value, .. } => voted_on.insert(value) || *other >= view,
            Statement::Prepare { opinion: None, .. }
            | Statement::PrePrepare { .. }
            | Statement::Want { .. }
            | Statement::Acknowledge { .. }
            | Statement::ViewChange { .. }
            | Statement::Checkpoint { .. } => *other >= view,
        });
    }
}

pub(super) fn sign<K: Signer>(
    key: &K,
    by: usize,
    sequence: Sequence,
    statement: Statement,
) -> Signed<K::Signature> {
    let signature = key.sign(sequence, &statement);
    Signed { by, sequence, statement, signature }
}

/// Turns a reviewer's message into a signed one, and keeps it as if it had come from another reviewer.
pub(super) fn say<K: Signer>(
    key: &K,
    me: Reviewer,
    sequence: Sequence,
    instance: &mut SlotEvidence<K::Signature>,
    message: &SlotMessage,
) -> (View, SignedMessage<K::Signature>) {
    match message {
        SlotMessage::Prepare(Prepare { view, value, vote }) => {
            let mut opinion = None;
            if let Value::Change(digest) = value
                && *vote != Vote::Follow
            {
                opinion = instance.opinions.get(digest).filter(|known| known.vote() == *vote).cloned();
                if opinion.is_none() && *vote == Vote::Abstain {
                    opinion = Some(Arc::new(Opinion::Abstain { reason: TOO_MANY.to_owned() }.into()));
                }
            }
            let digest = opinion.as_ref().map(|opinion| opinion.digest());
            let statement = Statement::Prepare { view: *view, value: *value, vote: *vote, opinion: digest };
            let message = SignedMessage::alone(sign(key, me, sequence, statement));
            instance.prepares.insert((*view, me), message.clone());
            (*view, SignedMessage { opinion, ..message })
        }
        SlotMessage::Commit(commit) => {
            let locked = instance.slot.lock().map(|lock| &lock.approvers);
            let votes = locked.into_iter().flatten();
            let votes = votes.filter_map(|by| instance.prepares.get(&(commit.view, *by)));
            instance.locked_by = votes.cloned().collect();
            let signed = sign(key, me, sequence, Statement::Commit(*commit));
            instance.commits.keep(commit.view, &signed);
            (commit.view, SignedMessage::alone(signed))
        }
        SlotMessage::ViewChange(ViewChange { view, lock }) => {
            let lock = lock.as_ref().map(|lock| (lock.view, lock.value));
            let signed = sign(key, me, sequence, Statement::ViewChange { view: *view, lock });
            let change = lock.and_then(|(_, value)| instance.change(value));
            let grounds = if lock.is_some() { instance.locked_by.clone() } else { Arc::new([]) };
            (*view, SignedMessage { signed, change, opinion: None, grounds })
        }
    }
}

pub(super) fn proof_of<S: Clone>(instance: &SlotEvidence<S>, decision: &Decision) -> Proof<S> {
    let commit = Commit { view: decision.view, value: decision.value };
    Proof { change: instance.change(decision.value), commits: instance.commits.to(commit) }
}
