//! The form `differing`: blind answers of the members are counted, and no member judges.
//!
//! ```text
//!  first answers   every member answers the bare question alone
//!     │  ├─ all are equal ─────────► agreed (independent)
//!     │  ├─ one leads ─────────────► agreed (voted)
//!     │  └─ no member has one ─────► no agreement
//!     ▼
//!  a tie           further blind samples in turn, until one answer leads, at most three
//!     ├─ one leads ────────────────► agreed (voted)
//!     └─ still a tie ──────────────► no agreement, class D; with `on_disagreement: leader`, the answer that came first of
//!                                    those with the most votes
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
use crate::sampling::{self, CERTAIN, SampleReport, Sampler, StopClass, VoterIntroduction};

/// The most further samples after a tie.
const TIE_SAMPLES: usize = 3;

/// The state of a panel whose blind answers are counted.
#[derive(Clone, Debug)]
pub struct CountedPanel {
    setup: Setup<PanelParams>,
    sampler: Sampler,
    /// A or C for a lead that is certain enough, D for a tie that stays.
    class: Option<StopClass>,
    outcome: Option<Outcome>,
}

/// Returns the most that such a run can cost.
pub(super) fn worst_case(setup: &Setup<PanelParams>) -> WorstCase {
    let members: Vec<usize> = (0..setup.agents.len()).collect();
    sampling::worst_case(setup, &members, VoterIntroduction::Line, members.len() + TIE_SAMPLES)
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
                actions.extend(self.sampler.finish(outcome));
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
        let leads = count.leader().is_some();
        if !leads && looked < members + TIE_SAMPLES {
            return None;
        }
        self.class = if leads { count.class(CERTAIN) } else { Some(StopClass::D) };
        if !leads && self.setup.params.on_disagreement == OnDisagreement::Abstain {
            return Some(Outcome::NoAgreement { reason: NoAgreement::Unsettled });
        }
        let is_unanimous = looked == members && first.votes as usize == members;
        Some(Outcome::Agreed {
            how: if is_unanimous { How::Independent } else { How::Voted },
            text: first.answer.shown.clone(),
            sha256: first.answer.canonical.digest,
        })
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
            Event::Started if !self.sampler.has_started() => Ok(self.ask_ahead()),
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
        let mut degraded = Vec::new();
        let is_agreed = matches!(self.outcome, Some(Outcome::Agreed { .. }));
        if is_agreed && self.class == Some(StopClass::D) {
            let detail =
                "the votes did not settle on one answer; of those with the most votes, this one came first";
            degraded.push(Degraded { kind: DegradedKind::Unsettled, detail: detail.to_owned() });
        }
        self.sampler.report(&self.setup, self.outcome.as_ref(), degraded, self.section())
    }

    fn remark(&self) -> Option<&'static str> {
        None
    }
}
