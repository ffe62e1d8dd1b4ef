//! Protocols: pure state machines that decide what to ask next and when a run ends.
//!
//! ```text
//!               event: Started, Replied, Lost, Found, Executed, Permitted, Closed
//!   engine  ────────────────────────────►  machine
//!  (async)  ◄────────────────────────────  (pure)
//!               action: Ask, Search, Execute, Cancel, AwaitPermit, Finish
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
//!
//! # Map
//!
//! - [`core`]: plain data that the journal, the providers and the protocols share: endpoints, usage, exit codes.
//! - [`text`]: the texts that models write: envelope, schema, extraction, canonical forms, vacuity, quoting.
//! - [`contract`]: what a protocol is.
//! - `behaviour`: what a program does, by trials of it on inputs.
//! - `turn`: what the protocols share: thoughts, a reply in a schema, another attempt, an arbiter's choice.
//! - [`sampling`]: blind samples, the answer of each by rule, and the count of equal ones.
//! - [`pair`]: two agents with a dual stop.
//! - [`council`]: intent, answer and verification lead to a weighted confidence, or code counts answers or finds quotes.
//! - [`panel`]: blind judges rank many answers.
//! - [`vote`]: blind samples are drawn until one answer leads clearly.
//! - [`pacing`]: many votes draw their samples in rounds, under one budget of tokens.
//! - [`review`]: reviewers read a change. Files call it `approval`.
//! - [`map_reduce`]: runs of other protocols read a long document in pieces.
//! - `registry`: the only list of all protocols. `phase`: what a call is for.
//!
//! # Layers
//!
//! A file uses its own module and the modules of lower lines. The test `tidy` reads this block.
//!
//! ```text
//! phase
//! registry
//! pacing
//! pair  council  panel  review  vote  map_reduce
//! sampling
//! turn  behaviour
//! contract
//! text
//! core
//! ```

mod behaviour;
pub mod contract;
pub mod core;
pub mod council;
pub mod map_reduce;
pub mod pacing;
pub mod pair;
pub mod panel;
mod phase;
mod registry;
pub mod review;
pub mod sampling;
pub mod text;
mod turn;
pub mod vote;

pub use behaviour::{StatedTrials, stated_trials, trial_calls, trial_results, zero_results};
pub use contract::{
    Action, AgentReport, AgentSetup, Ask, BadSetup, BlindVote, CallId, CheckCommand, ChunkPlan, Conversation,
    Degraded, DegradedKind, Dissent, Document, Event, Execution, ExecutionResult, Finish, Fraction, How,
    Interpreter, Lead, Message, Method, NoAgreement, OUTPUT_BYTES_MAX, OnDisagreement, Outcome, OutcomeKind,
    Override, PASSAGE_CHARS_MAX, PASSAGES_MAX, Passage, Protocol, ProtocolParams, Reply, ReplyShape, Report,
    Role, Search, Setup, Step, TAIL_BYTES_MAX, TalkForm, Tally, Task, Thinking, Unexpected, VoteStop,
    WorstCase,
};
pub use phase::CallPhase;
pub use registry::{Machine, Params, RunSetup, Section};
pub use turn::{ArbiterChoice, REFUSED};
