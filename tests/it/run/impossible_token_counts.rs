//! Counts of tokens that cannot be: an estimate is charged in their place, and the result says so.

use serde_json::{Value, json};

use crate::support::{Act, Finished, Folder, Request, SENSIBLE, Server, consensus, http};

/// Runs two agents against a server that counts in this way.
fn run(folder: &Folder, usage: Value, more: &[&str]) -> Finished {
    let server = Server::start(move |request: &Request| {
        let message = json!({"content": SENSIBLE(&request.json())});
        let body = json!({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage});
        vec![Act::Send(http("200 OK", "", body.to_string().as_bytes()))]
    });
    let base = ["run", "--roleset", "writer_physicist", "--seed", "1", "--prompt", "2+2?", "--model", "tiny"];
    Finished::of(consensus(folder).args(base).args(["--base-url", &server.url()]).args(more))
}

fn kinds(result: &Value) -> Vec<&str> {
    result["degraded"].as_array().unwrap().iter().map(|loss| loss["kind"].as_str().unwrap()).collect()
}

#[test]
fn counts_that_cannot_be_are_charged_at_an_estimate() {
    let cached = json!({"cached_tokens": 101});
    for usage in [
        json!({"prompt_tokens": u64::MAX, "completion_tokens": u64::MAX}),
        json!({"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": cached}),
        json!({"prompt_tokens": 100, "completion_tokens": 1_000_000}),
        json!({"prompt_tokens": 100, "completion_tokens": 0}),
    ] {
        let folder = Folder::new();
        // The limit is far below what the server counts, and far above what was used.
        let finished = run(&folder, usage.clone(), &["--max-tokens-total", "200000"]).exits(0);
        let result = folder.result();
        assert_eq!(kinds(&result), ["usage_implausible", "usage_implausible"], "one for each agent");
        let used = ["prompt", "completion"].map(|kind| result["usage"][kind].as_u64().unwrap());
        assert!(used[0] > 1000 && used[1] > 100 && used[0] + used[1] < 100_000, "{used:?}");
        assert_eq!(result["usage"]["cached"], 0);
        let journal = std::fs::read_to_string(folder.run().join("journal.jsonl")).unwrap();
        let raw = usage["completion_tokens"].to_string();
        assert!(journal.contains(&format!("\"completion\":{raw}")), "the figures stay on record: {journal}");
        let replay = Finished::of(consensus(&folder).args(["replay", "--last"])).exits(0);
        for said in [&finished, &replay] {
            assert!(
                !said.stderr.contains("000000 tokens") && !said.stderr.contains("18446744"),
                "{}",
                said.stderr
            );
        }
        Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
    }
}

#[test]
fn counts_with_hidden_reasoning_are_believed() {
    let folder = Folder::new();
    run(&folder, json!({"prompt_tokens": 1000, "completion_tokens": 20_000}), &["--fail-on-degraded"])
        .exits(0);
    let result = folder.result();
    let calls = result["usage"]["calls"].as_u64().unwrap();
    assert_eq!(result["usage"]["completion"], 20_000 * calls);
}

#[test]
fn a_journal_of_the_first_rules_believes_every_count() {
    let folder = Folder::new();
    let fixture = include_str!("../../fixtures/v0.1/runs/pair-independent/journal.jsonl");
    let inflated = |line: &str| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        if record["event"]["type"] == "replied" {
            record["event"]["usage"]["completion"] = json!(u64::MAX);
        }
        record.to_string() + "\n"
    };
    let journal: String = fixture.lines().map(inflated).collect();
    folder.write("runs/old/journal.jsonl", &rechained(&journal));
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
    let shown = Finished::of(consensus(&folder).args(["replay", "--last", "--format", "json"])).exits(0);
    let result: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert!(!kinds(&result).contains(&"usage_implausible"), "{result}");
    assert_eq!(result["usage"]["completion"], u64::MAX);
}

/// Returns the lines with the digests that they have now.
fn rechained(journal: &str) -> String {
    let mut prev = consensus::crypto::Digest::ZERO;
    let mut out = String::new();
    for line in journal.lines() {
        let (before, _) = line.rsplit_once("\"prev\":\"").unwrap();
        let line = format!("{before}\"prev\":\"{prev}\"}}");
        prev = consensus::crypto::Digest::new(line.as_bytes());
        out.extend([&line, "\n"]);
    }
    out
}
