//! Servers that fail: each fault ends in its documented way, within its time-out.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{
    Act, Finished, Folder, Request, SENSIBLE, Server, TALK, completion, consensus, http, model,
};

const CONFIG: &str = "retries = 2\n";

/// A folder with short time-outs, so that a test of one takes no longer than it must. Where time is not the
/// matter the usual ones hold: a busy machine is no fault.
fn hasty() -> Folder {
    let folder = Folder::new();
    let limits = "[timeouts]\nconnect_ms = 1000\nfirst_byte_ms = 1000\nidle_ms = 500\ntotal_ms = 1500\n";
    folder.write("consensus.toml", &format!("{CONFIG}{limits}"));
    folder
}

fn run(folder: &Folder, server: &Server) -> Finished {
    // A test that has written other time-outs keeps them.
    if !folder.path().join("consensus.toml").exists() {
        folder.write("consensus.toml", CONFIG);
    }
    let run = ["run", "--model", "tiny-model", "--prompt", "2+2?", "--base-url"];
    Finished::of(consensus(folder).args(run).arg(server.url()).args(TALK))
}

/// Asserts that a server like this makes a run fail with exit 6, these words, and no endless wait.
#[track_caller]
fn fails(part: &str, handler: impl Fn(&Request) -> Vec<Act> + Send + Sync + 'static) -> Vec<Request> {
    fails_in(&Folder::new(), part, handler)
}

#[track_caller]
fn fails_in(
    folder: &Folder,
    part: &str,
    handler: impl Fn(&Request) -> Vec<Act> + Send + Sync + 'static,
) -> Vec<Request> {
    let server = Server::start(handler);
    let began = Instant::now();
    let finished = run(folder, &server).exits(6);
    assert!(began.elapsed() < Duration::from_mins(1), "it took {:?}", began.elapsed());
    assert!(finished.stderr.contains(part), "{part:?} is not in {}", finished.stderr);
    assert_eq!(finished.stdout, "");
    assert_eq!(folder.result()["outcome"], "failed");
    Finished::of(consensus(folder).args(["verify", "--last"])).exits(0);
    server.chats()
}

/// Answers `faults` to the first requests and sensibly to all later ones; the run must agree.
#[track_caller]
fn recovers(faults: usize, fault: impl Fn() -> Vec<Act> + Send + Sync + 'static) -> Duration {
    let folder = Folder::new();
    let server =
        Server::start(move |request| if request.index < faults { fault() } else { model(SENSIBLE)(request) });
    let began = Instant::now();
    run(&folder, &server).exits(0);
    let journal = std::fs::read_to_string(folder.run().join("journal.jsonl")).unwrap();
    // Both agents call at once, so that either may meet a fault; none may go unrecorded.
    let events = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].clone());
    let replied = events.filter(|event| event["type"] == "replied");
    let repeated: u64 = replied.map(|event| event["attempts"].as_u64().unwrap() - 1).sum();
    assert_eq!(repeated, faults as u64, "each repeated request is on record");
    began.elapsed()
}

fn status(line: &str, headers: &str) -> Vec<Act> {
    vec![Act::Send(http(line, headers, b"{\"error\":{\"message\":\"not now\"}}"))]
}

#[test]
fn too_many_requests_honours_retry_after() {
    let took = recovers(1, || status("429 Too Many Requests", "retry-after: 1\r\n"));
    assert!(took >= Duration::from_secs(1), "{took:?}");
}

#[test]
fn error_inside_success_is_retried() {
    let body = json!({"error": {"message": "overloaded", "code": 503}}).to_string();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let streamed = format!("{head}data: {body}\n\n").into_bytes();
    let answers = [http("200 OK", "", body.as_bytes()), streamed];
    for answer in answers {
        recovers(1, move || vec![Act::Send(answer.clone())]);
    }
}

/// What llama.cpp's server answers in the minutes after its start.
fn loading() -> Vec<Act> {
    let body = json!({"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}});
    vec![Act::Send(http("503 Service Unavailable", "", body.to_string().as_bytes()))]
}

/// A server that still loads its model is asked again more often than `retries` allows.
#[test]
fn loading_server_is_waited_for_longer() {
    // More than both agents would ask again.
    recovers(7, loading);
}

#[test]
fn endless_loading_is_given_up() {
    let folder = Folder::new();
    folder.write("consensus.toml", "retries = 0\n[timeouts]\nready_ms = 1500\n");
    fails_in(&folder, "Loading model", |_| loading());
}

#[test]
fn a_burst_of_server_errors_is_waited_out() {
    recovers(2, || status("500 Internal Server Error", ""));
    recovers(1, || status("503 Service Unavailable", ""));
    recovers(1, || status("408 Request Timeout", ""));
}

#[test]
fn server_errors_that_stay_end_the_run() {
    let requests = fails("answered 500: not now", |_| status("500 Internal Server Error", ""));
    // Two agents, each with the first try and two repetitions.
    assert_eq!(requests.len(), 6);
}

#[test]
fn other_client_errors_are_not_repeated() {
    let requests = fails("check the API key", |_| status("401 Unauthorized", ""));
    assert_eq!(requests.len(), 2);
    fails("the model's name", |_| status("404 Not Found", ""));
}

#[test]
fn a_connection_that_breaks_is_tried_again() {
    recovers(1, || vec![Act::Close]);
    recovers(1, || {
        vec![Act::Send(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"cho".to_vec()), Act::Close]
    });
    let half = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"{\"}}]}\n\n";
    recovers(1, || vec![Act::Send(half.to_vec()), Act::Close]);
    fails("the connection to", |_| vec![Act::Close]);
}

#[test]
fn nobody_listens() {
    let folder = Folder::new();
    folder.write("consensus.toml", CONFIG);
    let run = ["run", "--model", "m", "--prompt", "2+2?", "--base-url", "http://127.0.0.1:1/v1"];
    let finished = Finished::of(consensus(&folder).args(run)).exits(6);
    assert!(finished.stderr.contains("is the model server running?"), "{}", finished.stderr);
}

#[test]
fn a_server_that_says_nothing_is_left() {
    fails_in(&hasty(), "first_byte_ms", |_| vec![Act::Pause(Duration::from_secs(5))]);
}

#[test]
fn stalled_reply_is_given_up() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {\"choices\":[]}\n\n";
    fails_in(&hasty(), "idle_ms", |_| vec![Act::Send(head.to_vec()), Act::Pause(Duration::from_secs(5))]);
}

#[test]
fn a_slow_loris_meets_the_total_time_out() {
    fails_in(&hasty(), "total_ms", |_| {
        let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n".to_vec();
        let drip =
            (0..50).flat_map(|_| [Act::Send(b": \n".to_vec()), Act::Pause(Duration::from_millis(100))]);
        std::iter::once(Act::Send(head)).chain(drip).collect()
    });
}

#[test]
fn answers_that_are_none_are_named() {
    fails("it is not a chat completion", |_| vec![Act::Send(http("200 OK", "", b"<html>It works!</html>"))]);
    fails("it has no choices", |_| vec![Act::Send(http("200 OK", "", b"{\"choices\":[]}"))]);
    fails("it is not UTF-8", |_| vec![Act::Send(http("200 OK", "", b"{\"choices\":\"\xff\xfe\"}"))]);
    fails("reports an error: oom", |_| {
        vec![Act::Send(http("200 OK", "", b"{\"error\":{\"message\":\"oom\"}}"))]
    });
}

#[test]
fn wrong_content_type_is_accepted() {
    let folder = Folder::new();
    let server = Server::start(|request: &Request| {
        let answer = completion(&SENSIBLE(&request.json()));
        let text = String::from_utf8(answer).unwrap().replace("application/json", "text/plain");
        vec![Act::Send(text.into_bytes())]
    });
    run(&folder, &server).exits(0);
}

#[test]
fn a_huge_body_is_cut_off() {
    let huge = |kind: &str, start: &[u8], part: &[u8]| {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n\r\n");
        // A hundred megabytes, in parts.
        let mut acts = vec![Act::Send([head.as_bytes(), start].concat())];
        acts.extend((0..100).map(|_| Act::Send(part.repeat((1 << 20) / part.len()))));
        acts
    };
    for (kind, start, part) in [
        ("application/json", &b"{\"x\":\""[..], &b"x"[..]),
        ("text/event-stream", b"data: ", b"x"),
        ("text/event-stream", b"", b"data: {\"choices\":[]}\n\n"),
    ] {
        let folder = Folder::new();
        // The size must be what ends it, also on a slow machine.
        folder.write(
            "consensus.toml",
            "[timeouts]\nconnect_ms = 1000\nfirst_byte_ms = 15000\nidle_ms = 15000\ntotal_ms = 15000\n",
        );
        fails_in(&folder, "more than 8388608 bytes", move |_| huge(kind, start, part));
    }
}

#[test]
fn a_redirect_is_not_followed() {
    let other = Server::start(model(SENSIBLE));
    let location = format!("location: {}/chat/completions\r\n", other.url());
    fails("redirects are not followed", move |_| {
        vec![Act::Send(http("307 Temporary Redirect", &location, b""))]
    });
    assert!(other.requests().is_empty());
}

#[test]
fn full_context_differs_from_bad_json() {
    fails("longer than the context of the model", |_| {
        let error = json!({"error": {"code": 400, "message": "request (9000 tokens) exceeds the available context size (4096 tokens)", "type": "exceed_context_size_error"}});
        vec![Act::Send(http("400 Bad Request", "", error.to_string().as_bytes()))]
    });
}

/// An agent whose reply is cut at the token limit reads that it was cut off, and repairs it.
#[test]
fn reply_cut_at_limit_is_repaired() {
    let folder = Folder::new();
    let server = Server::start(|request: &Request| {
        let body = request.json();
        let asked =
            body["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
        let is_first = body["response_format"].is_object() && !asked.contains("was cut off at the limit");
        if is_first {
            let cut =
                json!({"choices": [{"message": {"content": "{\"role\":\"Wri"}, "finish_reason": "length"}]});
            return vec![Act::Send(http("200 OK", "", cut.to_string().as_bytes()))];
        }
        model(SENSIBLE)(request)
    });
    run(&folder, &server).exits(0);
    let result = folder.result();
    assert!(result["agents"][0]["repairs"].as_u64().unwrap() >= 1, "{result}");
}

/// The resume asks again for none of the blind drafts that the failed run recorded.
#[test]
fn failed_run_resumes_when_server_returns() {
    let folder = Folder::new();
    let broken = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let state = broken.clone();
    let server = Server::start(move |request| {
        let is_talk = request.body.contains("wrote this. It is data");
        if is_talk && state.load(std::sync::atomic::Ordering::SeqCst) {
            return status("401 Unauthorized", "");
        }
        model(SENSIBLE)(request)
    });
    run(&folder, &server).exits(6);
    let before = server.chats().len();
    broken.store(false, std::sync::atomic::Ordering::SeqCst);
    Finished::of(consensus(&folder).args(["resume", "--last"])).exits(0);
    let is_blind =
        |body: &str| !body.contains("wrote this. It is data") && !body.contains("Two texts, as data");
    let blind = server.chats()[before..].iter().filter(|request| is_blind(&request.body)).count();
    assert_eq!(blind, 0, "no durable reply was asked for again");
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
}

/// Answers with a stream in which each event has these lines besides its data.
fn streamed(content_type: &str, lines: &str) -> Finished {
    let (content_type, lines) = (content_type.to_owned(), lines.to_owned());
    let server = Server::start(move |request: &Request| {
        let reply = json!({"choices": [{"delta": {"content": SENSIBLE(&request.json())}}]});
        let end = json!({"choices": [{"delta": {}, "finish_reason": "stop"}]});
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\nconnection: close\r\n\r\n");
        let events = format!("{lines}data: {reply}\n\n{lines}data: {end}\n\ndata: [DONE]\n\n");
        vec![Act::Send([head.into_bytes(), events.into_bytes()].concat())]
    });
    run(&Folder::new(), &server)
}

#[test]
fn a_stream_is_read_as_the_standard_says() {
    for lines in [
        "retry: abc\n",
        "retry: 5\nretry: 6\n",
        "foo: bar\n",
        "a line without a colon\n",
        "data\n",
        "event: a\nevent: b\n",
        "id: 1\nid: 2\n",
        ": a comment\n",
    ] {
        assert_ne!(streamed("text/event-stream", lines).exits(0).stdout, "", "{lines:?}");
    }
    for name in ["Text/Event-Stream", "TEXT/EVENT-STREAM; charset=utf-8"] {
        assert_ne!(streamed(name, "").exits(0).stdout, "", "{name}");
    }
}

#[test]
fn reply_parts_form_one_text() {
    let folder = Folder::new();
    let server = Server::start(|request: &Request| {
        let text = SENSIBLE(&request.json());
        let (first, second) = text.split_at(text.floor_char_boundary(text.len() / 2));
        let parts =
            json!([{"type": "text", "text": first}, {"type": "thinking"}, {"type": "text", "text": second}]);
        let body = json!({"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]});
        // Some programs begin every text with this mark.
        let body = format!("\u{feff}{body}");
        vec![Act::Send(http("200 OK", "content-type: application/json\r\n", body.as_bytes()))]
    });
    assert_ne!(run(&folder, &server).exits(0).stdout, "");
}

#[test]
fn damaged_answer_is_repeated_once() {
    let bent = || vec![Act::Send(http("200 OK", "", b"{\"choices\":\"\xff\xfe\"}"))];
    let cut = || vec![Act::Send(http("200 OK", "", b"{\"choices\":[{\"message\":{\"content\":\"So"))];
    recovers(1, bent);
    recovers(1, cut);
    // One that is damaged each time is no accident of the way.
    let requests = fails("sent a damaged answer", move |_| cut());
    let calls = requests.iter().filter(|request| request.path.ends_with("/chat/completions")).count();
    assert_eq!(calls, 4, "each of two agents asks twice");
}
