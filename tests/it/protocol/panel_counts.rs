//! A panel that counts depends on the answers of its members in their order alone. It asks for no more than three samples beyond the
//! first answers, and never for a ballot.

use proptest::prelude::*;
use protocol::text::CanonicalKind;
use protocol::{CallId, Finish, How, NoAgreement, OnDisagreement, Outcome, RunSetup, Section, TalkForm};
use serde_json::json;

use crate::support::{Finished, Folder, Play, Tiny, consensus};

fn counted_panel(on_disagreement: OnDisagreement, parallel: bool) -> RunSetup {
    let mut setup = Tiny::panel();
    setup.params.talk = TalkForm::Differing;
    setup.params.on_disagreement = on_disagreement;
    setup.params.parallel = parallel;
    setup.canonical = CanonicalKind::Number.into();
    RunSetup::from(setup)
}

/// Plays a panel of three. Sample `3 * draft + agent` has this answer, and `pick` chooses the next open call.
fn play(setup: &RunSetup, answers: &[u32], mut pick: impl FnMut(usize) -> usize) -> Play {
    let mut play = Play::new(setup);
    while play.outcome.is_none() {
        let open: Vec<CallId> = play.open.keys().copied().collect();
        let call = open[pick(open.len()) % open.len()];
        let answer = answers[(3 * call.draft as usize + call.agent) % answers.len()];
        play.reply(call, &format!("So it is.\nAnswer: {answer}"), Finish::Stop);
    }
    play
}

proptest! {
    #[test]
    fn arrival_changes_no_outcome(
        answers in prop::collection::vec(1..4_u32, 6), order in prop::collection::vec(0..8_usize, 16), parallel: bool, leads: bool
    ) {
        let wish = if leads { OnDisagreement::Leader } else { OnDisagreement::Abstain };
        let first = play(&counted_panel(wish, parallel), &answers, |_| 0);
        let mut turns = order.iter().cycle();
        let second = play(&counted_panel(wish, true), &answers, |_| *turns.next().unwrap());
        prop_assert_eq!(&first.outcome, &second.outcome);
        let report = first.machine.report();
        let Section::Panel(panel) = &report.section else { panic!("no panel") };
        prop_assert!(panel.evaluations.is_empty());
        let vote = panel.vote.as_ref().unwrap();
        let (lead, looked_at) = (vote.lead, vote.looked_at);
        prop_assert!((3..=6).contains(&looked_at));
        if let Some(Outcome::Agreed { how, .. }) = &first.outcome {
            let is_unanimous = looked_at == 3 && lead.leader == 3;
            prop_assert_eq!(*how, if is_unanimous { How::Independent } else { How::Voted });
            prop_assert!(lead.leader > lead.runner_up || leads && looked_at == 6);
        } else {
            let unsettled = Outcome::NoAgreement { reason: NoAgreement::Unsettled };
            prop_assert_eq!(&first.outcome, &Some(unsettled));
            prop_assert!(!leads && looked_at == 6 && lead.leader == lead.runner_up);
        }
    }
}

/// The roleset `panel_agree` counts, its run verifies, and flags for judges are refused.
#[test]
fn panel_agree_counts_and_verifies() {
    let folder = Folder::new();
    let run = ["run", "--roleset", "panel_agree", "--canonical", "number", "--prompt", "How much is 2+2?"];
    let mock = ["--mock", "--answer", "4", "--format", "json"];
    let finished = Finished::of(consensus(&folder).args(run).args(mock)).exits(0);
    let result: serde_json::Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!((&result["how"], &result["text"]), (&json!("independent"), &json!("4")), "{result}");
    assert_eq!(result["panel"]["evaluations"], json!([]), "{result}");
    assert_eq!(result["panel"]["vote"]["looked_at"], json!(6), "{result}");
    assert_eq!(result["usage"]["calls"], json!(6), "no ballot: {result}");
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
    for flags in [&["--threshold", "0.8"][..], &["--max-rounds", "2"], &["--thinking", "none"]] {
        let refused = Finished::of(consensus(&folder).args(run).args(mock).args(flags)).exits(2);
        assert!(refused.stderr.contains("--talk always"), "{flags:?}: {}", refused.stderr);
    }
    // A flag decides for any panel, in both directions.
    let seeds =
        ["run", "--roleset", "panel_personas", "--canonical", "number", "--prompt", "How much is 2+2?"];
    let counted = ["--talk", "differing", "--on-disagreement", "leader"];
    let finished = Finished::of(consensus(&folder).args(seeds).args(mock).args(counted)).exits(0);
    assert!(finished.stdout.contains("\"independent\""), "{}", finished.stdout);
    assert!(!finished.stderr.contains("panels that judge"), "{}", finished.stderr);
    let finished = Finished::of(consensus(&folder).args(run).args(mock).args(["--talk", "always"])).exits(0);
    assert!(finished.stdout.contains("\"scored\""), "{}", finished.stdout);
    assert!(finished.stderr.contains("panels that judge"), "{}", finished.stderr);
}
