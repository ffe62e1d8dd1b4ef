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
enum Entry {
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

/// An event that makes a difference, as it comes.
#[derive(Clone, Debug)]
pub(super) enum News {
    /// A change is to be decided on.
    Submitted(Change),
    /// A packet as it was read. Other content of its text belongs to no one, and is not remembered.
    Heard(NodeId, Box<Packet<Signature>>),
    /// A review has ended.
    Reviewed(Sequence, Digest, Arc<ModelOpinion>),
    /// The time for a phase is over.
    Expired(Sequence, View, Phase),
}

/// The log of a party.
#[derive(Debug)]
pub(super) struct NodeLog {
    writer: Writer,
    /// The packets of decisions that are under way, by their sender and the digest of their text.
    heard: BTreeMap<(NodeId, Digest), Kept>,
    starts_at: Option<Sequence>,
    /// Whether nothing is written in the log yet.
    is_empty: bool,
}

/// A packet that may come again.
#[derive(Clone, Debug)]
struct Kept {
    sequence: Sequence,
    is_checkpoint: bool,
    packet: Packet<Signature>,
}

/// The result of a write.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// Whether any event had not come before.
    pub(super) is_new: bool,
    /// The number of bytes of each sender.
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
    /// Opens a log, or creates it. Returns its inputs, which must be given to the machine again.
    pub(super) fn open(
        folder: &Path,
        membership: &Membership,
    ) -> Result<(Self, Vec<NodeInput<Signature>>), NodeError> {
        let (writer, lines) = Writer::open::<Entry>(folder, &membership.chain().to_string())?;
        let mut log = Self { writer, heard: BTreeMap::new(), starts_at: None, is_empty: lines.is_empty() };
        let mut inputs = Vec::new();
        for (number, line) in lines.into_iter().enumerate() {
            let wrong =
                |why: String| NodeError::Log { path: folder.join(FILE_NAME), line: line.seq + 1, why };
            if line.run != membership.chain().to_string() {
                return Err(wrong("it belongs to another repository".to_owned()));
            }
            let is_own = matches!(&line.event, Entry::Opened { program } if program == PROGRAM);
            if number == 0 && !is_own {
                return Err(wrong("it does not begin a log of this program".to_owned()));
            }
            if number > 0 && matches!(line.event, Entry::Opened { .. }) {
                return Err(wrong("it begins the log again".to_owned()));
            }
            inputs.extend(log.read(line.event, membership).map_err(wrong)?);
        }
        Ok((log, inputs))
    }

    /// Reads a line. Most lines are inputs.
    fn read(
        &mut self,
        entry: Entry,
        membership: &Membership,
    ) -> Result<Option<NodeInput<Signature>>, String> {
        Ok(Some(match entry {
            Entry::Opened { .. } => return Ok(None),
            Entry::Submitted(text) => NodeInput::Submit(Change::new(&text).map_err(|why| why.to_string())?),
            Entry::Heard { from, packet } => {
                let read = membership.read(packet.get(), |_, _| true).map_err(|why| why.to_string())?;
                let read = read.ok_or("its packet cannot be read")?;
                self.keep(from, &read, &membership.write(&read));
                NodeInput::Heard(from, read)
            }
            Entry::HeardAgain { from, packet } => {
                let kept = self.heard.get(&(from, packet)).ok_or("it repeats an unknown packet")?;
                NodeInput::Heard(from, kept.packet.clone())
            }
            Entry::Reviewed { sequence, change, opinion, model } => {
                NodeInput::Reviewed(sequence, change, Arc::new(ModelOpinion { opinion, model }))
            }
            Entry::Expired { sequence, view, phase } => NodeInput::Expired(sequence, view, phase),
            Entry::StartsAt(sequence) => {
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
                self.append(Entry::StartsAt(sequence))?;
                self.writer.sync()?;
                self.starts_at = Some(sequence);
                Ok(())
            }
        }
    }

    /// Appends an event; the first one names this program before it.
    fn append(&mut self, entry: Entry) -> Result<(), NodeError> {
        if self.is_empty {
            self.writer.append(Entry::Opened { program: PROGRAM.to_owned() })?;
            self.is_empty = false;
        }
        self.writer.append(entry)?;
        Ok(())
    }

    /// Writes down events. They are durable when this returns.
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
            self.append(entry)?;
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

    /// Forgets packets about known decisions, and checkpoints up to the last one that a quorum has signed.
    pub(super) fn forget(&mut self, known: Sequence, stable: Sequence) {
        self.heard.retain(|_, kept| kept.sequence > if kept.is_checkpoint { stable } else { known });
    }
}

/// Returns the error for a packet that has no JSON form. It does not happen: each packet was read as JSON.
fn not_json(why: serde_json::Error) -> NodeError {
    NodeError::Journal(JournalError::Io { action: "write", path: FILE_NAME.into(), source: why.into() })
}
