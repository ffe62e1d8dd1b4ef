//! A calibration is made again of its runs by `verify`, which names it as not covered where a run has used it.

use serde_json::{Value, json};

use crate::support::{Finished, Folder, consensus};

const MOCK: [&str; 5] = ["--mock", "--answer", "4", "--roleset", "vote_number"];

fn said(folder: &Folder, words: &[&str], code: i32) -> Finished {
    Finished::of(consensus(folder).args(words)).exits(code)
}

/// Sixty sums, of which every sixth has another right answer.
fn sums(folder: &Folder) {
    let line = |id: usize| {
        let answer = if id.is_multiple_of(6) { 5 } else { 4 };
        let prompt = format!("How much is {id} - {id} + 4?");
        json!({"id": id, "prompt": prompt, "answer": answer, "canonical": "number"}).to_string() + "\n"
    };
    folder.write("sums.jsonl", &(0..60).map(line).collect::<String>());
}

/// A batch and its calibration, which are both in the folder `known`.
fn calibrated(only: &[&str]) -> Folder {
    let folder = Folder::new();
    sums(&folder);
    said(&folder, &[&["batch", "sums.jsonl", "--output", "known", "--quiet"][..], &MOCK].concat(), 0);
    let calibrate = ["calibrate", "known", "--risk", "0.5"];
    said(&folder, &[&calibrate[..], only].concat(), 0);
    folder
}

const VERIFY: [&str; 4] = ["verify", "known", "--calibration", "known/calibration.json"];

#[test]
fn calibration_is_made_again_of_its_batch() {
    let folder = calibrated(&["--only", "roleset=vote_number"]);
    let text = std::fs::read_to_string(folder.path().join("known/calibration.json")).unwrap();
    let made: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(made["only"], json!(["roleset=vote_number"]), "{made}");
    let sha256 = crypto::Digest::new(text.as_bytes()).to_string();
    let printed = said(&folder, &VERIFY, 0).stdout;
    assert!(
        printed.contains(&format!("calibration  sha256 {sha256}, which these runs make again")),
        "{printed}"
    );
    let printed = said(&folder, &[&VERIFY[..], &["--format", "json"]].concat(), 0).stdout;
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed["calibration"], json!(sha256), "{printed}");
    for (at, value, why) in [
        ("/way/roleset", json!("other"), "its `way` is not what they give"),
        ("/items/sha256", json!("0".repeat(64)), "its `items` is not what they give"),
        ("/steps/0/errors", json!(0), "is not the calibration of these runs"),
        ("/items/right", json!(60), "is not the calibration of these runs"),
        ("/only", json!(["roleset"]), "is not the calibration of these runs"),
    ] {
        let mut changed = made.clone();
        *changed.pointer_mut(at).unwrap() = value;
        folder.write("known/calibration.json", &changed.to_string());
        let printed = said(&folder, &VERIFY, 7).stderr;
        assert!(printed.contains(why), "{at}: {printed}");
    }
}

/// Whether an answer is right decides about a calibration, and no journal says it.
#[test]
fn calibration_of_other_grades_is_refused() {
    let folder = calibrated(&[]);
    let results = folder.path().join("known/results-0.jsonl");
    let text = std::fs::read_to_string(&results).unwrap();
    std::fs::write(&results, text.replace("\"right\":false", "\"right\":true")).unwrap();
    said(&folder, &["verify", "known"], 0);
    let why = said(&folder, &VERIFY, 7).stderr;
    assert!(why.contains("is not the calibration of these runs: its `items`"), "{why}");
}

#[test]
fn calibration_of_an_evaluation_is_compared() {
    let folder = Folder::new();
    sums(&folder);
    let eval = ["eval", "sums.jsonl", "--out", "study", "--samples", "2", "--arm", "single", "--quiet"];
    said(&folder, &[&eval[..], &["--mock", "--answer", "4"]].concat(), 0);
    said(&folder, &["calibrate", "study", "--risk", "0.5"], 0);
    let verify = ["verify", "study", "--calibration", "study/calibration.json"];
    let printed = said(&folder, &verify, 0).stdout;
    assert!(printed.contains("which these runs make again") && printed.contains("not covered"), "{printed}");
    let other = ["verify", "study", "--calibration", "sums.jsonl"];
    assert!(said(&folder, &other, 7).stderr.contains("it is no calibration"));
    assert!(said(&folder, &["verify", "study"], 2).stderr.contains("its batches are"));
}

#[test]
fn used_calibration_is_named_as_not_covered() {
    let folder = calibrated(&[]);
    let run = ["run", "--calibration", "known/calibration.json", "--canonical", "number"];
    said(&folder, &[&run[..], &MOCK, &["--prompt", "How much is 2+2?"]].concat(), 0);
    let printed = said(&folder, &["verify", "--last"], 0).stdout;
    assert!(printed.contains("the calibration; `consensus verify --calibration FILE DIR`"), "{printed}");
    let printed = said(&folder, &["verify", "--last", "--format", "json"], 0).stdout;
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert!(printed["not_covered"].as_array().unwrap().contains(&json!("calibration")), "{printed}");
    let batch = ["batch", "sums.jsonl", "--output", "out", "--calibration", "known/calibration.json"];
    said(&folder, &[&batch[..], &MOCK, &["--first-seed", "100", "--quiet"]].concat(), 0);
    let printed = said(&folder, &["verify", "out"], 0).stdout;
    assert!(printed.contains("the calibration; `consensus verify --calibration FILE DIR`"), "{printed}");
}
