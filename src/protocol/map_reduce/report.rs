//! What is known about a `map_reduce` at any moment.

use std::collections::BTreeSet;

use serde::Serialize;

use super::machine::MapReduce;
use crate::protocol::{AgentReport, BlindVote, Degraded, Report, Section};

/// The part of a report that only `map_reduce` has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MapReduceSection {
    /// Every piece, and what became of it.
    pub pieces: Vec<PieceReport>,
    /// Every fact that readers found, a sentence of its document, by number, from 1.
    pub findings: Vec<Finding>,
    /// How often facts were chosen from before they fitted into one prompt.
    pub merges: u32,
    /// What the answer says, and what it rests on.
    pub claims: Vec<Claim>,
    /// What is asked for and stands in no fact, by the answer.
    pub not_found: Vec<String>,
    /// What the protocol of the last run tells of it, once there is one.
    pub answer: Option<Box<Section>>,
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
    pub outcome: Option<&'static str>,
}

/// A fact: a sentence of a document.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Finding {
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

impl MapReduce {
    /// Makes the report; see [`crate::protocol::Protocol::report`].
    pub(super) fn make_report(&self) -> Report {
        let last = self.last_report();
        let section = MapReduceSection {
            pieces: self.pieces.clone(),
            findings: self.findings.clone(),
            merges: self.merges,
            claims: self.said.claims.clone(),
            not_found: self.said.not_found.clone(),
            answer: last.as_ref().map(|report| Box::new(report.section.clone())),
        };
        let nobody = |name: &String| AgentReport {
            name: name.clone(),
            status: None,
            text: None,
            sha256: None,
            changes: 0,
            repairs: 0,
            failed_turns: 0,
        };
        let names: Vec<String> = self.setup.agents.iter().map(|agent| agent.name.clone()).collect();
        let (rounds, blind_vote, mut agents, dissent, degraded) = match last {
            Some(last) => (last.rounds, last.blind_vote, last.agents, last.dissent, last.degraded),
            None => (0, BlindVote::default(), names.iter().map(nobody).collect(), Vec::new(), Vec::new()),
        };
        // What it took counts over all runs; what they stand for is that of the last.
        for (agent, before) in agents.iter_mut().zip(&self.efforts) {
            agent.changes += before.changes;
            agent.repairs += before.repairs;
            agent.failed_turns += before.failed_turns;
        }
        let mut all = self.degraded();
        all.extend(degraded);
        let section = Section::MapReduce(Box::new(section));
        Report { rounds, blind_vote, agents, dissent, degraded: all, section }
    }

    fn degraded(&self) -> Vec<Degraded> {
        let mut found = self.lost.clone();
        let mut add = |kind, detail| found.push(Degraded { kind, detail });
        if self.unproven > 0 {
            let count = self.unproven;
            add(
                "fact_unproven",
                format!("{count} sentences that readers named do not count: they stand nowhere"),
            );
        }
        let kinds: BTreeSet<&str> = self.parts_degraded.iter().copied().collect();
        for kind in kinds {
            let count = self.parts_degraded.iter().filter(|other| **other == kind).count();
            let what = kind.replace('_', " ");
            add(kind, format!("{what} in {count} of the runs that read pieces or chose among facts"));
        }
        found
    }
}
