//! A pair that counts depends on the answers of its agents in their order alone. It talks about no number, and what it agrees on is what
//! both agents have declared.

use proptest::prelude::*;
use protocol::text::CanonicalKind;
use protocol::{CallId, Finish, How, NoAgreement, Outcome, RunSetup, Section, Step, TalkForm};
use serde_json::{Value, json};

use crate::support::{Finished, Folder, Play, Tiny, consensus, envelope};

/// A sample that is cut off.
const LOST: u32 = 0;

fn counted_pair() -> RunSetup {
    let mut setup = Tiny::setup();
    setup.params.talk = TalkForm::Differing;
    setup.params.max_repairs = 0;
    setup.canonical = CanonicalKind::Number.into();
    RunSetup::from(setup)
}

/// Plays a pair, whose sample `2 * draft + agent` has this answer. `pick` chooses among the open calls.
fn play(answers: &[u32], declares: [bool; 2], mut pick: impl FnMut() -> usize) -> Play {
    let mut play = Play::new(&counted_pair());
    while play.outcome.is_none() {
        let open: Vec<CallId> = play.open.keys().copied().collect();
        let call = open[pick() % open.len()];
        match call.step {
            Step::Sample => {
                let answer = answers[(2 * call.draft as usize + call.agent) % answers.len()];
                let finish = if answer == LOST { Finish::Length } else { Finish::Stop };
                play.reply(call, &format!("So it is.\nAnswer: {answer}"), finish);
            }
            Step::Envelope => {
                assert_eq!(call.round, 2, "an envelope declares the counted answer, and nothing else");
                let fields = if declares[call.agent] {
                    json!({"accepts": "P1"})
                } else {
                    json!({"status": "WORKING"})
                };
                let text = envelope(&play.open[&call], &fields);
                play.reply(call, &text, Finish::Stop);
            }
            Step::Think | Step::Choose | Step::Weigh => panic!("there is no talk: {call}"),
        }
    }
    play
}

proptest! {
    #[test]
    fn arrival_changes_nothing(
        answers in prop::collection::vec(LOST..5, 12), order in prop::collection::vec(0..8_usize, 16), declares: [bool; 2]
    ) {
        let first = play(&answers, declares, || 0);
        let mut turns = order.iter().cycle();
        let second = play(&answers, declares, || *turns.next().unwrap());
        prop_assert_eq!(&first.outcome, &second.outcome);
        let (report, other) = (first.machine.report(), second.machine.report());
        prop_assert_eq!(&report.section, &other.section);
        prop_assert_eq!(&report.agents, &other.agents);
        prop_assert_eq!(&report.dissent, &other.dissent);
        let Section::Pair(pair) = &report.section else { panic!("no pair") };
        let vote = pair.vote.as_ref().unwrap();
        let (lead, looked_at) = (vote.lead, vote.looked_at);
        prop_assert!((2..=11).contains(&looked_at) && vote.samples.len() >= looked_at as usize);
        match &first.outcome {
            Some(Outcome::Agreed { how, .. }) => {
                prop_assert!(declares == [true; 2] && lead.leader > lead.runner_up);
                let is_unanimous = looked_at == 2 && lead.leader == 2;
                prop_assert_eq!(*how, if is_unanimous { How::Independent } else { How::Voted });
            }
            Some(Outcome::NoAgreement { reason: NoAgreement::NotDeclared }) => {
                prop_assert!(declares != [true; 2] && lead.leader > lead.runner_up);
            }
            Some(Outcome::NoAgreement { reason: NoAgreement::NoDrafts }) => prop_assert_eq!(lead.leader, 0),
            other => {
                let unsettled = Some(Outcome::NoAgreement { reason: NoAgreement::Unsettled });
                prop_assert_eq!(other, &unsettled);
                prop_assert!(looked_at == 11 && lead.leader == lead.runner_up);
            }
        }
    }
}

/// The roleset `solver_checker` counts, both agents declare the answer, and the run verifies.
#[test]
fn solver_checker_counts_and_declares() {
    let folder = Folder::new();
    let words =
        ["run", "--roleset", "solver_checker", "--prompt", "How much is 2+2?", "--mock", "--answer", "4"];
    let finished = Finished::of(consensus(&folder).args(words).args(["--format", "json"])).exits(0);
    let result: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!((&result["how"], &result["text"]), (&json!("independent"), &json!("4")), "{result}");
    assert_eq!(result["usage"]["calls"], json!(4), "two answers and two declarations: {result}");
    assert_eq!(result["agents"][1]["status"], json!("SOLVED"), "{result}");
    assert_eq!(result["pair"]["vote"]["looked_at"], json!(2), "{result}");
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
    // The talk of the protocol's description is one flag away, and the run says what was measured.
    let talk = Finished::of(consensus(&folder).args(words).args(["--talk", "always"])).exits(0);
    assert!(talk.stderr.contains("pair that talks was right on 45 %"), "{}", talk.stderr);
}
