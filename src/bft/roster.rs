//! Who takes part, and the keys by which they are known.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::node_id::NodeId;
use super::quorum::{Quorum, TooFew};
use crate::crypto::{Digest, PublicKey};

/// Somebody who takes part.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RosterEntry {
    /// What people call it.
    pub name: String,
    /// The key by which it is known.
    pub key: PublicKey,
    /// What it fails together with: its provider and family of models. Those who share one count as one that may fail.
    pub domain: String,
}

/// All who take part, in the order of their places.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Roster {
    /// Who votes.
    pub reviewers: Vec<RosterEntry>,
    /// Who proposes, in turn.
    pub orchestrators: Vec<RosterEntry>,
}

/// Why a roster cannot be used.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
pub enum RosterFault {
    /// Nobody votes.
    #[error(transparent)]
    NoReviewers(#[from] TooFew),
    /// Nobody proposes.
    #[error("there is no orchestrator; somebody must propose")]
    NoOrchestrators,
    /// Two have one name.
    #[error("two have the name `{0}`; give each its own, since people tell them apart by it")]
    SameName(String),
    /// Two have one key.
    #[error("`{0}` and `{1}` have one key, and would be one who counts twice; make a key for each")]
    SameKey(String, String),
}

/// The roster of one repository: what every signature is bound to.
#[derive(Clone, Debug)]
pub struct Membership {
    chain: Digest,
    roster: Roster,
    digest: Digest,
    quorum: Quorum,
    parties: BTreeMap<Digest, NodeId>,
}

impl Membership {
    /// The roster for the repository with this identity.
    ///
    /// # Errors
    ///
    /// [`RosterFault`] if somebody is missing or counts twice.
    ///
    /// # Panics
    ///
    /// Never: a roster has a JSON form.
    pub fn new(chain: Digest, roster: Roster) -> Result<Self, RosterFault> {
        let quorum = Quorum::new(roster.reviewers.len())?;
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

    /// The repository's identity.
    #[must_use]
    pub fn chain(&self) -> Digest {
        self.chain
    }

    /// The SHA-256 of the roster's canonical JSON.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// All who take part.
    #[must_use]
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// How many must agree.
    #[must_use]
    pub fn quorum(&self) -> Quorum {
        self.quorum
    }

    /// All who take part: reviewers in their order, then orchestrators.
    pub fn seats(&self) -> impl Iterator<Item = (NodeId, &RosterEntry)> {
        seats(&self.roster)
    }

    /// What people call a party, if there is such a party.
    #[must_use]
    pub fn name(&self, party: NodeId) -> Option<&str> {
        self.seat(party).map(|seat| seat.name.as_str())
    }

    /// Whose key has this name.
    #[must_use]
    pub fn party(&self, key: Digest) -> Option<NodeId> {
        self.parties.get(&key).copied()
    }

    /// A party's key, if there is such a party.
    #[must_use]
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
