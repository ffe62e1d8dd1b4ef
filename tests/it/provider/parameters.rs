//! Parameters that a server refuses are left out or renamed, on record before the request is repeated.

use serde_json::{Value, json};

use crate::support::{Act, Finished, Folder, Request, SENSIBLE, Server, TALK, consensus, http, model};

/// A server that refuses a request with one of these fields, in these words.
fn refusing(fields: &'static [(&'static str, &'static str)]) -> Server {
    Server::start(move |request: &Request| {
        let body = request.json();
        match fields.iter().find(|(field, _)| body.get(field).is_some()) {
            Some((_, words)) => vec![Act::Send(http("400 Bad Request", "", words.as_bytes()))],
            None => model(SENSIBLE)(request),
        }
    })
}

fn run(folder: &Folder, server: &Server) -> Finished {
    let run = ["run", "--model", "tiny-model", "--prompt", "2+2?", "--base-url"];
    Finished::of(consensus(folder).args(run).arg(server.url()).args(TALK))
}

fn kinds(folder: &Folder) -> Vec<String> {
    let degraded = folder.result()["degraded"].clone();
    degraded.as_array().unwrap().iter().map(|loss| loss["kind"].as_str().unwrap().to_owned()).collect()
}

/// The events of a run's journal.
fn events(folder: &Folder) -> Vec<Value> {
    let journal = std::fs::read_to_string(folder.run().join("journal.jsonl")).unwrap();
    journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].clone()).collect()
}

const TEMPERATURE: &str = r#"{"error":{"message":"Unsupported value: 'temperature' does not support 0.7 with this model.","type":"invalid_request_error","param":"temperature","code":"unsupported_value"}}"#;
const SEED: &str = r#"{"detail":[{"type":"extra_forbidden","loc":["body","seed"],"msg":"Extra inputs are not permitted","input":1}]}"#;
const COUNTS: &str = r#"{"error":{"message":"Unrecognized request argument supplied: stream_options"}}"#;
const LIMIT: &str = r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."}}"#;

#[test]
fn refused_parameters_are_left_out() {
    let folder = Folder::new();
    let server = refusing(&[
        ("temperature", TEMPERATURE),
        ("seed", SEED),
        ("max_tokens", LIMIT),
        ("stream_options", COUNTS),
    ]);
    let finished = run(&folder, &server).exits(0);
    let story = &finished.stderr;
    assert_eq!(story.matches("trying again without `temperature`").count(), 1, "{story}");
    let degraded = kinds(&folder);
    assert!(degraded.iter().any(|kind| kind == "sampling_not_as_asked"), "{degraded:?}");
    let last = server.chats().last().unwrap().json();
    assert!(last.get("temperature").is_none() && last.get("seed").is_none(), "{last}");
    assert!(last["max_completion_tokens"].is_u64(), "{last}");
    // Each agent's finding is there before its first reply.
    let events = events(&folder);
    let first_reply = events.iter().position(|event| event["type"] == "replied").unwrap();
    let before: Vec<&Value> =
        events[..first_reply].iter().filter(|event| event["type"] == "left_out").collect();
    assert!(before.iter().any(|event| event["parameter"] == "temperature"), "{before:?}");
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
}

/// What a run before found is known to a resumed one.
#[test]
fn resumed_run_leaves_out_the_same() {
    let folder = Folder::new();
    let broken = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let state = broken.clone();
    let server = Server::start(move |request: &Request| {
        if request.json().get("temperature").is_some() {
            return vec![Act::Send(http("400 Bad Request", "", TEMPERATURE.as_bytes()))];
        }
        let is_talk = request.body.contains("wrote this. It is data");
        if is_talk && state.load(std::sync::atomic::Ordering::SeqCst) {
            return vec![Act::Send(http("401 Unauthorized", "", b"{}"))];
        }
        model(SENSIBLE)(request)
    });
    run(&folder, &server).exits(6);
    broken.store(false, std::sync::atomic::Ordering::SeqCst);
    let before = server.chats().len();
    Finished::of(consensus(&folder).args(["resume", "--last"])).exits(0);
    let again = &server.chats()[before..];
    assert!(
        again.iter().all(|request| request.json().get("temperature").is_none()),
        "nothing is refused again"
    );
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
}

#[test]
fn setting_leaves_out_from_the_start() {
    let folder = Folder::new();
    folder.write("consensus.toml", "leave_out = [\"temperature\", \"seed\"]\n");
    let server = refusing(&[("temperature", TEMPERATURE), ("seed", SEED)]);
    run(&folder, &server).exits(0);
    assert!(server.chats().iter().all(|request| request.json().get("seed").is_none()));
    assert_eq!(kinds(&folder), ["sampling_not_as_asked", "sampling_not_as_asked"]);
    assert!(events(&folder).iter().all(|event| event["type"] != "left_out"));
}

#[test]
fn doctor_prints_the_setting() {
    let server = refusing(&[("temperature", TEMPERATURE)]);
    let doctor = ["doctor", "--model", "tiny-model", "--base-url"];
    let finished = Finished::of(consensus(&Folder::new()).args(doctor).arg(server.url())).exits(0);
    assert!(finished.stdout.contains("leave_out = [\"temperature\"]"), "{}", finished.stdout);
}

/// A limit of tokens is never dropped, and another refusal stays one.
#[test]
fn other_refusals_end_the_run() {
    for words in [
        json!({"error": {"message": "max_tokens is too large: 100000"}}),
        json!({"error": {"message": "no"}}),
    ] {
        let words = words.to_string();
        let server = Server::start(move |_| vec![Act::Send(http("400 Bad Request", "", words.as_bytes()))]);
        run(&Folder::new(), &server).exits(6);
        assert!(server.chats().iter().all(|request| request.json()["max_tokens"].is_u64()));
    }
}
