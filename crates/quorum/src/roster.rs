//! The parties to the decisions of a repository, with their keys.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::message::NodeId;
use super::quorum::Quorum;
use crypto::{Digest, PublicKey};

/// A member of a roster.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RosterEntry {
    /// The name that people use for it.
    pub name: String,
    /// The key by which its signatures are verified.
    pub key: PublicKey,
    /// The domain of failure: the provider and the family of models. Members that share a domain fail together, and
    /// count as one.
    pub domain: String,
}

/// All members, in the order of their places.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Roster {
    /// The reviewers, which vote.
    pub reviewers: Vec<RosterEntry>,
    /// The orchestrators, which propose in turn.
    pub orchestrators: Vec<RosterEntry>,
}

/// The reason why a roster cannot be used.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
pub enum RosterFault {
    /// There are no reviewers.
    #[error(
        "there are no reviewers; an approval needs at least one, and at least four to tolerate one that lies"
    )]
    NoReviewers,
    /// There are no orchestrators.
    #[error("there is no orchestrator; a roster needs at least one, to propose changes")]
    NoOrchestrators,
    /// Two members have the same name.
    #[error("two members have the name `{0}`; give each its own name, since people tell them apart by it")]
    SameName(String),
    /// Two members have the same key.
    #[error("`{0}` and `{1}` have the same key, so one member would count twice; make a key for each")]
    SameKey(String, String),
}

/// The roster of one repository. Every signature is bound to both.
#[derive(Clone, Debug)]
pub struct Membership {
    chain: Digest,
    roster: Roster,
    digest: Digest,
    quorum: Quorum,
    parties: BTreeMap<Digest, NodeId>,
}

impl Membership {
    /// Returns the membership for the repository with this identity.
    ///
    /// # Errors
    ///
    /// [`RosterFault`] if a part has no member, or a member counts twice.
    ///
    /// # Panics
    ///
    /// Never: a roster has a JSON form.
    pub fn new(chain: Digest, roster: Roster) -> Result<Self, RosterFault> {
        let quorum = Quorum::new(roster.reviewers.len()).ok_or(RosterFault::NoReviewers)?;
        if roster.orchestrators.is_empty() {
            return Err(RosterFault::NoOrchestrators);
        }
        let (mut names, mut parties) = (BTreeSet::new(), BTreeMap::new());
        let mut by_key: BTreeMap<Digest, &str> = BTreeMap::new();
        for (party, seat) in seats(&roster) {
            if !names.insert(&seat.name) {
                return Err(RosterFault::SameName(seat.name.clone()));
            }
            if let Some(other) = by_key.insert(seat.key.id(), &seat.name) {
                return Err(RosterFault::SameKey(other.to_owned(), seat.name.clone()));
            }
            parties.insert(seat.key.id(), party);
        }
        let text = serde_json_canonicalizer::to_vec(&roster).expect("names and keys have a JSON form");
        Ok(Self { chain, digest: Digest::new(&text), quorum, parties, roster })
    }

    /// Returns the identity of the repository.
    pub fn chain(&self) -> Digest {
        self.chain
    }

    /// Returns the SHA-256 of the roster's canonical JSON.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the roster with all members.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// Returns the sizes that a decision needs.
    pub fn quorum(&self) -> Quorum {
        self.quorum
    }

    /// Returns all members: the reviewers in their order, then the orchestrators.
    pub fn seats(&self) -> impl Iterator<Item = (NodeId, &RosterEntry)> {
        seats(&self.roster)
    }

    /// Returns the name that people use for a party, if there is such a party.
    pub fn name(&self, party: NodeId) -> Option<&str> {
        self.seat(party).map(|seat| seat.name.as_str())
    }

    /// Returns the party whose key has this id.
    pub fn party(&self, key: Digest) -> Option<NodeId> {
        self.parties.get(&key).copied()
    }

    /// Returns the key of a party, if there is such a party.
    pub fn key(&self, party: NodeId) -> Option<&PublicKey> {
        self.seat(party).map(|seat| &seat.key)
    }

    fn seat(&self, party: NodeId) -> Option<&RosterEntry> {
        match party {
            NodeId::Reviewer(at) => self.roster.reviewers.get(at),
            NodeId::Orchestrator(at) => self.roster.orchestrators.get(at),
        }
    }
}

fn seats(roster: &Roster) -> impl Iterator<Item = (NodeId, &RosterEntry)> {
    let reviewers = roster.reviewers.iter().enumerate().map(|(at, seat)| (NodeId::Reviewer(at), seat));
    let orchestrators = roster.orchestrators.iter().enumerate();
    reviewers.chain(orchestrators.map(|(at, seat)| (NodeId::Orchestrator(at), seat)))
}
