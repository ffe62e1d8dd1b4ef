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
mod machine;
mod plan;
mod prompt;
mod report;

use serde::{Deserialize, Serialize};

pub use machine::MapReduce;
pub use plan::worst_case;
pub use report::{Claim, Finding, MapReduceSection, PieceReport};

use super::Task;

/// How a task's documents are shared out.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// The pieces, in the order in which they are read; they may overlap.
    pub pieces: Vec<Piece>,
    /// The most tokens that facts may have together in one prompt, by a high estimate: 200 to 1,000,000.
    pub tokens_max: u64,
    /// How many pieces are read at once: 1 to 64.
    pub at_once: u32,
}

/// A part of one document.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Piece {
    /// Which of the task's documents.
    pub document: usize,
    /// Its first byte.
    pub start: usize,
    /// The byte behind its last.
    pub end: usize,
}

impl Spread {
    /// Returns what is wrong with it for this task, if anything is.
    #[must_use]
    pub fn out_of_range(&self, task: &Task) -> Option<&'static str> {
        let is_piece = |piece: &Piece| {
            let text = task.documents.get(piece.document).map(|document| document.text.as_str());
            text.and_then(|text| text.get(piece.start..piece.end)).is_some_and(|text| !text.is_empty())
        };
        let wrong = [
            ("a piece is no part of its document", !self.pieces.iter().all(is_piece)),
            ("there are 1 to 100000 pieces", !(1..=100_000).contains(&self.pieces.len())),
            ("`tokens_max` is 200 to 1000000", !(200..=1_000_000).contains(&self.tokens_max)),
            ("`at_once` is 1 to 64", !(1..=64).contains(&self.at_once)),
            ("pieces are read and not searched", task.is_searched),
        ];
        wrong.iter().find(|(_, is_wrong)| *is_wrong).map(|(why, _)| *why)
    }
}
