//! The plan by which documents that are too long for one prompt are divided among runs.

use serde::{Deserialize, Serialize};

use super::task::Task;

/// The division of a task's documents into pieces.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ChunkPlan {
    /// The pieces, in reading order; they may overlap.
    pub pieces: Vec<Chunk>,
    /// The maximum number of tokens that facts may have together in one prompt, by a high estimate: 200 to 1,000,000.
    pub tokens_max: u64,
    /// The number of pieces that are read at the same time: 1 to 64.
    pub at_once: u32,
}

/// A part of one document.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Chunk {
    /// The index of the document in the task.
    pub document: usize,
    /// The offset of the first byte.
    pub start: usize,
    /// The offset after the last byte.
    pub end: usize,
}

impl ChunkPlan {
    /// Returns the first rule that the plan breaks for this task, if any.
    pub fn out_of_range(&self, task: &Task) -> Option<&'static str> {
        let are_parts = self.pieces.iter().all(|piece| {
            let document = task.documents.get(piece.document);
            let text = document.and_then(|document| document.text.get(piece.start..piece.end));
            text.is_some_and(|text| !text.is_empty())
        });
        let wrong = [
            ("a piece is no part of its document", !are_parts),
            ("there are 1 to 100000 pieces", !(1..=100_000).contains(&self.pieces.len())),
            ("`tokens_max` is 200 to 1000000", !(200..=1_000_000).contains(&self.tokens_max)),
            ("`at_once` is 1 to 64", !(1..=64).contains(&self.at_once)),
            ("pieces are read and not searched", task.is_searched),
        ];
        wrong.iter().find(|(_, is_wrong)| *is_wrong).map(|(why, _)| *why)
    }
}
