//! The hearing of a party: each packet is read, and becomes an event, is answered at once, or is dropped.
//!
//! The input is texts, each with the party that brought it. The output is events to be written down, and actions. Nothing is
//! remembered here except the time at which a party was last answered.

use std::time::Duration;

use tokio::time::Instant;
use tracing::debug;

use super::super::error::NodeError;
use super::{Node, key_of};
use crypto::Signature;
use quorum::node_machine::{NodeAction, NodeInput};
use quorum::{NodeId, Packet, Sequence, Signed, SignedMessage, Statement, Value};

/// The shortest interval at which one party is sent what it has missed.
const ANSWER_EVERY: Duration = Duration::from_millis(200);

/// The most bytes of one party that are written down until the next decision; its further packets are not heard. The longest
/// change with its locks fits several times.
const HEARD_BYTES_MAX: usize = 64 << 20;

impl Node {
    /// Reads packets, each as one of the party that brought it.
    pub(super) fn hear_all(
        &mut self,
        packets: Vec<(NodeId, String)>,
        news: &mut Vec<NodeInput<Signature>>,
    ) -> Result<Vec<NodeAction<Signature>>, NodeError> {
        let mut actions = Vec::new();
        for (from, text) in packets {
            actions.extend(self.hear(from, &text, news)?);
        }
        Ok(actions)
    }

    /// Reads a packet. A packet that makes no difference to the log is answered at once; any other is an event.
    fn hear(
        &mut self,
        from: NodeId,
        text: &str,
        news: &mut Vec<NodeInput<Signature>>,
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
        self.require_known_statements(&packet)?;
        if self.is_held(&packet) {
            debug!(
                "a message of {} is dropped: its place is held",
                self.membership.name(from).unwrap_or_default()
            );
            return Ok(Vec::new());
        }
        if self.is_over(&packet) {
            let now = Instant::now();
            let kind = (from, matches!(packet, Packet::Have(_)));
            if let Some(before) = self.answered.get(&kind)
                && now.duration_since(*before) < ANSWER_EVERY
            {
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
        if self.heard_bytes.get(&from).is_some_and(|bytes| *bytes > HEARD_BYTES_MAX) {
            debug!("{} sends too much for one decision", self.membership.name(from).unwrap_or_default());
            return Ok(Vec::new());
        }
        news.push(NodeInput::Heard(from, packet));
        Ok(Vec::new())
    }

    /// Returns the value that a statement votes on, if it is a change of this party that has ended at this place.
    fn voted_late(&self, sequence: Sequence, statement: &Statement) -> Option<Value> {
        let Statement::Prepare { value, .. } = statement else { return None };
        let Value::Change(digest) = value else { return None };
        if self.ended(*digest) == Some(sequence) { Some(*value) } else { None }
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
                if opinion.is_some()
                    && let Some(value) = self.voted_late(signed.sequence, &signed.statement)
                    && !self.votes.borrow().has(signed.sequence, signed.by, value)
                {
                    return false;
                }
                signed.sequence <= known && !matches!(signed.statement, Statement::Checkpoint { .. })
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
    fn require_known_statements(&self, packet: &Packet<Signature>) -> Result<(), NodeError> {
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
        for signed in shown {
            // A wish of an orchestrator is repeated without being written down, and binds no one.
            let is_binding = !matches!(signed.statement, Statement::Want { .. });
            let is_own = signed.author() == self.me && signed.sequence > self.stable;
            if is_own && is_binding && !self.signed.contains(&key_of(signed)) {
                return Err(NodeError::Forgotten {
                    name: self.membership.name(self.me).unwrap_or_default().to_owned(),
                    sequence: signed.sequence,
                    path: self.folder.clone(),
                });
            }
        }
        Ok(())
    }
}
