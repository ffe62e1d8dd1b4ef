//! `map_reduce`: a document that is too long for one prompt, read in pieces by runs of another protocol.
//!
//! ```text
//! Started ─► map      each piece is read by a run of its own, which chooses sentences of it: these are the facts
//!   │          │      code looks them up in the piece; what stands nowhere does not count
//!   │        merge    while all facts together are too long for one prompt: a run for each group of them
//!   │          │      chooses those that matter
//!   └────────answer   one run answers from the facts: for each thing that is asked for, the numbers of its facts and
//!                     what they say; a thing without facts is told as not found
//! ```
//!
//! The runs are machines inside this one: their calls carry the number of their part, so that one journal holds
//! everything, and a run that was put down goes on in the middle of a piece. Which pieces there are is part of the
//! setup; nothing is cut here. A piece whose run comes to nothing is told as lost, and the others go on.

mod claims;
mod cost;
mod machine;
mod prompt;
mod report;
mod section;
mod state;

pub use cost::worst_case;
pub use section::{Claim, Fact, MapReduceSection, PieceReport};
pub use state::MapReduce;
