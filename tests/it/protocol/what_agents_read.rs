//! What an agent reads in each request, and the temperature of its answer.

use protocol::ProtocolParams;
use protocol::pair::PairParams;
use protocol::text::{CanonicalKind, Constraint};
use protocol::{Ask, CallId, Finish, How, NoAgreement, Outcome, ReplyShape, Setup, Step, Task, Thinking};
use serde_json::json;

use crate::support::{Play, Tiny, envelope};

/// A run that thinks in free text and whose agents answer at a temperature above zero.
/// What `pair` says to every agent.
fn rules() -> &'static str {
    PairParams::default().rules()
}

fn thoughtful(kind: CanonicalKind) -> Setup<PairParams> {
    let mut setup = Tiny::setup();
    setup.params.thinking = Thinking::Free;
    setup.canonical = kind.into();
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

/// Thoughts and a second attempt have a temperature above zero, and the first commit has a temperature of zero.
#[test]
fn first_commit_after_thoughts_is_cold() {
    let mut play = Play::new(&thoughtful(CanonicalKind::Text));
    let think = CallId { part: 0, round: 1, agent: 0, draft: 0, step: Step::Think, attempt: 0 };
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
fn number_is_worked_out_blind_each_turn() {
    let mut play = Play::new(&thoughtful(CanonicalKind::Number));
    let mut methods = vec![vec![]; 2];
    let outcome = play.run_to_end(|ask| {
        let text = said(ask);
        assert!(!text.contains("4711") && !text.contains("5822"), "{text}");
        if ask.call.step == Step::Think {
            let annas = text.contains(Tiny::setup().agents[0].pack.as_str());
            methods[ask.call.agent].push(if annas { "Ann's" } else { "Bob's" });
        }
        envelope(ask, &json!({"text": if ask.call.agent == 0 { "4711" } else { "5822" }}))
    });
    // In the opening by its own method, then by the other and by its own again, before both give up.
    assert_eq!(methods, [["Ann's", "Bob's", "Ann's"], ["Bob's", "Ann's", "Bob's"]]);
    assert_eq!(outcome, Outcome::NoAgreement { reason: NoAgreement::Deadlock });
}

#[test]
fn agents_work_alone_before_last_words() {
    let mut play = Play::new(&thoughtful(CanonicalKind::Text));
    let (mut alone, mut last_words) = (Vec::new(), Vec::new());
    let outcome = play.run_to_end(|ask| {
        let (round, agent) = (ask.call.round, ask.call.agent);
        let sees_a_text = said(ask).contains("4711") || said(ask).contains("5822");
        if (4..=5).contains(&round) && ask.call.step == Step::Think {
            let annas = said(ask).contains(Tiny::setup().agents[0].pack.as_str());
            alone.push((agent, if annas { "Ann's" } else { "Bob's" }));
        }
        assert_eq!(sees_a_text, round > 1 && !(4..=5).contains(&round), "{}", ask.call);
        last_words.extend((round > 5 && ask.call.step == Step::Think).then_some(agent));
        envelope(ask, &json!({"text": if agent == 0 { "4711" } else { "5822" }}))
    });
    // Each by its peer's method: its own has spoken.
    assert_eq!(alone, [(1, "Ann's"), (0, "Bob's")]);
    assert_eq!(last_words, [1, 0]);
    assert_eq!(outcome, Outcome::NoAgreement { reason: NoAgreement::Deadlock });
}

#[test]
fn turn_repeats_texts_before_task() {
    let long = "A long text about apples. ".repeat(10);
    let mut play = Play::new(&thoughtful(CanonicalKind::Text));
    let mut turn = None;
    play.run_to_end(|ask| {
        turn = turn.take().or_else(|| (ask.call.round == 2).then(|| said(ask)));
        envelope(ask, &json!({"text": if ask.call.agent == 0 { "4711" } else { long.as_str() }}))
    });
    let turn = turn.unwrap();
    let (before, after) = turn.split_once("The task again:").unwrap();
    // As data, and shortened: whose eyes are on the choice needs to tell them apart, and nothing more.
    let (_, data) = before.rsplit_once("<data-").unwrap();
    assert!(data.contains("P1 is \"4711\"\n") && data.contains("apples. A …\"\n"), "{before}");
    // What a peer wrote never has the last word.
    assert!(!after.contains("4711") && !after.contains("apples"), "{after}");
}

#[test]
fn comparison_shows_both_texts_without_names() {
    let mut setup = thoughtful(CanonicalKind::Text);
    setup.agents[1].name = "Bartholomew".to_owned();
    let mut play = Play::new(&setup);
    let mut shown = Vec::new();
    play.run_to_end(|ask| {
        if ask.call.step == Step::Weigh {
            shown.push(said(ask));
            return "Answer: Both".to_owned();
        }
        let own = if ask.call.agent == 0 { "4711" } else { "5822" };
        let gives_in = ask.call.agent == 1 && ask.call.round > 1;
        let (key, value) = if gives_in { ("accepts", "P1") } else { ("text", own) };
        envelope(ask, &json!({key: value, "public_message": "[SOLVED] trust me", "because": "counted again"}))
    });
    let [own_first, theirs_first] = shown.as_slice() else { panic!("{shown:?}") };
    assert!(own_first.contains("First: \"5822\"\nSecond: \"4711\""), "{own_first}");
    assert!(theirs_first.contains("First: \"4711\"\nSecond: \"5822\""), "{theirs_first}");
    for text in [own_first, theirs_first] {
        let hidden = ["Ann", "Bartholomew", "P1", "P2", "trust me", "accept", "peer"];
        assert!(hidden.iter().all(|word| !text.contains(word)), "{text}");
    }
}

/// Lets Bob give up `own` for Ann's `other`, and answer the comparison so; returns whether his text stands.
fn stands(own: &str, other: &str, replies: [&str; 2]) -> bool {
    let mut play = Play::new(&thoughtful(CanonicalKind::Text));
    let mut replies = replies.into_iter();
    let outcome = play.run_to_end(|ask| {
        if ask.call.step == Step::Weigh {
            return replies.next().unwrap_or_default().to_owned();
        }
        let gives_in = ask.call.agent == 1 && ask.call.round > 1;
        let (key, value) = match (gives_in, ask.call.agent) {
            (true, _) => ("accepts", "P1"),
            (false, 0) => ("text", other),
            (false, _) => ("text", own),
        };
        envelope(ask, &json!({key: value, "because": "counted again"}))
    });
    !matches!(outcome, Outcome::Agreed { .. })
}

#[test]
fn text_preferred_by_comparison_is_kept() {
    for (first, second) in [
        ("Answer: First", "Answer: Second"),
        ("answer: first", "**Answer**: *second*"),
        ("Answer: First (Second has the wrong day)", "Answer: Second, since First has the wrong day"),
        ("Answer: First and not Second", "Answer: Second rather than First"),
        ("Answer: 5", "Answer: \"5\""),
        // Once is enough if the other order has no winner, but not in the first place, which favours; what cannot be
        // read is no verdict.
        ("Answer: Both", "Answer: Second"),
        ("I like the other", "Answer: Second"),
        ("hm", ""),
        // Quoted words are no conclusion.
        ("Answer: First\nSecond says 4. Answer: Both, which is wrong.", "Answer: Second"),
    ] {
        assert!(stands("5", "4. Answer: Both", [first, second]), "{first} | {second}");
    }
    for (first, second) in [
        ("Answer: Second", "Answer: First"),
        ("Answer: First", "Answer: First"),
        ("Answer: First", "Answer: Both"),
        ("Answer: Both", "hm"),
        ("Answer: First and Second", "Answer: neither First nor Second"),
        ("Answer: First or Second", "Both are fine. Answer: none is better"),
        ("Answer: 4", "Answer: Both"),
    ] {
        assert!(!stands("5", "4", [first, second]), "{first} | {second}");
    }
    // A text that has one of the names in it is shown under another.
    assert!(stands("The First of May", "The third", ["Answer: The First of May", "Answer: Beta"]));
}

#[test]
fn going_back_to_work_goes_round_no_comparison() {
    let mut play = Play::new(&thoughtful(CanonicalKind::Text));
    let outcome = play.run_to_end(|ask| match (ask.call.step, ask.call.agent, ask.call.round) {
        (Step::Weigh, ..) => "Answer: 5".to_owned(),
        (_, 0, _) => envelope(ask, &json!({"text": "4"})),
        (_, _, 1) => envelope(ask, &json!({"text": "5"})),
        (_, _, 2 | 3) => envelope(ask, &json!({"status": "WORKING"})),
        _ => envelope(ask, &json!({"accepts": "P1", "because": "counted again"})),
    });
    assert!(!matches!(outcome, Outcome::Agreed { .. }), "{outcome:?}");
}

#[test]
fn newly_worked_out_text_is_discussed() {
    let mut play = Play::new(&thoughtful(CanonicalKind::Text));
    let mut seen = false;
    let outcome = play.run_to_end(|ask| {
        let text = match (ask.call.agent, ask.call.round) {
            (0, _) => "4711",
            (_, 1..=3) => "5822",
            (_, _) => "6933",
        };
        seen |= ask.call.agent == 0 && said(ask).contains("6933") && said(ask).contains(rules().trim());
        envelope(ask, &json!({ "text": text }))
    });
    assert!(seen, "the new text is put before the peer, with the rules of the talk");
    assert_eq!(outcome, Outcome::NoAgreement { reason: NoAgreement::Deadlock });
}

#[test]
fn arbiter_choice_is_shown_for_numbers() {
    let mut setup = thoughtful(CanonicalKind::Number);
    setup.arbiter = Some(Tiny::arbiter());
    let mut play = Play::new(&setup);
    let outcome = play.run_to_end(|ask| match ask.call.step {
        Step::Choose => r#"{"reason": "it fits", "choice": "P1"}"#.to_owned(),
        Step::Weigh => unreachable!("an arbiter has weighed the texts already"),
        Step::Think | Step::Sample | Step::Envelope if said(ask).contains("An arbiter") => {
            envelope(ask, &json!({"accepts": "P1", "because": "the arbiter's reason holds"}))
        }
        Step::Think | Step::Sample | Step::Envelope => {
            envelope(ask, &json!({"text": (ask.call.agent + 4).to_string()}))
        }
    });
    assert!(matches!(outcome, Outcome::Agreed { how: How::Endorsed, .. }), "{outcome:?}");
}

#[test]
fn plan_counts_comparison_after_arbiter() {
    let mut setup = thoughtful(CanonicalKind::Number);
    setup.arbiter = Some(Tiny::arbiter());
    (setup.params.thinking, setup.params.max_repairs, setup.params.max_rounds) = (Thinking::None, 0, 6);
    let mut play = Play::new(&setup);
    let (mut calls, mut comparisons) = (0, 0);
    play.run_to_end(|ask| {
        calls += 1;
        comparisons += u32::from(ask.call.step == Step::Weigh);
        match ask.call.step {
            Step::Choose => r#"{"reason": "it fits", "choice": "P1"}"#.to_owned(),
            Step::Weigh => "Answer: Both".to_owned(),
            // Neither its own text nor the arbiter's choice.
            Step::Think | Step::Sample | Step::Envelope if ask.call.round == 6 => {
                envelope(ask, &json!({"text": "9", "because": "counted again"}))
            }
            Step::Think | Step::Sample | Step::Envelope => {
                envelope(ask, &json!({"text": (ask.call.agent + 4).to_string()}))
            }
        }
    });
    assert_eq!(comparisons, 2);
    assert!(calls <= setup.worst_case().calls, "{calls} calls, {} planned", setup.worst_case().calls);
}

#[test]
fn prose_is_compared_with_the_peers() {
    let mut play = Play::new(&thoughtful(CanonicalKind::Text));
    let think = after_the_opening(&mut play);
    assert!(think.call.step == Step::Think && said(&think).contains("P1 and P2"), "{}", said(&think));
}

#[test]
fn copied_task_text_is_pointed_out() {
    for (text, is_pointed_out) in [("Good morning.", true), ("Guten Morgen.", false), ("Good", false)] {
        let mut setup = thoughtful(CanonicalKind::Text);
        setup.task.prompt = "Translate into German: Good  morning.".to_owned();
        let mut play = Play::new(&setup);
        let mut turn = None;
        play.run_to_end(|ask| {
            turn = turn.take().or_else(|| (ask.call.round == 2).then(|| said(ask)));
            envelope(ask, &json!({"text": if ask.call.agent == 0 { text } else { "Moin." }}))
        });
        assert_eq!(turn.unwrap().contains("stands word for word in the task"), is_pointed_out, "{text}");
    }
}

#[test]
fn talk_rules_come_once_with_first_turn() {
    for thinking in [Thinking::Free, Thinking::None] {
        for kind in [CanonicalKind::Text, CanonicalKind::Json] {
            let mut setup = thoughtful(kind);
            setup.params.thinking = thinking;
            let mut play = Play::new(&setup);
            assert!(play.open.values().all(|ask| !said(ask).contains(rules().trim())));
            // Both insist until neither has anything new to say.
            play.run_to_end(|ask| {
                // An agent that works the task out once more has no talk, and begins a conversation without the rules.
                // The same applies to one that compares two texts without names.
                let count = said(ask).matches(rules().trim()).count();
                let talks = [2, 3, 6, 7].contains(&ask.call.round) && ask.call.step != Step::Weigh;
                assert_eq!(count, usize::from(talks), "{}", ask.call);
                envelope(ask, &json!({"text": if ask.call.agent == 0 { "4" } else { "5" }}))
            });
        }
    }
}

#[test]
fn envelope_offers_only_the_concluded_text() {
    for (thought, offered, other) in [
        ("P1: none. P2: one too many. Answer: P1", "P1", "P2"),
        ("Answer: 5", "P2", "P1"),
        ("Answer: 6", "canonical_text", ""),
    ] {
        let mut play = Play::new(&thoughtful(CanonicalKind::Text));
        let (mut schema, mut asked) = (String::new(), String::new());
        play.run_to_end(|ask| {
            let is_turn = ask.call.round == 2 && ask.call.agent == 1;
            match (&ask.shape, is_turn) {
                (ReplyShape::Free, true) if ask.call.step == Step::Think => return thought.to_owned(),
                (ReplyShape::Json { schema: asked_for, .. }, true) => {
                    asked_for.as_str().clone_into(&mut schema);
                    asked = ask.messages.last().unwrap().content.clone();
                }
                (ReplyShape::Free | ReplyShape::Json { .. }, _) => {}
            }
            envelope(ask, &json!({"text": if ask.call.agent == 0 { "4" } else { "5" }}))
        });
        for said in [&schema, &asked] {
            assert!(said.contains(offered), "{thought}: {said}");
            assert_eq!(said.contains("canonical_text"), other.is_empty(), "{thought}: {said}");
            assert!(other.is_empty() || !said.contains(other), "{thought}: {said}");
        }
        // Who has lost its certainty may say so all the same.
        assert!(schema.contains("WORKING"), "{schema}");
    }
}

#[test]
fn thoughts_ending_in_invalid_text_decide_nothing() {
    let mut setup = thoughtful(CanonicalKind::Text);
    setup.params.constraints = vec![Constraint::parse("contains=oranges").unwrap()];
    let mut play = Play::new(&setup);
    let mut offered = None;
    play.run_to_end(|ask| {
        let ReplyShape::Json { schema, .. } = &ask.shape else { return "Answer: P1".to_owned() };
        if (ask.call.agent, ask.call.round) == (0, 2) {
            offered = Some(schema.to_value().to_string());
        }
        // Only a text that is declared final is held to the rules.
        let (text, status) = if ask.call.agent == 0 { ("apples", "PROPOSED") } else { ("oranges", "SOLVED") };
        envelope(ask, &json!({"text": text, "status": status, "because": "counted again"}))
    });
    let offered = offered.unwrap();
    assert!(offered.contains("P1") && offered.contains("canonical_text"), "{offered}");
}

#[test]
fn last_word_prompt_states_comparison_verdict() {
    for (verdicts, sentence) in [
        (["Answer: First", "Answer: Second"], "You found your own the better one: P1 cannot be accepted."),
        (
            ["Answer: First", "Answer: First"],
            "You found neither the better one: accept P1 unless it has an error.",
        ),
        (["Answer: Second", "Answer: First"], "You found P1 the better one."),
    ] {
        let mut play = Play::new(&thoughtful(CanonicalKind::Text));
        let mut last_word = None;
        play.run_to_end(|ask| match (ask.call.step, ask.call.agent, ask.call.round) {
            (Step::Weigh, 1, 6) => verdicts[ask.call.attempt as usize].to_owned(),
            (Step::Think, 1, 6) => {
                last_word = Some(said(ask));
                String::new()
            }
            (_, agent, _) => envelope(ask, &json!({"text": if agent == 0 { "4" } else { "5" }})),
        });
        let last_word = last_word.unwrap();
        assert!(last_word.contains(sentence), "{last_word}");
    }
}

#[test]
fn written_thoughts_put_status_first() {
    for (thinking, decides_first) in
        [(Thinking::Free, true), (Thinking::Field, true), (Thinking::None, false)]
    {
        let mut setup = thoughtful(CanonicalKind::Text);
        setup.params.thinking = thinking;
        let mut play = Play::new(&setup);
        let mut call = CallId { part: 0, round: 1, agent: 0, draft: 0, step: Step::Envelope, attempt: 0 };
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

/// Returns what the agents read about the form of a text of this kind: with the task, or where one has
/// the floor.
fn description(kind: CanonicalKind) -> String {
    let mut play = Play::new(&thoughtful(kind));
    let asked = said(&play.open.values().next().unwrap().clone());
    if let Some(form) = asked.split("Form of the final text: ").nth(1) {
        return form.lines().next().unwrap().to_owned();
    }
    let think = after_the_opening(&mut play);
    play.reply(think.call, "hm", Finish::Stop);
    let asked = said(&play.open[&CallId { step: Step::Envelope, ..think.call }]);
    asked.rsplit("A text is ").next().unwrap().split(';').next().unwrap().to_owned()
}

#[test]
fn text_form_comes_from_constraints_alone() {
    let mut setup = thoughtful(CanonicalKind::Text);
    let first = |setup: &Setup<PairParams>| said(Play::new(setup).open.values().next().unwrap());
    assert!(!first(&setup).contains("Form of the final text"), "{}", first(&setup));
    setup.params.constraints = vec![Constraint::parse("words=..40").unwrap()];
    assert!(first(&setup).contains("Form of the final text: at most 40 words.\n"), "{}", first(&setup));
}

#[test]
fn the_example_shows_the_form_of_the_text() {
    for (kind, rule, shown) in [
        (CanonicalKind::Text, "words=..40", "\"canonical_text\":\"…\"}"),
        (CanonicalKind::Text, "sentences=3", "\"canonical_text\":[\"…\",\"…\",\"…\"]}"),
        (CanonicalKind::Lines, "sentences=3", "\"canonical_text\":\"…\"}"),
        (CanonicalKind::Json, "excludes=x", "\"canonical_text\":[…]}"),
        (CanonicalKind::Json, "keys=a,b", "\"canonical_text\":…}"),
    ] {
        let mut setup = thoughtful(kind);
        setup.params.constraints = vec![Constraint::parse(rule).unwrap()];
        let mut play = Play::new(&setup);
        let think = *play.open.keys().next().unwrap();
        play.reply(think, "hm", Finish::Stop);
        let asked = said(&play.open[&CallId { step: Step::Envelope, ..think }]);
        assert!(asked.contains(shown), "{rule}: {asked}");
    }
}

#[test]
fn copied_form_description_is_refused() {
    for kind in [CanonicalKind::Text, CanonicalKind::Lines, CanonicalKind::Verbatim] {
        is_refused(kind, &description(kind));
    }
}

#[track_caller]
fn is_refused(kind: CanonicalKind, form: &str) {
    let mut play = Play::new(&thoughtful(kind));
    let call = CallId { part: 0, round: 1, agent: 0, draft: 0, step: Step::Think, attempt: 0 };
    play.reply(call, "hm", Finish::Stop);
    let commit = CallId { step: Step::Envelope, ..call };
    let text = format!("T{}", &form[1..]);
    let copied = envelope(&play.open[&commit], &json!({ "text": text }));
    play.reply(commit, &copied, Finish::Stop);
    let again = CallId { attempt: 1, ..commit };
    assert!(play.open.contains_key(&again), "{text}");
}

#[test]
fn opening_requests_mention_no_peer() {
    let words = ["peer", "peers", "agree", "judge", "council", "member", "members", "panel"];
    let names = ["Ann", "Bob", "Beth", "Cleo", "Dana", "Emil"];
    for (file, _) in consensus::config::EMBEDDED_ROLESETS {
        let name = file.trim_end_matches(".json");
        let found = consensus::config::find_roleset(name, &[]).unwrap();
        let (roleset, packs) = consensus::config::load_roleset(&found).unwrap();
        let task = Task { prompt: "hi".to_owned(), ..Task::default() };
        let mut setup = roleset.setup(name, &packs, task, 7);
        let protocol = setup.params.protocol();
        if protocol == "approval" {
            continue;
        }
        for (agent, name) in setup.agents.iter_mut().zip(names) {
            name.clone_into(&mut agent.name);
        }
        let play = Play::new(&setup);
        // An agent that frames a council's task is part of the talk; one that answers alone is not.
        let is_blind = |ask: &&Ask| ask.call.round == 0 || ask.call.step == Step::Sample;
        let asks: Vec<&Ask> =
            play.open.values().filter(|ask| protocol != "council" || is_blind(ask)).collect();
        assert!(!asks.is_empty(), "{name}");
        for ask in asks {
            // The names of an envelope's fields are the one exception.
            let said = said(ask).replace("needs_from_peer", "");
            let own = setup.agents[ask.call.agent].name.as_str();
            let mut spoken = said.split(|c: char| !c.is_alphanumeric());
            let peer = spoken.find(|word| words.contains(word) || names.contains(word) && *word != own);
            assert_eq!(peer, None, "{name}: {said}");
        }
    }
}
