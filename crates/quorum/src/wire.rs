//! Packets as JSON: signed envelopes, whose signatures are checked here before a packet leaves. Only the question whether a packet is
//! wanted sees a statement before that.
//!
//! Every statement that is read has been signed by a key of the roster, for this repository, this roster and one place in
//! the order of decisions. The signature covers the very bytes that would be written for it, so unknown content has
//! no place in it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::message::{Commit, NodeId, PACKET_BYTES_MAX, Vote};
use super::model_opinion::{ModelAt, ModelOpinion};
use super::opinion::{OPINION_BYTES_MAX, Opinion};
use super::packet::{Packet, Proof};
use super::payload::{SEQUENCE_END, read};
use super::refused::Refused;
use super::roster::Membership;
use super::statement::{Change, Sequence, Signed, SignedMessage, Statement};
use crypto::Signature;
use crypto::dsse::{self, DsseEnvelope};

/// A statement whose signatures are not verified yet.
struct UnverifiedStatement {
    sequence: Sequence,
    statement: Statement,
    payload: Vec<u8>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum WirePost {
    Letter(WireLetter),
    Proof {
        envelope: DsseEnvelope,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<String>,
    },
    Stable(DsseEnvelope),
    Have(Sequence),
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WireLetter {
    envelope: DsseEnvelope,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    change: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    opinion: Option<Opinion>,
    /// The model that formed the opinion, and the place where it was called. The first version did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<ModelAt>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    grounds: Vec<WireLetter>,
}

impl UnverifiedStatement {
    /// Returns true if this is a view change to the view of a proposal, or a vote for the value of a lock.
    fn is_ground_of(&self, other: &Self) -> bool {
        if self.sequence != other.sequence {
            return false;
        }
        match (&other.statement, &self.statement) {
            (Statement::PrePrepare { view, .. }, Statement::ViewChange { view: own, .. }) => view == own,
            (
                Statement::ViewChange { lock, .. },
                Statement::Prepare { view, value, vote: Vote::Approve | Vote::Follow, .. },
            ) => *lock == Some((*view, *value)),
            _ => false,
        }
    }
}

impl Membership {
    /// Puts equal statements into one envelope. Returns `None` if the list is empty, or if the statements differ.
    pub fn envelope(&self, signed: &[Signed<Signature>]) -> Option<DsseEnvelope> {
        let first = signed.first()?;
        let (payload_type, payload) = self.payload(first.sequence, &first.statement);
        let mut signatures = Vec::new();
        for signed in signed {
            if signed.sequence != first.sequence || signed.statement != first.statement {
                return None;
            }
            signatures.push((self.key(signed.author())?.id(), signed.signature));
        }
        Some(DsseEnvelope::new(payload_type, &payload, &signatures))
    }

    /// Reads an envelope: one statement, once for each party that has signed it.
    ///
    /// # Errors
    ///
    /// [`Refused`] if any part differs from how it would be written, or if a single signature is wrong.
    pub fn open(&self, envelope: &DsseEnvelope) -> Result<Vec<Signed<Signature>>, Refused> {
        let examined = self.examine(envelope)?;
        self.verify(envelope, &examined)
    }

    /// Reads a statement, without its signatures.
    fn examine(&self, envelope: &DsseEnvelope) -> Result<UnverifiedStatement, Refused> {
        let payload = envelope.payload()?;
        let (chain, roster, sequence, statement) = read(envelope.payload_type(), &payload)?;
        if chain != self.chain() {
            return Err(Refused::OtherChain(chain));
        }
        if roster != self.digest() {
            return Err(Refused::OtherRoster(roster));
        }
        if let Statement::Prepare { vote, opinion, .. } = &statement
            && (*vote == Vote::Follow) != opinion.is_none()
        {
            return Err(Refused::NotCanonical);
        }
        let (payload_type, bytes) = self.payload(sequence, &statement);
        if sequence >= SEQUENCE_END || payload_type != envelope.payload_type() || payload != bytes {
            return Err(Refused::NotCanonical);
        }
        Ok(UnverifiedStatement { sequence, statement, payload })
    }

    /// Reads the signatures of a statement, and verifies them.
    fn verify(
        &self,
        envelope: &DsseEnvelope,
        examined: &UnverifiedStatement,
    ) -> Result<Vec<Signed<Signature>>, Refused> {
        let UnverifiedStatement { sequence, statement, payload } = examined;
        let message = dsse::signed_bytes(envelope.payload_type(), payload);
        let (mut known, mut opened) = (BTreeSet::new(), Vec::new());
        for (keyid, signature) in envelope.signatures()? {
            let party = self.party(keyid).ok_or(Refused::Stranger(keyid))?;
            if !known.insert(keyid) {
                return Err(Refused::Twice(keyid));
            }
            let (NodeId::Reviewer(by) | NodeId::Orchestrator(by)) = party;
            let signed = Signed { by, sequence: *sequence, statement: statement.clone(), signature };
            if signed.author() != party {
                return Err(Refused::NotItsPart(party));
            }
            if !self.key(party).is_some_and(|key| key.verifies(&message, &signature)) {
                return Err(Refused::Forged(party));
            }
            opened.push(signed);
        }
        if opened.is_empty() {
            return Err(Refused::Unreadable("it has no signature".to_owned()));
        }
        Ok(opened)
    }

    /// Writes a packet.
    ///
    /// # Panics
    ///
    /// If the packet was not made under this roster.
    pub fn write(&self, packet: &Packet<Signature>) -> String {
        let wire = match packet {
            Packet::Message(message) => WirePost::Letter(self.write_message(message)),
            Packet::Proof(Proof { change, commits }) => WirePost::Proof {
                envelope: self
                    .envelope(commits)
                    .expect("the commits agree, and their authors are in the roster"),
                change: change.as_ref().map(|change| change.text().to_owned()),
            },
            Packet::Stable(signed) => WirePost::Stable(
                self.envelope(signed).expect("the statements agree, and their authors are in the roster"),
            ),
            Packet::Have(sequence) => WirePost::Have(*sequence),
        };
        serde_json::to_string(&wire).expect("strings and numbers have a JSON form")
    }

    fn write_message(&self, message: &SignedMessage<Signature>) -> WireLetter {
        let SignedMessage { signed, change, opinion, grounds } = message;
        WireLetter {
            envelope: self.envelope(std::slice::from_ref(signed)).expect("its author is in the roster"),
            change: change.as_ref().map(|change| change.text().to_owned()),
            opinion: opinion.as_ref().map(|reading| reading.opinion.clone()),
            model: opinion.as_ref().and_then(|reading| reading.model.clone()),
            grounds: grounds.iter().map(|message| self.write_message(message)).collect(),
        }
    }

    /// Reads a packet. Returns `None` if its reader does not want it; its signatures are then not checked.
    ///
    /// Grounds of a message that are refused, or that do not belong to it, are left out. So a liar, or an attacker on
    /// the way, can spoil nothing by adding grounds.
    ///
    /// # Errors
    ///
    /// [`Refused`] with the reason why the packet is not read.
    pub fn read(
        &self,
        text: &str,
        is_wanted: impl Fn(Sequence, &Statement) -> bool,
    ) -> Result<Option<Packet<Signature>>, Refused> {
        if text.len() > PACKET_BYTES_MAX {
            return Err(Refused::TooLong(text.len()));
        }
        Ok(match serde_json::from_str(text)? {
            WirePost::Letter(message) => {
                let examined = self.examine(&message.envelope)?;
                if !is_wanted(examined.sequence, &examined.statement) {
                    return Ok(None);
                }
                Some(Packet::Message(self.read_message(message, &examined)?))
            }
            WirePost::Proof { envelope, change } => {
                let examined = self.examine(&envelope)?;
                if !is_wanted(examined.sequence, &examined.statement) {
                    return Ok(None);
                }
                let change = read_change(change, &examined.statement)?;
                Some(Packet::Proof(Proof { change, commits: self.verify(&envelope, &examined)? }))
            }
            // A checkpoint is read however far ahead it is, since a reviewer that was away for long continues from
            // there.
            WirePost::Stable(envelope) => {
                let examined = self.examine(&envelope)?;
                Some(Packet::Stable(self.verify(&envelope, &examined)?))
            }
            WirePost::Have(sequence) => Some(Packet::Have(sequence)),
        })
    }

    fn read_message(
        &self,
        message: WireLetter,
        examined: &UnverifiedStatement,
    ) -> Result<SignedMessage<Signature>, Refused> {
        let [signed]: [Signed<Signature>; 1] = self
            .verify(&message.envelope, examined)?
            .try_into()
            .map_err(|_| Refused::Unreadable("a message must have exactly one signature".to_owned()))?;
        let change = read_change(message.change, &signed.statement)?;
        let opinion = read_opinion(message.opinion, message.model, &signed.statement)?;
        let grounds = self.read_grounds(message.grounds, examined);
        Ok(SignedMessage { signed, change, opinion, grounds })
    }

    /// Reads the grounds of a message: view changes to the view of a proposal, or votes for the value of a lock.
    /// There is one by each author, and no more than there are reviewers.
    fn read_grounds(
        &self,
        grounds: Vec<WireLetter>,
        on: &UnverifiedStatement,
    ) -> Arc<[SignedMessage<Signature>]> {
        let (mut authors, mut read) = (BTreeSet::new(), Vec::new());
        let mut tries = 2 * self.quorum().reviewers();
        for ground in grounds {
            let Ok(examined) = self.examine(&ground.envelope) else { continue };
            if !examined.is_ground_of(on) {
                continue;
            }
            if tries == 0 {
                break;
            }
            tries -= 1;
            // The change of a lock is beside the proposal, where it matters.
            let bare = WireLetter { change: None, opinion: None, model: None, ..ground };
            let Ok(message) = self.read_message(bare, &examined) else { continue };
            if authors.insert(message.signed.by) {
                read.push(message);
            }
        }
        read.into()
    }
}

/// Reads the change that a statement names.
fn read_change(text: Option<String>, statement: &Statement) -> Result<Option<Change>, Refused> {
    let Some(text) = text else { return Ok(None) };
    let named = match statement {
        Statement::PrePrepare { value, .. }
        | Statement::Want { value }
        | Statement::Commit(Commit { value, .. }) => Some(*value),
        Statement::ViewChange { lock, .. } => lock.map(|(_, value)| value),
        Statement::Acknowledge { .. } | Statement::Prepare { .. } | Statement::Checkpoint { .. } => None,
    };
    let change = Change::new(&text)?;
    if named == Some(change.value()) { Ok(Some(change)) } else { Err(Refused::OtherChange(change.digest())) }
}

/// Reads the opinion that a vote names, and its model.
fn read_opinion(
    opinion: Option<Opinion>,
    model: Option<ModelAt>,
    statement: &Statement,
) -> Result<Option<Arc<ModelOpinion>>, Refused> {
    let Some(opinion) = opinion else {
        return if model.is_none() { Ok(None) } else { Err(Refused::NotCanonical) };
    };
    if opinion.text_len() > OPINION_BYTES_MAX {
        return Err(Refused::LongOpinion(opinion.text_len()));
    }
    if !model.as_ref().is_none_or(ModelAt::is_bounded) {
        return Err(Refused::LongModel);
    }
    let reading = ModelOpinion { opinion, model };
    let is_it = matches!(statement, Statement::Prepare { opinion: Some(digest), vote, .. }
        if *digest == reading.digest() && *vote == reading.vote());
    if is_it { Ok(Some(Arc::new(reading))) } else { Err(Refused::OtherOpinion(reading.digest())) }
}
