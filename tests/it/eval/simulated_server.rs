//! Voters of known skill behind a server, evaluated by the whole program: it finds their skill, and that to count them in another way is
//! worth nothing.

use crypto::Digest;
use serde_json::{Value, json};

use super::{arm, eval, sums};
use crate::support::{Finished, Folder, Server, model};

/// The right answer of every sum.
const RIGHT: u64 = 4;

const ITEMS: u64 = 120;

/// Returns a number from 0 to 999 that follows from the words alone.
fn lot(words: &str) -> u64 {
    let hex = Digest::new(words.as_bytes()).to_string();
    u64::from_str_radix(&hex[..12], 16).unwrap() % 1000
}

/// Returns how often of 1,000 times a voter is right on an item: from 5 % to 95 %, and on half of all items on average.
fn skill(item: u64) -> u64 {
    50 + item % 10 * 100
}

/// Answers a sum rightly with the skill on it, by the seed of the request alone.
fn voter(request: &Value) -> String {
    let text = request["messages"].to_string();
    let first = text.split("How much is ").nth(1).and_then(|rest| rest.split(' ').next());
    let item: u64 = first.unwrap().parse().unwrap();
    let draw = lot(&format!("{item} {} {}", request["seed"], request["temperature"]));
    let answer = if draw < skill(item) { RIGHT } else { RIGHT + 1 + draw % 3 };
    format!("I count.\nAnswer: {answer}")
}

/// Returns whether an interval holds a figure.
fn holds(interval: &Value, figure: f64) -> bool {
    let end = |name: &str| interval[name].as_f64().unwrap();
    (end("low")..=end("high")).contains(&figure)
}

#[test]
fn evaluation_finds_skill_and_no_false_gain() {
    let (folder, server) = (Folder::new(), Server::start(model(voter)));
    sums(&folder, usize::try_from(ITEMS).unwrap());
    let words = ["--arm", "vote,stop=sure", "--arm", "single", "--arm", "sc@3"];
    let stdout = Finished::of(&mut eval(&folder, &server, &words)).exits(0).stdout;
    let summary: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(summary["items"], ITEMS);
    let (curve, vote) = (&summary["curves"][0], arm(&summary, "vote,stop=sure"));
    assert!(holds(&arm(&summary, "single")["right"]["interval"], 0.5), "{summary}");
    assert!(holds(&curve["points"][0]["interval"], 0.5), "{curve}");
    assert!(holds(&curve["control"][1], 0.0), "{curve}");
    // The share of items of which one of four samples is right, to within three standard errors.
    let none_right = |item: u64| (1.0 - skill(item) as f64 / 1000.0).powi(4);
    let expected = 1.0 - (0..ITEMS).map(none_right).sum::<f64>() / ITEMS as f64;
    let found = curve["any_right"].as_f64().unwrap();
    assert!((found - expected).abs() < 3.0 * 0.3 / (ITEMS as f64).sqrt(), "{found} {expected}");
    assert!(holds(&vote["against"]["interval"], 0.0), "{vote}");
    assert!(!["helps", "hurts"].contains(&vote["verdict"].as_str().unwrap()), "{vote}");
    assert_eq!(vote["cost"]["seconds"], json!(null), "to count a bank takes no time of a run");
}
