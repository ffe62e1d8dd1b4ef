//! The records of a journal.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::calibration::{AppliedCalibration, RunLimits};
use crypto::Digest;
use protocol::core::{Endpoint, InterpreterNote, OptionalParameter, Receipt, Structured, Usage};
use protocol::pacing::{BudgetEnd, BudgetRuling, SamplePermit};
use protocol::{CallId, ExecutionResult, Outcome, Passage, Reply, RunSetup};

/// One line of a journal.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Record<E = Entry> {
    /// The version of the format.
    pub v: u32,
    /// The id of the run; in a log of decisions, the identity of the repository.
    pub run: String,
    /// The line's number, from 0.
    pub seq: u64,
    /// The time of writing, RFC 3339 in UTC with microseconds.
    pub at: String,
    /// The event that the line records.
    pub event: E,
    /// The SHA-256 of the previous line.
    pub prev: Digest,
    /// The SHA-256 of the previous line of the same run, or zeros without one. Only lines of a shared journal have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_prev: Option<Digest>,
}

impl Record<Box<RawValue>> {
    /// Reads the event of a record whose event was left as it is written.
    ///
    /// Returns any error of the event's JSON.
    pub fn read_event(self) -> serde_json::Result<Record> {
        let Self { v, run, seq, at, event, prev, run_prev } = self;
        Ok(Record { v, run, seq, at, event: serde_json::from_str(event.get())?, prev, run_prev })
    }
}

/// An event in a run.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Entry {
    /// The run began, from this specification.
    Opened(Box<RunSpec>),
    /// A model is about to be called.
    Asked(Asked),
    /// A model answered.
    Replied(Replied),
    /// The server of a call failed for good, and the run continues without the agent of the call.
    Lost(LostCall),
    /// The documents were searched.
    Found(Found),
    /// The user's check was run, or a program.
    Executed(Executed),
    /// A server refused a parameter, and its requests are made without it from here on.
    LeftOut(LeftOut),
    /// A run that waits may draw one more sample, by the budget that the votes of a batch share.
    Permitted(SamplePermit),
    /// A run that waits draws no more samples, by the same budget, and is decided from those that it has.
    Closed(BudgetEnd),
    /// The run ended, or was put down to be resumed later.
    Stopped {
        /// How the run ended.
        outcome: Outcome,
    },
    /// The run was resumed, with these limits.
    Resumed {
        /// The name, version and build of the program.
        program: String,
        /// The limits from here on.
        limits: Limits,
        /// Where each agent's model is called from here on, if that has changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        endpoints: Option<Vec<Endpoint>>,
        /// The documents that may be searched from here on, if they have changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        library: Option<Library>,
    },
}

impl From<BudgetRuling> for Entry {
    fn from(ruling: BudgetRuling) -> Self {
        match ruling {
            BudgetRuling::Permit(permit) => Self::Permitted(permit),
            BudgetRuling::Close(end) => Self::Closed(end),
        }
    }
}

/// Returns the time between two time stamps, or zero if the clock was set back in between. An unreadable time stamp
/// counts as 1970.
pub(crate) fn between(started_at: &str, ended_at: &str) -> Duration {
    parse_time(ended_at).duration_since(parse_time(started_at)).unwrap_or(Duration::ZERO)
}

fn parse_time(text: &str) -> SystemTime {
    humantime::parse_rfc3339(text).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// The complete specification of a run, from its preparation on: its first record holds it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// The name, version and build of the program.
    pub program: String,
    /// The task, the agents, the rules and the parameters, complete.
    pub setup: RunSetup,
    /// The endpoint of each agent's model, the arbiter's last. It holds no secrets.
    pub endpoints: Vec<Endpoint>,
    /// The limits on what the run may use.
    pub limits: Limits,
    /// The documents that may be searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<Library>,
    /// Whether tokens replace the texts that must not leave the machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// The calibration that gives the answer a confidence, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<AppliedCalibration>,
    /// The session that the run belongs to, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<InSession>,
    /// The cell of a batch that the run belongs to, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<InBatch>,
}

impl RunSpec {
    /// Returns whether the run can go on from its present limits to other ones. Under a calibration it cannot: the answers that need more
    /// tokens are not those that the calibration knows.
    pub fn allows(&self, now: Limits, next: Limits) -> bool {
        self.calibration.is_none() || now.on_resources() == next.on_resources()
    }
}

/// The place of a run in a session.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct InSession {
    /// The name of the session.
    pub name: String,
    /// The digest of the lines that the session had when the run began.
    pub head: Digest,
}

/// The place of a run in a batch, beyond what the setup already contains.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct InBatch {
    /// The id of the task.
    pub task: String,
    /// The model as the user named it; empty if the roleset or the server chose it.
    pub model: String,
    /// The SHA-256 of the run's origin: its task line, its roleset and its parameters.
    #[serde(rename = "made_of")]
    pub fingerprint: Digest,
    /// The name of the run's arm, which separates settings of the same roleset and model; empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arm: String,
    /// The labels of the task, by name. Runs are grouped by them, and no model sees them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub meta: BTreeMap<String, String>,
    /// The SHA-256 of the plan of the evaluation that the run was made for, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Digest>,
}

/// The documents that may be searched.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Library {
    /// The files and folders, by their full paths.
    pub places: Vec<PathBuf>,
    /// The files whose text could not be read, with the reasons.
    pub lost: Vec<String>,
    /// The digest of the paths of all other files and of their texts. A redacted run records it salted, because a
    /// plain digest would allow guesses at the redacted text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Digest>,
}

/// The limits of a run. A missing limit does not bind.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// The most prompt and completion tokens of all calls together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_total_max: Option<u64>,
    /// The highest cost of all calls together, in millionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micro_usd_max: Option<u64>,
    /// The time allowed from the start, or from the resume, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
}

impl Limits {
    /// Returns the stricter of two limits for each resource.
    pub fn stricter(self, others: Self) -> Self {
        Self {
            tokens_total_max: stricter_limit(self.tokens_total_max, others.tokens_total_max),
            cost_micro_usd_max: stricter_limit(self.cost_micro_usd_max, others.cost_micro_usd_max),
            deadline_ms: stricter_limit(self.deadline_ms, others.deadline_ms),
        }
    }

    /// Returns the limits on tokens and cost of so many runs together.
    pub fn times(self, runs: u64) -> Self {
        Self {
            tokens_total_max: self.tokens_total_max.map(|limit| limit.saturating_mul(runs)),
            cost_micro_usd_max: self.cost_micro_usd_max.map(|limit| limit.saturating_mul(runs)),
            deadline_ms: None,
        }
    }

    /// Returns the limits on tokens and cost, as a calibration knows them.
    pub fn on_resources(self) -> RunLimits {
        RunLimits { tokens: self.tokens_total_max, cost_micro_usd: self.cost_micro_usd_max }
    }
}

fn stricter_limit(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

/// A call that is about to be made.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// The id of the call.
    pub call: CallId,
    /// The digest of the conversation, the schema and the sampling settings.
    pub sha256: Digest,
    /// The most tokens that the call may use: the estimated prompt plus the limit of the reply.
    pub tokens_max: u64,
}

/// A reply, and the resources that it took.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Replied {
    /// The id of the call that is answered.
    pub call: CallId,
    /// The reply. Only keys have been removed from it.
    pub reply: Reply,
    /// The tokens used.
    pub usage: Usage,
    /// How the server was made to follow the schema, if one was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Structured>,
    /// The number of requests sent until this reply came; 1 if none failed.
    pub attempts: u32,
    /// The data by which the provider can be asked about the reply later, if it gave any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
    /// Whether the reply contained a key of its endpoint, or a part of one, which was removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub key_removed: bool,
}

/// A call that will have no reply, because its server failed for good.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LostCall {
    /// The id of the call.
    pub call: CallId,
    /// The failure in one line, free of keys.
    pub cause: String,
}

/// A parameter that the server of an agent refused.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// The index of the agent.
    pub agent: usize,
    /// The parameter.
    pub parameter: OptionalParameter,
    /// The words with which the server refused it.
    pub message: String,
}

/// An execution, and what came of it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Executed {
    /// The key of the execution: the digest of its kind and its text.
    pub key: Digest,
    /// What executed it.
    pub by: Executor,
    /// The result.
    pub result: ExecutionResult,
    /// Whether it ran without a sandbox.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_sandbox: bool,
    /// The time that it took, in milliseconds.
    pub took_ms: u64,
}

/// What executed a text or a program.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Executor {
    /// The user's command with this SHA-256.
    Command(Digest),
    /// An interpreter.
    Interpreter(InterpreterNote),
}

/// The result of a search of the documents.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Found {
    /// The round that the search is for.
    pub round: u32,
    /// The passages, best first.
    pub passages: Vec<Passage>,
}
