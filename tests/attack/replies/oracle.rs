//! What may count, said once more and by other means than the program's: from the forms that README and the schemas describe.
//!
//! In: the object that was read from a reply, and the honest one. Out: whether the reply may count. It may say yes to what
//! the program refuses for a finer reason, and never no to what the program may accept.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Whether an object has all of these fields, and besides them at most those.
fn has_fields(value: &Value, all: &[&str], more: &[&str]) -> bool {
    let Some(fields) = value.as_object() else { return false };
    let is_known = |name: &String| all.contains(&name.as_str()) || more.contains(&name.as_str());
    all.iter().all(|name| fields.contains_key(*name)) && fields.keys().all(is_known)
}

fn is_whole_between(value: &Value, min: f64, max: f64) -> bool {
    value.as_f64().is_some_and(|number| number.fract() == 0.0 && (min..=max).contains(&number))
}

fn are_texts(value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(Value::is_string))
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// An envelope counts towards the agreement on 4 if it declares that number final by its author's own word.
pub(super) fn envelope(said: &Value, _: &Value) -> bool {
    let all = [
        "role",
        "domain",
        "task_understanding",
        "public_message",
        "artifact",
        "needs_from_peer",
        "handoff_to",
        "status",
        "final_solution",
    ];
    let solution = &said["final_solution"];
    let number: Option<f64> = text(solution, "canonical_text").trim().parse().ok();
    has_fields(said, &all, &["meta", "tags", "request"])
        && said["role"] == "Checker"
        && said["status"] == "SOLVED"
        && text(said, "public_message").contains("[SOLVED]")
        && said["domain"].is_string()
        && said["task_understanding"].is_string()
        && has_fields(&said["artifact"], &["type", "content"], &[])
        && said["artifact"]["content"].is_object()
        && are_texts(&said["needs_from_peer"])
        && ["", "Solver", "Checker"].map(Value::from).contains(&said["handoff_to"])
        && (said["meta"].is_null() || has_fields(&said["meta"], &[], &["answers", "change"]))
        && has_fields(solution, &["canonical_text"], &["accepts", "sha256"])
        && solution["accepts"].is_null()
        && number == Some(4.0)
}

/// Returns the names of an object's fields.
fn names(value: &Value) -> Option<BTreeSet<&String>> {
    Some(value.as_object()?.keys().collect())
}

/// A ballot has a mark for each answer that was shown, and for no other.
pub(super) fn ballot(said: &Value, base: &Value) -> bool {
    const SCORES: [&str; 4] = ["accuracy", "relevance", "completeness", "clarity"];
    let is_mark = |mark: &Value| {
        has_fields(mark, &["feedback", "accuracy", "relevance", "completeness", "clarity"], &[])
            && text(mark, "feedback").trim().chars().count() <= 400
            && mark["feedback"].is_string()
            && SCORES.iter().all(|name| is_whole_between(&mark[*name], 1.0, 10.0))
    };
    names(said).is_some_and(|found| Some(found) == names(base))
        && said.as_object().map(Map::values).is_some_and(|mut marks| marks.all(is_mark))
}

/// A verification is a confidence with one check or more. A veto that rests on evidence never counts as a yes.
pub(super) fn verification(said: &Value, _: &Value) -> bool {
    let is_check = |check: &Value| {
        has_fields(check, &["claim", "source", "quote", "verdict"], &[])
            && ["claim", "source", "quote"].iter().all(|name| check[*name].is_string())
            && ["holds", "fails", "unknown"].contains(&text(check, "verdict"))
    };
    let checks = said["checks"].as_array();
    let is_proven = |check: &Value| {
        let quote = text(check, "quote").trim();
        check["verdict"] == "fails" && check["source"] == "task" && crate::honest::QUESTION.contains(quote)
    };
    has_fields(said, &["checks", "reasoning", "veto", "confidence"], &["sound"])
        && said["veto"].is_boolean()
        && said["reasoning"].is_string()
        && said["confidence"].as_f64().is_some_and(|sure| (0.0..=1.0).contains(&sure))
        && checks.is_some_and(|all| (1..=8).contains(&all.len()) && all.iter().all(is_check))
        && !(said["veto"] == true && checks.is_some_and(|all| all.iter().any(is_proven)))
}

/// A review approves if it says so and finds nothing high or critical.
pub(super) fn review(said: &Value, _: &Value) -> bool {
    let is_harmless = |finding: &Value| {
        has_fields(finding, &["line", "problem", "severity"], &[])
            && finding["line"].is_string()
            && finding["problem"].is_string()
            && ["low", "medium"].contains(&text(finding, "severity"))
    };
    has_fields(said, &["findings", "summary", "verdict", "confidence"], &[])
        && said["verdict"] == "approve"
        && text(said, "summary").chars().any(char::is_alphanumeric)
        && text(said, "summary").trim().chars().count() <= 400
        && is_whole_between(&said["confidence"], 0.0, 100.0)
        && said["findings"].as_array().is_some_and(|all| all.len() <= 10 && all.iter().all(is_harmless))
}
