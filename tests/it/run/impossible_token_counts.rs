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

/// Counts that cannot be are charged at an estimate, noted in the result, and kept in the journal.
#[test]
fn impossible_counts_are_charged_by_estimate() {
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
        let replay = Finished::of(consensus(&folder).args(["show", "--replay", "--last"])).exits(0);
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
