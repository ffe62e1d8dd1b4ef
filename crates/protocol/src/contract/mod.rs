//! The parts that every protocol has in common, and the interface through which the engine uses a protocol.
//!
//! The input is a [`Setup`], then one [`Event`] after another. The output is [`Action`]s, and at any moment a [`Report`]. Nothing here
//! decides anything, and nothing here knows a protocol by its name.

mod action;
mod answer;
mod call_id;
mod chunk_plan;
mod conversation;
mod cost;
mod either_machine;
mod event;
mod execution;
mod executions;
mod lead;
mod loss;
mod machine;
mod outcome;
mod overrides;
mod parameters;
mod report;
mod setup;
mod task;

pub use action::{Action, Ask, ReplyShape, Search};
pub(crate) use answer::{Answer, example, with_text};
pub use call_id::{CallId, Step};
pub use chunk_plan::{Chunk, ChunkPlan};
pub use conversation::{Conversation, Message, Role};
pub use cost::WorstCase;
pub(crate) use cost::{QUOTED, tokens};
pub use either_machine::EitherMachine;
pub use event::{Event, Finish, PASSAGE_CHARS_MAX, PASSAGES_MAX, Passage, Reply};
pub use execution::{CheckCommand, Execution, ExecutionResult, OUTPUT_BYTES_MAX, TAIL_BYTES_MAX};
pub(crate) use executions::Executions;
pub use lead::{Fraction, Lead, VOTES_MAX};
pub(crate) use loss::{are_enough_left, min_members_fault};
pub use machine::{Protocol, Unexpected};
pub use outcome::{How, NoAgreement, Outcome, OutcomeKind};
pub use overrides::{OnDisagreement, Override, TalkForm, VoteStop};
pub use parameters::ProtocolParams;
pub use report::{AgentReport, BlindVote, Degraded, DegradedKind, Dissent, Report, Tally};
pub use setup::{AgentSetup, BadSetup, Interpreter, Method, Setup, Thinking};
pub use task::{Document, Task};
