//! A model is what its server says. An invented name is no second model, and is finished at once.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::{Act, Finished, Folder, Request, Server, consensus, http};

const LLAMA: &str = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf";

/// A review that approves any change.
const REVIEW: &str =
    r#"{"findings": [], "summary": "It turns x into y.", "verdict": "approve", "confidence": 90}"#;

/// Returns a server with this list of models, whose replies name the model that `named` returns for the one that was asked.
fn server(list: Value, named: fn(&str) -> Value, text: &'static str) -> Server {
    Server::start(move |request: &Request| {
        if request.path.ends_with("/models") {
            let status = if list.is_null() { "404 Not Found" } else { "200 OK" };
            return vec![Act::Send(http(status, "", json!({"data": list}).to_string().as_bytes()))];
        }
        let asked = request.json()["model"].as_str().unwrap_or_default().to_owned();
        let body = json!({
            "model": named(&asked),
            "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 20},
        });
        vec![Act::Send(http("200 OK", "", body.to_string().as_bytes()))]
    })
}

fn listed(names: &[&str]) -> Value {
    json!(names.iter().map(|name| json!({"id": name})).collect::<Vec<_>>())
}

fn vote(server: &Server, models: &str) -> (Folder, Finished, Value) {
    let folder = Folder::new();
    let words = ["run", "--roleset", "vote_number", "--no-stream", "--prompt", "How much is 17 * 23?"];
    let mut command = consensus(&folder);
    command.env_remove("CONSENSUS_NO_MODEL_CHECK");
    let command = command.args(words).args(["--models", models, "--base-url", &server.url()]);
    let finished = Finished::of(command.args(["--format", "json"])).exits(0);
    let result = serde_json::from_str(&finished.stdout).unwrap();
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
    (folder, finished, result)
}

#[test]
fn invented_names_are_one_voter() {
    let server = server(listed(&[LLAMA]), |_| json!(LLAMA), "Answer: 391");
    let (folder, finished, result) = vote(&server, "gpt-4o,claude-sonnet");
    assert_eq!((&result["text"], &result["vote"]["class"]), (&json!("391"), &json!("C")), "{result}");
    for agent in result["agents"].as_array().unwrap().iter().filter(|agent| !agent["text"].is_null()) {
        assert_eq!(agent["model"], LLAMA, "{agent}");
    }
    assert_eq!(result["vote"]["samples"][0]["model"], LLAMA);
    assert_eq!(result["degraded"][0]["kind"], "model_not_listed");
    let line = format!("does not list `gpt-4o`; `{LLAMA}` answers for it; it lists `{LLAMA}`");
    assert!(finished.stderr.contains(&line), "{}", finished.stderr);
    let worth = "medium agreement: blind samples of one voter lead clearly to this answer";
    assert!(!finished.stderr.contains("two unlike voters"), "{}", finished.stderr);
    let shown = Finished::of(consensus(&folder).args(["show", "--last"])).exits(0).stderr;
    assert!(shown.contains("all voters are one model") && !shown.contains(worth), "{shown}");
}

#[test]
fn names_of_one_root_are_one_voter() {
    let root = |id: &str| json!({"id": id, "root": "Qwen/Qwen2.5-7B", "owned_by": "vllm"});
    let server = server(json!([root("small"), root("large")]), |asked| json!(asked), "Answer: 391");
    let (_, finished, result) = vote(&server, "small,large");
    assert_eq!(
        (&result["vote"]["class"], &result["degraded"]),
        (&json!("C"), &json!([])),
        "{}",
        finished.stderr
    );
    assert_eq!(result["vote"]["samples"][1]["model"], "Qwen/Qwen2.5-7B");
}

/// Without a list, the replies say it.
#[test]
fn replies_of_one_model_are_one_voter() {
    let one = server(Value::Null, |_| json!(LLAMA), "Answer: 391");
    assert_eq!(vote(&one, "a,b").2["vote"]["class"], "C");
    let two = server(Value::Null, |asked| json!(asked), "Answer: 391");
    assert_eq!(vote(&two, "a,b").2["vote"]["class"], "B");
}

/// One name of one server is one model, though its replies alternate; and a name that no list has is no evidence when it is repeated.
#[test]
fn replies_alone_make_no_second_voter() {
    static TURNS: AtomicUsize = AtomicUsize::new(0);
    let dated = |_: &str| json!(format!("m-{}", TURNS.fetch_add(1, Ordering::Relaxed) % 2));
    let one = server(Value::Null, dated, "Answer: 391");
    assert_eq!(vote(&one, "m").2["vote"]["class"], "C");
    let echoes = server(listed(&["x", "y"]), |asked| json!(asked), "Answer: 391");
    assert_eq!(vote(&echoes, "foo,bar").2["vote"]["class"], "C");
}

#[test]
fn listed_models_are_unlike_voters() {
    let server = server(listed(&["a", "b"]), |_| json!("m"), "Answer: 391");
    let (_, finished, result) = vote(&server, "a,b");
    assert_eq!(
        (&result["vote"]["class"], &result["degraded"]),
        (&json!("B"), &json!([])),
        "{}",
        finished.stderr
    );
    // Of several models none answers for the name, and the replies say which it is.
    let other = self::server(listed(&["a", "b"]), |_| json!("a"), "Answer: 391");
    let (_, _, result) = vote(&other, "c,d");
    assert_eq!((&result["vote"]["class"], &result["agents"][0]["model"]), (&json!("C"), &json!("a")));
    assert_eq!(result["degraded"][1]["kind"], "model_not_listed");
}

/// Four names on one server are one model, in every form of a review.
#[test]
fn review_says_that_its_reviewers_are_one_model() {
    let words = "All use the same model, so a shared error is not tolerated.";
    let folder = Folder::new();
    folder.write("change.diff", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n");
    let mut roleset = json!({"v": 1, "protocol": "approval", "agents": []});
    roleset["agents"] = ["A", "B", "C", "D"]
        .map(|name| json!({"name": name, "domain": "review", "pack": "p.md", "model": format!("model-{name}")}))
        .into();
    folder.write("r.json", &roleset.to_string());
    std::fs::create_dir(folder.path().join("packs")).unwrap();
    folder.write("packs/p.md", "You review.");
    let server = server(listed(&[LLAMA]), |_| json!(LLAMA), REVIEW);
    for format in ["text", "json", "markdown", "github", "sarif"] {
        let words_of = ["review", "--change", "change.diff", "--roleset", "r.json", "--format", format];
        let mut command = consensus(&folder);
        command.env_remove("CONSENSUS_NO_MODEL_CHECK");
        let finished = Finished::of(command.args(words_of).args(["--base-url", &server.url()]));
        assert!(finished.stdout.contains(words), "{format}: {}{}", finished.stdout, finished.stderr);
    }
}
