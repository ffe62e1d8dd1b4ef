//! Hostile replies and tasks: none of them ever produces an agreement, a panic or an endless run.
//!
//! `hostile_replies.jsonl` holds one case a line: what Ann says every time (or `blind` and `later`),
//! what Bob says (by default an honest, final "4"), and part of the refusal that Ann must be sent.

use protocol::text::{CanonicalKind, CanonicalRule};
use protocol::{Ask, Outcome};
use serde_json::Value;

use crate::support::{Play, Tiny, envelope};

#[test]
fn no_hostile_reply_ever_makes_an_agreement() {
    let corpus = include_str!("hostile_replies.jsonl");
    let cases: Vec<Value> = corpus.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    assert!(cases.len() >= 60, "{} cases", cases.len());
    let wrong: Vec<String> = cases.iter().filter_map(|case| check(case).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn check(case: &Value) -> Result<(), String> {
    let name = case["name"].as_str().unwrap();
    let mut setup = Tiny::setup();
    if let Some(task) = case["task"].as_str() {
        task.clone_into(&mut setup.task.prompt);
    }
    if let Some(kind) = case["canonical"].as_str() {
        let kind: CanonicalKind = serde_json::from_value(kind.into()).unwrap();
        setup.canonical = CanonicalRule { choices: vec!["A".to_owned(), "B".to_owned()], ..kind.into() };
    }
    let honest = serde_json::json!({"fields": {"text": "4"}});
    let mut refusals = String::new();
    let mut play = Play::new(&setup);
    let outcome = play.run_to_end(|ask| {
        let last = &ask.messages.last().unwrap().content;
        if ask.call.agent == 0 && last.contains("does not count") {
            refusals.push_str(last);
        }
        let says = if ask.call.agent == 0 { &case["ann"] } else { &case["bob"] };
        let says = if says.is_null() { &honest } else { says };
        let now = if ask.call.round == 1 { &says["blind"] } else { &says["later"] };
        said(ask, if now.is_null() { says } else { now })
    });
    if matches!(outcome, Outcome::Agreed { .. }) || play.asked > 60 {
        return Err(format!("{name}: {outcome:?} after {} calls", play.asked));
    }
    match case["refused"].as_str() {
        Some(part) if refusals.contains(part) => Ok(()),
        None if refusals.is_empty() => Ok(()),
        wanted => Err(format!("{name}: {wanted:?} wanted, {refusals:.300?} found")),
    }
}

fn said(ask: &Ask, says: &Value) -> String {
    if let Some(text) = says["raw"].as_str() {
        return text.to_owned();
    }
    if says["fields"].is_object() {
        return envelope(ask, &says["fields"]);
    }
    let repeat = &says["repeat"];
    let part = |name: &str| repeat[name].as_str().unwrap_or_default();
    let times = usize::try_from(repeat["times"].as_u64().unwrap()).unwrap();
    format!("{}{}{}", part("before"), part("text").repeat(times), part("after"))
}
