//! One turn of an agent, whatever its protocol: thoughts, a reply in a schema, and again when it is refused; an
//! arbiter's choice; and the marks around what untrusted authors wrote.
//!
//! In: an agent, its conversation and a reply. Out: the next [`Ask`](super::Ask), or what the turn brought. What makes a
//! reply valid is for the protocol to say.

mod arbiter;
mod fence;
mod reply_loop;

pub use arbiter::ArbiterChoice;
pub(crate) use arbiter::{Arbitration, Ruling, no_choice};
pub(crate) use fence::mark;
pub use reply_loop::REFUSED;
pub(crate) use reply_loop::{Draft, TurnProgress, TurnPrompt, Valid, ask};
