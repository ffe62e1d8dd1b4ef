//! A council that counts depends on the answers of Logos in their order alone. What Pathos and Ethos write is shown and decides nothing,
//! and Ethos is asked at most once. With documents, the quotes of an answer decide.

use proptest::prelude::*;
use protocol::council::CouncilSection;
use protocol::text::CanonicalKind;
use protocol::{
    CallId, Finish, How, NoAgreement, OnDisagreement, Outcome, RunSetup, Section, Step, TalkForm,
};
use serde_json::{Value, json};

use crate::support::{Finished, Folder, Play, Tiny, consensus, form};

/// A sample that is cut off.
const LOST: u32 = 0;
const PATHOS: usize = 0;
const LOGOS: usize = 1;

fn counted_council(on_disagreement: OnDisagreement) -> RunSetup {
    let mut setup = Tiny::council();
    setup.params.talk = TalkForm::Differing;
    setup.params.on_disagreement = on_disagreement;
    setup.canonical = CanonicalKind::Number.into();
    RunSetup::from(setup)
}

/// What Pathos and Ethos write: a form with these fields, or no form.
type ShownFields = Option<Value>;

/// Plays a council whose samples have these answers. `pick` chooses among the open calls.
fn play(
    setup: &RunSetup,
    answers: &[u32],
    shown: [&ShownFields; 2],
    mut pick: impl FnMut() -> usize,
) -> Play {
    let mut play = Play::new(setup);
    while play.outcome.is_none() {
        let open: Vec<CallId> = play.open.keys().copied().collect();
        let call = open[pick() % open.len()];
        if call.agent == LOGOS {
            assert_eq!(call.step, Step::Sample, "no form of Logos");
            let answer = answers[call.draft as usize % answers.len()];
            let finish = if answer == LOST { Finish::Length } else { Finish::Stop };
            play.reply(call, &format!("So it is.\nAnswer: {answer}"), finish);
            continue;
        }
        let fields = shown[usize::from(call.agent != PATHOS)];
        let text = fields.as_ref().map_or_else(|| "hm".to_owned(), |fields| form(&play.open[&call], fields));
        play.reply(call, &text, Finish::Stop);
    }
    play
}

fn section(play: &Play) -> CouncilSection {
    let Section::Council(section) = play.machine.report().section else { panic!("no council") };
    *section
}

fn any_form() -> impl Strategy<Value = ShownFields> {
    let confidence = prop::sample::select(vec![json!(0.0), json!(0.5), json!(1), json!("high")]);
    let fields = (confidence, any::<bool>())
        .prop_map(|(confidence, veto)| json!({"confidence": confidence, "veto": veto, "reasoning": "so"}));
    prop::option::of(fields)
}

proptest! {
    #[test]
    fn arrival_changes_nothing(
        answers in prop::collection::vec(LOST..5, 11), order in prop::collection::vec(0..8_usize, 32), framing in any_form(),
        objections in any_form(), leads: bool
    ) {
        let wish = if leads { OnDisagreement::Leader } else { OnDisagreement::Abstain };
        let setup = counted_council(wish);
        let shown = [&framing, &objections];
        let first = play(&setup, &answers, shown, || 0);
        let mut turns = order.iter().cycle();
        let second = play(&setup, &answers, shown, || *turns.next().unwrap());
        prop_assert_eq!(&first.outcome, &second.outcome);
        prop_assert_eq!(first.asked, second.asked);
        let (one, two) = (first.machine.report(), second.machine.report());
        prop_assert_eq!((&one.dissent, &one.degraded), (&two.dissent, &two.degraded));
        let (one, two) = (section(&first), section(&second));
        prop_assert_eq!((&one.rounds, &one.content, &one.result), (&two.rounds, &two.content, &two.result));
        let (one, two) = (one.vote.unwrap(), two.vote.unwrap());
        prop_assert_eq!((one.class, one.lead, &one.answers), (two.class, two.lead, &two.answers));
        prop_assert_eq!(one.looked_at, two.looked_at);
        let reason = match &first.outcome {
            Some(Outcome::Agreed { how, .. }) => {
                let is_unanimous = one.looked_at == 2 && one.lead.leader == 2;
                prop_assert_eq!(*how, if is_unanimous { How::Independent } else { How::Voted });
                prop_assert!(one.lead.leader > one.lead.runner_up || leads);
                return Ok(());
            }
            Some(Outcome::NoAgreement { reason }) => *reason,
            other => panic!("{other:?}"),
        };
        let is_empty = one.answers.is_empty();
        prop_assert_eq!(reason, if is_empty { NoAgreement::NoDrafts } else { NoAgreement::Unsettled });
        prop_assert!(is_empty || !leads && one.looked_at == 11);
    }

    /// The count is the same whatever Pathos and Ethos write, and Ethos is asked once at most.
    #[test]
    fn words_of_others_change_nothing(
        answers in prop::collection::vec(LOST..4, 11), framing in any_form(), objections in any_form()
    ) {
        let setup = counted_council(OnDisagreement::Abstain);
        let silent = play(&setup, &answers, [&None, &None], || 0);
        let heard = play(&setup, &answers, [&framing, &objections], || 0);
        prop_assert_eq!(&silent.outcome, &heard.outcome);
        prop_assert_eq!(silent.asked, heard.asked);
        let (one, other) = (silent.machine.report(), heard.machine.report());
        prop_assert_eq!((one.dissent, one.blind_vote), (other.dissent, other.blind_vote));
        let (one, other) = (section(&silent), section(&heard));
        let sha256 = other.rounds[0].sha256;
        prop_assert_eq!((&one.content, &one.vote, one.rounds[0].sha256), (&other.content, &other.vote, sha256));
    }

    /// After two equal answers, no further call is made.
    #[test]
    fn equal_opening_asks_for_nothing(answer in 1..9_u32, framing in any_form(), order in 0..6_usize) {
        let ended = play(&counted_council(OnDisagreement::Abstain), &[answer], [&framing, &None], || order);
        let agreed = matches!(&ended.outcome, Some(Outcome::Agreed { how: How::Independent, .. }));
        prop_assert!(agreed, "{:?}", ended.outcome);
        prop_assert_eq!(ended.asked, 3);
        prop_assert!(section(&ended).rounds[0].verification.is_none());
    }
}

const QUESTION: [&str; 4] = ["--canonical", "number", "--prompt", "How much is 2+2?"];

fn run(folder: &Folder, roleset: &str, flags: &[&str], code: i32) -> Finished {
    let words = ["run", "--roleset", roleset, "--mock", "--answer", "4", "--format", "json"];
    Finished::of(consensus(folder).args(words).args(QUESTION).args(flags)).exits(code)
}

/// The roleset `council_agree` counts, and its run verifies and is shown with its votes and its framing.
#[test]
fn council_agree_counts_and_verifies() {
    let folder = Folder::new();
    let finished = run(&folder, "council_agree", &[], 0);
    assert!(finished.stderr.contains("the first two blind samples of one member"), "{}", finished.stderr);
    let result: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!((&result["how"], &result["text"]), (&json!("independent"), &json!("4")), "{result}");
    assert_eq!(result["usage"]["calls"], json!(3), "two answers and a framing: {result}");
    let council = &result["council"];
    assert_eq!(council["result"]["aggregate_confidence"], Value::Null, "{result}");
    assert_eq!(council["rounds"][0]["framing"]["confidence"], json!(0.95), "{result}");
    assert!(council["vote"]["samples"][0]["tokens"].as_u64().unwrap() > 0, "{result}");
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
    let shown = Finished::of(consensus(&folder).args(["show", "--last", "--format", "html"])).exits(0).stdout;
    assert!(shown.contains("Votes") && shown.contains("Samples"), "{shown}");
    let transcript = std::fs::read_to_string(folder.run().join("transcript.md")).unwrap();
    for part in ["## Votes", "## Sample 2 of Logos, in words", "## Round 1: Pathos, framing"] {
        assert!(transcript.contains(part), "{part}: {transcript}");
    }
}

/// With a document, the roleset agrees on an answer whose quotes are found, and counts nothing.
#[test]
fn council_agree_finds_quotes_in_documents() {
    let folder = Folder::new();
    folder.write("notes.txt", "Two apples and two more make four apples.");
    run(&folder, "council_agree", &["-f", "notes.txt"], 0);
    let result = folder.result();
    assert_eq!((&result["how"], &result["council"]["vote"]), (&json!("endorsed"), &Value::Null), "{result}");
    assert_eq!(result["council"]["citations"].as_array().map(Vec::len), Some(1), "{result}");
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
}

/// Flags for confidences have no effect where code decides, and are refused.
#[test]
fn flags_for_confidences_are_refused() {
    let folder = Folder::new();
    for flags in [&["--threshold", "0.8"][..], &["--confidence", "logprob"]] {
        let refused = run(&folder, "council_agree", flags, 2);
        assert!(refused.stderr.contains("--talk always"), "{flags:?}: {}", refused.stderr);
        run(&folder, "council_tripartite", &[flags, &["--set", "params.talk=differing"]].concat(), 2);
    }
    run(&folder, "council_agree", &["--threshold", "0.8", "--talk", "always"], 0);
    let refused = run(&folder, "council_tripartite", &["--on-disagreement", "leader"], 2);
    assert!(refused.stderr.contains("--talk differing"), "{}", refused.stderr);
    let counted = ["--talk", "differing", "--on-disagreement", "leader"];
    let finished = run(&folder, "council_tripartite", &counted, 0);
    assert!(finished.stdout.contains("\"independent\""), "{}", finished.stdout);
}
