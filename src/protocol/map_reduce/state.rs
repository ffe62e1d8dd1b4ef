//! The state of a `map_reduce`: which runs are under way, and what the others brought.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use super::claims::Said;
use super::section::{Fact, PieceReport};
use crate::protocol::contract::{
    AgentReport, Chunk, ChunkPlan, Degraded, DegradedKind, Protocol, ProtocolParams, Report, Setup,
};
use crate::text::evidence::sentences;

/// What only the protocol of the runs has in its reports.
pub(super) type PartSection<P> = <<P as ProtocolParams>::Machine as Protocol>::Section;

/// What a run inside is for.
#[derive(Clone, Debug)]
pub(super) enum Job {
    /// It reads this piece.
    Read(usize),
    /// It chooses among the facts of these numbers.
    Merge(Vec<usize>),
    /// It answers from all facts that are left.
    Answer,
}

/// What a run inside is shown, and may choose from.
#[derive(Clone, Debug, Default)]
pub(super) struct Shown {
    /// As one document.
    pub(super) text: String,
    /// One by one.
    pub(super) facts: Vec<(usize, String)>,
    /// What there is to choose from.
    pub(super) sentences: Vec<String>,
}

/// A run under way.
pub(super) struct Open<M> {
    pub(super) job: Job,
    pub(super) machine: M,
}

/// One run of `map_reduce`; see the module's documentation.
pub struct MapReduce<P: ProtocolParams> {
    pub(super) setup: Setup<P>,
    pub(super) chunk_plan: ChunkPlan,
    /// Where the sentences of each document stand.
    pub(super) sentences: Vec<Vec<Range<usize>>>,
    pub(super) open: BTreeMap<u32, Open<P::Machine>>,
    /// What is still to be done before the next step.
    pub(super) waiting: VecDeque<Job>,
    pub(super) parts: u32,
    /// The numbers of the facts to answer from, from 1.
    pub(super) facts: Vec<usize>,
    /// What the merges under way have left so far, by their part.
    pub(super) merged: BTreeMap<u32, Vec<usize>>,
    /// What needs no choice meanwhile.
    pub(super) alone: Vec<usize>,
    /// Whether a merge has come to nothing; there is no other after it.
    pub(super) is_stuck: bool,
    pub(super) pieces: Vec<PieceReport>,
    /// Of each piece that has been read, its facts; kept apart until all are there, since they end in any order.
    pub(super) read: BTreeMap<usize, Vec<Fact>>,
    pub(super) findings: Vec<Fact>,
    pub(super) merges: u32,
    /// What the answer says, once there is one.
    pub(super) said: Said,
    pub(super) unproven: usize,
    pub(super) lost: Vec<Degraded>,
    pub(super) parts_degraded: Vec<DegradedKind>,
    /// What each agent took in the runs that have ended, but for the last.
    pub(super) efforts: Vec<AgentReport>,
    /// The report of the answering run, once it has ended.
    pub(super) answered: Option<Report<PartSection<P>>>,
    pub(super) remark: Option<&'static str>,
}

impl<P: ProtocolParams> MapReduce<P> {
    /// Makes the machine of a setup that is spread and passes [`Setup::check`].
    #[must_use]
    pub fn new(setup: Setup<P>, chunk_plan: ChunkPlan) -> Self {
        let report = |piece: &Chunk| PieceReport {
            document: setup.task.documents.get(piece.document).map_or_else(String::new, |d| d.name.clone()),
            start: piece.start,
            end: piece.end,
            outcome: None,
        };
        let documents = setup.task.documents.iter();
        Self {
            sentences: documents.map(|document| sentences(&document.text)).collect(),
            open: BTreeMap::new(),
            waiting: (0..chunk_plan.pieces.len()).map(Job::Read).collect(),
            parts: 0,
            facts: Vec::new(),
            merged: BTreeMap::new(),
            alone: Vec::new(),
            is_stuck: false,
            pieces: chunk_plan.pieces.iter().map(report).collect(),
            read: BTreeMap::new(),
            findings: Vec::new(),
            merges: 0,
            said: Said::default(),
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

    /// The report of the run that answers, under way or at its end.
    pub(super) fn last_report(&self) -> Option<Report<PartSection<P>>> {
        let under_way = self.open.values().find(|open| matches!(open.job, Job::Answer));
        self.answered.clone().or_else(|| under_way.map(|open| open.machine.report()))
    }
}
