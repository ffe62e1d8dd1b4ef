//! A vote over whole replies: texts of any length, which are compared and not only counted.
//!
//! ```text
//!  drafts    2 with `stop: fast`, 4 with `stop: sure`, all of them with `stop: none`
//!     │  ├─ all are equal, or say the same ──────► agreed (voted, or the medoid of long ones)
//!     │  ├─ all are short ─► further drafts ─────► agreed (voted), as soon as one answer leads clearly
//!     ▼
//!  long ones   further drafts until 4 are valid, at most 6
//!     ├─ no two state a number, a name or a negation differently ─► agreed (medoid)
//!     └─ two do ───────────────────────────────────────────────────► no agreement; the medoid is shown first
//! ```
//!
//! The input is events. The output is actions. A draft that breaks a rule or a check of the task counts for nothing.

use super::params::VoteParams;
use crate::contract::{
    Action, Event, Executions, How, Outcome, Protocol, Report, Setup, Unexpected, VoteStop, WorstCase,
};
use crate::sampling::{
    AnswerExtent, CountDecision, CountProgress, CountRule, Counting, LongTexts, SampleForm, VoteSection,
    VoterIntroduction,
};

/// The drafts of a long text that are compared, and the most that are drawn for them.
const LONG_DRAFTS: usize = 4;
const LONG_DRAFTS_MAX: usize = 6;

const FORM: SampleForm = SampleForm { introduction: VoterIntroduction::Pack, answer: AnswerExtent::Whole };

/// The state of one vote over whole replies.
#[derive(Clone, Debug)]
pub struct TextVote {
    setup: Setup<VoteParams>,
    counting: Counting,
    outcome: Option<Outcome>,
}

fn rule(params: &VoteParams) -> CountRule {
    let most = params.most() as usize;
    let (first, least) = match params.stop {
        VoteStop::Fast => (2, LONG_DRAFTS),
        VoteStop::Sure => (LONG_DRAFTS, LONG_DRAFTS),
        VoteStop::None => (most, most),
    };
    CountRule {
        first: first.min(most),
        most,
        ahead: params.ahead.map_or(first, |ahead| ahead as usize),
        needs_certainty: params.stop != VoteStop::None,
        on_disagreement: params.on_disagreement,
        long_texts: LongTexts::Medoid { least: least.min(most), most: LONG_DRAFTS_MAX.max(least).min(most) },
    }
}

/// Returns the most that such a run can cost.
pub(super) fn worst_case(setup: &Setup<VoteParams>) -> WorstCase {
    rule(&setup.params).worst_case(setup, &setup.params.voters(&setup.agents), FORM)
}

impl TextVote {
    /// Makes the machine for a run that has not started. `setup` must pass its check.
    pub(super) fn new(setup: Setup<VoteParams>) -> Self {
        let voters = setup.params.voters(&setup.agents);
        let counting = Counting::new(&setup, voters, FORM, rule(&setup.params));
        Self { setup, counting, outcome: None }
    }

    fn follow(&mut self, progress: CountProgress) -> Vec<Action> {
        let (decision, mut actions) = match progress {
            CountProgress::Ask(actions) => return actions,
            CountProgress::Decided(decision, actions) => (decision, actions),
        };
        let decision = match decision {
            // The drafts of one model are no independent members.
            CountDecision::Answer { how: How::Independent, answer } => {
                CountDecision::Answer { how: How::Voted, answer }
            }
            CountDecision::Answer { .. } | CountDecision::NoAnswer(_) | CountDecision::LongTexts(_) => {
                decision
            }
        };
        let outcome = decision.into_outcome();
        self.outcome = Some(outcome.clone());
        actions.push(Action::Finish(outcome));
        actions
    }
}

impl AsMut<Executions> for TextVote {
    fn as_mut(&mut self) -> &mut Executions {
        self.counting.as_mut()
    }
}

impl Protocol for TextVote {
    type Section = VoteSection;

    fn step(&mut self, event: &Event) -> Result<Vec<Action>, Unexpected> {
        let progress = self.counting.step(&self.setup, event)?;
        Ok(self.follow(progress))
    }

    fn report(&self) -> Report<VoteSection> {
        let outcome = self.outcome.as_ref();
        self.counting.report(&self.setup, outcome, self.counting.section(&self.setup))
    }

    fn remark(&self) -> Option<&'static str> {
        None
    }
}
