//! The properties of a vote that waits for permits.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::contract::{
    Action, CallId, Event, Finish, Interpreter, Lead, Method, NoAgreement, OnDisagreement, Outcome, Protocol,
    Reply, Unexpected, VoteStop,
};
use crate::sampling::{AnswerExtent, StopClass, VoteSection};
use crate::text::{CanonicalKind, TextMemos};

/// The most permits that any play gives.
const PERMITS_MAX: usize = 20;

fn paced() -> VoteParams {
    VoteParams { paced: true, ..VoteParams::default() }
}

fn setup(voters: usize, params: VoteParams) -> Setup<VoteParams> {
    let agent = |at: usize| AgentSetup {
        name: format!("V{at}"),
        domain: "sums".to_owned(),
        pack: format!("You add numbers in way {at}."),
        comparing: String::new(),
        temperature: 0.7,
        max_tokens: 500,
        method: Method::Words,
    };
    Setup {
        roleset: "votes".to_owned(),
        task: Task { prompt: "How much is 2 + 2?".to_owned(), ..Task::default() },
        seed: 7,
        agents: (0..voters).map(agent).collect(),
        arbiter: None,
        canonical: CanonicalKind::Number.into(),
        params,
        rules: String::new(),
        check_command: None,
        interpreter: Interpreter::default(),
        chunk_plan: None,
        memos: TextMemos::default(),
    }
}

/// A play of a paced vote whose samples are known.
struct PacedPlay {
    machine: Voting,
    /// The answer of each sample; `None` is no vote.
    answers: Vec<Option<u32>>,
    voters: usize,
    open: Vec<CallId>,
    asked: usize,
    is_waiting: bool,
    outcome: Option<Outcome>,
}

impl PacedPlay {
    fn new(setup: Setup<VoteParams>, answers: &[Option<u32>]) -> Self {
        let (voters, machine) = (setup.agents.len(), Voting::new(setup));
        let (answers, open) = (answers.to_vec(), Vec::new());
        let mut play = Self { machine, answers, voters, open, asked: 0, is_waiting: false, outcome: None };
        play.step(&Event::Started);
        play
    }

    fn step(&mut self, event: &Event) {
        self.is_waiting = false;
        for action in self.machine.step(event).unwrap() {
            match action {
                Action::Ask(ask) => {
                    self.asked += usize::from(ask.call.step == crate::contract::Step::Sample);
                    self.open.push(ask.call);
                }
                Action::Cancel(call) => self.open.retain(|open| *open != call),
                Action::AwaitPermit => {
                    assert!(self.open.is_empty(), "nothing is open while a run waits");
                    self.is_waiting = true;
                }
                Action::Finish(outcome) => self.outcome = Some(outcome),
                Action::Search(_) | Action::Execute(_) => panic!("a vote in words needs neither"),
            }
        }
    }

    /// Answers open calls in the order that `pick` chooses, until none is open.
    fn answer(&mut self, mut pick: impl FnMut(usize) -> usize) {
        while self.outcome.is_none() && !self.open.is_empty() {
            let call = self.open.remove(pick(self.open.len()) % self.open.len());
            let sample = self.voters * call.draft as usize + call.agent;
            let text = match self.answers[sample % self.answers.len()] {
                Some(number) => format!("So it is.\nAnswer: {number}"),
                None => "I do not know.\nAnswer: ".to_owned(),
            };
            let reply = Reply { text, reasoning: None, finish: Finish::Stop, yes: None, model: None };
            self.step(&Event::Replied { call, reply });
        }
    }

    fn section(&self) -> VoteSection {
        self.machine.make_report().section
    }
}

/// Plays a vote that gets so many permits and is then closed, if it waits for more.
fn play(
    setup: Setup<VoteParams>,
    answers: &[Option<u32>],
    permits: usize,
    mut pick: impl FnMut(usize) -> usize,
) -> PacedPlay {
    let mut play = PacedPlay::new(setup, answers);
    play.answer(&mut pick);
    for _ in 0..permits {
        if play.is_waiting {
            play.step(&Event::Permitted);
            play.answer(&mut pick);
        }
    }
    if play.is_waiting {
        play.step(&Event::Closed);
    }
    play
}

fn any_answers() -> impl Strategy<Value = Vec<Option<u32>>> {
    prop::collection::vec(prop::option::weighted(0.85, 1..4_u32), 1..16)
}

proptest! {
    /// The order in which replies arrive changes neither the outcome nor what is counted.
    #[test]
    fn arrival_changes_no_paced_vote(
        answers in any_answers(), voters in 1..3_usize, permits in 0..PERMITS_MAX, order in prop::collection::vec(0..16_usize, 40)
    ) {
        let mut turns = order.iter().cycle();
        let first = play(setup(voters, paced()), &answers, permits, |_| 0);
        let second = play(setup(voters, paced()), &answers, permits, |_| *turns.next().unwrap());
        prop_assert_eq!(&first.outcome, &second.outcome);
        let (one, two) = (first.section(), second.section());
        prop_assert_eq!((one.class, one.lead, one.looked_at), (two.class, two.lead, two.looked_at));
    }

    /// A permit adds one sample and decides nothing else: the run counts as a plain majority of the samples that it drew.
    #[test]
    fn permits_only_add_samples(answers in any_answers(), voters in 1..3_usize, permits in 0..PERMITS_MAX) {
        let ended = play(setup(voters, paced()), &answers, permits, |_| 0);
        let vote = ended.section();
        let drawn = vote.looked_at;
        prop_assert!(drawn <= SAMPLES_FIRST + u32::try_from(permits).unwrap());
        prop_assert_eq!(ended.asked, vote.samples.len());
        prop_assert!(ended.asked <= paced().most() as usize);
        let all = VoteParams { stop: VoteStop::None, samples_max: Some(drawn), ..VoteParams::default() };
        let majority = play(setup(voters, all), &answers, 0, |_| 0);
        prop_assert_eq!(&ended.outcome, &majority.outcome);
        prop_assert_eq!(vote.answers, majority.section().answers);
    }

    /// A run whose lead is certain enough ends itself, and any other waits for each further sample.
    #[test]
    fn certain_lead_ends_paced_vote(answers in any_answers()) {
        let ended = play(setup(1, paced()), &answers, PERMITS_MAX, |_| 0);
        let vote = ended.section();
        let is_enough = vote.certainty.reaches(paced().enough().unwrap());
        prop_assert!(is_enough || vote.looked_at == paced().most());
        prop_assert_eq!(is_enough, vote.class == Some(StopClass::C));
    }
}

#[test]
fn closed_vote_takes_its_strict_leader() {
    let answers = [Some(4), Some(5), Some(4)];
    let closed = |permits: usize, on_disagreement| {
        let params = VoteParams { on_disagreement, ..paced() };
        let ended = play(setup(1, params), &answers, permits, |_| 0);
        let vote = ended.section();
        assert_eq!(vote.class, Some(StopClass::D));
        match ended.outcome.unwrap() {
            Outcome::Agreed { text, .. } => Ok((text, vote.lead)),
            Outcome::NoAgreement { reason } => Err(reason),
            other @ (Outcome::Abstained { .. }
            | Outcome::Vetoed { .. }
            | Outcome::Budget { .. }
            | Outcome::Failed { .. }
            | Outcome::Interrupted) => panic!("{other:?}"),
        }
    };
    let unsettled = Err(NoAgreement::Unsettled);
    assert_eq!(closed(0, OnDisagreement::Abstain), unsettled, "a tie is no agreement");
    assert_eq!(closed(0, OnDisagreement::Leader), Ok(("4".to_owned(), Lead { leader: 1, runner_up: 1 })));
    assert_eq!(closed(1, OnDisagreement::Abstain), Ok(("4".to_owned(), Lead { leader: 2, runner_up: 1 })));
}

#[test]
fn permits_come_only_where_awaited() {
    let answers = [Some(4)];
    let mut play = PacedPlay::new(setup(1, paced()), &answers);
    assert_eq!(play.machine.step(&Event::Permitted), Err(Unexpected::NotAwaited));
    assert_eq!(play.machine.step(&Event::Closed), Err(Unexpected::NotAwaited));
    play.answer(|_| 0);
    assert!(play.is_waiting, "two equal samples of one voter are 7/8 certain");
    play.step(&Event::Permitted);
    assert_eq!(play.machine.step(&Event::Permitted), Err(Unexpected::NotAwaited));
    play.answer(|_| 0);
    assert!(matches!(play.outcome, Some(Outcome::Agreed { .. })));
    assert_eq!(play.machine.step(&Event::Closed), Err(Unexpected::NotAwaited));
    // A vote without a budget waits for nothing.
    let mut plain = PacedPlay::new(setup(1, VoteParams::default()), &answers);
    plain.answer(|_| 0);
    assert_eq!(plain.machine.step(&Event::Closed), Err(Unexpected::NotAwaited));
}

#[test]
fn settings_without_sense_are_refused() {
    let faults: BTreeMap<&str, VoteParams> = BTreeMap::from([
        ("`stop` is", VoteParams { stop: VoteStop::None, ..paced() }),
        ("`ahead` is", VoteParams { ahead: Some(2), ..paced() }),
        ("`samples_max` is", VoteParams { samples_max: Some(1), ..paced() }),
        (
            "whole replies",
            VoteParams { samples_max: Some(17), answer: AnswerExtent::Whole, ..VoteParams::default() },
        ),
    ]);
    for (part, params) in faults {
        assert!(params.out_of_range().is_some_and(|why| why.starts_with(part)), "{part}");
    }
    assert_eq!(paced().out_of_range(), None);
    assert!(!serde_json::to_string(&VoteParams::default()).unwrap().contains("paced"));
}
