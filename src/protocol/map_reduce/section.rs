//! What only `map_reduce` has in its report.

use serde::Serialize;

use crate::protocol::contract::OutcomeKind;

/// The part of a report that only `map_reduce` has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MapReduceSection<S> {
    /// Every piece, and what became of it.
    pub pieces: Vec<PieceReport>,
    /// Every fact that readers found, a sentence of its document, by number, from 1.
    pub findings: Vec<Fact>,
    /// How often facts were chosen from before they fitted into one prompt.
    pub merges: u32,
    /// What the answer says, and what it rests on.
    pub claims: Vec<Claim>,
    /// What is asked for and stands in no fact, by the answer.
    pub not_found: Vec<String>,
    /// What the protocol of the last run tells of it, once there is one.
    pub answer: Option<Box<S>>,
}

/// One piece of a document.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct PieceReport {
    /// The document's name.
    pub document: String,
    /// Its first byte.
    pub start: usize,
    /// The byte behind its last.
    pub end: usize,
    /// How the run that read it ended; none if it has not yet.
    pub outcome: Option<OutcomeKind>,
}

/// A fact: a sentence of a document.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Fact {
    /// The document's name.
    pub document: String,
    /// Its first byte in the document.
    pub start: usize,
    /// The byte behind its last.
    pub end: usize,
    /// Its words.
    pub quote: String,
}

/// A part of the answer.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Claim {
    /// What was asked for.
    pub asked: String,
    /// What is said.
    pub text: String,
    /// The numbers of the findings that it rests on.
    pub findings: Vec<usize>,
}
