//! What has happened to one who takes part, in the order in which it has heard of it: all that there is to remember.
//!
//! A packet that comes again, which is what most do that wait for something, is written down once and named by its digest.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::error::NodeError;
use crate::bft::node_machine::NodeInput;
use crate::bft::{
    Change, Membership, ModelAt, ModelOpinion, NodeId, Opinion, Packet, Phase, Sequence, Statement, View,
};
use crate::crypto::{Digest, Signature};
use crate::journal::{FILE_NAME, JournalError, Writer};

/// What a line takes that names a packet that came before, in bytes, about.
const AGAIN_BYTES: usize = 300;

/// What happened.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Entry {
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
    /// Its owner says that decisions below this place, which a branch shows, were other keys' or made without this one.
    StartsAt(Sequence),
    Expired {
        sequence: Sequence,
        view: View,
        phase: Phase,
    },
}

/// Something that makes a difference, as it comes.
#[derive(Clone, Debug)]
pub(super) enum News {
    /// A change is to be decided on.
    Submitted(Change),
    /// A packet, as it was read: what else was in its text is nobody's, and not remembered.
    Heard(NodeId, Box<Packet<Signature>>),
    /// A review has ended.
    Reviewed(Sequence, Digest, Arc<ModelOpinion>),
    /// The time for a phase is over.
    Expired(Sequence, View, Phase),
}

/// The log of one who takes part.
#[derive(Debug)]
pub(super) struct NodeLog {
    writer: Writer,
    /// The packets of decisions that are under way, by who has sent them and the digest of their text.
    heard: BTreeMap<(NodeId, Digest), Kept>,
    starts_at: Option<Sequence>,
}

/// A packet that may come again.
#[derive(Clone, Debug)]
struct Kept {
    sequence: Sequence,
    is_checkpoint: bool,
    packet: Packet<Signature>,
}

/// What was written down.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// Whether any of it had not come before.
    pub(super) is_new: bool,
    /// How much of each sender, in bytes.
    pub(super) of: BTreeMap<NodeId, usize>,
}

impl From<News> for NodeInput<Signature> {
    fn from(news: News) -> Self {
        match news {
            News::Submitted(change) => Self::Submit(change),
            News::Heard(from, packet) => Self::Heard(from, *packet),
            News::Reviewed(sequence, digest, opinion) => Self::Reviewed(sequence, digest, opinion),
            News::Expired(sequence, view, phase) => Self::Expired(sequence, view, phase),
        }
    }
}

impl NodeLog {
    /// Opens a log, or makes one; returns what is in it, to be put in again.
    pub(super) fn open(
        folder: &Path,
        membership: &Membership,
    ) -> Result<(Self, Vec<NodeInput<Signature>>), NodeError> {
        let (writer, lines) = Writer::open::<Entry>(folder, &membership.chain().to_string())?;
        let mut log = Self { writer, heard: BTreeMap::new(), starts_at: None };
        let mut inputs = Vec::new();
        for line in lines {
            let wrong =
                |why: String| NodeError::Log { path: folder.join(FILE_NAME), line: line.seq + 1, why };
            if line.run != membership.chain().to_string() {
                return Err(wrong("it is of another repository".to_owned()));
            }
            inputs.extend(log.read(line.event, membership).map_err(wrong)?);
        }
        Ok((log, inputs))
    }

    /// Reads a line; most are inputs.
    fn read(
        &mut self,
        entry: Entry,
        membership: &Membership,
    ) -> Result<Option<NodeInput<Signature>>, String> {
        Ok(Some(match entry {
            Entry::Submitted(text) => NodeInput::Submit(Change::new(&text).map_err(|why| why.to_string())?),
            Entry::Heard { from, packet } => {
                let read = membership.read(packet.get(), |_, _| true).map_err(|why| why.to_string())?;
                let read = read.ok_or("its packet is none")?;
                self.keep(from, &read, &membership.write(&read));
                NodeInput::Heard(from, read)
            }
            Entry::HeardAgain { from, packet } => {
                let kept = self.heard.get(&(from, packet)).ok_or("it repeats what is not there")?;
                NodeInput::Heard(from, kept.packet.clone())
            }
            Entry::Reviewed { sequence, change, opinion, model } => {
                NodeInput::Reviewed(sequence, change, Arc::new(ModelOpinion { opinion, model }))
            }
            Entry::Expired { sequence, view, phase } => NodeInput::Expired(sequence, view, phase),
            Entry::StartsAt(sequence) => {
                if self.starts_at.replace(sequence).is_some() {
                    return Err("it says twice where it starts".to_owned());
                }
                return Ok(None);
            }
        }))
    }

    /// Where its owner has said that it starts.
    pub(super) fn starts_at(&self) -> Option<Sequence> {
        self.starts_at
    }

    /// Writes down where it starts, once; durable when this returns.
    pub(super) fn start_at(&mut self, sequence: Sequence) -> Result<(), NodeError> {
        match self.starts_at {
            Some(known) if known == sequence => Ok(()),
            Some(known) => Err(NodeError::StartsElsewhere { known, given: sequence }),
            None => {
                self.writer.append(Entry::StartsAt(sequence))?;
                self.writer.sync()?;
                self.starts_at = Some(sequence);
                Ok(())
            }
        }
    }

    /// Writes down what comes; durable when this returns.
    pub(super) fn write(&mut self, news: &[News], membership: &Membership) -> Result<Written, NodeError> {
        let mut written = Written::default();
        for one in news {
            let entry = match one {
                News::Submitted(change) => Entry::Submitted(change.text().to_owned()),
                News::Heard(from, packet) => {
                    let text = membership.write(packet);
                    let digest = Digest::new(text.as_bytes());
                    let bytes = written.of.entry(*from).or_default();
                    if self.heard.contains_key(&(*from, digest)) {
                        *bytes += AGAIN_BYTES;
                        Entry::HeardAgain { from: *from, packet: digest }
                    } else {
                        *bytes += text.len();
                        self.keep(*from, packet, &text);
                        written.is_new = true;
                        Entry::Heard { from: *from, packet: RawValue::from_string(text).map_err(not_json)? }
                    }
                }
                News::Reviewed(sequence, change, reading) => {
                    written.is_new = true;
                    let ModelOpinion { opinion, model } = ModelOpinion::clone(reading);
                    Entry::Reviewed { sequence: *sequence, change: *change, opinion, model }
                }
                News::Expired(sequence, view, phase) => {
                    Entry::Expired { sequence: *sequence, view: *view, phase: *phase }
                }
            };
            self.writer.append(entry)?;
        }
        self.writer.sync()?;
        Ok(written)
    }

    fn keep(&mut self, from: NodeId, packet: &Packet<Signature>, text: &str) {
        let (sequence, is_checkpoint) = match packet {
            Packet::Message(message) => {
                let signed = &message.signed;
                (signed.sequence, matches!(signed.statement, Statement::Checkpoint { .. }))
            }
            Packet::Proof(proof) => (proof.commits.first().map_or(0, |signed| signed.sequence), false),
            Packet::Stable(_) | Packet::Have(_) => return,
        };
        let kept = Kept { sequence, is_checkpoint, packet: packet.clone() };
        self.heard.insert((from, Digest::new(text.as_bytes())), kept);
    }

    /// Whatever is about decisions that are known does not matter any more, and checkpoints when a quorum has signed one.
    pub(super) fn forget(&mut self, known: Sequence, stable: Sequence) {
        self.heard.retain(|_, kept| kept.sequence > if kept.is_checkpoint { stable } else { known });
    }
}

/// What was read as JSON is written as JSON.
fn not_json(why: serde_json::Error) -> NodeError {
    NodeError::Journal(JournalError::Io { action: "write", path: FILE_NAME.into(), source: why.into() })
}
