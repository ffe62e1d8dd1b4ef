//! The hearing of a party: each packet is read, and becomes an event, is answered at once, or is dropped.
//!
//! The input is texts, each with the party that brought it. The output is events to be written down, and actions. Nothing is
//! remembered here except the time at which a party was last answered.

use std::time::Duration;

use tokio::time::Instant;
use tracing::debug;

use super::super::error::NodeError;
use super::super::log::News;
use super::{Node, key_of};
use crypto::Signature;
use quorum::node_machine::{NodeAction, NodeInput};
use quorum::{NodeId, Packet, Sequence, Signed, SignedMessage, Statement, Value};

/// The shortest interval at which one party is sent what it has missed.
const ANSWER_EVERY: Duration = Duration::from_millis(200);

/// The most bytes of one party that are written down until the next decision; its further packets are not heard. The longest
/// change with its locks fits several times.
const SAYS_MAX: usize = 64 << 20;

impl Node {
    /// Reads packets, each as one of the party that brought it.
    pub(super) fn hear_all(
        &mut self,
        packets: Vec<(NodeId, String)>,
        news: &mut Vec<News>,
    ) -> Result<Vec<NodeAction<Signature>>, NodeError> {
        let mut wanted = Vec::new();
        for (from, text) in packets {
            wanted.extend(self.hear(from, &text, news)?);
        }
        Ok(wanted)
    }

    /// Reads a packet. A packet that makes no difference to the log is answered at once; any other is an event.
    fn hear(
        &mut self,
        from: NodeId,
        text: &str,
        news: &mut Vec<News>,
    ) -> Result<Vec<NodeAction<Signature>>, NodeError> {
        let read = self.membership.read(text, |sequence, statement| {
            self.member.wants(sequence, statement) || self.voted_late(sequence, statement).is_some()
        });
        let packet = match read {
            Ok(Some(packet)) if packet.is_proven(self.membership.quorum()) => packet,
            Ok(_) => return Ok(Vec::new()),
            Err(why) => {
                debug!("a packet of {} is refused: {why}", self.membership.name(from).unwrap_or_default());
                return Ok(Vec::new());
            }
        };
        self.remembers(&packet)?;
        if self.is_held(&packet) {
            debug!(
                "a message of {} is dropped: its place is held",
                self.membership.name(from).unwrap_or_default()
            );
            return Ok(Vec::new());
        }
        if self.is_over(&packet) {
            let now = Instant::now();
            let is_soon = |before: &Instant| now.duration_since(*before) < ANSWER_EVERY;
            let kind = (from, matches!(packet, Packet::Have(_)));
            if self.answered.get(&kind).is_some_and(is_soon) {
                return Ok(Vec::new());
            }
            self.answered.insert(kind, now);
            return Ok(match packet {
                Packet::Have(known) => self.member.answer(from, known),
                Packet::Message(_) | Packet::Proof(_) | Packet::Stable(_) => {
                    self.member.step(NodeInput::Heard(from, packet))
                }
            });
        }
        if self.said.get(&from).is_some_and(|said| *said > SAYS_MAX) {
            debug!("{} sends too much for one decision", self.membership.name(from).unwrap_or_default());
            return Ok(Vec::new());
        }
        news.push(News::Heard(from, Box::new(packet)));
        Ok(Vec::new())
    }

    /// Returns the value that a statement votes on, if it is a change of this party that has ended at this place.
    fn voted_late(&self, sequence: Sequence, statement: &Statement) -> Option<Value> {
        let Statement::Prepare { value, .. } = statement else { return None };
        let Value::Change(digest) = value else { return None };
        (self.ended(*digest) == Some(sequence)).then_some(*value)
    }

    /// Returns whether a packet would cause a signature at a place at which nothing is signed for now.
    fn is_held(&self, packet: &Packet<Signature>) -> bool {
        match packet {
            Packet::Message(message) => {
                self.holds(message.signed.sequence)
                    && !matches!(message.signed.statement, Statement::Checkpoint { .. })
            }
            Packet::Proof(_) | Packet::Stable(_) | Packet::Have(_) => false,
        }
    }

    /// Returns whether a packet is about something that is decided and known here, so that it changes nothing.
    fn is_over(&self, packet: &Packet<Signature>) -> bool {
        let known = self.member.known();
        match packet {
            Packet::Message(SignedMessage { signed, opinion, .. }) => {
                // A missing vote is wanted for the record, however late it comes.
                let is_missing =
                    |value| opinion.is_some() && !self.votes.borrow().has(signed.sequence, signed.by, value);
                signed.sequence <= known
                    && !matches!(signed.statement, Statement::Checkpoint { .. })
                    && !self.voted_late(signed.sequence, &signed.statement).is_some_and(is_missing)
            }
            Packet::Proof(proof) => proof.commits.first().is_some_and(|signed| signed.sequence <= known),
            // An orchestrator has no checkpoints.
            Packet::Stable(signed) => {
                matches!(self.me, NodeId::Orchestrator(_))
                    || signed.first().is_some_and(|signed| signed.sequence <= self.stable)
            }
            Packet::Have(_) => true,
        }
    }

    /// Refuses to continue if a packet shows a statement that this very key has signed and this log does not have. A process
    /// that lost the end of a log, or runs a copy, learns of it here, before it contradicts itself.
    fn remembers(&self, packet: &Packet<Signature>) -> Result<(), NodeError> {
        let mut shown: Vec<&Signed<Signature>> = Vec::new();
        match packet {
            Packet::Message(message) => {
                let grounds = message.grounds.iter();
                let deeper = grounds.clone().flat_map(|ground| ground.grounds.iter());
                shown.extend(grounds.chain(deeper).chain([message]).map(|message| &message.signed));
            }
            Packet::Proof(proof) => shown.extend(&proof.commits),
            Packet::Stable(signed) => shown.extend(signed),
            Packet::Have(_) => {}
        }
        // A wish of an orchestrator is repeated without being written down, and binds no one.
        let binds = |signed: &&Signed<Signature>| {
            signed.author() == self.me
                && signed.sequence > self.stable
                && !matches!(signed.statement, Statement::Want { .. })
        };
        let mut own = shown.into_iter().filter(binds);
        match own.find(|signed| !self.signed.contains(&key_of(signed))) {
            None => Ok(()),
            Some(signed) => Err(NodeError::Forgotten {
                name: self.membership.name(self.me).unwrap_or_default().to_owned(),
                sequence: signed.sequence,
                path: self.folder.clone(),
            }),
        }
    }
}
