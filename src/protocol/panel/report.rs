//! What is known about a run at any moment: answers, evaluations, the best one, what was lost.

use serde::Serialize;

use super::ballot::{Mark, Scores};
use super::state::{Ballot, Iteration, Panel};
use super::stats::{self, Judged};
use super::tally::{self, Standing, Tallied};
use crate::core::BasisPoints;
use crate::crypto::Digest;
use crate::protocol::contract::{
    AgentReport, Answer, BlindVote, Degraded, DegradedKind, Dissent, Outcome, Report,
};

/// What only `panel` has.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PanelSection {
    /// Every valid answer of every iteration.
    pub responses: Vec<Proposed>,
    /// Every evaluation of every iteration.
    pub evaluations: Vec<Evaluated>,
    /// The best answer: the one that was agreed on, else the best of the last iteration.
    pub winner: Option<Placed>,
    /// Whether it reached the threshold.
    pub consensus_reached: bool,
    /// Iterations begun.
    pub iterations: u32,
    /// The normalised score that is consensus.
    pub consensus_threshold: BasisPoints,
    /// The answers of the last iteration, the best first.
    pub ranking: Vec<Placed>,
    /// Ballots that never were valid.
    pub void_ballots: u32,
    /// Ballots that were cancelled since they could change nothing.
    pub cancelled_ballots: u32,
    /// How far the evaluators put the answers in the same order: the mean of Kendall's τ-b over all pairs of
    /// evaluators, −1 to 1.
    pub rank_correlation: Option<f64>,
    /// By how many points more than its ballot's mean the answer that was shown first scored.
    pub place_preference: Option<f64>,
    /// By how many points more an answer scored from its author's own kind of model; filled in by whoever knows the
    /// models.
    pub family_preference: Option<f64>,
    /// What a reader should know before trusting it.
    pub notes: Vec<String>,
    /// What the last figure is made from; not shown.
    #[serde(skip)]
    pub judged: Vec<Judged>,
}

/// One member's answer.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Proposed {
    /// Where its author's model is called; filled in by whoever knows the models.
    pub provider: String,
    /// Its author's model; filled in likewise.
    pub model: String,
    /// The member's name.
    pub member: String,
    /// Its index among the agents.
    #[serde(skip)]
    pub agent: usize,
    /// What it answered.
    pub content: String,
    /// Digest of the answer's canonical form.
    pub sha256: Digest,
    /// In which iteration, from 1.
    pub iteration: u32,
}

/// One member's judgement of another's answer.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Evaluated {
    /// Who judged.
    pub evaluator: String,
    /// Whose answer.
    pub target: String,
    /// What it scored.
    pub scores: Scores,
    /// What would make it better.
    pub feedback: String,
    /// The sum of the scores, 4 to 40.
    pub total_score: u32,
    /// Under which label the answer was shown.
    pub label: char,
    /// At which place it was shown, from 1.
    pub place: usize,
    /// In which iteration, from 1.
    pub iteration: u32,
}

/// An answer and what it scored.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Placed {
    /// The answer.
    #[serde(flatten)]
    pub response: Proposed,
    /// The mean of its totals, 4 to 40; none if nobody judged it.
    pub average_score: Option<f64>,
    /// The same as a share of 40.
    pub normalized_score: Option<f64>,
    /// How many ballots that is the mean of.
    pub ballots: u32,
}

/// Returns the number with at most six digits behind the point.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

impl Panel {
    /// Makes the report; see [`crate::protocol::Protocol::report`].
    pub(super) fn make_report(&self) -> Report<PanelSection> {
        let section = self.section();
        Report {
            rounds: self.rounds(),
            blind_vote: self.blind_vote(),
            agents: (0..self.setup.agents.len()).map(|member| self.agent(member)).collect(),
            dissent: self.dissent(section.winner.as_ref()),
            degraded: self.degraded(),
            section,
        }
    }

    /// Each iteration has a round of answers and one of ballots.
    fn rounds(&self) -> u32 {
        let is_judged = self.iterations.last().is_some_and(|now| !now.lineups.is_empty());
        (2 * self.iteration()).saturating_sub(u32::from(!is_judged))
    }

    fn name(&self, member: usize) -> String {
        self.setup.agents[member].name.clone()
    }

    /// Counts the first answers, of which those that have not come in are missing only once others are judged.
    fn blind_vote(&self) -> BlindVote {
        let first = self.iterations.first();
        let drafts = first.into_iter().flat_map(|first| first.answers.iter().map(Option::as_ref));
        let is_over = first.is_some_and(|first| !first.lineups.is_empty()) || self.outcome.is_some();
        BlindVote::from_drafts(drafts.filter(|draft| is_over || draft.is_some()))
    }

    fn placed(&self, iteration: u32, of: &Iteration, tallied: &Tallied) -> Option<Placed> {
        let answer = of.answers.get(tallied.member)?.as_ref()?;
        let Standing { ballots, .. } = tallied.standing;
        Some(Placed {
            response: self.proposed(iteration, tallied.member, answer),
            average_score: tallied.standing.mean().map(rounded),
            normalized_score: tallied.standing.normalized().map(rounded),
            ballots,
        })
    }

    fn proposed(&self, iteration: u32, member: usize, answer: &Answer) -> Proposed {
        Proposed {
            provider: String::new(),
            model: String::new(),
            member: self.name(member),
            agent: member,
            content: answer.shown.clone(),
            sha256: answer.canonical.digest,
            iteration,
        }
    }

    fn section(&self) -> PanelSection {
        let mut responses = Vec::new();
        let mut evaluations = Vec::new();
        let mut judged = Vec::new();
        for (index, iteration) in self.iterations.iter().enumerate() {
            let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
            for (member, answer) in iteration.answers.iter().enumerate() {
                responses.extend(answer.as_ref().map(|answer| self.proposed(number, member, answer)));
            }
            // The figures hold one iteration's answers against each other, so members of another are others.
            let apart = index * self.setup.agents.len();
            for (evaluator, mark) in iteration.marks() {
                let lineup = &iteration.lineups[evaluator];
                let Some((place, (label, _))) =
                    lineup.shown().enumerate().find(|(_, (_, m))| *m == mark.target)
                else {
                    continue;
                };
                evaluations.push(self.evaluated(number, evaluator, mark, label, place));
                judged.push(Judged {
                    evaluator: apart + evaluator,
                    target: apart + mark.target,
                    place,
                    total: mark.scores.total(),
                });
            }
        }
        let ranking = self.ranking();
        let is_agreed = matches!(self.outcome, Some(Outcome::Agreed { .. }));
        let ballots = || self.iterations.iter().flat_map(|iteration| &iteration.ballots);
        let count =
            |what: Ballot| u32::try_from(ballots().filter(|b| **b == what).count()).unwrap_or(u32::MAX);
        PanelSection {
            winner: ranking.first().filter(|best| best.ballots > 0).cloned(),
            responses,
            evaluations,
            consensus_reached: is_agreed,
            iterations: self.iteration(),
            consensus_threshold: self.setup.params.threshold,
            ranking,
            void_ballots: count(Ballot::Void),
            cancelled_ballots: count(Ballot::Cancelled),
            rank_correlation: stats::concord(&judged).map(rounded),
            place_preference: stats::place_preference(&judged).map(rounded),
            family_preference: None,
            notes: self.notes(),
            judged,
        }
    }

    fn notes(&self) -> Vec<String> {
        let is_two = self.setup.agents.len() == 2;
        let note = "with two members each answer is judged by one other alone; such scores are unstable";
        is_two.then(|| note.to_owned()).into_iter().collect()
    }

    fn evaluated(
        &self,
        iteration: u32,
        evaluator: usize,
        mark: &Mark,
        label: char,
        place: usize,
    ) -> Evaluated {
        Evaluated {
            evaluator: self.name(evaluator),
            target: self.name(mark.target),
            scores: mark.scores,
            feedback: mark.feedback.clone(),
            total_score: mark.scores.total(),
            label,
            place: place + 1,
            iteration,
        }
    }

    /// Returns the answers of the latest iteration that anybody has judged, else of the one under way, the best first.
    fn ranking(&self) -> Vec<Placed> {
        let numbered = || self.iterations.iter().enumerate().rev();
        let judged = numbered().find(|(_, iteration)| iteration.marks().next().is_some());
        let Some((index, iteration)) = judged.or_else(|| numbered().next()) else { return Vec::new() };
        let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
        let mut tally = iteration.tally();
        tally.sort_by(tally::rank);
        tally.iter().filter_map(|tallied| self.placed(number, iteration, tallied)).collect()
    }

    fn agent(&self, member: usize) -> AgentReport {
        let answers = || self.iterations.iter().filter_map(|iteration| iteration.answers[member].as_ref());
        let mut digests: Vec<Digest> = answers().map(|answer| answer.canonical.digest).collect();
        digests.dedup();
        let last = answers().next_back();
        AgentReport {
            name: self.name(member),
            status: None,
            text: last.map(|answer| answer.shown.clone()),
            sha256: last.map(|answer| answer.canonical.digest),
            changes: u32::try_from(digests.len().saturating_sub(1)).unwrap_or(u32::MAX),
            repairs: self.repairs[member],
            failed_turns: self.failed_turns[member],
        }
    }

    /// Returns every answer of the last iteration that says something else than the best one, the best of them first.
    fn dissent(&self, winner: Option<&Placed>) -> Vec<Dissent> {
        let best = winner.map(|winner| winner.response.sha256);
        let others = self.ranking().into_iter().filter(|placed| Some(placed.response.sha256) != best);
        let why = |placed: &Placed| match placed.average_score {
            Some(mean) => format!("scored {mean:.1} of 40 on average, by {} ballots", placed.ballots),
            None => "nobody judged it".to_owned(),
        };
        others
            .map(|placed| Dissent {
                why: why(&placed),
                agent: placed.response.member,
                stage: if placed.response.iteration == 1 { "blind" } else { "final" },
                text: placed.response.content,
                sha256: placed.response.sha256,
            })
            .collect()
    }

    fn degraded(&self) -> Vec<Degraded> {
        let mut found = Vec::new();
        for (index, agent) in self.setup.agents.iter().enumerate() {
            let turns = self.failed_turns[index];
            if turns > 0 {
                let detail = format!("{} wrote no valid form in {turns} of its turns", agent.name);
                found.push(Degraded { kind: DegradedKind::FailedTurn, detail });
            }
            let ballots = self.iterations.iter().map(|iteration| &iteration.ballots[index]);
            let void = ballots.filter(|ballot| **ballot == Ballot::Void).count();
            if void > 0 {
                let detail = format!("{void} ballots of {} are void and count for nothing", agent.name);
                found.push(Degraded { kind: DegradedKind::VoidBallot, detail });
            }
        }
        found
    }
}
