//! What is known about a run at any moment: the rounds, the blind answer, what was lost.

use serde::Serialize;

use super::evidence::Evidence;
use super::forms::{Framing, Response, Verification};
use super::machine::{Blind, Council};
use super::manifest::Manifest;
use super::share::{Confidences, Share, Weights};
use super::verdict::{ConsensusResult, Member};
use crate::crypto::Digest;
use crate::protocol::contract::Answer;
use crate::protocol::turn::{ArbiterChoice, no_choice};
use crate::protocol::{AgentReport, BlindVote, Degraded, Dissent, How, Outcome, Report};
use crate::text::Canonicalizer;

/// What only `council` has.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct CouncilSection {
    /// What was decided; none while the run is under way.
    pub result: Option<ConsensusResult>,
    /// The last answer, whatever was decided about it.
    pub content: Option<String>,
    /// Why it is right, in the words of its author.
    pub reasoning: Option<String>,
    /// The words that it rests on, where they were found.
    pub citations: Vec<Evidence>,
    /// Whether the last answer is another than the one that was given alone.
    pub changed: Option<bool>,
    /// The aggregate that is consensus.
    pub threshold: Share,
    /// What each confidence counts.
    pub weights: Weights,
    /// Every finished round.
    pub rounds: Vec<CouncilRound>,
    /// What the arbiter chose, if one was asked and chose, or that it took none.
    pub arbiter: Option<ArbiterChoice>,
}

/// One finished round.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct CouncilRound {
    /// Its number, from 1.
    pub round: u32,
    /// What Pathos said is meant.
    pub framing: Option<Framing>,
    /// What Logos answered.
    pub response: Option<Response>,
    /// Digest of the answer's canonical form.
    pub sha256: Option<Digest>,
    /// What Ethos made of it.
    pub verification: Option<Verification>,
    /// How sure each was.
    pub confidences: Confidences,
    /// What became of it.
    pub result: ConsensusResult,
}

impl CouncilRound {
    /// Makes the record of a round that has been judged.
    pub(super) fn new(manifest: &Manifest, answer: Option<&Answer>, result: &ConsensusResult) -> Self {
        Self {
            round: manifest.round,
            framing: manifest.framing.clone(),
            response: manifest.response.clone(),
            sha256: answer.map(|answer| answer.canonical.digest),
            verification: manifest.verification.clone(),
            confidences: manifest.confidences(),
            result: result.clone(),
        }
    }

    /// Whether its answer was stopped with evidence.
    pub(super) fn is_vetoed(&self) -> bool {
        self.verification.as_ref().is_some_and(|v| v.veto && v.defects().next().is_some())
    }

    /// Returns the round's answer, if somebody verified it, and what stands against it.
    pub(super) fn candidate(&self, canonicalizer: &Canonicalizer) -> Option<(Answer, Option<String>)> {
        let verification = self.verification.as_ref()?;
        let shown = self.response.as_ref()?.response.trim().to_owned();
        // It was valid when it was taken.
        let canonical = canonicalizer.canonicalize(&shown).ok()?;
        let objection = match &self.result {
            ConsensusResult::NeedsRevision { feedback, .. } => Some(feedback.clone()),
            ConsensusResult::Reached { .. }
            | ConsensusResult::Vetoed { .. }
            | ConsensusResult::NotReached { .. } => Some(verification.reasoning.clone()),
        };
        Some((Answer { shown, canonical }, objection))
    }
}

impl Council {
    /// Makes the report; see [`crate::protocol::Protocol::report`].
    pub(super) fn make_report(&self) -> Report<CouncilSection> {
        Report {
            rounds: self.manifest.round,
            blind_vote: self.blind_vote(),
            agents: Member::ALL.map(|member| self.agent(member)).to_vec(),
            dissent: self.dissent(),
            degraded: self.degraded(),
            section: self.section(),
        }
    }

    /// Returns the answer that was agreed on, else the latest, of this round or an earlier one, with its digest.
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
        match &self.blind {
            Blind::Given(answer) => Some(answer),
            Blind::Awaited | Blind::Missing => None,
        }
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
        }
    }

    fn blind_vote(&self) -> BlindVote {
        match &self.blind {
            Blind::Awaited => BlindVote::default(),
            Blind::Missing => BlindVote::of([None]),
            Blind::Given(answer) => BlindVote::of([Some(answer)]),
        }
    }

    fn agent(&self, member: Member) -> AgentReport {
        let index = member.index();
        let answer = self.latest().filter(|_| member == Member::Logos);
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

    /// Returns every answer other than the agreed one, the latest first, and why each was not enough.
    fn dissent(&self) -> Vec<Dissent> {
        let agreed = match &self.outcome {
            Some(Outcome::Agreed { sha256, .. }) => Some(*sha256),
            Some(_) | None => None,
        };
        let logos = self.setup.agents[Member::Logos.index()].name.clone();
        let mut seen: Vec<Digest> = agreed.into_iter().collect();
        let mut found = Vec::new();
        for round in self.rounds.iter().rev() {
            let (Some(response), Some(sha256)) = (&round.response, round.sha256) else { continue };
            if seen.contains(&sha256) {
                continue;
            }
            seen.push(sha256);
            let why = round.verification.as_ref().map_or("nobody verified it", |v| v.reasoning.as_str());
            let (text, why) = (response.response.trim().to_owned(), why.to_owned());
            found.push(Dissent { agent: logos.clone(), stage: "final", text, sha256, why });
        }
        if let Some(blind) = self.blind_answer().filter(|blind| !seen.contains(&blind.canonical.digest)) {
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
        if self.blind == Blind::Missing {
            let detail = "Logos's model gave no valid answer alone".to_owned();
            found.push(Degraded { kind: "blind_draft_missing", detail });
        }
        for (turns, agent) in self.failed_turns.iter().zip(&self.setup.agents) {
            if *turns > 0 {
                let detail = format!("{} wrote no valid form in {turns} of its turns", agent.name);
                found.push(Degraded { kind: "failed_turn", detail });
            }
        }
        found.extend(self.setup.arbiter.iter().filter(|_| self.arbiter_failed).map(no_choice));
        for (_, agent) in
            self.unmeasured.iter().zip(&self.setup.agents).filter(|(unmeasured, _)| **unmeasured)
        {
            let detail = format!(
                "the server of {} tells no probability that could be used; what it says of itself counts where it stands by its text",
                agent.name
            );
            found.push(Degraded { kind: "confidence_not_measured", detail });
        }
        let agreed = matches!(self.outcome, Some(Outcome::Agreed { how: How::Weighed, .. }));
        let last = self.rounds.last().filter(|_| agreed).and_then(|round| round.verification.as_ref());
        if let Some(verification) = last.filter(|v| v.veto || v.defects().next().is_some()) {
            let what =
                if verification.veto { "objected without evidence" } else { "found a check that fails" };
            let detail = format!("agreed, though {} {what}", self.setup.agents[Member::Ethos.index()].name);
            found.push(Degraded { kind: "objection", detail });
        }
        let checks = self.rounds.iter().filter_map(|round| round.verification.as_ref());
        let void = checks.flat_map(|v| &v.checks).filter(|c| c.evidence.is_none() && c.is_decided()).count();
        let citations = self.rounds.iter().filter_map(|round| round.response.as_ref());
        let void = void + citations.flat_map(|r| &r.citations).filter(|c| c.evidence.is_none()).count();
        if void > 0 {
            let detail =
                format!("{void} quotes do not stand in the source they name; what rested on them is void");
            found.push(Degraded { kind: "false_quote", detail });
        }
        found
    }
}
