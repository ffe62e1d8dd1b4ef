//! The report of a `map_reduce`, at any moment.

use std::collections::BTreeMap;

use super::section::MapReduceSection;
use super::state::{MapReduce, PartSection};
use crate::contract::{AgentReport, BlindVote, Degraded, DegradedKind, ProtocolParams, Report};

impl<P: ProtocolParams> MapReduce<P> {
    /// Makes the report; see [`crate::Protocol::report`].
    pub(super) fn make_report(&self) -> Report<MapReduceSection<PartSection<P>>> {
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
        // Effort counts over all runs; the positions are those of the last run.
        for (agent, before) in agents.iter_mut().zip(&self.efforts) {
            agent.changes += before.changes;
            agent.repairs += before.repairs;
            agent.failed_turns += before.failed_turns;
        }
        let mut all = self.degraded();
        all.extend(degraded);
        Report { rounds, blind_vote, agents, dissent, degraded: all, section }
    }

    fn degraded(&self) -> Vec<Degraded> {
        let mut found = self.lost.clone();
        let mut add = |kind, detail| found.push(Degraded { kind, detail });
        if self.unproven > 0 {
            let count = self.unproven;
            add(
                DegradedKind::FactUnproven,
                format!("{count} sentences that readers named do not count: they stand nowhere"),
            );
        }
        let kinds: BTreeMap<&str, DegradedKind> =
            self.parts_degraded.iter().map(|kind| (kind.name(), *kind)).collect();
        for (name, kind) in kinds {
            let count = self.parts_degraded.iter().filter(|other| **other == kind).count();
            let what = name.replace('_', " ");
            add(kind, format!("{what} in {count} of the runs that read pieces or chose among facts"));
        }
        found
    }
}
