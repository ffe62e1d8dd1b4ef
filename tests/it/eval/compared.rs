//! Arms are compared over the same items with the majority of as many samples as their tokens buy.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::{arm, eval, evaluated, file, sums, sums_model};
use crate::support::{Act, Finished, Folder, SENSIBLE, Server, consensus, http, model};

/// Each arm is compared with the curve of the majority at the tokens that the arm took.
#[test]
fn arms_are_compared_at_their_own_tokens() {
    let (folder, server) = (Folder::new(), sums_model());
    sums(&folder, 24);
    let summary = evaluated(&folder, &server, &[], 0);
    assert_eq!(
        (&summary["items"], &summary["units"], &summary["primary"]),
        (&json!(24), &json!(24), &json!("vote,modes=words,program"))
    );
    let points = summary["curves"][0]["points"].as_array().unwrap();
    assert_eq!(points.len(), 4);
    // The first sample of all is one subset of the samples; a curve is the mean over all of them.
    let share = |value: &Value| value.as_f64().unwrap();
    let single = arm(&summary, "single");
    assert!(single["verdict"].is_null(), "a point of the curve has no verdict");
    assert!((share(&points[0]["tokens"]) * 4.0 - share(&points[3]["tokens"])).abs() < 1e-6);
    for row in summary["arms"].as_array().unwrap() {
        let against = &row["against"];
        let difference = share(&row["right"]["share"]) - share(&against["curve"]);
        assert!((difference - share(&against["difference"])).abs() < 1e-9, "{row}");
        assert!(share(&against["interval"]["low"]) <= share(&against["difference"]), "{row}");
    }
    let vote = arm(&summary, "vote,modes=words,program");
    let bought = share(&vote["cost"]["tokens"]) / share(&points[0]["tokens"]);
    let at = points.iter().filter(|point| share(&point["samples"]) <= bought).count();
    let (low, high) = (&points[at - 1], &points[at.min(3)]);
    let curve = share(&vote["against"]["curve"]);
    assert!(
        (share(&low["right"]) - 1e-9..=share(&high["right"]) + 1e-9).contains(&curve),
        "{bought}: {vote}"
    );
    let pair = arm(&summary, "pair:writer_physicist");
    assert_eq!(pair["protocol"], "pair");
    assert!(!pair["talk"].is_null() && vote["talk"].is_null(), "a vote has no talk");
    assert_eq!(pair["against"]["is_dearer"], true, "{pair}");
    // Every run of it verifies as any batch does.
    for batch in ["study/bank", "study/arms"] {
        Finished::of(consensus(&folder).args(["verify", batch])).exits(0);
    }
    let rows = file(&folder, "items.jsonl");
    assert_eq!(rows.lines().count(), 24 * 4);
    let row: Value = serde_json::from_str(rows.lines().next().unwrap()).unwrap();
    assert_eq!((&row["id"], &row["arm"], row["right"].is_boolean()), (&json!("0"), &json!("single"), true));
}

#[test]
fn arms_use_samples_of_bank() {
    let (folder, server) = (Folder::new(), sums_model());
    sums(&folder, 6);
    evaluated(&folder, &server, &[], 0);
    let prompts = server.chats().into_iter().map(|request| request.body);
    let samples = prompts
        .filter(|body| body.contains("a line that begins with `Answer:` and holds the number alone"))
        .count();
    assert_eq!(samples, 6 * 4, "four samples of each task serve every arm that counts samples");
}

/// Evaluates four questions of a public set with scripted agents, of which one answer is right.
fn scripted(folder: &Folder) -> Finished {
    let row = |n: u32| format!("{{\"question\": \"{n} + 2?\", \"answer\": \"#### {}\"}}\n", n + 2);
    folder.write("gsm8k-test.jsonl", &(0..4).map(row).collect::<String>());
    let words = "eval gsm8k-test.jsonl --arm vote --samples 2 --out study --mock --answer 4";
    Finished::of(consensus(folder).args(words.split(' '))).exits(0)
}

/// The output and the report say that a file has the name of a public set, which models may have read.
#[test]
fn public_set_name_brings_warning() {
    let folder = Folder::new();
    let stderr = scripted(&folder).stderr;
    assert!(stderr.contains("has the name of a public set, which models may have read"), "{stderr}");
    assert!(file(&folder, "report.html").contains("has the name of a public set"));
}

#[test]
fn each_arm_is_listed_with_its_cost() {
    let Finished { stdout, stderr, .. } = scripted(&Folder::new());
    assert!(stderr.contains("< stands for more tokens than all 2 samples"), "{stderr}");
    assert!(stderr.contains("can show that an arm helps: vote; --samples draws up to 16"), "{stderr}");
    for part in [
        "vote *\n  right 25.0 % [4.6, 69.9], answered 100 %\n",
        " tokens, 3.0 calls, 0.000000 USD\n",
        "  majority 25.0 % <, difference +0.0 [-60.0, +60.0], p 1.000: dearer than all samples\n",
    ] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
}

#[test]
fn tasks_of_one_label_are_drawn_together() {
    let (folder, server) = (Folder::new(), sums_model());
    sums(&folder, 40);
    let summary = evaluated(&folder, &server, &["--cluster", "subject"], 0);
    assert_eq!((&summary["items"], &summary["units"]), (&json!(40), &json!(10)));
    // A label that divides nothing would make any interval look certain.
    std::fs::remove_dir_all(folder.path().join("study")).unwrap();
    for (label, limit, why) in [
        ("subjct", "40", "is not in the `meta` of task `0`"),
        ("subject", "36", "has 9 values, and an interval over clusters needs 10 or more"),
    ] {
        let words = ["--arm", "vote", "--cluster", label, "--limit", limit];
        let stderr = Finished::of(&mut eval(&folder, &server, &words)).exits(2).stderr;
        assert!(stderr.contains(why), "{stderr}");
    }
}

/// A right arm on a few items, which no selection of them doubts.
#[test]
fn five_items_do_not_help() {
    let server = Server::start(model(|request: &Value| {
        let right =
            request["temperature"] == 0.0 || request["seed"].as_u64().is_some_and(|seed| seed % 2 == 0);
        format!("Answer: {}", if right { 4 } else { 5 })
    }));
    for items in [1, 3, 5] {
        let folder = Folder::new();
        sums(&folder, items);
        let words = ["--arm", "single,temperature=0"];
        let stdout = Finished::of(&mut eval(&folder, &server, &words)).exits(0).stdout;
        let summary: Value = serde_json::from_str(&stdout).unwrap();
        let verdict = summary["arms"][0]["verdict"].as_str().unwrap();
        assert!(verdict.starts_with("not enough data"), "{items}: {verdict}");
    }
}

/// An arm whose model is not that of its curve gets no verdict, and an arbiter with its own model is refused.
#[test]
fn arm_on_other_model_has_no_verdict() {
    let (folder, server) = (Folder::new(), sums_model());
    sums(&folder, 8);
    folder.write("packs/p.md", "Count.");
    let agent = |name: &str| json!({"name": name, "domain": "sums", "pack": "p.md", "model": "large-model"});
    let roleset = json!({"v": 1, "protocol": "pair", "agents": [agent("Ann"), agent("Bob")], "canonical": {"kind": "number"}});
    folder.write("large.json", &roleset.to_string());
    let mut command = consensus(&folder);
    command.args([
        "eval",
        "sums.jsonl",
        "--out",
        "study",
        "--samples",
        "4",
        "--arm",
        "./large.json",
        "--base-url",
        &server.url(),
    ]);
    let finished = Finished::of(command.arg("--no-model-check")).exits(0);
    assert!(finished.stderr.contains("there is no verdict on ./large.json"), "{}", finished.stderr);
    assert!(!finished.stderr.contains("< stands for more tokens"), "{}", finished.stderr);
    let summary: Value = serde_json::from_str(&file(&folder, "summary.json")).unwrap();
    let arm = &summary["arms"][0];
    assert!(arm["verdict"].is_null() && arm["p"].is_null(), "{summary}");
    // Results do not tell the model of an arbiter, so it must be that of the agents.
    let mut judged = roleset;
    judged["arbiter"] = json!({"name": "Cid", "domain": "sums", "pack": "p.md", "model": "other-model"});
    folder.write("judged.json", &judged.to_string());
    let arm = ["--out", "judged", "--arm", "./judged.json", "--base-url", &server.url()];
    let stderr = Finished::of(consensus(&folder).args(["eval", "sums.jsonl"]).args(arm)).exits(2).stderr;
    assert!(stderr.contains("its arbiter has the model `other-model` of its own"), "{stderr}");
}

/// An arm whose failed runs are retried on another model gets no verdict.
#[test]
fn model_change_within_arm_prevents_verdict() {
    let folder = Folder::new();
    sums(&folder, 4);
    // The bank has four samples of each task, and the first of the pairs are under way.
    let asked = AtomicUsize::new(0);
    let dies = Server::start(move |request| {
        let is_chat = request.path.ends_with("/chat/completions");
        if is_chat && asked.fetch_add(1, Ordering::Relaxed) >= 16 + 5 {
            return vec![Act::Send(http("401 Unauthorized", "", b"{}"))];
        }
        model(SENSIBLE)(request)
    });
    let other = Server::start(|request| {
        if request.path.ends_with("/models") {
            let list = json!({"data": [{"id": "other-model"}]});
            return vec![Act::Send(http("200 OK", "", list.to_string().as_bytes()))];
        }
        model(SENSIBLE)(request)
    });
    let arm = ["--samples", "4", "--arm", "pair:writer_physicist", "--base-url"];
    let words = [&["eval", "sums.jsonl", "--out", "study"], &arm[..]].concat();
    Finished::of(consensus(&folder).args(&words).arg(dies.url())).exits(6);
    let retry = [&other.url(), "--retry", "failed"];
    let finished = Finished::of(consensus(&folder).args(&words).args(retry)).exits(0);
    assert!(finished.stderr.contains("there is no verdict on pair:writer_physicist"), "{}", finished.stderr);
    assert!(finished.stderr.contains("another model"), "{}", finished.stderr);
}

#[test]
fn pilot_gives_no_verdict() {
    let (folder, server) = (Folder::new(), sums_model());
    sums(&folder, 24);
    let summary = evaluated(&folder, &server, &["--pilot", "8"], 0);
    assert_eq!((&summary["items"], &summary["pilot"]), (&json!(8), &json!(true)));
    assert!(summary["arms"].as_array().unwrap().iter().all(|arm| arm["verdict"].is_null()), "{summary}");
    let finished = Finished::of(consensus(&folder).args(["eval", "report", "study"])).exits(0);
    assert!(finished.stderr.contains("this is a pilot, without a verdict"), "{}", finished.stderr);
    let bar = ["eval", "report", "study", "--fail-under", "right=0.1"];
    let stderr = Finished::of(consensus(&folder).args(bar)).exits(2).stderr;
    assert!(stderr.contains("no bar judges a pilot"), "{stderr}");
    // A person who has seen its figures cannot make them the verdict.
    let words = [&super::ARMS[..], &["--limit", "8"]].concat();
    let stderr = Finished::of(&mut eval(&folder, &server, &words)).exits(2).stderr;
    assert!(stderr.contains("the whole needs more of them"), "{stderr}");
    // Its items are a part of the whole, and are not asked about again.
    let asked = server.chats().len();
    let whole = evaluated(&folder, &server, &[], 0);
    assert_eq!((&whole["items"], &whole["pilot"]), (&json!(24), &json!(false)));
    assert_eq!(server.chats().len(), asked * 3);
}

#[test]
fn shown_item_covers_every_arm() {
    let (folder, server) = (Folder::new(), sums_model());
    sums(&folder, 4);
    evaluated(&folder, &server, &[], 0);
    let shown = Finished::of(consensus(&folder).args(["eval", "show", "study", "2"])).exits(0).stdout;
    assert!(shown.contains("  drafts: ") && shown.contains(" × “4”, right"), "{shown}");
    for part in [
        "How much is 2 - 2 + 4?",
        "the right answer is “4”",
        "of 4 samples are right (bank)",
        "--- arm sc@3 ---",
        "--- arm pair:writer_physicist ---",
        "def solution():",
        "This program was run by",
        "Physicist",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let stdout = Finished::of(consensus(&folder).args(["eval", "show", "study", "2", "--format", "json"]))
        .exits(0)
        .stdout;
    let item: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&item["task"]["answer"], item["arms"].as_array().unwrap().len()), (&json!(4), 4));
    // A command for one batch or one run says which there are.
    let bundle = ["export", "study", "--bundle", "study.tar.gz"];
    for words in [&["results", "study"][..], &["show", "study"], &["runs", "study"], &bundle] {
        let whole = Finished::of(consensus(&folder).args(words)).exits(2).stderr;
        assert!(whole.contains("its batches are `study/arms` and `study/bank`"), "{words:?}: {whole}");
    }
    // An empty object is no plan, and the folder is that of a batch again.
    std::fs::write(folder.path().join("study/arms/plan.json"), "{}").unwrap();
    Finished::of(consensus(&folder).args(["runs", "study/arms"])).exits(0);
    let unknown = Finished::of(consensus(&folder).args(["eval", "show", "study", "9"])).exits(2).stderr;
    assert!(unknown.contains("no item `9`"), "{unknown}");
}
