//! The same events give the same actions, byte for byte: what replay and verification stand on.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use proptest::prelude::*;
use protocol::contract::{Chunk, ChunkPlan};
use protocol::pair::Adopt;
use protocol::panel::PanelParams;
use protocol::review::ApprovalParams;
use protocol::text::TextMemos;
use protocol::vote::VoteParams;
use protocol::{
    Action, Document, Event, Finish, OnDisagreement, Params, Reply, ReplyShape, RunSetup, Step, TalkForm,
    Thinking, VoteStop,
};
use serde_json::{Value, json};

use crate::support::{Play, Tiny, envelope, form, in_round, member, review};

/// Sentences that stand in a document, and one that does not.
const PROVEN: &str = r#"["It is four", "and was always", "nowhere at all"]"#;

/// An answer from facts, of which there may be fewer.
const ANSWERED: &str =
    r#"[{"asked": "it", "facts": [1, 3], "says": "four"}, {"asked": "six", "facts": [], "says": ""}]"#;

/// What an agent may say, sensible or not where it is said: fields of an envelope, and of another form.
fn any_saying() -> impl Strategy<Value = (Value, Value)> {
    (any_fields(), any_form())
}

fn any_form() -> impl Strategy<Value = Value> {
    let confidence =
        prop::sample::select(vec![json!(0.0), json!(0.4), json!(0.9), json!(1), json!(2), json!("x")]);
    let text = prop::sample::select(vec!["4", "5", "", "How much is 2+2?", "four", PROVEN, ANSWERED]);
    let quote = prop::sample::select(vec!["How much is", "How much was", "x"]);
    let verdict = prop::sample::select(vec!["holds", "fails", "unknown", "perhaps"]);
    let score = prop::sample::select(vec![0, 1, 4, 8, 10, 11]);
    (confidence, text, quote, verdict, any::<bool>(), score).prop_map(
        |(confidence, text, quote, verdict, veto, score)| {
            json!({
                "confidence": confidence, "response": text, "veto": veto, "scores": {"4": score, "5": 6},
                "checks": [{"claim": "c", "source": "task", "quote": quote, "verdict": verdict}],
            })
        },
    )
}

fn any_fields() -> impl Strategy<Value = Value> {
    let status = prop::sample::select(vec!["WORKING", "NEED_PEER", "PROPOSED", "READY_TO_SOLVE", "SOLVED"]);
    let text =
        prop::option::of(prop::sample::select(vec!["4", "5", "<NUMBER>", "", "four", PROVEN, ANSWERED]));
    let accepts = prop::option::weighted(0.3, prop::sample::select(vec!["P1", "P2", "P3", "P9"]));
    let needs = prop::collection::vec("[a-z]{1,5}", 0..3);
    (status, text, accepts, needs, any::<bool>()).prop_map(|(status, text, accepts, needs, because)| {
        let mut fields = json!({"status": status, "needs_from_peer": needs});
        if let Some(text) = text {
            fields["text"] = text.into();
        }
        if let Some(handle) = accepts {
            fields["accepts"] = handle.into();
        }
        if because {
            fields["because"] = "counted it once more".into();
        }
        fields
    })
}

fn any_answering() -> impl Strategy<Value = RunSetup> {
    let thinking = prop::sample::select(vec![Thinking::Free, Thinking::Field, Thinking::None]);
    let adopt = prop::sample::select(vec![None, Some(Adopt::Text), Some(Adopt::Never)]);
    let of_pair = (any::<u64>(), thinking, adopt, 0_u32..3, 0_u32..3, 1_u32..8, any::<bool>()).prop_map(
        |(seed, thinking, adopt, resample, max_repairs, max_rounds, arbiter)| {
            let mut setup = Tiny::setup();
            setup.seed = seed;
            setup.params.thinking = thinking;
            setup.params.adopt = adopt;
            setup.params.resample = resample;
            setup.params.max_repairs = max_repairs;
            setup.params.max_rounds = max_rounds;
            setup.arbiter = arbiter.then(Tiny::arbiter);
            RunSetup::from(setup)
        },
    );
    let thinking = prop::sample::select(vec![Thinking::Free, Thinking::None]);
    let of_council = (any::<u64>(), thinking, 0_u32..3, 1_u32..5, any::<bool>()).prop_map(
        |(seed, thinking, max_repairs, max_rounds, arbiter)| {
            let mut setup = Tiny::council();
            setup.seed = seed;
            setup.params.thinking = thinking;
            setup.params.max_repairs = max_repairs;
            setup.params.max_rounds = max_rounds;
            setup.arbiter = arbiter.then(Tiny::arbiter);
            RunSetup::from(setup)
        },
    );
    let thinking = prop::sample::select(vec![Thinking::Free, Thinking::None]);
    let of_panel = (any::<u64>(), thinking, 0_u32..3, 1_u32..4, any::<bool>(), any::<bool>()).prop_map(
        |(seed, thinking, max_repairs, max_iterations, parallel, early_stop)| {
            let mut setup = Tiny::panel();
            setup.seed = seed;
            let params =
                PanelParams { thinking, max_repairs, max_iterations, parallel, early_stop, ..setup.params };
            setup.params = params;
            RunSetup::from(setup)
        },
    );
    prop_oneof![of_pair, of_council, of_panel]
}

/// Any run, the review of a change among them.
fn any_setup() -> impl Strategy<Value = RunSetup> {
    let thinking = prop::sample::select(vec![Thinking::Free, Thinking::None]);
    let of_approval = (any::<u64>(), thinking, 0_u32..3, any::<bool>(), 1_usize..8).prop_map(
        |(seed, thinking, max_repairs, veto, reviewers)| {
            let mut setup = Tiny::approval(reviewers);
            setup.seed = seed;
            setup.params = ApprovalParams { thinking, max_repairs, veto, ..setup.params };
            RunSetup::from(setup)
        },
    );
    let stop = prop::sample::select(vec![VoteStop::Fast, VoteStop::Sure, VoteStop::None]);
    let of_vote = (any::<u64>(), stop, 4_u32..12, 1_u32..6, prop::option::of(1_u32..3)).prop_map(
        |(seed, stop, samples_max, ahead, min_members)| {
            let mut setup = Tiny::vote(2);
            setup.seed = seed;
            let (samples_max, ahead) = (Some(samples_max), Some(ahead));
            setup.params = VoteParams { stop, samples_max, ahead, min_members, ..setup.params };
            RunSetup::from(setup)
        },
    );
    let wish = prop::sample::select(vec![OnDisagreement::Abstain, OnDisagreement::Leader]);
    let of_council = (any::<u64>(), wish.clone(), any::<bool>()).prop_map(|(seed, wish, has_document)| {
        let mut setup = Tiny::council();
        setup.seed = seed;
        (setup.params.talk, setup.params.on_disagreement) = (TalkForm::Differing, wish);
        if has_document {
            let text = "How much is 2+2? It is four, and was always.".into();
            let document = Document { name: "sums.txt".to_owned(), text, redacted: false };
            setup.task.documents.push(document);
        }
        RunSetup::from(setup)
    });
    let of_counted = (any::<u64>(), wish, any::<bool>()).prop_map(|(seed, on_disagreement, parallel)| {
        let mut setup = Tiny::panel();
        setup.seed = seed;
        setup.params = PanelParams { talk: TalkForm::Differing, on_disagreement, parallel, ..setup.params };
        RunSetup::from(setup)
    });
    prop_oneof![3 => any_answering(), 1 => of_approval, 1 => of_vote, 1 => of_council, 1 => of_counted]
}

/// A run that reads documents in pieces, by any protocol that answers.
fn any_spread() -> impl Strategy<Value = RunSetup> {
    (any_answering(), 1_usize..6, 200_u64..400, 1_u32..4).prop_map(
        |(mut setup, count, tokens_max, at_once)| {
            let text = "How much is 2+2? It is four, and was always. ".repeat(count);
            let length = text.len() / count;
            let piece = |n: usize| Chunk { document: 0, start: n * length, end: (n + 1) * length };
            setup.chunk_plan =
                Some(ChunkPlan { pieces: (0..count).map(piece).collect(), tokens_max, at_once });
            setup.task.documents =
                vec![Document { name: "sums.txt".to_owned(), text: text.into(), redacted: false }];
            setup.check().unwrap();
            setup
        },
    )
}

fn any_run() -> impl Strategy<Value = RunSetup> {
    prop_oneof![3 => any_setup(), 1 => any_spread()]
}

/// Plays a run with these sayings, over and over, and returns all events and actions. Some calls are lost, where the run bears that.
fn play(setup: &RunSetup, sayings: &[(Value, Value)]) -> (Vec<Event>, Vec<Vec<Action>>) {
    let mut play = Play::new(setup);
    let (mut events, mut actions) = (Vec::new(), Vec::new());
    let mut lost = BTreeSet::new();
    for index in 0.. {
        if play.outcome.is_some() {
            break;
        }
        // Replies arrive in any order: take now the first, now the last open call.
        let call = if index % 3 == 0 {
            *play.open.keys().next_back().unwrap()
        } else {
            *play.open.keys().next().unwrap()
        };
        let without_it: BTreeSet<usize> = lost.iter().copied().chain([call.agent]).collect();
        if index % 4 == 3 && setup.bears_loss_of(&without_it) {
            lost = without_it;
            events.push(Event::Lost { call, cause: "the connection broke".to_owned() });
            actions.push(play.lose(call));
            continue;
        }
        let (fields, filled) = &sayings[index % sayings.len()];
        let ask = &play.open[&call];
        let text = match &ask.shape {
            ReplyShape::Json { name: "choice", .. } => json!({"reason": "it is", "choice": "P1"}).to_string(),
            ReplyShape::Json { name: "envelope", .. } => envelope(ask, fields),
            ReplyShape::Json { name: "answer" | "ballot", .. } => member(ask, filled),
            ReplyShape::Json { name: "review", .. } => review(ask, filled),
            ReplyShape::Json { .. } | ReplyShape::Free => form(ask, filled),
        };
        let reply =
            Reply { text: text.clone(), reasoning: None, finish: Finish::Stop, yes: None, model: None };
        events.push(Event::Replied { call, reply });
        actions.push(play.reply(call, &text, Finish::Stop));
    }
    (events, actions)
}

#[test]
fn sampling_seeds_differ_between_tasks() {
    let sampled = |prompt: &str| {
        let mut setup = RunSetup::from(Tiny::setup());
        setup.task.prompt = prompt.to_owned();
        let actions = setup.machine().step(&Event::Started).unwrap();
        let seeds = actions.iter().filter_map(|action| match action {
            Action::Ask(ask) => Some(ask.seed),
            Action::Search(_)
            | Action::Execute(_)
            | Action::Cancel(_)
            | Action::AwaitPermit
            | Action::Finish(_) => None,
        });
        seeds.collect::<Vec<_>>()
    };
    let (one, other) = ("How much is 2+2?", "How much is 3+3?");
    assert_eq!(sampled(one), sampled(one));
    assert!(sampled(one).iter().zip(&sampled(other)).all(|(one, other)| one != other));
}

/// The stores that all cases of a test share, as the runs of a batch do.
static MEMOS: LazyLock<TextMemos> = LazyLock::new(TextMemos::shared);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// This holds as well for a machine that shares its stores with other runs.
    #[test]
    fn the_same_events_give_the_same_actions(setup in any_run(), sayings in prop::collection::vec(any_saying(), 1..8)) {
        let (events, actions) = play(&setup, &sayings);
        let mut machine = RunSetup { memos: MEMOS.clone(), ..setup }.machine();
        let _ = machine.step(&Event::Started).unwrap();
        for (event, expected) in events.iter().zip(&actions) {
            let again = machine.step(event).unwrap();
            prop_assert_eq!(format!("{again:?}"), format!("{expected:?}"));
        }
    }

    #[test]
    fn every_run_ends_within_its_plan(setup in any_run(), sayings in prop::collection::vec(any_saying(), 1..8)) {
        let (events, actions) = play(&setup, &sayings);
        let plan = setup.worst_case();
        prop_assert!(events.len() as u64 <= plan.calls, "{} calls, {} planned", events.len(), plan.calls);
        let asks = actions.iter().flatten().filter_map(|action| match action {
            Action::Ask(ask) => Some(ask),
            Action::Search(_) | Action::Execute(_) | Action::Cancel(_) | Action::AwaitPermit | Action::Finish(_) => None,
        });
        for ask in asks {
            let tokens = ask.prompt_tokens_estimate() + u64::from(ask.max_tokens);
            prop_assert!(tokens <= plan.context_tokens, "{tokens} tokens, {} planned", plan.context_tokens);
        }
    }

    #[test]
    fn conversations_only_grow_at_their_end(setup in any_setup(), sayings in prop::collection::vec(any_saying(), 1..8)) {
        let (_, actions) = play(&setup, &sayings);
        let mut last: [Vec<String>; 3] = Default::default();
        let agents = match &setup.params {
            Params::Pair(_) => 2,
            Params::Council(_) => 3,
            // Every form of a panel, and of a review, begins with nothing but the task.
            Params::Panel(_) | Params::Approval(_) | Params::Vote(_) => 0,
        };
        for action in actions.iter().flatten() {
            let Action::Ask(ask) = action else { continue };
            // A comparison of two texts knows nothing of any conversation.
            let is_talk = ask.call.round > 0 && ask.call.step != Step::Weigh;
            if ask.call.agent < agents && ask.call.draft == 0 && is_talk {
                let now: Vec<String> = ask.messages.iter().map(|m| m.content.clone()).collect();
                let before = &last[ask.call.agent];
                // Who works the task out again begins with nothing but the task.
                let anew = agents == 2 && ask.call.round > 1 && now.len() == 2;
                prop_assert!(anew || now.starts_with(before), "{}", ask.call);
                last[ask.call.agent] = now;
            }
        }
    }
}

#[test]
fn blind_drafts_see_nothing_of_the_peer() {
    let mut setup = Tiny::setup();
    setup.params.resample = 2;
    let mut play = Play::new(&setup);
    let secret = "zebra-9137";
    while !in_round(&play, 1).is_empty() {
        for call in in_round(&play, 1) {
            let ask = play.open[&call].clone();
            if call.agent == 0 {
                play.reply(call, &envelope(&ask, &json!({"text": secret})), Finish::Stop);
            } else {
                assert!(ask.messages.iter().all(|m| !m.content.contains(secret)), "{call}");
                play.reply(
                    call,
                    &envelope(&ask, &json!({"status": "PROPOSED", "text": "lion"})),
                    Finish::Stop,
                );
            }
        }
    }
    let ask = play.open.values().next().unwrap();
    assert!(ask.messages.last().unwrap().content.contains(secret), "the turn shows the peer's text");
}

#[test]
fn private_thoughts_never_reach_the_peer() {
    let mut setup = Tiny::setup();
    setup.params.thinking = Thinking::Free;
    let mut play = Play::new(&setup);
    for _ in 0..30 {
        let Some((call, ask)) = play.open.first_key_value().map(|(c, a)| (*c, a.clone())) else { break };
        let own = format!("thought-of-{}", call.agent);
        let other = format!("thought-of-{}", 1 - call.agent);
        assert!(ask.messages.iter().all(|m| !m.content.contains(&other)), "{call}");
        let answer = if call.agent == 0 { "4" } else { "5" };
        let text = match ask.shape {
            ReplyShape::Free => own,
            ReplyShape::Json { .. } => envelope(&ask, &json!({"text": answer})),
        };
        play.reply(call, &text, Finish::Stop);
    }
    assert!(play.outcome.is_some());
}
