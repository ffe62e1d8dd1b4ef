//! The form `differing`: blind answers of the members are counted, and no member judges.
//!
//! ```text
//!  first answers   every member answers the bare question alone
//!     │  ├─ all are equal ─────────► agreed (independent)
//!     │  └─ one leads ─────────────► agreed (voted)
//!     ▼
//!  a tie           further blind samples in turn, until one answer leads, at most three
//!     ├─ one leads ────────────────► agreed (voted)
//!     └─ still a tie ──────────────► no agreement, class D; with `on_disagreement: leader`, the answer that came first
//! ```
//!
//! A ballot of a small model is right less often than the answers that it judges, so no answer is judged here. Members answer without their
//! packs, with their name and their field alone.

use super::params::PanelParams;
use super::report::{PanelResponse, PanelSection, RankedResponse};
use crate::contract::{
    Action, Degraded, DegradedKind, Event, Executions, How, NoAgreement, OnDisagreement, Outcome, Protocol,
    Report, Setup, Unexpected, WorstCase,
};
use crate::core::BasisPoints;
use crate::sampling::{SampleReport, Sampler, StopClass, VoterIntroduction, worst_case};

/// The most further samples after a tie.
const TIE_SAMPLES: usize = 3;

/// The certainty of a lead that has a class, as in `vote`.
const CERTAIN: BasisPoints = BasisPoints::of_ten_thousand(9_000);

/// The state of a panel whose blind answers are counted.
#[derive(Clone, Debug)]
pub struct CountedPanel {
    setup: Setup<PanelParams>,
    sampler: Sampler,
    class: Option<StopClass>,
    outcome: Option<Outcome>,
}

/// Returns the most that such a run can cost.
pub(super) fn most(setup: &Setup<PanelParams>) -> WorstCase {
    let members: Vec<usize> = (0..setup.agents.len()).collect();
    worst_case(setup, &members, VoterIntroduction::Line, members.len() + TIE_SAMPLES)
}

impl CountedPanel {
    /// Makes the machine for a run that has not started. `setup` must pass its check.
    pub(super) fn new(setup: Setup<PanelParams>) -> Self {
        let members = (0..setup.agents.len()).collect();
        Self {
            sampler: Sampler::new(&setup, members, VoterIntroduction::Line),
            class: None,
            outcome: None,
            setup,
        }
    }

    /// Asks for the first answers, all at once or one after another, and then for one further sample at a time.
    fn ask_ahead(&mut self) -> Vec<Action> {
        let (members, looked) = (self.setup.agents.len(), self.sampler.looked);
        let count = if self.setup.params.parallel { members.max(looked + 1) } else { looked + 1 };
        self.sampler.ask_up_to(&self.setup, count)
    }

    /// Looks at samples in their order, as far as they are complete, until they decide the run.
    fn look(&mut self) -> Vec<Action> {
        let mut actions = Vec::new();
        while self.sampler.look_at_next() {
            if let Some(outcome) = self.verdict() {
                self.outcome = Some(outcome.clone());
                actions.extend(self.sampler.cancel_open());
                actions.push(Action::Finish(outcome));
                return actions;
            }
            actions.extend(self.ask_ahead());
        }
        actions
    }

    /// Returns the outcome if the samples that were looked at decide it.
    fn verdict(&mut self) -> Option<Outcome> {
        let (members, looked) = (self.setup.agents.len(), self.sampler.looked);
        if looked < members {
            return None;
        }
        let count = self.sampler.count(&self.setup);
        let Some(first) = count.0.first() else {
            return Some(Outcome::NoAgreement { reason: NoAgreement::NoDrafts });
        };
        if count.leader().is_some() {
            let is_unanimous = looked == members && first.votes as usize == members;
            let how = if is_unanimous { How::Independent } else { How::Voted };
            let (text, sha256) = (first.answer.shown.clone(), first.answer.canonical.digest);
            self.class = count.class(CERTAIN);
            return Some(Outcome::Agreed { how, text, sha256 });
        }
        if looked < members + TIE_SAMPLES {
            return None;
        }
        self.class = Some(StopClass::D);
        if self.setup.params.on_disagreement == OnDisagreement::Leader {
            let (text, sha256) = (first.answer.shown.clone(), first.answer.canonical.digest);
            return Some(Outcome::Agreed { how: How::Voted, text, sha256 });
        }
        Some(Outcome::NoAgreement { reason: NoAgreement::Unsettled })
    }

    fn section(&self) -> PanelSection {
        let most = u32::try_from(self.setup.agents.len() + TIE_SAMPLES).unwrap_or(u32::MAX);
        let vote = self.sampler.section(&self.setup, self.class, most);
        let mut responses: Vec<PanelResponse> = Vec::new();
        for sample in &vote.samples {
            responses.extend(response(sample));
        }
        // The answer with the most votes comes first; each has the author that found it first.
        let mut ranking = Vec::new();
        for answer in &vote.answers {
            let author = responses.iter().find(|response| response.sha256 == answer.sha256);
            ranking.extend(author.map(|response| RankedResponse {
                response: response.clone(),
                average_score: None,
                normalized_score: None,
                ballots: 0,
            }));
        }
        let is_agreed = matches!(self.outcome, Some(Outcome::Agreed { .. }));
        PanelSection {
            responses,
            evaluations: Vec::new(),
            winner: if is_agreed { ranking.first().cloned() } else { None },
            consensus_reached: is_agreed,
            iterations: 1,
            consensus_threshold: self.setup.params.threshold,
            ranking,
            void_ballots: 0,
            cancelled_ballots: 0,
            rank_correlation: None,
            place_preference: None,
            family_preference: None,
            notes: vec!["the members' blind answers were counted, and no answer was judged".to_owned()],
            vote: Some(vote),
            judged: Vec::new(),
        }
    }
}

/// Returns the answer of a sample that counts.
fn response(sample: &SampleReport) -> Option<PanelResponse> {
    let (Some(text), Some(sha256), true) = (&sample.text, sample.sha256, sample.counts) else { return None };
    Some(PanelResponse {
        provider: String::new(),
        model: String::new(),
        member: sample.voter.clone(),
        agent: sample.call.agent,
        content: text.clone(),
        sha256,
        iteration: 1,
    })
}

impl AsMut<Executions> for CountedPanel {
    fn as_mut(&mut self) -> &mut Executions {
        &mut self.sampler.executions
    }
}

impl Protocol for CountedPanel {
    type Section = PanelSection;

    fn step(&mut self, event: &Event) -> Result<Vec<Action>, Unexpected> {
        match event {
            Event::Started if self.sampler.samples.is_empty() => Ok(self.ask_ahead()),
            Event::Started => Err(Unexpected::StartedTwice),
            Event::Replied { call, reply } => match self.sampler.take(&self.setup, *call, reply)? {
                Some(ask) => Ok(vec![Action::Ask(ask)]),
                None => Ok(self.look()),
            },
            Event::Found { round, .. } => Err(Unexpected::NotSearched(*round)),
            Event::Executed { key, .. } => Err(Unexpected::NotExecuted(*key)),
        }
    }

    fn report(&self) -> Report<PanelSection> {
        let (setup, sampler) = (&self.setup, &self.sampler);
        let mut degraded = Vec::new();
        let mut agreed = None;
        if let Some(Outcome::Agreed { sha256, .. }) = &self.outcome {
            agreed = Some(*sha256);
            if self.class == Some(StopClass::D) {
                let detail =
                    "the votes did not settle on one answer; this is the one that came first".to_owned();
                degraded.push(Degraded { kind: DegradedKind::Unsettled, detail });
            }
        }
        Report {
            rounds: u32::from(!sampler.samples.is_empty()),
            blind_vote: sampler.blind_vote(setup),
            agents: (0..setup.agents.len()).map(|member| sampler.agent_report(setup, member)).collect(),
            dissent: sampler.dissent(setup, agreed),
            degraded,
            section: self.section(),
        }
    }

    fn remark(&self) -> Option<&'static str> {
        None
    }
}
