//! The state of a `map_reduce`: the runs that are under way, and the results of the others.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use super::section::{Fact, PieceReport};
use crate::contract::{
    AgentReport, ChunkPlan, Degraded, DegradedKind, Protocol, ProtocolParams, Report, Setup,
};
use crate::text::evidence::{SplitAnswer, sentences};
use crypto::Digest;

/// The purpose of a run inside this one.
#[derive(Clone, Debug)]
pub(super) enum Job {
    /// It reads this piece.
    Read(usize),
    /// It chooses among the facts of these numbers.
    Merge(Vec<usize>),
    /// It answers from all facts that are left.
    Answer,
}

/// The material that a run inside this one sees, and may choose from.
#[derive(Clone, Debug, Default)]
pub(super) struct Material {
    /// All of it as one document.
    pub(super) text: String,
    /// The facts one by one, with their numbers.
    pub(super) facts: Vec<(usize, String)>,
    /// The sentences to choose from.
    pub(super) sentences: Vec<String>,
}

/// A run under way inside this one.
pub(super) struct OpenPart<M> {
    pub(super) job: Job,
    pub(super) machine: M,
}

/// One run of `map_reduce`; see the module's documentation.
pub struct MapReduce<P: ProtocolParams> {
    pub(super) setup: Setup<P>,
    pub(super) chunk_plan: ChunkPlan,
    /// The places of the sentences of each document.
    pub(super) sentences: Vec<Vec<Range<usize>>>,
    pub(super) open: BTreeMap<u32, OpenPart<P::Machine>>,
    /// The runs that wait for an execution, by its key.
    pub(super) executing: BTreeMap<Digest, Vec<u32>>,
    /// The jobs of this step that have not begun.
    pub(super) waiting: VecDeque<Job>,
    pub(super) parts: u32,
    /// The numbers of the facts to answer from, from 1.
    pub(super) facts: Vec<usize>,
    /// The facts that the ended runs of the current merge have kept, by their part.
    pub(super) merged: BTreeMap<u32, Vec<usize>>,
    /// The facts that the current merge keeps without a choice.
    pub(super) alone: Vec<usize>,
    /// Whether a run of a merge has come to nothing; no other merge follows it.
    pub(super) is_stuck: bool,
    pub(super) pieces: Vec<PieceReport>,
    /// The facts of each piece that has been read. They are kept apart until all are there, since the runs end in any order.
    pub(super) read: BTreeMap<usize, Vec<Fact>>,
    pub(super) findings: Vec<Fact>,
    pub(super) merges: u32,
    /// The parts of the answer, once there is one.
    pub(super) split_answer: SplitAnswer,
    pub(super) unproven: usize,
    pub(super) lost: Vec<Degraded>,
    pub(super) parts_degraded: Vec<DegradedKind>,
    /// The effort of each agent in the runs that have ended, without the last one.
    pub(super) efforts: Vec<AgentReport>,
    /// The report of the answering run, once it has ended.
    pub(super) answered: Option<Report<<P::Machine as Protocol>::Section>>,
    pub(super) remark: Option<&'static str>,
}

impl<P: ProtocolParams> MapReduce<P> {
    /// Makes the machine of a setup that has a chunk plan and passes [`Setup::check`].
    pub fn new(setup: Setup<P>, chunk_plan: ChunkPlan) -> Self {
        let documents = &setup.task.documents;
        let pieces = chunk_plan.pieces.iter().map(|piece| PieceReport {
            document: documents.get(piece.document).map_or_else(String::new, |d| d.name.clone()),
            start: piece.start,
            end: piece.end,
            outcome: None,
        });
        let pieces = pieces.collect();
        Self {
            sentences: documents.iter().map(|document| sentences(&document.text)).collect(),
            open: BTreeMap::new(),
            executing: BTreeMap::new(),
            waiting: (0..chunk_plan.pieces.len()).map(Job::Read).collect(),
            parts: 0,
            facts: Vec::new(),
            merged: BTreeMap::new(),
            alone: Vec::new(),
            is_stuck: false,
            pieces,
            read: BTreeMap::new(),
            findings: Vec::new(),
            merges: 0,
            split_answer: SplitAnswer::default(),
            unproven: 0,
            lost: Vec::new(),
            parts_degraded: Vec::new(),
            efforts: Vec::new(),
            answered: None,
            remark: None,
            setup,
            chunk_plan,
        }
    }

    /// Returns the report of the run that answers, under way or at its end.
    pub(super) fn last_report(&self) -> Option<Report<<P::Machine as Protocol>::Section>> {
        let under_way = self.open.values().find(|open| matches!(open.job, Job::Answer));
        self.answered.clone().or_else(|| under_way.map(|open| open.machine.report()))
    }
}
