//! Keys that servers repeat: in errors, headers, replies and streams, and never in a file or on a screen.

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::bedrock;
use crate::support::{
    Act, Finished, Folder, Request, SENSIBLE, Server, completion, consensus, http, model, stream,
};

const KEY: &str = "sk-proj-Zb7Qw3Xk9Lm2Vt5Rj8Hn4Pd6Fs1Gc0Yu-Ae_Bo9Ti3W";
const SECRET: &str = "Zb7Qw3Xk9Lm2Vt5Rj8Hn4Pd6Fs1Gc0Yu-Ae_Bo9Ti3W";
const MARK: &str = "[key removed]";

/// Runs two agents against a server that knows the key.
fn run(folder: &Folder, server: &Server, key: &str, more: &[&str]) -> Finished {
    let base = ["run", "--roleset", "writer_physicist", "--seed", "1", "--prompt", "2+2?", "--model", "tiny"];
    let mut command = consensus(folder);
    command.env("OPENAI_API_KEY", key).args(base).args(["--base-url", &server.url()]).args(more);
    Finished::of(&mut command)
}

/// Returns all that a run left behind: what it printed, and every file of its folder.
fn traces(folder: &Folder, finished: &Finished) -> Vec<(String, Vec<u8>)> {
    fn collect(folder: &Path, found: &mut Vec<(String, Vec<u8>)>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, found);
            } else {
                found.push((path.display().to_string(), std::fs::read(&path).unwrap()));
            }
        }
    }
    let mut found = vec![
        ("stdout".to_owned(), finished.stdout.clone().into_bytes()),
        ("stderr".to_owned(), finished.stderr.clone().into_bytes()),
    ];
    collect(folder.path(), &mut found);
    found
}

/// Asserts that no eight characters of the secret are left anywhere.
#[track_caller]
fn is_nowhere(secret: &str, folder: &Folder, finished: &Finished) {
    for (place, bytes) in traces(folder, finished) {
        for piece in secret.as_bytes().windows(8) {
            let is_there = bytes.windows(8).any(|found| found == piece);
            let shown = String::from_utf8_lossy(piece);
            assert!(!is_there, "`{shown}` in {place}: {}", String::from_utf8_lossy(&bytes));
        }
    }
}

fn journal(folder: &Folder) -> String {
    std::fs::read_to_string(folder.run().join("journal.jsonl")).unwrap()
}

/// What a sensible model says, with this text in it.
fn saying(request: &Request, text: &str) -> String {
    let said = SENSIBLE(&request.json());
    match serde_json::from_str::<Value>(&said) {
        Ok(mut envelope) => {
            envelope["public_message"] = json!(format!("[SOLVED] {text}"));
            envelope.to_string()
        }
        Err(_) => format!("{said} {text}"),
    }
}

/// No eight characters of a key remain where the message of an error is cut inside the key.
#[test]
fn truncated_error_shows_no_key_piece() {
    let message = |pad: usize| format!("{}bad key {KEY}", "x".repeat(pad));
    let error = |pad| json!({"error": {"message": message(pad)}}).to_string();
    let mut answers: Vec<Vec<u8>> = Vec::new();
    for pad in [262, 270, 280, 0] {
        answers.push(http("401 Unauthorized", "", error(pad).as_bytes()));
        answers.push(http("404 Not Found", "", message(pad).as_bytes()));
    }
    for pad in [20, 30, 50] {
        answers.push(http("200 OK", "", error(pad).as_bytes()));
        answers.push(http("200 OK", "", message(pad).as_bytes()));
        let late = json!({"error": {"code": 400, "message": message(pad + 250)}});
        answers.push(http("200 OK", "", late.to_string().as_bytes()));
        let odd = json!({"choices": format!("{}{KEY}", "x".repeat(pad))});
        answers.push(http("200 OK", "", odd.to_string().as_bytes()));
    }
    for answer in answers {
        let (folder, said) = (Folder::new(), answer.clone());
        let server = Server::start(move |_| vec![Act::Send(said.clone())]);
        let finished = run(&folder, &server, KEY, &[]).exits(6);
        is_nowhere(SECRET, &folder, &finished);
        let shown = finished.stderr.contains("[key") || finished.stderr.contains("xxxxxxxx");
        assert!(shown, "the rest is told: {}", finished.stderr);
    }
}

/// A key that a reply contains is taken out of the record, reaches no peer and degrades the result.
#[test]
fn key_in_reply_is_removed_and_reported() {
    for escaped in [KEY.to_owned(), KEY.replace('7', "\\u0037"), KEY.replace("Lm2V", "Lm\u{200B}2V")] {
        for whole in [true, false] {
            let (folder, text) = (Folder::new(), escaped.clone());
            let server = Server::start(move |request: &Request| {
                let said = saying(request, "PLACE").replace("PLACE", &format!("it is {text}, is it not"));
                vec![Act::Send(if whole { completion(&said) } else { stream(&said, 5) })]
            });
            let finished = run(&folder, &server, KEY, &["-vv", "--fail-on-degraded"]).exits(8);
            is_nowhere(SECRET, &folder, &finished);
            assert!(journal(&folder).contains("it is [key removed], is it not"), "{}", journal(&folder));
            assert!(server.chats().iter().all(|chat| !chat.body.contains(&SECRET[..8])), "no peer reads it");
            let kinds: Vec<Value> =
                folder.result()["degraded"].as_array().unwrap().iter().map(|d| d["kind"].clone()).collect();
            assert_eq!(kinds, [json!("key_in_reply"), json!("key_in_reply")], "one for each agent");
            Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
        }
    }
}

/// A key as short as a word is removed from errors and kept in replies.
#[test]
fn short_key_stays_in_replies() {
    let folder = Folder::new();
    let server = Server::start(|request: &Request| match request.index {
        0 => vec![Act::Send(http("503 Service Unavailable", "", b"{\"error\":\"ollama has no room\"}"))],
        _ => vec![Act::Send(completion(&saying(request, "ollama can add")))],
    });
    let finished = run(&folder, &server, "ollama", &["--fail-on-degraded"]).exits(0);
    assert!(finished.stderr.contains("503: [key removed] has no room"), "{}", finished.stderr);
    assert!(journal(&folder).contains("ollama can add"));
}

#[test]
fn model_list_hides_the_key() {
    let folder = Folder::new();
    let server = Server::start(|request: &Request| {
        if request.path.ends_with("/models") {
            let list = json!({"data": [{"id": format!("tiny {KEY}")}]});
            return vec![Act::Send(http("200 OK", "", list.to_string().as_bytes()))];
        }
        model(SENSIBLE)(request)
    });
    for words in [&["doctor"][..], &["run", "--prompt", "2+2?"]] {
        let mut command = consensus(&folder);
        command
            .env("OPENAI_API_KEY", KEY)
            .env("RUST_LOG", "trace")
            .args(words)
            .args(["--base-url", &server.url()]);
        let finished = Finished::of(&mut command).exits(0);
        is_nowhere(SECRET, &folder, &finished);
    }
}

#[test]
fn a_reply_keeps_its_receipt() {
    for streamed in [false, true] {
        let folder = Folder::new();
        let server = Server::start(move |request: &Request| {
            let said = json!({"content": saying(request, "ok")});
            let part = if streamed { "delta" } else { "message" };
            let body = json!({
                "id": "chatcmpl-7", "created": 1_764_000_000, "system_fingerprint": "fp_é\u{202e}".repeat(99),
                "choices": [{part: said, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 100, "completion_tokens": 20},
            });
            let id = format!("x-request-id: req-{KEY}\r\n");
            if !streamed {
                return vec![Act::Send(http("200 OK", &id, body.to_string().as_bytes()))];
            }
            let later = json!({"id": 5, "created": "soon", "choices": []});
            let body = format!("data: {body}\n\ndata: {later}\n\ndata: [DONE]\n\n");
            let kind = "content-type: text/event-stream\r\n";
            let head = format!("HTTP/1.1 200 OK\r\n{kind}{id}content-length: {}\r\n\r\n", body.len());
            vec![Act::Send((head + &body).into_bytes())]
        });
        let finished = run(&folder, &server, KEY, &[]).exits(0);
        is_nowhere(SECRET, &folder, &finished);
        // It conforms to the schema, too, and a header with a key counts as a key in a reply.
        assert_eq!(folder.result()["degraded"][0]["kind"], "key_in_reply");
        let receipts = receipts(&folder);
        assert!(receipts.len() > 1);
        for receipt in receipts {
            assert_eq!(receipt["id"], "chatcmpl-7");
            assert_eq!(receipt["created"], 1_764_000_000);
            assert_eq!(receipt["request_id"], format!("req-{MARK}"));
            assert_eq!(receipt["system_fingerprint"], "fp_é".repeat(50));
        }
        Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
    }
}

/// The receipts of a run's replies.
fn receipts(folder: &Folder) -> Vec<Value> {
    let records = journal(folder);
    let records = records.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.filter(|r| r["event"]["type"] == "replied").map(|r| r["event"]["receipt"].clone()).collect()
}

#[test]
fn removes_aws_credentials_and_keeps_receipts() {
    const AWS_SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
    const TOKEN: &str = "IQoJb3JpZ2luX2VjEJr//////////wEaCXVzLWVhc3QtMSJHMEUCIQDTjn==";
    let folder = Folder::new();
    let server = Server::start(|request: &Request| {
        let text = format!("it has {AWS_SECRET} and {TOKEN}").replace('/', "\\\\/");
        let whole = String::from_utf8(bedrock::answer(request)).unwrap();
        let body = whole.split("\r\n\r\n").nth(1).unwrap().replace("that is the sum", &text);
        vec![Act::Send(http("200 OK", "x-amzn-requestid: 8c1f\r\n", body.as_bytes()))]
    });
    let mut command = bedrock::run(&folder, &server);
    command.args(["--no-stream", "--fail-on-degraded"]).env("AWS_SESSION_TOKEN", TOKEN);
    let finished = Finished::of(bedrock::with_keys(&mut command)).exits(8);
    is_nowhere(AWS_SECRET, &folder, &finished);
    is_nowhere(TOKEN, &folder, &finished);
    assert_eq!(folder.result()["degraded"][0]["kind"], "key_in_reply");
    assert!(receipts(&folder).iter().all(|receipt| *receipt == json!({"request_id": "8c1f"})));
}

/// Where a server puts a key.
#[derive(Clone, Copy, Debug)]
enum KeyPlace {
    Refusal,
    Page,
    ErrorInReply,
    NoCompletion,
    Header,
    Id,
    Reasoning,
    Message,
    Answer,
    Stream(usize),
}

fn place() -> impl Strategy<Value = KeyPlace> {
    prop_oneof![
        Just(KeyPlace::Refusal),
        Just(KeyPlace::Page),
        Just(KeyPlace::ErrorInReply),
        Just(KeyPlace::NoCompletion),
        Just(KeyPlace::Header),
        Just(KeyPlace::Id),
        Just(KeyPlace::Reasoning),
        Just(KeyPlace::Message),
        Just(KeyPlace::Answer),
        (1_usize..24).prop_map(KeyPlace::Stream),
    ]
}

/// How the key is written in JSON.
#[derive(Clone, Copy, Debug)]
enum Written {
    Plain,
    Escaped,
    TwiceEscaped,
}

impl Written {
    fn of(self, key: &str) -> String {
        let escape = |slashes: &str| {
            key.bytes().fold(String::new(), |text, byte| text + &format!("{slashes}u{byte:04x}"))
        };
        match self {
            Self::Plain => key.to_owned(),
            Self::Escaped => escape("\\"),
            Self::TwiceEscaped => escape("\\\\"),
        }
    }
}

/// Answers with `before`, a place for the key, and `after`.
fn answer(request: &Request, place: KeyPlace, text: &str) -> Vec<u8> {
    let error = json!({"error": {"message": text}}).to_string();
    let whole = |message: Value, id: &str| {
        let choice = json!({"message": message, "finish_reason": "stop"});
        json!({"id": id, "choices": [choice], "usage": {"prompt_tokens": 100, "completion_tokens": 20}})
            .to_string()
    };
    let plain = SENSIBLE(&request.json());
    let ok = |body: String| http("200 OK", "", body.as_bytes());
    match place {
        KeyPlace::Refusal => http("401 Unauthorized", "", error.as_bytes()),
        KeyPlace::Page => http("404 Not Found", "", format!("<p>{text}</p>").as_bytes()),
        KeyPlace::ErrorInReply => ok(error),
        KeyPlace::NoCompletion => ok(json!({"choices": text}).to_string()),
        KeyPlace::Header => {
            let id = "x-request-id: PLACE\r\n".to_owned();
            http("200 OK", &id, whole(json!({"content": plain}), "1").as_bytes())
        }
        KeyPlace::Id => ok(whole(json!({"content": plain}), text)),
        KeyPlace::Reasoning => ok(whole(json!({"content": plain, "reasoning": text}), "1")),
        KeyPlace::Message => ok(whole(json!({"content": saying(request, text)}), "1")),
        KeyPlace::Answer => {
            let answer = json!({"canonical_text": text});
            let said = match serde_json::from_str::<Value>(&plain) {
                Ok(mut envelope) => {
                    envelope["final_solution"] = answer;
                    envelope.to_string()
                }
                Err(_) => plain,
            };
            ok(whole(json!({"content": said}), "1"))
        }
        KeyPlace::Stream(_) => unreachable!("a stream is cut once the key is in it"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_key_appears_nowhere(
        issuer in prop::sample::select(vec!["sk-proj-", "sk-ant-api03-", "gsk_", "AKIA", ""]),
        secret in "[A-Za-z0-9][A-Za-z0-9/+_-]{15,70}",
        from in 0_usize..12,
        before in "[ -~é\u{200B}\n]{0,40}",
        pad in 0_usize..300,
        after in "[ -~é\u{200B}\n]{0,20}",
        place in place(),
        written in prop::sample::select(vec![Written::Plain, Written::Escaped, Written::TwiceEscaped]),
    ) {
        let key = format!("{issuer}{secret}");
        let shown = key[from..].to_owned();
        let text = format!("{before}{}PLACE{after}", "x".repeat(pad));
        let server = Server::start(move |request: &Request| {
            let form = match place {
                KeyPlace::Header | KeyPlace::Page | KeyPlace::Stream(_) => Written::Plain,
                KeyPlace::Refusal | KeyPlace::ErrorInReply | KeyPlace::NoCompletion | KeyPlace::Id | KeyPlace::Reasoning
                | KeyPlace::Message | KeyPlace::Answer => written,
            };
            if let KeyPlace::Stream(size) = place {
                return vec![Act::Send(stream(&saying(request, &text).replace("PLACE", &shown), size))];
            }
            let answer = String::from_utf8(answer(request, place, &text)).unwrap();
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            let body = body.replace("PLACE", &form.of(&shown));
            let lines = head.lines().filter(|line| !line.starts_with("content-length"));
            let head: String = lines.map(|line| line.replace("PLACE", &shown) + "\r\n").collect();
            vec![Act::Send(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).into_bytes())]
        });
        let folder = Folder::new();
        let finished = run(&folder, &server, &key, &["--max-rounds", "1", "--thinking", "none", "-vv"]);
        prop_assert!(!server.chats().is_empty(), "{}", finished.stderr);
        // The secret part does not contain an issuer's prefix at the front.
        let known = ["sk-proj-", "sk-ant-api03-", "gsk_", "AKIA"];
        let secret = known.iter().find_map(|issuer| key.strip_prefix(*issuer)).unwrap_or(&key);
        is_nowhere(secret, &folder, &finished);
    }
}
