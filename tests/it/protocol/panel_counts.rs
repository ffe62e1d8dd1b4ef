//! A panel that counts depends on the answers of its members in their order alone. It asks for no more than three samples beyond the
//! first answers, and never for a ballot.

use proptest::prelude::*;
use protocol::text::CanonicalKind;
use protocol::{
    CallId, Finish, How, NoAgreement, OnDisagreement, Outcome, RunSetup, Section, Step, TalkForm,
};
use serde_json::json;

use crate::support::{Finished, Folder, Play, Tiny, consensus};

/// A sample that is cut off.
const LOST: u32 = 0;

fn counted_panel(members: usize, on_disagreement: OnDisagreement, parallel: bool) -> RunSetup {
    let mut setup = Tiny::panel();
    setup.params.talk = TalkForm::Differing;
    setup.params.on_disagreement = on_disagreement;
    setup.params.parallel = parallel;
    setup.canonical = CanonicalKind::Number.into();
    let first = setup.agents[0].clone();
    for member in setup.agents.len()..members {
        let name = format!("M{member}");
        setup.agents.push(protocol::AgentSetup { name, ..first.clone() });
    }
    RunSetup::from(setup)
}

/// Plays a panel, whose sample `members * draft + agent` has this answer. `pick` chooses among the open calls.
fn play(setup: &RunSetup, answers: &[u32], mut pick: impl FnMut() -> usize) -> Play {
    let members = setup.agents.len();
    let mut play = Play::new(setup);
    while play.outcome.is_none() {
        let open: Vec<CallId> = play.open.keys().copied().collect();
        let call = open[pick() % open.len()];
        assert_eq!(call.step, Step::Sample, "no form and no ballot");
        let answer = answers[(members * call.draft as usize + call.agent) % answers.len()];
        let finish = if answer == LOST { Finish::Length } else { Finish::Stop };
        play.reply(call, &format!("So it is.\nAnswer: {answer}"), finish);
    }
    play
}

proptest! {
    #[test]
    fn arrival_changes_nothing(
        answers in prop::collection::vec(LOST..8, 6), order in prop::collection::vec(0..8_usize, 16), parallel: bool, leads: bool
    ) {
        let wish = if leads { OnDisagreement::Leader } else { OnDisagreement::Abstain };
        let first = play(&counted_panel(3, wish, parallel), &answers, || 0);
        let mut turns = order.iter().cycle();
        let second = play(&counted_panel(3, wish, true), &answers, || *turns.next().unwrap());
        prop_assert_eq!(&first.outcome, &second.outcome);
        let (report, other) = (first.machine.report(), second.machine.report());
        prop_assert_eq!(&report.section, &other.section);
        prop_assert_eq!(&report.dissent, &other.dissent);
        let Section::Panel(panel) = &report.section else { panic!("no panel") };
        prop_assert!(panel.evaluations.is_empty());
        let vote = panel.vote.as_ref().unwrap();
        let (lead, looked_at) = (vote.lead, vote.looked_at);
        prop_assert!((3..=6).contains(&looked_at) && vote.samples.len() == looked_at as usize);
        if let Some(Outcome::Agreed { how, .. }) = &first.outcome {
            let is_unanimous = looked_at == 3 && lead.leader == 3;
            prop_assert_eq!(*how, if is_unanimous { How::Independent } else { How::Voted });
            prop_assert!(lead.leader > lead.runner_up || leads && looked_at == 6);
        } else if lead.leader == 0 {
            prop_assert_eq!(&first.outcome, &Some(Outcome::NoAgreement { reason: NoAgreement::NoDrafts }));
            prop_assert_eq!(looked_at, 3);
        } else {
            prop_assert_eq!(&first.outcome, &Some(Outcome::NoAgreement { reason: NoAgreement::Unsettled }));
            prop_assert!(!leads && looked_at == 6 && lead.leader == lead.runner_up);
        }
    }
}

/// Of a tie that stays, the first of the leading answers is taken, and not the first answer of all.
#[test]
fn first_of_the_leading_answers_is_taken() {
    let answers = [5, 4, 4, 3, 3, 7, LOST, LOST];
    let ended = play(&counted_panel(5, OnDisagreement::Leader, true), &answers, || 0);
    assert!(
        matches!(&ended.outcome, Some(Outcome::Agreed { text, .. }) if text == "4"),
        "{:?}",
        ended.outcome
    );
    let ended = play(&counted_panel(5, OnDisagreement::Abstain, true), &answers, || 0);
    assert_eq!(ended.outcome, Some(Outcome::NoAgreement { reason: NoAgreement::Unsettled }));
}

const QUESTION: [&str; 4] = ["--canonical", "number", "--prompt", "How much is 2+2?"];
const MOCK: [&str; 5] = ["--mock", "--answer", "4", "--format", "json"];

fn run(folder: &Folder, roleset: &str, flags: &[&str], code: i32) -> Finished {
    let words = ["run", "--roleset", roleset];
    Finished::of(consensus(folder).args(words).args(QUESTION).args(MOCK).args(flags)).exits(code)
}

/// The roleset `panel_agree` counts, and its run verifies and is shown with its votes.
#[test]
fn panel_agree_counts_and_verifies() {
    let folder = Folder::new();
    let finished = run(&folder, "panel_agree", &[], 0);
    assert!(!finished.stderr.contains("panel that judges"), "{}", finished.stderr);
    assert!(finished.stderr.contains("all members found this answer"), "{}", finished.stderr);
    let result: serde_json::Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!((&result["how"], &result["text"]), (&json!("independent"), &json!("4")), "{result}");
    assert_eq!(result["usage"]["calls"], json!(6), "no ballot: {result}");
    let panel = &result["panel"];
    assert_eq!((&panel["evaluations"], &panel["vote"]["looked_at"]), (&json!([]), &json!(6)), "{result}");
    let sample = &panel["vote"]["samples"][0];
    assert!(
        sample["tokens"].as_u64().unwrap() > 0 && sample["model"] == panel["winner"]["model"],
        "{result}"
    );
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
    let shown = Finished::of(consensus(&folder).args(["show", "--last", "--format", "html"])).exits(0).stdout;
    assert!(shown.contains("Votes") && shown.contains("Samples") && !shown.contains("ballots"), "{shown}");
    let transcript = std::fs::read_to_string(folder.run().join("transcript.md")).unwrap();
    assert!(transcript.contains("## Votes") && !transcript.contains("## Ranking"), "{transcript}");
}

/// A flag decides for any panel, in both directions, and flags without an effect are refused.
#[test]
fn talk_decides_which_flags_have_effect() {
    let folder = Folder::new();
    for flags in [&["--threshold", "0.8"][..], &["--max-rounds", "2"], &["--thinking", "none"]] {
        let refused = run(&folder, "panel_agree", flags, 2);
        assert!(refused.stderr.contains("--talk always"), "{flags:?}: {}", refused.stderr);
        run(&folder, "panel_agree", &[flags, &["--talk", "always"]].concat(), 0);
        run(&folder, "panel_agree", &[flags, &["--set", "params.talk=always"]].concat(), 0);
        run(&folder, "panel_personas", &[flags, &["--set", "params.talk=differing"]].concat(), 2);
    }
    let refused = run(&folder, "panel_personas", &["--on-disagreement", "leader"], 2);
    assert!(refused.stderr.contains("--talk differing"), "{}", refused.stderr);
    let counted = ["--talk", "differing", "--on-disagreement", "leader"];
    let finished = run(&folder, "panel_personas", &counted, 0);
    assert!(finished.stdout.contains("\"independent\""), "{}", finished.stdout);
    // A roleset that counts and takes a leader can be judged all the same.
    let set = ["--set", "params.on_disagreement=leader", "--talk", "always"];
    let finished = run(&folder, "panel_agree", &set, 0);
    assert!(finished.stdout.contains("\"scored\""), "{}", finished.stdout);
    assert!(finished.stderr.contains("panel that judges"), "{}", finished.stderr);
}

/// A protocol that counts reads its documents whole, also where others would read them in pieces.
#[test]
fn counted_documents_are_read_whole() {
    let folder = Folder::new();
    folder.write("long.txt", &"The mill stands by the river. ".repeat(4000));
    let document = ["-f", "long.txt", "--map-reduce"];
    for roleset in ["panel_agree", "vote_number"] {
        let refused = run(&folder, roleset, &document, 2);
        assert!(refused.stderr.contains("--map-reduce"), "{}", refused.stderr);
    }
    let refused = run(&folder, "panel_personas", &[&document[..], &["--talk", "differing"]].concat(), 2);
    assert!(refused.stderr.contains("--map-reduce"), "{}", refused.stderr);
    let mut setup = counted_panel(3, OnDisagreement::Abstain, true);
    setup.chunk_plan =
        Some(protocol::contract::ChunkPlan { pieces: Vec::new(), tokens_max: 1000, at_once: 1 });
    assert!(setup.check().unwrap_err().to_string().contains("whole"));
}
