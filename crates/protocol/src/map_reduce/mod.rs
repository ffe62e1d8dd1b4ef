//! `map_reduce`: runs of another protocol read a document that is too long for one prompt, piece by piece.
//!
//! ```text
//! Started ─► map      each piece is read by a run of its own, which chooses sentences from it: these are the facts
//!   │          │      code looks them up in the piece; a sentence that is not there does not count
//!   │        merge    while all facts together are too long for one prompt: a run for each group of them
//!   │          │      chooses those that matter
//!   └────────answer   one run answers from the facts: for each thing that is asked for, the numbers of its facts and
//!                     what they say; a thing without facts is reported as not found
//! ```
//!
//! The runs are machines inside this one. Their calls carry the number of their part, so that one journal holds everything, and an
//! interrupted run can continue in the middle of a piece. The pieces are part of the setup; nothing is cut here. A piece whose run comes to
//! nothing is reported as lost, and the others are still read.

mod claims;
mod machine;
mod part;
mod report;
mod section;
mod state;

pub use part::worst_case;
pub use section::{Fact, MapReduceSection, PieceReport};
pub use state::MapReduce;

pub use crate::text::evidence::Claim;
