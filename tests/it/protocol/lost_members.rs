//! A panel and a vote continue without members whose servers fail, while enough of them remain. What follows depends on the calls that
//! failed, and not on the order in which replies and failures arrive.

use std::collections::BTreeSet;

use proptest::prelude::*;
use protocol::sampling::VoteSection;
use protocol::text::CanonicalKind;
use protocol::vote::VoteParams;
use protocol::{
    AgentSetup, Ask, CallId, Event, Finish, How, Method, NoAgreement, Outcome, Params, Protocol as _,
    RunSetup, Section, TalkForm, Unexpected, VoteStop,
};
use serde_json::json;

use crate::support::{Play, Tiny, in_round, member};

const MEMBERS: usize = 5;

/// The fewest members that must remain, so that two may be lost.
const MIN: u32 = 3;

fn panel(talk: TalkForm) -> RunSetup {
    let mut setup = Tiny::panel();
    (setup.params.talk, setup.params.min_members) = (talk, Some(MIN));
    setup.canonical = CanonicalKind::Number.into();
    let first = setup.agents[0].clone();
    for name in ["Dan", "Eve"] {
        setup.agents.push(AgentSetup { name: name.to_owned(), ..first.clone() });
    }
    RunSetup::from(setup)
}

fn vote(stop: VoteStop, ahead: Option<u32>) -> RunSetup {
    let mut setup = Tiny::vote(MEMBERS);
    setup.params = VoteParams { stop, samples_max: Some(12), ahead, min_members: Some(MIN), ..setup.params };
    RunSetup::from(setup)
}

/// Which calls of two members fail for good: bit `round + draft` of each member's number.
fn any_failures() -> impl Strategy<Value = Vec<u16>> {
    (prop::sample::subsequence((0..MEMBERS).collect::<Vec<_>>(), 0..=2), any::<u16>(), any::<u16>()).prop_map(
        |(members, one, other)| {
            let mut failures = vec![0; MEMBERS];
            for (member, fails) in members.into_iter().zip([one, other]) {
                failures[member] = fails;
            }
            failures
        },
    )
}

fn fails(failures: &[u16], call: CallId) -> bool {
    failures[call.agent] >> (call.round + call.draft).min(15) & 1 == 1
}

/// Plays a run in which these calls fail. `pick` chooses among the open calls.
fn play(
    setup: &RunSetup,
    failures: &[u16],
    mut pick: impl FnMut() -> usize,
    say: impl Fn(&Ask) -> String,
) -> Play {
    let mut play = Play::new(setup);
    while play.outcome.is_none() {
        let open: Vec<CallId> = play.open.keys().copied().collect();
        assert!(!open.is_empty(), "the run waits for nothing");
        let call = open[pick() % open.len()];
        if fails(failures, call) {
            play.lose(call);
        } else {
            let text = say(&play.open[&call]);
            play.reply(call, &text, Finish::Stop);
        }
    }
    play
}

/// Returns a sample with the answer of its member and draft.
fn sample(answers: &[u32], ask: &Ask) -> String {
    let number = MEMBERS * ask.call.draft as usize + ask.call.agent;
    format!("So it is.\nAnswer: {}", answers[number % answers.len()])
}

fn votes(play: &Play) -> VoteSection {
    play.machine.report().section.votes().unwrap().clone()
}

/// Returns why each sample that counts is no vote, if it is not one.
fn reasons(votes: &VoteSection) -> Vec<Option<&str>> {
    votes.samples.iter().filter(|sample| sample.counts).map(|sample| sample.no_vote.as_deref()).collect()
}

proptest! {
    /// Neither the order of arrival nor the number of samples asked for ahead changes what a loss leads to.
    #[test]
    fn losses_in_any_order_end_alike(
        answers in prop::collection::vec(1..4_u32, 1..24), failures in any_failures(),
        order in prop::collection::vec(0..16_usize, 64), ahead in 1..12_u32,
        stop in prop::sample::select(vec![VoteStop::Fast, VoteStop::Sure, VoteStop::None]),
    ) {
        let mut one_at_a_time = panel(TalkForm::Differing);
        if let Params::Panel(params) = &mut one_at_a_time.params {
            params.parallel = false;
        }
        for (setup, other) in [
            (vote(stop, None), vote(stop, Some(ahead))),
            (one_at_a_time, panel(TalkForm::Differing)),
        ] {
            let mut turns = order.iter().cycle();
            let first = play(&setup, &failures, || 0, |ask| sample(&answers, ask));
            let second = play(&other, &failures, || *turns.next().unwrap(), |ask| sample(&answers, ask));
            prop_assert_eq!(&first.outcome, &second.outcome);
            let (one, two) = (votes(&first), votes(&second));
            prop_assert_eq!((one.class, one.lead, one.looked_at), (two.class, two.lead, two.looked_at));
            prop_assert_eq!(&one.answers, &two.answers);
            prop_assert_eq!(reasons(&one), reasons(&two));
            // After its first loss, a voter has no vote, and its server is named once.
            for name in setup.agents.iter().map(|agent| &agent.name) {
                let its = one.samples.iter().filter(|sample| sample.counts && sample.voter == *name);
                let its: Vec<bool> = its.map(|sample| sample.no_vote.is_some()).collect();
                prop_assert!(its.is_sorted(), "{name}: {its:?}");
            }
        }
    }

    #[test]
    fn judges_lost_in_any_order_end_alike(
        failures in any_failures(), order in prop::collection::vec(0..16_usize, 64),
        scores in prop::collection::vec(1..=10, 3), answers in prop::collection::vec(1..4_u32, MEMBERS),
    ) {
        let setup = panel(TalkForm::Always);
        let say = |ask: &Ask| member(ask, &json!({
            "response": answers[ask.call.agent].to_string(),
            "scores": {"1": scores[0], "2": scores[1], "3": scores[2]},
        }));
        let mut turns = order.iter().cycle();
        let first = play(&setup, &failures, || 0, say);
        let second = play(&setup, &failures, || *turns.next().unwrap(), say);
        prop_assert_eq!(&first.outcome, &second.outcome);
        let (one, two) = (first.machine.report(), second.machine.report());
        prop_assert_eq!(&one.blind_vote, &two.blind_vote);
        prop_assert_eq!(&one.agents, &two.agents);
    }
}

/// The others agree, and the answer of the lost member is missing.
#[test]
fn panel_agrees_without_a_lost_member() {
    for talk in [TalkForm::Always, TalkForm::Differing] {
        let setup = panel(talk);
        let failures = [0, 0, u16::MAX, 0, 0];
        let say = |ask: &Ask| match talk {
            TalkForm::Always => member(ask, &json!({"response": "4", "scores": {"4": 9}})),
            TalkForm::Differing => sample(&[4], ask),
        };
        let ended = play(&setup, &failures, || 0, say);
        let Some(Outcome::Agreed { how, text, .. }) = &ended.outcome else { panic!("{:?}", ended.outcome) };
        assert_eq!(text, "4");
        let report = ended.machine.report();
        assert_eq!((report.blind_vote.missing, report.blind_vote.tally[0].votes), (1, 4));
        let Section::Panel(section) = &report.section else { panic!("no panel") };
        match talk {
            TalkForm::Always => {
                assert_eq!((*how, section.void_ballots, ended.asked), (How::Scored, 1, 9));
            }
            TalkForm::Differing => {
                let votes = section.vote.as_ref().unwrap();
                let why = votes.samples[2].no_vote.as_deref();
                assert_eq!(why, Some("its server failed: the connection broke"));
                assert_eq!((*how, ended.asked), (How::Voted, 5));
            }
        }
    }
}

/// A member that is lost in one iteration is asked for nothing in the next ones.
#[test]
fn lost_member_is_not_asked_again() {
    let setup = panel(TalkForm::Always);
    let mut play = Play::new(&setup);
    let say = |ask: &Ask| {
        let response = format!("{}{}", ask.call.agent, ask.call.round);
        member(ask, &json!({"response": response}))
    };
    for round in 1..=6 {
        let open = in_round(&play, round);
        assert_eq!(open.len(), if round <= 2 { MEMBERS } else { MEMBERS - 1 }, "round {round}");
        for call in open {
            if round == 2 && call.agent == 0 {
                play.lose(call);
            } else {
                let text = say(&play.open[&call]);
                play.reply(call, &text, Finish::Stop);
            }
        }
    }
    assert_eq!(play.outcome, Some(Outcome::NoAgreement { reason: NoAgreement::Threshold }));
    let Section::Panel(section) = play.machine.report().section else { panic!("no panel") };
    assert_eq!((section.void_ballots, section.iterations), (3, 3));
}

/// A sample of a lost voter that was asked for ahead is cancelled, and does not count if its reply was first.
#[test]
fn samples_after_a_loss_are_given_up() {
    let mut setup = Tiny::vote(3);
    setup.params = VoteParams {
        stop: VoteStop::None,
        samples_max: Some(9),
        ahead: Some(9),
        min_members: Some(2),
        ..setup.params
    };
    let mut play = Play::new(&setup);
    let calls: Vec<CallId> = play.open.keys().copied().filter(|call| call.agent == 0).collect();
    let [first, second, third] = calls[..] else { panic!("{calls:?}") };
    play.reply(second, "Answer: 5", Finish::Stop);
    play.lose(first);
    assert!(!play.open.contains_key(&third), "it is cancelled");
    let outcome = play.run_to_end(|_| "Answer: 4".to_owned());
    assert!(matches!(&outcome, Outcome::Agreed { text, .. } if text == "4"), "{outcome:?}");
    let votes = votes(&play);
    assert_eq!((votes.lead.leader, votes.lead.runner_up, votes.looked_at), (6, 0, 9));
    let before =
        votes.samples.iter().filter(|one| one.no_vote.as_deref() == Some("its server failed before"));
    assert_eq!(before.count(), 2);
}

/// A machine takes no loss that its run does not bear. Only a panel and a vote on whole documents bear any.
#[test]
fn unbearable_loss_is_no_event() {
    let one = BTreeSet::from([0]);
    let mut vote = Tiny::vote(1);
    vote.params.min_members = Some(1);
    for setup in [
        RunSetup::from(Tiny::setup()),
        RunSetup::from(Tiny::council()),
        RunSetup::from(Tiny::approval(4)),
        RunSetup::from(Tiny::vote(2)),
        RunSetup::from(vote),
    ] {
        assert!(!setup.bears_loss_of(&one));
        let mut play = Play::new(&setup);
        let call = *play.open.keys().next().unwrap();
        let lost = Event::Lost { call, cause: "the connection broke".to_owned() };
        assert_eq!(play.machine.step(&lost), Err(Unexpected::NotAsked(call)));
    }
    for talk in [TalkForm::Always, TalkForm::Differing] {
        let mut setup = Tiny::panel();
        setup.params.talk = talk;
        let setup = RunSetup::from(setup);
        assert!(setup.bears_loss_of(&one) && !setup.bears_loss_of(&BTreeSet::from([0, 1])));
        let mut play = Play::new(&setup);
        let calls: Vec<CallId> = play.open.keys().copied().collect();
        play.lose(calls[0]);
        for call in &calls[..2] {
            let lost = Event::Lost { call: *call, cause: "the connection broke".to_owned() };
            assert_eq!(play.machine.step(&lost), Err(Unexpected::NotAsked(*call)));
        }
    }
    let mut pieces = RunSetup::from(Tiny::panel());
    pieces.chunk_plan =
        Some(protocol::contract::ChunkPlan { pieces: Vec::new(), tokens_max: 1000, at_once: 1 });
    assert!(!pieces.bears_loss_of(&one));
}

#[test]
fn min_members_stays_within_the_members() {
    let mut of_panel = Tiny::panel();
    let mut of_vote = Tiny::vote(3);
    of_vote.agents[2].method = Method::Program;
    for (min, panel_fits, vote_fits) in [
        (0, false, false),
        (1, true, true),
        (2, true, true),
        (3, true, false),
        (4, false, false),
        (17, false, false),
    ] {
        of_panel.params.min_members = Some(min);
        of_vote.params.min_members = Some(min);
        let (of_panel, of_vote) = (RunSetup::from(of_panel.clone()), RunSetup::from(of_vote.clone()));
        for (setup, fits) in [(of_panel, panel_fits), (of_vote, vote_fits)] {
            let checked = setup.check();
            assert_eq!(checked.is_ok(), fits, "{min}: {checked:?}");
            if let Err(why) = checked {
                assert!(why.to_string().contains("`min_members`"), "{why}");
            }
        }
    }
}
