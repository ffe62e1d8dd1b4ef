//! One turn of an agent, whatever its protocol: thoughts, a reply in a schema, and another attempt when it is refused. An arbiter's choice
//! and the marks around text from untrusted authors are here too.
//!
//! The input is an agent, its conversation and a reply. The output is the next [`Ask`](super::Ask), or the result of the turn. The protocol
//! decides what makes a reply valid.

mod arbiter;
mod executing;
mod prompt_parts;
mod reply_loop;

pub use arbiter::ArbiterChoice;
pub(crate) use arbiter::{Arbitration, no_choice};
pub(crate) use executing::ExecutingMachine;
pub(crate) use prompt_parts::{mark, program_answer, program_request};
pub use reply_loop::REFUSED;
pub(crate) use reply_loop::{Draft, TurnProgress, TurnPrompt, Valid, ask};
