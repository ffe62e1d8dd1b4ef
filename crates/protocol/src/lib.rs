//! Protocols: pure state machines that decide what to ask next and when a run ends.
//!
//! ```text
//!               event: Started, Replied, Found, Executed
//!   engine  ────────────────────────────►  machine
//!  (async)  ◄────────────────────────────  (pure)
//!               action: Ask, Search, Execute, Cancel, Finish
//! ```
//!
//! # The contract
//!
//! > **A machine changes only inside [`Protocol::step`]. The engine makes an event durable in the
//! > journal, steps the machine with it, performs every action returned, and only then takes the
//! > next event.**
//!
//! A machine has no access to a clock, the network, files, randomness or `async`. Seeds and call ids are computed, so the same events
//! always give the same actions, byte for byte. That is why a run can be resumed, replayed and verified from its journal alone. Bad model
//! output is an ordinary event and never an error. An error of [`Protocol::step`] means that the events do not belong to this run.

pub mod contract;
pub mod core;
pub mod council;
pub mod map_reduce;
pub mod pair;
pub mod panel;
mod phase;
mod registry;
pub mod review;
pub mod text;
mod turn;
pub mod vote;

pub use contract::{
    Action, AgentReport, AgentSetup, Ask, BadSetup, BlindVote, CallId, CheckCommand, ChunkPlan, Conversation,
    Degraded, DegradedKind, Dissent, Document, Event, Execution, ExecutionResult, Finish, Fraction, How,
    Interpreter, Lead, Message, Method, NoAgreement, OUTPUT_BYTES_MAX, OnDisagreement, Outcome, OutcomeKind,
    Override, PASSAGE_CHARS_MAX, PASSAGES_MAX, Passage, Protocol, ProtocolParams, Reply, ReplyShape, Report,
    Role, Search, Setup, Step, StopRule, TAIL_BYTES_MAX, Tally, Task, Thinking, Unexpected, VoteOverride,
    WorstCase,
};
pub use phase::CallPhase;
pub use registry::{Machine, Params, RunReport, RunSetup, Section};
pub use turn::{ArbiterChoice, REFUSED};
