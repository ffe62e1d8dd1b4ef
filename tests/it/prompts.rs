//! What an agent is told when, and how warm it answers.

use consensus::protocol::pair::RULES;
use consensus::protocol::{Ask, CallId, Finish, ReplyShape, Setup, Step, Thinking};
use consensus::text::{CanonicalKind, CanonicalRule};
use serde_json::json;

use crate::support::{Play, Tiny, envelope};

/// A run that thinks in free text and whose agents answer at a temperature above zero.
fn thoughtful(kind: CanonicalKind) -> Setup {
    let mut setup = Tiny::setup();
    setup.params.thinking = Thinking::Free;
    setup.canonical = CanonicalRule { kind, choices: vec![] };
    for agent in &mut setup.agents {
        agent.temperature = 0.7;
    }
    setup
}

/// Plays the opening, in which Ann writes 4 and Bob 5, and returns the ask of the turn that follows.
fn after_the_opening(play: &mut Play) -> Ask {
    loop {
        let (call, ask) = play.open.first_key_value().map(|(call, ask)| (*call, ask.clone())).unwrap();
        if call.round > 1 {
            return ask;
        }
        let text = if call.agent == 0 { "4" } else { "5" };
        play.reply(call, &envelope(&ask, &json!({"text": text})), Finish::Stop);
    }
}

fn said(ask: &Ask) -> String {
    ask.messages.iter().map(|message| message.content.as_str()).collect::<Vec<_>>().join("\n")
}

#[test]
fn thoughts_are_warm_the_commit_to_them_is_cold_and_a_second_attempt_warm() {
    let mut play = Play::new(&thoughtful(CanonicalKind::Text));
    let think = CallId { round: 1, agent: 0, draft: 0, step: Step::Think, attempt: 0 };
    let commit = CallId { step: Step::Envelope, ..think };
    let again = CallId { attempt: 1, ..commit };
    let warm = |play: &Play, call: CallId| play.open[&call].temperature > 0.0;
    assert!(warm(&play, think));
    play.reply(think, "2 and 2 makes 4.", Finish::Stop);
    assert!(!warm(&play, commit));
    play.reply(commit, "no envelope", Finish::Stop);
    assert!(warm(&play, again));
}

#[test]
fn a_number_is_worked_out_again_before_the_peers_is_seen() {
    let mut play = Play::new(&thoughtful(CanonicalKind::Number));
    let think = after_the_opening(&mut play);
    let peers = if think.call.agent == 0 { "\"5\"" } else { "\"4\"" };
    assert!(think.call.step == Step::Think && !said(&think).contains(peers), "{}", said(&think));
    play.reply(think.call, "It is what it was.", Finish::Stop);
    let commit = after_the_opening(&mut play);
    assert!(commit.call.step == Step::Envelope && said(&commit).contains(peers), "{}", said(&commit));
}

#[test]
fn prose_is_compared_with_the_peers() {
    let mut play = Play::new(&thoughtful(CanonicalKind::Text));
    let think = after_the_opening(&mut play);
    assert!(think.call.step == Step::Think && said(&think).contains("P1 and P2"), "{}", said(&think));
}

#[test]
fn the_rules_of_the_talk_are_told_once_and_with_the_first_turn() {
    for thinking in [Thinking::Free, Thinking::None] {
        for kind in [CanonicalKind::Text, CanonicalKind::Number] {
            let mut setup = thoughtful(kind);
            setup.params.thinking = thinking;
            let mut play = Play::new(&setup);
            assert!(play.open.values().all(|ask| !said(ask).contains(RULES.trim())));
            // Both insist until neither has anything new to say.
            let mut last = vec![String::new(); 2];
            play.run_to_end(|ask| {
                last[ask.call.agent] = said(ask);
                envelope(ask, &json!({"text": if ask.call.agent == 0 { "4" } else { "5" }}))
            });
            assert!(last.iter().all(|text| text.matches(RULES.trim()).count() == 1));
        }
    }
}

#[test]
fn a_decision_comes_first_where_thoughts_are_written_down_and_last_where_not() {
    for (thinking, decides_first) in
        [(Thinking::Free, true), (Thinking::Field, true), (Thinking::None, false)]
    {
        let mut setup = thoughtful(CanonicalKind::Text);
        setup.params.thinking = thinking;
        let mut play = Play::new(&setup);
        let mut call = CallId { round: 1, agent: 0, draft: 0, step: Step::Envelope, attempt: 0 };
        if thinking == Thinking::Free {
            call.step = Step::Think;
            play.reply(call, "hm", Finish::Stop);
            call.step = Step::Envelope;
        }
        let ReplyShape::Json { schema, .. } = &play.open[&call].shape else {
            panic!("an envelope is asked for")
        };
        let place = |field: &str| schema.as_str().find(&format!("\"{field}\":{{")).unwrap();
        assert_eq!(place("status") < place("task_understanding"), decides_first, "{thinking:?}");
    }
}
