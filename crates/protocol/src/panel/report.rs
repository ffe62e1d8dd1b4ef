//! The report of a run, at any moment: the answers, the evaluations, the best answer and the losses.

use serde::Serialize;

use super::ballot::Scores;
use super::state::{Ballot, Iteration, Panel};
use super::stats::{self, Judgement};
use super::tally::{self, AnswerTally};
use crate::contract::{AgentReport, Answer, BlindVote, Degraded, DegradedKind, Dissent, Outcome, Report};
use crate::core::BasisPoints;
use crate::sampling::VoteSection;
use crypto::Digest;

/// The part of a report that only `panel` has.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PanelSection {
    /// Every valid answer of every iteration.
    pub responses: Vec<PanelResponse>,
    /// Every evaluation of every iteration.
    pub evaluations: Vec<Evaluation>,
    /// The best answer: the agreed one, or else the best of the latest iteration that was judged.
    pub winner: Option<RankedResponse>,
    /// Whether the run ended in agreement: the best answer reached the threshold, or the most votes.
    pub consensus_reached: bool,
    /// The number of iterations that have begun.
    pub iterations: u32,
    /// The normalised score that counts as consensus.
    pub consensus_threshold: BasisPoints,
    /// The answers of the latest iteration that was judged, or else of the current one, the best first.
    pub ranking: Vec<RankedResponse>,
    /// The number of ballots that were never valid.
    pub void_ballots: u32,
    /// The number of ballots that were cancelled because they could change nothing.
    pub cancelled_ballots: u32,
    /// The agreement of the evaluators on the order of the answers: the mean of Kendall's τ-b over all pairs of evaluators, −1 to 1.
    pub rank_correlation: Option<f64>,
    /// The points by which the answer that was shown first scored above its ballot's mean.
    pub place_preference: Option<f64>,
    /// The points by which an answer scored higher from its author's own kind of model. The caller fills it in, because it knows the
    /// models.
    pub family_preference: Option<f64>,
    /// The warnings that a reader needs before trusting the result.
    pub notes: Vec<String>,
    /// The counted answers of a run without judges; `None` where members judge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vote: Option<VoteSection>,
    /// The evaluations from which `family_preference` is computed; not shown.
    #[serde(skip)]
    pub judged: Vec<Judgement>,
}

/// One member's answer.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct PanelResponse {
    /// The provider of the author's model. The caller fills it in, because it knows the models.
    pub provider: String,
    /// The author's model, which the caller fills in likewise.
    pub model: String,
    /// The member's name.
    pub member: String,
    /// The member's index among the agents.
    #[serde(skip)]
    pub agent: usize,
    /// The answer.
    pub content: String,
    /// The digest of the answer's canonical form.
    pub sha256: Digest,
    /// The iteration of the answer, from 1.
    pub iteration: u32,
}

/// One member's judgement of another's answer.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Evaluation {
    /// The name of the member that judged.
    pub evaluator: String,
    /// The name of the answer's author.
    pub target: String,
    /// The scores of the answer.
    pub scores: Scores,
    /// The improvement that the evaluator suggests.
    pub feedback: String,
    /// The sum of the scores, 4 to 40.
    pub total_score: u32,
    /// The label under which the answer was shown.
    pub label: char,
    /// The place at which the answer was shown, from 1.
    pub place: usize,
    /// The iteration of the answer, from 1.
    pub iteration: u32,
}

/// An answer with its score.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RankedResponse {
    /// The answer.
    #[serde(flatten)]
    pub response: PanelResponse,
    /// The mean of its totals, 4 to 40; `None` if no member judged it.
    pub average_score: Option<f64>,
    /// The same mean as a share of 40.
    pub normalized_score: Option<f64>,
    /// The number of ballots in that mean.
    pub ballots: u32,
}

/// Returns the number, rounded to six decimal places.
fn round(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

impl Panel {
    /// Makes the report; see [`crate::Protocol::report`].
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

    /// Returns the number of rounds. Each iteration has a round of answers and one of ballots.
    fn rounds(&self) -> u32 {
        let is_judged = self.iterations.last().is_some_and(|now| !now.lineups.is_empty());
        (2 * self.iteration()).saturating_sub(u32::from(!is_judged))
    }

    fn name(&self, member: usize) -> String {
        self.setup.agents[member].name.clone()
    }

    /// Returns the vote over the first answers. An answer that has not come in counts as missing only once others are judged.
    fn blind_vote(&self) -> BlindVote {
        let first = self.iterations.first();
        let drafts = first.into_iter().flat_map(|first| first.answers.iter().map(Option::as_ref));
        let is_over = first.is_some_and(|first| !first.lineups.is_empty()) || self.outcome.is_some();
        BlindVote::from_drafts(drafts.filter(|draft| is_over || draft.is_some()))
    }

    fn ranked_response(&self, iteration: u32, of: &Iteration, tally: &AnswerTally) -> Option<RankedResponse> {
        let answer = of.answers.get(tally.member)?.as_ref()?;
        Some(RankedResponse {
            response: self.response(iteration, tally.member, answer),
            average_score: tally.mean().map(round),
            normalized_score: tally.normalized().map(round),
            ballots: tally.ballots,
        })
    }

    fn response(&self, iteration: u32, member: usize, answer: &Answer) -> PanelResponse {
        PanelResponse {
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
                responses.extend(answer.as_ref().map(|answer| self.response(number, member, answer)));
            }
            // The figures compare answers of one iteration with each other, so members of another iteration count as different ones.
            let apart = index * self.setup.agents.len();
            for (evaluator, mark) in iteration.marks() {
                let lineup = &iteration.lineups[evaluator];
                let Some((place, (label, _))) =
                    lineup.entries().enumerate().find(|(_, (_, m))| *m == mark.target)
                else {
                    continue;
                };
                evaluations.push(Evaluation {
                    evaluator: self.name(evaluator),
                    target: self.name(mark.target),
                    scores: mark.scores,
                    feedback: mark.feedback.clone(),
                    total_score: mark.scores.total(),
                    label,
                    place: place + 1,
                    iteration: number,
                });
                judged.push(Judgement {
                    evaluator: apart + evaluator,
                    target: apart + mark.target,
                    place,
                    total: mark.scores.total(),
                });
            }
        }
        let ranking = self.ranking();
        let is_agreed = matches!(self.outcome, Some(Outcome::Agreed { .. }));
        PanelSection {
            winner: ranking.first().filter(|best| best.ballots > 0).cloned(),
            responses,
            evaluations,
            consensus_reached: is_agreed,
            iterations: self.iteration(),
            consensus_threshold: self.setup.params.threshold,
            ranking,
            void_ballots: self.count_ballots(&Ballot::Void),
            cancelled_ballots: self.count_ballots(&Ballot::Cancelled),
            rank_correlation: stats::concord(&judged).map(round),
            place_preference: stats::place_preference(&judged).map(round),
            family_preference: None,
            notes: self.notes(),
            vote: None,
            judged,
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.setup.agents.len() - self.lost.len() == 2 {
            let note = "with two members each answer is judged by one other alone; such scores are unstable";
            notes.push(note.to_owned());
        }
        notes
    }

    fn count_ballots(&self, kind: &Ballot) -> u32 {
        let ballots = self.iterations.iter().flat_map(|iteration| &iteration.ballots);
        u32::try_from(ballots.filter(|ballot| *ballot == kind).count()).unwrap_or(u32::MAX)
    }

    /// Returns the answers of the latest iteration that was judged, or else of the current one, the best first.
    fn ranking(&self) -> Vec<RankedResponse> {
        let judged = self.iterations.iter().rposition(|iteration| iteration.marks().next().is_some());
        let Some(index) = judged.or(self.iterations.len().checked_sub(1)) else { return Vec::new() };
        let iteration = &self.iterations[index];
        let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
        let mut tally = iteration.tally();
        tally.sort_by(tally::rank);
        tally.iter().filter_map(|of| self.ranked_response(number, iteration, of)).collect()
    }

    fn agent(&self, member: usize) -> AgentReport {
        let answers = self.iterations.iter().filter_map(|iteration| iteration.answers[member].as_ref());
        let answers: Vec<&Answer> = answers.collect();
        let mut digests: Vec<Digest> = answers.iter().map(|answer| answer.canonical.digest).collect();
        digests.dedup();
        let last = answers.last();
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

    /// Returns every answer of the ranking that differs from the best one, the best of them first.
    fn dissent(&self, winner: Option<&RankedResponse>) -> Vec<Dissent> {
        let best = winner.map(|winner| winner.response.sha256);
        let mut dissent = Vec::new();
        for RankedResponse { response, average_score, ballots, .. } in self.ranking() {
            if Some(response.sha256) == best {
                continue;
            }
            let why = match average_score {
                Some(mean) => format!("scored {mean:.1} of 40 on average, by {ballots} ballots"),
                None => "nobody judged it".to_owned(),
            };
            dissent.push(Dissent {
                agent: response.member,
                stage: if response.iteration == 1 { "blind" } else { "final" },
                text: response.content,
                sha256: response.sha256,
                why,
            });
        }
        dissent
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
