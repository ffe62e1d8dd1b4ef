//! What a journal records.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::core::{Endpoint, Receipt, Structured, Usage};
use crate::crypto::Digest;
use crate::protocol::{CallId, Outcome, Passage, Reply, RunSetup};

/// One line of a journal.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Record<E = Entry> {
    /// Format version.
    pub v: u32,
    /// The run's id; of a repository's decisions, its identity.
    pub run: String,
    /// The line's number, from 0.
    pub seq: u64,
    /// When it was written, RFC 3339 in UTC with microseconds.
    pub at: String,
    /// What happened.
    pub event: E,
    /// SHA-256 of the previous line.
    pub prev: Digest,
}

/// What happened.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Entry {
    /// The run began, from this.
    Opened(Box<RunSpec>),
    /// A model is about to be called.
    Asked(Asked),
    /// A model answered.
    Replied(Replied),
    /// The documents were searched.
    Found(Found),
    /// The run ended, or was put down for a later resume.
    Stopped {
        /// How.
        outcome: Outcome,
    },
    /// The run was taken up again, with these limits.
    Resumed {
        /// Name and version of the program.
        program: String,
        /// The limits from here on.
        limits: Limits,
        /// Where each agent's model is called from here on, where that has changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        endpoints: Option<Vec<Endpoint>>,
        /// Documents that may be searched from here on, where they have changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        library: Option<Library>,
    },
}

/// Returns the time between two time stamps; none, if a clock was set back in between or one is unreadable.
pub(crate) fn between(started_at: &str, ended_at: &str) -> Duration {
    let time = |text: &str| humantime::parse_rfc3339(text).unwrap_or(SystemTime::UNIX_EPOCH);
    time(ended_at).duration_since(time(started_at)).unwrap_or(Duration::ZERO)
}

/// Everything that a run starts from.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// Name and version of the program.
    pub program: String,
    /// Task, agents, rules and parameters, complete.
    pub setup: RunSetup,
    /// Where each agent's model is called, the arbiter's last. No secrets.
    pub endpoints: Vec<Endpoint>,
    /// What the run may use.
    pub limits: Limits,
    /// Documents that may be searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<Library>,
    /// Whether tokens stand in place of what must not leave the machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// The session that the run belongs to, if it belongs to one. Version 0.1 did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<InSession>,
    /// Of which cell of a batch the run is, if it is one of a batch. Version 0.1 did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<InBatch>,
}

/// The place of a run in a session.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct InSession {
    /// The session's name.
    pub name: String,
    /// Digest of the lines that were in the session when the run began.
    pub head: Digest,
}

/// The place of a run in a batch, besides what the setup says.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct InBatch {
    /// The task's id.
    pub task: String,
    /// The model as it was named; empty for that of the roleset or the server.
    pub model: String,
    /// SHA-256 of what the run started from, as its line of tasks, its roleset and parameters say it.
    pub made_of: Digest,
    /// The name of its arm, by which settings are told from others of the same roleset and model; empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arm: String,
    /// What the task is labelled with, by name: runs are put together by it, and no model sees it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub meta: BTreeMap<String, String>,
}

/// Documents that may be searched.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Library {
    /// Files and folders, by their full paths.
    pub places: Vec<PathBuf>,
    /// Files whose text could not be read, with the reason.
    pub lost: Vec<String>,
    /// Digest of the paths of all other files and of the text in them; none in a run that is redacted, since what
    /// is left out could be guessed by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Digest>,
}

/// What a run may use; a missing limit does not bind.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Prompt and completion tokens of all calls together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_total_max: Option<u64>,
    /// Cost of all calls together, in millionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micro_usd_max: Option<u64>,
    /// Time from the start, or from the resume, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
}

/// A call that is about to be made.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Which call.
    pub call: CallId,
    /// Digest of the conversation, the schema and the sampling settings.
    pub sha256: Digest,
    /// The most tokens it may use: estimated prompt plus the reply's limit.
    pub tokens_max: u64,
}

/// A reply and what it took.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Replied {
    /// Which call it answers.
    pub call: CallId,
    /// The reply, untouched but for keys.
    pub reply: Reply,
    /// Tokens used.
    pub usage: Usage,
    /// How the server was held to the schema, if one was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Structured>,
    /// Requests sent until this reply came, 1 without any fault.
    pub attempts: u32,
    /// What the provider can be asked about later, if it gave anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
    /// Whether the reply held a key of its endpoint, or a piece of one, which was taken out of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub key_removed: bool,
}

/// What a search of the documents brought.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Found {
    /// For which round.
    pub round: u32,
    /// The passages, best first.
    pub passages: Vec<Passage>,
}
