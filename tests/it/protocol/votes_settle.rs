//! A vote depends on the samples in their order alone: not on the order in which they arrive, on how many are asked for ahead, or on
//! the names of its voters; and nothing counts that comes after its stop.

use proptest::prelude::*;
use protocol::text::{CanonicalKind, CanonicalRule};
use protocol::vote::VoteParams;
use protocol::{
    Action, CallId, Event, Finish, How, Lead, Machine, Method, NoAgreement, OnDisagreement, Outcome,
    Protocol as _, Reply, RunSetup, Section, VoteStop,
};

use crate::support::{Play, Tiny};

/// Two voters that answer in words, so that no program has to be run.
fn two_voters(params: VoteParams) -> RunSetup {
    let mut setup = Tiny::vote(2);
    setup.params = params;
    RunSetup::from(setup)
}

/// What each sample answers, by its number; `None` is no vote.
fn said(answer: Option<u32>) -> String {
    answer.map_or("I do not know.\nAnswer: ".to_owned(), |number| format!("So it is.\nAnswer: {number}"))
}

/// Returns the number of the sample of a call, with two voters in turn.
fn sample(call: CallId) -> usize {
    2 * call.draft as usize + call.agent
}

/// Plays a vote, and answers open calls in the order that `pick` chooses.
fn play(setup: &RunSetup, answers: &[Option<u32>], mut pick: impl FnMut(usize) -> usize) -> Play {
    let mut play = Play::new(setup);
    while play.outcome.is_none() {
        let open: Vec<CallId> = play.open.keys().copied().collect();
        let call = open[pick(open.len()) % open.len()];
        // A form after a text without an answer holds none either.
        play.reply(call, &said(answers[sample(call) % answers.len()]), Finish::Stop);
    }
    play
}

fn section(machine: &Machine) -> protocol::sampling::VoteSection {
    match machine.report().section {
        Section::Vote(section) => *section,
        Section::Pair(_)
        | Section::Council(_)
        | Section::Panel(_)
        | Section::Approval(_)
        | Section::MapReduce(_) => panic!("not a vote"),
    }
}

fn any_answers() -> impl Strategy<Value = Vec<Option<u32>>> {
    prop::collection::vec(prop::option::weighted(0.85, 1..4_u32), 1..24)
}

fn any_params() -> impl Strategy<Value = VoteParams> {
    let stop = prop::sample::select(vec![VoteStop::Fast, VoteStop::Sure, VoteStop::None]);
    let otherwise = prop::sample::select(vec![OnDisagreement::Abstain, OnDisagreement::Leader]);
    let params =
        (stop, prop::option::of(1..24_u32), otherwise).prop_map(|(stop, samples_max, on_disagreement)| {
            VoteParams { stop, samples_max, on_disagreement, ..VoteParams::default() }
        });
    params.prop_filter("a lead is possible", |params| two_voters(params.clone()).check().is_ok())
}

proptest! {
    /// A vote ends the same whatever the order of replies and however many samples are asked ahead.
    #[test]
    fn arrival_and_ahead_leave_outcome_unchanged(
        params in any_params(), answers in any_answers(), order in prop::collection::vec(0..16_usize, 64), ahead in 1..30_u32
    ) {
        let first = play(&two_voters(params.clone()), &answers, |_| 0);
        let mut turns = order.iter().cycle();
        let other = two_voters(VoteParams { ahead: Some(ahead), ..params });
        let second = play(&other, &answers, |_| *turns.next().unwrap());
        prop_assert_eq!(&first.outcome, &second.outcome);
        let (one, two) = (section(&first.machine), section(&second.machine));
        prop_assert_eq!((one.class, one.lead, one.certainty, one.answers), (two.class, two.lead, two.certainty, two.answers));
        prop_assert_eq!(one.looked_at, two.looked_at);
    }

    /// A vote ends when its stop rule is met, its samples are used up, or no further sample can change the result.
    #[test]
    fn vote_ends_by_its_stop_rule(params in any_params(), answers in any_answers()) {
        let ended = play(&two_voters(params.clone()), &answers, |_| 0);
        let vote = section(&ended.machine);
        let most = params.most();
        prop_assert!(vote.looked_at <= most);
        let is_enough = params.enough().is_some_and(|share| vote.certainty.reaches(share));
        match (&ended.outcome, params.stop) {
            (Some(Outcome::Agreed { how, .. }), VoteStop::None) => {
                prop_assert_eq!(*how, How::Voted);
                prop_assert_eq!(vote.looked_at, most);
                let takes_tied = params.on_disagreement == OnDisagreement::Leader;
                prop_assert!(takes_tied || vote.lead.leader > vote.lead.runner_up);
            }
            (Some(Outcome::Agreed { .. }), _) => {
                let is_first = params.stop == VoteStop::Fast && vote.looked_at == 2;
                let takes_any = params.on_disagreement == OnDisagreement::Leader && vote.looked_at == most;
                prop_assert!(is_enough || is_first || takes_any);
            }
            (Some(Outcome::NoAgreement { reason }), _) => {
                // It ends early only where no further sample could change that.
                let best = Lead { leader: vote.lead.leader + most - vote.looked_at, ..vote.lead };
                let can_be_enough = params.enough().is_some_and(|share| best.certainty().reaches(share));
                let takes_any = params.on_disagreement == OnDisagreement::Leader;
                prop_assert!(vote.looked_at == most || !can_be_enough && !takes_any);
                prop_assert!(!is_enough);
                prop_assert_eq!(*reason == NoAgreement::NoDrafts, vote.answers.is_empty());
            }
            other => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn names_of_voters_change_nothing(params in any_params(), answers in any_answers()) {
        let mut renamed = two_voters(params.clone());
        renamed.agents[0].name = "Zoe".to_owned();
        renamed.agents[1].name = "Amy".to_owned();
        let (one, two) = (play(&two_voters(params), &answers, |_| 0), play(&renamed, &answers, |_| 0));
        prop_assert_eq!(&one.outcome, &two.outcome);
        prop_assert_eq!(section(&one.machine).class, section(&two.machine).class);
    }
}

#[test]
fn samples_after_the_stop_count_for_nothing() {
    let params = VoteParams { ahead: Some(6), ..VoteParams::default() };
    let mut play = Play::new(&two_voters(params));
    let calls: Vec<CallId> = play.open.keys().copied().collect();
    assert_eq!(calls.len(), 6);
    // The last ones come first, and differ.
    for call in calls.iter().rev() {
        if play.open.contains_key(call) {
            let answer = if sample(*call) < 2 { 4 } else { 5 };
            play.reply(*call, &said(Some(answer)), Finish::Stop);
        }
    }
    let vote = section(&play.machine);
    assert_eq!((vote.looked_at, vote.lead.leader, vote.lead.runner_up), (2, 2, 0));
    assert!(vote.samples.iter().skip(2).all(|sample| !sample.counts));
    assert!(matches!(play.outcome, Some(Outcome::Agreed { ref text, .. }) if text == "4"));
}

#[test]
fn voter_prompt_ignores_other_voters() {
    let mixed = RunSetup::from(Tiny::vote(2));
    let alone = {
        let mut setup = Tiny::vote(2);
        setup.agents[0].method = Method::Program;
        setup.params.stop = VoteStop::None;
        RunSetup::from(setup)
    };
    let digest = |setup: &RunSetup, call: CallId| {
        let mut machine = setup.clone().machine();
        let mut wanted = None;
        let mut actions = machine.step(&Event::Started).unwrap();
        for _ in 0..8 {
            let asks: Vec<_> = actions
                .into_iter()
                .filter_map(|action| match action {
                    Action::Ask(ask) => Some(ask),
                    Action::Search(_)
                    | Action::Execute(_)
                    | Action::Cancel(_)
                    | Action::AwaitPermit
                    | Action::Finish(_) => None,
                })
                .collect();
            let Some(ask) = asks.first().cloned() else { break };
            wanted = wanted.or_else(|| asks.iter().find(|ask| ask.call == call).map(|ask| ask.digest));
            let reply =
                Reply { text: said(Some(4)), reasoning: None, finish: Finish::Stop, yes: None, model: None };
            actions = machine.step(&Event::Replied { call: ask.call, reply }).unwrap();
        }
        wanted
    };
    let call = Play::new(&alone).open.keys().next().copied().unwrap();
    assert_eq!(call.agent, 1, "the voter that writes programs is silent");
    assert_eq!(digest(&alone, call), digest(&mixed, call));
}

/// Samples show the options in orders of their own, and the answer carries the letter that the task gives it.
#[test]
fn options_are_shuffled_and_counted_as_named() {
    let mut setup = Tiny::vote(1);
    setup.task.prompt = "Which is a fruit?\nA) Apple\nB) Brick\nC) Cloud\nD) Dust".to_owned();
    let choices = ["A", "B", "C", "D"].map(str::to_owned).to_vec();
    setup.canonical = CanonicalRule { kind: CanonicalKind::Choice, choices, decimal: None };
    setup.params = VoteParams { stop: VoteStop::None, samples_max: Some(12), ..VoteParams::default() };
    let mut play = Play::new(&setup);
    let mut letters = std::collections::BTreeSet::new();
    let outcome = play.run_to_end(|ask| {
        let text = &ask.messages.last().unwrap().content;
        let line = text.lines().find(|line| line.ends_with(") Apple")).unwrap();
        letters.insert(line.chars().next().unwrap());
        format!("It is the apple.\nAnswer: {}", line.chars().next().unwrap())
    });
    assert!(letters.len() > 1, "{letters:?}");
    assert!(matches!(outcome, Outcome::Agreed { ref text, .. } if text == "A"), "{outcome:?}");
}

/// A reply that is cut off or declined uses up a sample and gives no vote.
#[test]
fn cut_or_declined_reply_is_no_vote() {
    for (text, finish, why) in [("Answer: 4", Finish::Length, "cut off"), ("", Finish::Refused, "declined")] {
        let mut play = Play::new(&two_voters(VoteParams {
            stop: VoteStop::None,
            samples_max: Some(1),
            ..VoteParams::default()
        }));
        let call = *play.open.keys().next().unwrap();
        play.reply(call, text, finish);
        let vote = section(&play.machine);
        assert!(vote.samples[0].no_vote.as_ref().unwrap().contains(why), "{vote:?}");
        assert_eq!(play.outcome, Some(Outcome::NoAgreement { reason: NoAgreement::NoDrafts }));
    }
}
