//! How one who takes part hears: each packet is read, and is news, or is answered at once, or is dropped.
//!
//! In: texts, each with the party that brought it. Out: news to be written down, and what is to be sent. Nothing is
//! remembered here but when a party was last answered.

use std::time::Duration;

use tokio::time::Instant;
use tracing::debug;

use super::super::error::NodeError;
use super::super::log::News;
use super::{Node, key_of};
use crate::bft::node_machine::{NodeAction, NodeInput};
use crate::bft::{NodeId, Packet, Sequence, Signed, SignedMessage, Statement, Value};
use crate::crypto::Signature;

/// What was missed is sent to one party so often at most.
const ANSWER_EVERY: Duration = Duration::from_millis(200);

/// So much of what one party says is written down until the next decision, in bytes; what it says beyond is not heard. The
/// longest change with its locks fits several times.
const SAYS_MAX: usize = 64 << 20;

impl Node {
    /// Reads packets, each as its party's.
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

    /// Reads a packet. What makes no difference to what is remembered is answered at once; the rest is news.
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
                debug!("a packet of {} is not read: {why}", self.membership.name(from).unwrap_or_default());
                return Ok(Vec::new());
            }
        };
        self.remembers(&packet)?;
        if self.is_held(&packet) {
            debug!(
                "a message of {} is not heard: its place is held",
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
            debug!("{} says too much for one decision", self.membership.name(from).unwrap_or_default());
            return Ok(Vec::new());
        }
        news.push(News::Heard(from, Box::new(packet)));
        Ok(Vec::new())
    }

    /// The value that a statement is a vote on, if that is a change of its own which has ended at this place.
    fn voted_late(&self, sequence: Sequence, statement: &Statement) -> Option<Value> {
        let Statement::Prepare { value, .. } = statement else { return None };
        let Value::Change(digest) = value else { return None };
        (self.ended(*digest) == Some(sequence)).then_some(*value)
    }

    /// Whether a packet would have something signed at a place at which nothing is.
    fn is_held(&self, packet: &Packet<Signature>) -> bool {
        match packet {
            Packet::Message(message) => {
                self.holds(message.signed.sequence)
                    && !matches!(message.signed.statement, Statement::Checkpoint { .. })
            }
            Packet::Proof(_) | Packet::Stable(_) | Packet::Have(_) => false,
        }
    }

    /// Whether a packet is about something that is decided and known here, so that nothing changes by it.
    fn is_over(&self, packet: &Packet<Signature>) -> bool {
        let known = self.member.known();
        match packet {
            Packet::Message(SignedMessage { signed, opinion, .. }) => {
                // A vote that is missing is for the record, however late it comes.
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

    /// Refuses to go on where somebody shows what this very key has signed and this log does not have. Whoever lost the end of a
    /// log, or runs a copy, learns of it here, before it contradicts itself.
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
        // What an orchestrator would like is said again without being written down, and binds nobody.
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
