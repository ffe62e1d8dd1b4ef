//! The votes that were heard, each with its opinion, for the records of decisions.
//!
//! In: messages, as they come. Out: the votes on one change at one place, in the order of the reviewers. Whether a vote
//! counts is decided elsewhere.

use std::collections::BTreeMap;

use crate::bft::{Reviewer, Sequence, SignedMessage, Statement, Value};
use crate::crypto::Signature;

/// The votes of all places.
#[derive(Debug, Default)]
pub(super) struct Votes(BTreeMap<Sequence, BTreeMap<(Reviewer, Value), SignedMessage<Signature>>>);

impl Votes {
    /// Keeps a message, if it is a vote with an opinion; the first of each reviewer on a change stays.
    pub(super) fn keep(&mut self, message: &SignedMessage<Signature>) {
        let Statement::Prepare { value, .. } = message.signed.statement else { return };
        if message.opinion.is_some() {
            let of_place = self.0.entry(message.signed.sequence).or_default();
            of_place.entry((message.signed.by, value)).or_insert_with(|| message.clone());
        }
    }

    /// Whether the vote of a reviewer on this value is there.
    pub(super) fn has(&self, sequence: Sequence, by: Reviewer, value: Value) -> bool {
        self.0.get(&sequence).is_some_and(|votes| votes.contains_key(&(by, value)))
    }

    /// Returns the votes on a value.
    pub(super) fn on(&self, sequence: Sequence, value: Value) -> Vec<SignedMessage<Signature>> {
        let votes = self.0.get(&sequence).into_iter().flatten();
        votes.filter(|((_, on), _)| *on == value).map(|(_, message)| message.clone()).collect()
    }
}
