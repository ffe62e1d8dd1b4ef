//! The part of a report that only `map_reduce` has.

use serde::Serialize;

use crate::contract::OutcomeKind;
use crate::text::evidence::Claim;

/// The part of a report that only `map_reduce` has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MapReduceSection<S> {
    /// Every piece with its outcome.
    pub pieces: Vec<PieceReport>,
    /// Every fact that readers found, which is a sentence of its document. The numbers of the facts begin at 1.
    pub findings: Vec<Fact>,
    /// The number of merges before the facts fitted into one prompt.
    pub merges: u32,
    /// The claims of the answer, with the facts that they rest on.
    pub claims: Vec<Claim>,
    /// The things that are asked for and, by the answer, are in no fact.
    pub not_found: Vec<String>,
    /// The protocol's own part of the last run's report, once there is one.
    pub answer: Option<Box<S>>,
}

/// One piece of a document.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct PieceReport {
    /// The document's name.
    pub document: String,
    /// The offset of the first byte.
    pub start: usize,
    /// The offset after the last byte.
    pub end: usize,
    /// The outcome of the run that read it; `None` until that run ends.
    pub outcome: Option<OutcomeKind>,
}

/// A fact: a sentence of a document.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Fact {
    /// The document's name.
    pub document: String,
    /// The offset of the first byte in the document.
    pub start: usize,
    /// The offset after the last byte.
    pub end: usize,
    /// The words of the sentence.
    pub quote: String,
}
