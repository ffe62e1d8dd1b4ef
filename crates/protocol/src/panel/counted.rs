//! The form `differing`: blind answers of the members are counted, and no member judges.
//!
//! Every member answers the bare question once, and a tie adds at most three samples in turn ([`Counting`]).
//!
//! A ballot of a small model is right less often than the answers that it judges, so no answer is judged here. Members answer without their
//! packs, with their name and their field alone.

use super::params::PanelParams;
use super::report::{PanelResponse, PanelSection, RankedResponse};
use crate::contract::{Action, Event, Executions, Outcome, Protocol, Report, Setup, Unexpected, WorstCase};
use crate::sampling::{
    AnswerExtent, CountProgress, CountRule, Counting, LongTexts, SampleForm, SampleReport, VoterIntroduction,
};

/// The state of a panel whose blind answers are counted.
#[derive(Clone, Debug)]
pub struct CountedPanel {
    setup: Setup<PanelParams>,
    counting: Counting,
    outcome: Option<Outcome>,
}

fn rule(setup: &Setup<PanelParams>) -> CountRule {
    let members = setup.agents.len();
    CountRule {
        first: members,
        most: members,
        ahead: if setup.params.parallel { members } else { 1 },
        needs_certainty: false,
        on_disagreement: setup.params.on_disagreement,
        long_texts: LongTexts::Medoid { least: members, most: members },
    }
}

/// The solution comes before the answer, in texts too: without it, a small model is right less often.
const FORM: SampleForm = SampleForm { introduction: VoterIntroduction::Line, answer: AnswerExtent::Line };

/// Returns the most that such a run can cost.
pub(super) fn worst_case(setup: &Setup<PanelParams>) -> WorstCase {
    let members: Vec<usize> = (0..setup.agents.len()).collect();
    rule(setup).worst_case(setup, &members, FORM)
}

impl CountedPanel {
    /// Makes the machine for a run that has not started. `setup` must pass its check.
    pub(super) fn new(setup: Setup<PanelParams>) -> Self {
        let members = (0..setup.agents.len()).collect();
        let counting = Counting::new(&setup, members, FORM, rule(&setup));
        Self { counting, outcome: None, setup }
    }

    fn follow(&mut self, progress: CountProgress) -> Vec<Action> {
        match progress {
            CountProgress::Ask(actions) => actions,
            CountProgress::Decided(decision, mut actions) => {
                let outcome = decision.into_outcome();
                self.outcome = Some(outcome.clone());
                actions.push(Action::Finish(outcome));
                actions
            }
        }
    }

    fn section(&self) -> PanelSection {
        let vote = self.counting.section(&self.setup);
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
        self.counting.as_mut()
    }
}

impl Protocol for CountedPanel {
    type Section = PanelSection;

    fn step(&mut self, event: &Event) -> Result<Vec<Action>, Unexpected> {
        let progress = self.counting.step(&self.setup, event)?;
        Ok(self.follow(progress))
    }

    fn report(&self) -> Report<PanelSection> {
        let outcome = self.outcome.as_ref();
        self.counting.report(&self.setup, outcome, self.section())
    }

    fn remark(&self) -> Option<&'static str> {
        None
    }
}
