//! The log of a party: everything that has happened to it, in the order in which it heard of it. There is nothing else to
//! remember.
//!
//! A packet that comes again is written down once and named by its digest. Most packets that wait for something come again.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::error::NodeError;
use crate::journal::{FILE_NAME, JournalError, Writer};
use crate::program::PROGRAM;
use crypto::{Digest, Signature};
use quorum::node_machine::NodeInput;
use quorum::{
    Change, Membership, ModelAt, ModelOpinion, NodeId, Opinion, Packet, Phase, Sequence, Statement, View,
};

/// The approximate size of a line that names an earlier packet, in bytes.
const AGAIN_BYTES: usize = 300;

/// An event of the log.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum NodeRecord {
    /// The log began, by this program.
    Opened {
        program: String,
    },
    Submitted(String),
    Heard {
        from: NodeId,
        #[serde(rename = "post")]
        packet: Box<RawValue>,
    },
    HeardAgain {
        from: NodeId,
        #[serde(rename = "post")]
        packet: Digest,
    },
    Reviewed {
        sequence: Sequence,
        change: Digest,
        opinion: Opinion,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<ModelAt>,
    },
    /// The owner says that decisions below this place, which a branch shows, were made without this key.
    StartsAt(Sequence),
    Expired {
        sequence: Sequence,
        view: View,
        phase: Phase,
    },
}

/// The log of a party.
#[derive(Debug)]
pub(super) struct NodeLog {
    writer: Writer,
    /// The packets of decisions that are under way, by their sender and the digest of their text.
    heard: BTreeMap<(NodeId, Digest), Packet<Signature>>,
    starts_at: Option<Sequence>,
    /// Whether nothing is written in the log yet.
    is_empty: bool,
}

impl NodeLog {
    /// Opens a log, or creates it. Returns its inputs, which must be given to the machine again.
    pub(super) fn open(
        folder: &Path,
        membership: &Membership,
    ) -> Result<(Self, Vec<NodeInput<Signature>>), NodeError> {
        let (writer, lines) = Writer::open::<NodeRecord>(folder, &membership.chain().to_string())?;
        let mut log = Self { writer, heard: BTreeMap::new(), starts_at: None, is_empty: lines.is_empty() };
        let mut inputs = Vec::new();
        for (number, line) in lines.into_iter().enumerate() {
            let (is_first, is_opening) = (number == 0, matches!(line.event, NodeRecord::Opened { .. }));
            let is_own = matches!(&line.event, NodeRecord::Opened { program } if program == PROGRAM);
            let input = if line.run != membership.chain().to_string() {
                Err("it belongs to another repository".to_owned())
            } else if is_first && !is_own {
                Err("it does not begin a log of this program".to_owned())
            } else if !is_first && is_opening {
                Err("it begins the log again".to_owned())
            } else {
                log.read(line.event, membership)
            };
            inputs.extend(input.map_err(|why| NodeError::Log {
                path: folder.join(FILE_NAME),
                line: line.seq + 1,
                why,
            })?);
        }
        Ok((log, inputs))
    }

    /// Reads a line. Most lines are inputs.
    fn read(
        &mut self,
        entry: NodeRecord,
        membership: &Membership,
    ) -> Result<Option<NodeInput<Signature>>, String> {
        Ok(Some(match entry {
            NodeRecord::Opened { .. } => return Ok(None),
            NodeRecord::Submitted(text) => {
                NodeInput::Submit(Change::new(&text).map_err(|why| why.to_string())?)
            }
            NodeRecord::Heard { from, packet } => {
                let read = membership.read(packet.get(), |_, _| true).map_err(|why| why.to_string())?;
                let read = read.ok_or("its packet cannot be read")?;
                self.keep(from, &read, &membership.write(&read));
                NodeInput::Heard(from, read)
            }
            NodeRecord::HeardAgain { from, packet } => {
                let heard = self.heard.get(&(from, packet)).ok_or("it repeats an unknown packet")?;
                NodeInput::Heard(from, heard.clone())
            }
            NodeRecord::Reviewed { sequence, change, opinion, model } => {
                NodeInput::Reviewed(sequence, change, Arc::new(ModelOpinion { opinion, model }))
            }
            NodeRecord::Expired { sequence, view, phase } => NodeInput::Expired(sequence, view, phase),
            NodeRecord::StartsAt(sequence) => {
                if self.starts_at.replace(sequence).is_some() {
                    return Err("it gives the start of the log twice".to_owned());
                }
                return Ok(None);
            }
        }))
    }

    /// Returns the start of the log, as its owner has given it.
    pub(super) fn starts_at(&self) -> Option<Sequence> {
        self.starts_at
    }

    /// Writes down the start of the log, once. It is durable when this returns.
    pub(super) fn start_at(&mut self, sequence: Sequence) -> Result<(), NodeError> {
        match self.starts_at {
            Some(known) if known == sequence => Ok(()),
            Some(known) => Err(NodeError::StartsElsewhere { known, given: sequence }),
            None => {
                self.append(NodeRecord::StartsAt(sequence))?;
                self.writer.sync()?;
                self.starts_at = Some(sequence);
                Ok(())
            }
        }
    }

    /// Appends an event; the first one names this program before it.
    fn append(&mut self, entry: NodeRecord) -> Result<(), NodeError> {
        if self.is_empty {
            self.writer.append(NodeRecord::Opened { program: PROGRAM.to_owned() })?;
            self.is_empty = false;
        }
        self.writer.append(entry)?;
        Ok(())
    }

    /// Writes down inputs, and adds the bytes of each sender to `heard_bytes`. Returns whether any input had not come before. The
    /// inputs are durable when this returns.
    pub(super) fn write(
        &mut self,
        inputs: &[NodeInput<Signature>],
        membership: &Membership,
        heard_bytes: &mut BTreeMap<NodeId, usize>,
    ) -> Result<bool, NodeError> {
        let mut is_new = false;
        for input in inputs {
            let entry = match input {
                NodeInput::Submit(change) => NodeRecord::Submitted(change.text().to_owned()),
                NodeInput::Heard(from, packet) => {
                    let text = membership.write(packet);
                    let digest = Digest::new(text.as_bytes());
                    let bytes = heard_bytes.entry(*from).or_default();
                    if self.heard.contains_key(&(*from, digest)) {
                        *bytes += AGAIN_BYTES;
                        NodeRecord::HeardAgain { from: *from, packet: digest }
                    } else {
                        *bytes += text.len();
                        self.keep(*from, packet, &text);
                        is_new = true;
                        NodeRecord::Heard {
                            from: *from,
                            packet: RawValue::from_string(text).map_err(not_json)?,
                        }
                    }
                }
                NodeInput::Reviewed(sequence, change, reading) => {
                    is_new = true;
                    let ModelOpinion { opinion, model } = ModelOpinion::clone(reading);
                    NodeRecord::Reviewed { sequence: *sequence, change: *change, opinion, model }
                }
                NodeInput::Expired(sequence, view, phase) => {
                    NodeRecord::Expired { sequence: *sequence, view: *view, phase: *phase }
                }
                NodeInput::Again => continue,
            };
            self.append(entry)?;
        }
        self.writer.sync()?;
        Ok(is_new)
    }

    fn keep(&mut self, from: NodeId, packet: &Packet<Signature>, text: &str) {
        if matches!(packet, Packet::Message(_) | Packet::Proof(_)) {
            self.heard.insert((from, Digest::new(text.as_bytes())), packet.clone());
        }
    }

    /// Forgets packets about known decisions, and checkpoints up to the last one that a quorum has signed.
    pub(super) fn forget(&mut self, known: Sequence, stable: Sequence) {
        self.heard.retain(|_, packet| match packet {
            Packet::Message(message) => {
                let is_checkpoint = matches!(message.signed.statement, Statement::Checkpoint { .. });
                message.signed.sequence > if is_checkpoint { stable } else { known }
            }
            Packet::Proof(proof) => proof.commits.first().is_some_and(|signed| signed.sequence > known),
            Packet::Stable(_) | Packet::Have(_) => false,
        });
    }
}

/// Returns the error for a packet that has no JSON form. It does not happen: each packet was read as JSON.
fn not_json(why: serde_json::Error) -> NodeError {
    NodeError::Journal(JournalError::Io { action: "write", path: FILE_NAME.into(), source: why.into() })
}
