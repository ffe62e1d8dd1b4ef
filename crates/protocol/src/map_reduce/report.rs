//! The report of a `map_reduce`, at any moment.

use std::collections::BTreeMap;

use super::section::MapReduceSection;
use super::state::MapReduce;
use crate::contract::{AgentReport, BlindVote, Degraded, DegradedKind, Protocol, ProtocolParams, Report};

impl<P: ProtocolParams> MapReduce<P> {
    /// Makes the report; see [`crate::Protocol::report`].
    pub(super) fn make_report(&self) -> Report<<Self as Protocol>::Section> {
        let last = self.last_report();
        let section = MapReduceSection {
            pieces: self.pieces.clone(),
            findings: self.findings.clone(),
            merges: self.merges,
            claims: self.split_answer.claims.clone(),
            not_found: self.split_answer.not_found.clone(),
            answer: last.as_ref().map(|report| Box::new(report.section.clone())),
        };
        let mut degraded = self.degraded();
        let mut report = if let Some(last) = last {
            let Report { rounds, blind_vote, agents, dissent, degraded: of_last, .. } = last;
            degraded.extend(of_last);
            Report { rounds, blind_vote, agents, dissent, degraded, section }
        } else {
            let agents = self.setup.agents.iter().map(|agent| AgentReport {
                name: agent.name.clone(),
                status: None,
                text: None,
                sha256: None,
                changes: 0,
                repairs: 0,
                failed_turns: 0,
            });
            let (agents, blind_vote) = (agents.collect(), BlindVote::default());
            Report { rounds: 0, blind_vote, agents, dissent: Vec::new(), degraded, section }
        };
        // Effort counts over all runs; the positions are those of the last run.
        for (agent, before) in report.agents.iter_mut().zip(&self.efforts) {
            agent.changes += before.changes;
            agent.repairs += before.repairs;
            agent.failed_turns += before.failed_turns;
        }
        report
    }

    fn degraded(&self) -> Vec<Degraded> {
        let mut found = self.lost.clone();
        if self.unproven > 0 {
            let detail =
                format!("{} sentences that readers named do not count: they stand nowhere", self.unproven);
            found.push(Degraded { kind: DegradedKind::FactUnproven, detail });
        }
        let kinds: BTreeMap<&str, DegradedKind> =
            self.parts_degraded.iter().map(|kind| (kind.name(), *kind)).collect();
        for (name, kind) in kinds {
            let count = self.parts_degraded.iter().filter(|other| **other == kind).count();
            let what = name.replace('_', " ");
            let detail = format!("{what} in {count} of the runs that read pieces or chose among facts");
            found.push(Degraded { kind, detail });
        }
        found
    }
}
