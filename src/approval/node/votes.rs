//! The votes that were heard, each with its opinion, for the records of decisions and for people who wait for one.
//!
//! The input is messages, as they come. The output is the votes on one change, in the order of the reviewers. Whether a vote
//! counts is decided elsewhere.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crypto::Signature;
use quorum::{Reviewer, Sequence, SignedMessage, Statement, Value, Vote};

/// The votes at all places.
#[derive(Debug, Default)]
pub struct Votes(BTreeMap<Sequence, BTreeMap<(Reviewer, Value), SignedMessage<Signature>>>);

impl Votes {
    /// Keeps a message if it is a vote with an opinion. The first vote of each reviewer on a change stays. Returns whether the
    /// vote is new.
    pub(super) fn keep(&mut self, message: &SignedMessage<Signature>) -> bool {
        let Statement::Prepare { value, .. } = message.signed.statement else { return false };
        if message.opinion.is_none() {
            return false;
        }
        let of_place = self.0.entry(message.signed.sequence).or_default();
        let Entry::Vacant(place) = of_place.entry((message.signed.by, value)) else { return false };
        place.insert(message.clone());
        true
    }

    /// Returns the reviewers that have voted on a value, each with its vote.
    pub fn by_reviewer(&self, on: Value) -> BTreeMap<Reviewer, Vote> {
        let mut votes = BTreeMap::new();
        for ((by, value), message) in self.0.values().flatten() {
            if *value == on
                && let Statement::Prepare { vote, .. } = message.signed.statement
            {
                votes.insert(*by, vote);
            }
        }
        votes
    }

    /// Returns whether the vote of a reviewer on this value is there.
    pub(super) fn has(&self, sequence: Sequence, by: Reviewer, value: Value) -> bool {
        self.0.get(&sequence).is_some_and(|votes| votes.contains_key(&(by, value)))
    }

    /// Returns the votes on a value.
    pub(super) fn on(&self, sequence: Sequence, value: Value) -> Vec<SignedMessage<Signature>> {
        let votes = self.0.get(&sequence).into_iter().flatten();
        votes.filter(|((_, on), _)| *on == value).map(|(_, message)| message.clone()).collect()
    }
}
