//! The report of a run, at any moment: the rounds, the blind answer and the losses.

use super::forms::{Response, Verification};
use super::section::CouncilSection;
use super::state::Council;
use super::verdict::Member;
use crate::contract::{
    AgentReport, Answer, BlindVote, Degraded, DegradedKind, Dissent, How, Outcome, Report,
};
use crate::turn::no_choice;
use crypto::Digest;

impl Council {
    /// Makes the report; see [`crate::Protocol::report`].
    pub(super) fn make_report(&self) -> Report<CouncilSection> {
        Report {
            rounds: self.manifest.round,
            blind_vote: BlindVote::from_drafts(self.blind.iter().map(Option::as_ref)),
            agents: Member::ALL.map(|member| self.agent(member)).to_vec(),
            dissent: self.dissent(),
            degraded: self.degraded(),
            section: self.section(),
        }
    }

    /// Returns the agreed answer, or else the latest one of this round or an earlier one, with its digest.
    fn latest(&self) -> Option<(&Response, Digest)> {
        if let Some(Outcome::Agreed { sha256, .. }) = &self.outcome {
            let agreed = self.rounds.iter().rev().find(|round| round.sha256 == Some(*sha256));
            return agreed.and_then(|round| round.response.as_ref().zip(round.sha256));
        }
        if let (Some(response), Some(answer)) = (&self.manifest.response, &self.answer) {
            return Some((response, answer.canonical.digest));
        }
        self.rounds.iter().rev().find_map(|round| round.response.as_ref().zip(round.sha256))
    }

    fn blind_answer(&self) -> Option<&Answer> {
        self.blind.first().and_then(Option::as_ref)
    }

    fn section(&self) -> CouncilSection {
        let latest = self.latest();
        let blind = self.blind_answer().map(|answer| answer.canonical.digest);
        let citations = latest.iter().flat_map(|(response, _)| &response.citations);
        CouncilSection {
            result: self.outcome.as_ref().and(self.rounds.last()).map(|round| round.result.clone()),
            content: latest.map(|(response, _)| response.response.trim().to_owned()),
            reasoning: latest.map(|(response, _)| response.reasoning.clone()),
            citations: citations.filter_map(|citation| citation.evidence.clone()).collect(),
            changed: blind.zip(latest).map(|(blind, (_, digest))| blind != digest),
            threshold: self.setup.params.threshold,
            weights: self.setup.params.weights,
            rounds: self.rounds.clone(),
            arbiter: self.arbiter_choice.clone(),
            vote: None,
        }
    }

    fn agent(&self, member: Member) -> AgentReport {
        let index = member.index();
        let answer = if member == Member::Logos { self.latest() } else { None };
        let mut digests: Vec<Digest> = self.rounds.iter().filter_map(|round| round.sha256).collect();
        digests.dedup();
        let changes = if member == Member::Logos { digests.len().saturating_sub(1) } else { 0 };
        AgentReport {
            name: self.setup.agents[index].name.clone(),
            status: None,
            text: answer.map(|(response, _)| response.response.trim().to_owned()),
            sha256: answer.map(|(_, digest)| digest),
            changes: u32::try_from(changes).unwrap_or(u32::MAX),
            repairs: self.repairs[index],
            failed_turns: self.failed_turns[index],
        }
    }

    /// Returns every answer other than the agreed one, the latest first, each with the reason why it was not enough.
    fn dissent(&self) -> Vec<Dissent> {
        let agreed = match &self.outcome {
            Some(Outcome::Agreed { sha256, .. }) => Some(*sha256),
            Some(_) | None => None,
        };
        let logos = self.setup.agents[Member::Logos.index()].name.clone();
        let mut listed: Vec<Digest> = agreed.into_iter().collect();
        let mut found = Vec::new();
        for round in self.rounds.iter().rev() {
            let (Some(response), Some(sha256)) = (&round.response, round.sha256) else { continue };
            if listed.contains(&sha256) {
                continue;
            }
            listed.push(sha256);
            let why = round.verification.as_ref().map_or("nobody verified it", |v| v.reasoning.as_str());
            let (text, why) = (response.response.trim().to_owned(), why.to_owned());
            found.push(Dissent { agent: logos.clone(), stage: "final", text, sha256, why });
        }
        if let Some(blind) = self.blind_answer()
            && !listed.contains(&blind.canonical.digest)
        {
            found.push(Dissent {
                agent: logos,
                stage: "blind",
                text: blind.shown.clone(),
                sha256: blind.canonical.digest,
                why: "given alone, before the council met".to_owned(),
            });
        }
        found
    }

    fn degraded(&self) -> Vec<Degraded> {
        let mut found = Vec::new();
        if self.blind.contains(&None) {
            let detail = "Logos's model gave no valid answer alone".to_owned();
            found.push(Degraded { kind: DegradedKind::BlindDraftMissing, detail });
        }
        for (turns, agent) in self.failed_turns.iter().zip(&self.setup.agents) {
            if *turns > 0 {
                let detail = format!("{} wrote no valid form in {turns} of its turns", agent.name);
                found.push(Degraded { kind: DegradedKind::FailedTurn, detail });
            }
        }
        if self.arbiter_failed
            && let Some(arbiter) = &self.setup.arbiter
        {
            found.push(no_choice(arbiter));
        }
        for (unmeasured, agent) in self.unmeasured.iter().zip(&self.setup.agents) {
            if !unmeasured {
                continue;
            }
            let detail = format!(
                "the server of {} tells no probability that could be used; what it says of itself counts where it stands by its text",
                agent.name
            );
            found.push(Degraded { kind: DegradedKind::ConfidenceNotMeasured, detail });
        }
        if let Some(Outcome::Agreed { how: How::Weighed | How::Endorsed, .. }) = &self.outcome
            && let Some(verification) = self.rounds.last().and_then(|round| round.verification.as_ref())
        {
            found.extend(objection(verification, &self.setup.agents[Member::Ethos.index()].name));
        }
        let checks = self.rounds.iter().filter_map(|round| round.verification.as_ref());
        let void = checks.flat_map(|v| &v.checks).filter(|c| c.evidence.is_none() && c.is_decided()).count();
        let citations = self.rounds.iter().filter_map(|round| round.response.as_ref());
        let void = void + citations.flat_map(|r| &r.citations).filter(|c| c.evidence.is_none()).count();
        if void > 0 {
            let detail =
                format!("{void} quotes do not stand in the source they name; what rested on them is void");
            found.push(Degraded { kind: DegradedKind::FalseQuote, detail });
        }
        found
    }
}

/// Returns the loss of an agreement over an objection of Ethos, which has this name.
pub(super) fn objection(verification: &Verification, name: &str) -> Option<Degraded> {
    let what = match (verification.veto, verification.defects().next().is_some()) {
        (true, false) => "objected without evidence",
        (true, true) => "objected, with a check that fails",
        (false, true) => "found a check that fails",
        (false, false) => return None,
    };
    Some(Degraded { kind: DegradedKind::Objection, detail: format!("agreed, though {name} {what}") })
}
