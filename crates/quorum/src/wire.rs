//! Packets as JSON: signed envelopes, which are read only if they belong here.
//!
//! Everything that is read has been signed by a key of the roster, for this repository, this roster and one place in
//! the order of decisions. The signature covers the very bytes that would be written for it, so unknown content has
//! no place in it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::limits::{OPINION_BYTES_MAX, PACKET_BYTES_MAX};
use super::message::{Commit, Vote};
use super::model_opinion::{ModelAt, ModelOpinion};
use super::node_id::NodeId;
use super::opinion::Opinion;
use super::packet::{Packet, Proof};
use super::payload::{SEQUENCE_END, read};
use super::refused::Refused;
use super::roster::Membership;
use super::statement::{Change, Sequence, Signed, SignedMessage, Statement};
use crypto::Signature;
use crypto::dsse::{self, DsseEnvelope};

/// A statement as it was read.
struct Examined {
    sequence: Sequence,
    statement: Statement,
    payload: Vec<u8>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum WirePost {
    Letter(WireLetter),
    Proof(WireProof),
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

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WireProof {
    envelope: DsseEnvelope,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    change: Option<String>,
}

impl Membership {
    /// Puts equal statements into one envelope. Returns `None` if the list is empty, or if the statements differ.
    pub fn envelope(&self, signed: &[Signed<Signature>]) -> Option<DsseEnvelope> {
        let first = signed.first()?;
        let (payload_type, payload) = self.payload(first.sequence, &first.statement);
        let of_one = |signed: &Signed<Signature>| {
            let is_same = signed.sequence == first.sequence && signed.statement == first.statement;
            let key = self.key(signed.author()).filter(|_| is_same)?;
            Some((key.id(), signed.signature))
        };
        let signatures = signed.iter().map(of_one).collect::<Option<Vec<_>>>()?;
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
    fn examine(&self, envelope: &DsseEnvelope) -> Result<Examined, Refused> {
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
        Ok(Examined { sequence, statement, payload })
    }

    /// Reads the signatures of a statement, and verifies them.
    fn verify(
        &self,
        envelope: &DsseEnvelope,
        examined: &Examined,
    ) -> Result<Vec<Signed<Signature>>, Refused> {
        let Examined { sequence, statement, payload } = examined;
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
        let envelope = |signed: &[Signed<Signature>]| {
            self.envelope(signed).expect("it says one thing, by those who are in the roster")
        };
        let wire = match packet {
            Packet::Message(message) => WirePost::Letter(self.write_message(message)),
            Packet::Proof(Proof { change, commits }) => WirePost::Proof(WireProof {
                envelope: envelope(commits),
                change: change.as_ref().map(|change| change.text().to_owned()),
            }),
            Packet::Stable(signed) => WirePost::Stable(envelope(signed)),
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
        let wanted = |envelope: &DsseEnvelope| {
            let examined = self.examine(envelope)?;
            let is_wanted = is_wanted(examined.sequence, &examined.statement);
            Ok::<_, Refused>(is_wanted.then_some(examined))
        };
        let unreadable = |e: serde_json::Error| Refused::Unreadable(e.to_string());
        Ok(match serde_json::from_str(text).map_err(unreadable)? {
            WirePost::Letter(message) => match wanted(&message.envelope)? {
                Some(examined) => Some(Packet::Message(self.read_message(message, &examined)?)),
                None => None,
            },
            WirePost::Proof(WireProof { envelope, change }) => match wanted(&envelope)? {
                Some(examined) => {
                    let change = read_change(change, &examined.statement)?;
                    Some(Packet::Proof(Proof { change, commits: self.verify(&envelope, &examined)? }))
                }
                None => None,
            },
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
        examined: &Examined,
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
    fn read_grounds(&self, grounds: Vec<WireLetter>, on: &Examined) -> Arc<[SignedMessage<Signature>]> {
        let belongs = |other: &Examined| {
            let is_it = match (&on.statement, &other.statement) {
                (Statement::PrePrepare { view, .. }, Statement::ViewChange { view: other, .. }) => {
                    view == other
                }
                (
                    Statement::ViewChange { lock, .. },
                    Statement::Prepare { view, value, vote: Vote::Approve | Vote::Follow, .. },
                ) => *lock == Some((*view, *value)),
                _ => false,
            };
            is_it && other.sequence == on.sequence
        };
        let (mut authors, mut read) = (BTreeSet::new(), Vec::new());
        let mut tries = 2 * self.quorum().reviewers();
        for ground in grounds {
            let Some(examined) = self.examine(&ground.envelope).ok().filter(belongs) else { continue };
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
