//! A reply is whole, cut, refused or failed, by what its server sent, and nothing in between is an answer.

use serde_json::{Value, json};

use crate::support::{Act, Finished, Folder, Request, Server, consensus, http};

/// A text whose answer is 148, up to a place where it reads as 14.
const CUT: &str = "6 * 8 is 48, plus 100.\nAnswer: 14";
const WHOLE: &str = "6 * 8 = 48\nAnswer: 48";

/// A stream with these lines, one event each.
fn events(lines: &[String]) -> Vec<u8> {
    typed("text/event-stream", lines)
}

fn typed(kind: &str, lines: &[String]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\n{kind}connection: close\r\n\r\n", kind = content_type(kind));
    format!("{head}{}\n\n", lines.join("\n\n")).into_bytes()
}

fn content_type(kind: &str) -> String {
    if kind.is_empty() { String::new() } else { format!("content-type: {kind}\r\n") }
}

fn data(value: &Value) -> String {
    format!("data: {value}")
}

fn words(text: &str) -> String {
    data(
        &json!({"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": text}}]}),
    )
}

fn end(reason: &Value) -> String {
    data(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}))
}

fn done() -> String {
    "data: [DONE]".to_owned()
}

/// Plays these answers to the chats of a run, the last one again and again.
fn play(answers: &[Vec<u8>]) -> (Finished, usize) {
    let folder = Folder::new();
    folder.write("consensus.toml", "retries = 1\n");
    let answers = answers.to_vec();
    let server = Server::start(move |request: &Request| {
        let answer = answers.get(request.index).or(answers.last()).cloned().unwrap_or_default();
        vec![Act::Send(answer), Act::Close]
    });
    let run = ["run", "--model", "m", "--roleset", "single", "--canonical", "number", "--prompt", "6 * 8?"];
    let finished = Finished::of(consensus(&folder).args(run).arg("--base-url").arg(server.url()));
    let chats = server.chats().len();
    (finished, chats)
}

#[track_caller]
fn gives(answer: &str, replies: &[Vec<u8>]) {
    let (finished, _) = play(replies);
    assert_eq!(finished.exits(0).stdout.trim(), answer);
}

/// Asserts that a reply that was cut in its last number is no answer, whatever the run does instead.
#[track_caller]
fn is_no_answer(name: &str, reply: &[u8]) -> Finished {
    let (finished, _) = play(&[reply.to_vec()]);
    assert_ne!(finished.stdout.trim(), "14", "{name}: {}", finished.stderr);
    finished
}

fn whole() -> Vec<u8> {
    events(&[words(WHOLE), end(&json!("stop")), done()])
}

#[test]
fn known_ends_are_whole() {
    for reason in ["stop", "STOP", "eos_token", "end_turn", "stop_sequence", "COMPLETE"] {
        gives("48", &[events(&[words(WHOLE), end(&json!(reason)), done()])]);
    }
    gives("48", &[events(&[words(WHOLE), end(&json!({"type": "stop", "matched": 7})), done()])]);
    gives("48", &[events(&[words(WHOLE), end(&json!(null)), done()])]);
    gives("48", &[events(&[words(WHOLE), end(&json!("stop"))])]);
}

#[test]
fn unknown_ends_are_no_answer() {
    for reason in [
        json!("abort"),
        json!("error"),
        json!("insufficient_system_resource"),
        json!("tool_calls"),
        json!(7),
        json!({"type": "abort"}),
        json!(["stop"]),
    ] {
        let reply = events(&[words(CUT), end(&reason), done()]);
        let finished = is_no_answer(&reason.to_string(), &reply).exits(6);
        assert!(finished.stderr.contains("it ended for the reason"), "{reason}: {}", finished.stderr);
        // One that ends as it should is asked for.
        gives("48", &[reply, whole()]);
    }
}

#[test]
fn limits_cut_in_any_spelling() {
    for reason in [
        json!("length"),
        json!("MAX_TOKENS"),
        json!("max_tokens"),
        json!("model_length"),
        json!("model_context_window_exceeded"),
        json!({"type": "length", "length": 256}),
    ] {
        is_no_answer(&reason.to_string(), &events(&[words(CUT), end(&reason), done()]));
    }
    for reason in ["content_filter", "SAFETY", "sensitive"] {
        is_no_answer(reason, &events(&[words(CUT), end(&json!(reason)), done()]));
    }
}

#[test]
fn errors_anywhere_are_no_answer() {
    let error = json!({"message": "the worker died", "code": 502});
    for (name, event) in [
        ("a body", data(&json!({"error": error}))),
        ("a body with a choice", data(&json!({"error": error, "choices": [{"delta": {"content": ""}}]}))),
        ("a choice", data(&json!({"choices": [{"delta": {"content": ""}, "error": error}]}))),
        ("a delta", data(&json!({"choices": [{"delta": {"content": "", "error": error}}]}))),
        ("flat", data(&json!({"object": "error", "message": "the worker died", "code": 50001}))),
        ("detail", data(&json!({"detail": "the worker died"}))),
        ("a word", data(&json!({"error": {"message": "slow down", "code": "rate_limit_exceeded"}}))),
        ("a number as text", data(&json!({"error": {"message": "slow down", "code": "429"}}))),
        ("of SSE", format!("event: error\ndata: {}", json!({"type": "overloaded_error"}))),
        ("a text", "data: upstream connect error".to_owned()),
        (
            "of MiniMax",
            data(&json!({"choices": null, "base_resp": {"status_code": 1002, "status_msg": "rate limit"}})),
        ),
    ] {
        for at_the_end in [false, true] {
            let mut lines = vec![words(CUT), event.clone(), done()];
            if at_the_end {
                lines.insert(1, end(&json!("stop")));
            }
            is_no_answer(name, &events(&lines)).exits(6);
        }
    }
}

#[test]
fn passing_failures_are_asked_again() {
    for error in [
        json!({"message": "Rate limit reached", "type": "tokens", "code": "rate_limit_exceeded", "status_code": 429}),
        json!({"message": "slow down", "code": "502"}),
        json!({"type": "overloaded_error", "message": "Overloaded"}),
        json!({"message": "x", "type": "RateLimitError"}),
        json!("Too many requests"),
    ] {
        let failed = events(&[words("6 *"), data(&json!({"error": error})), done()]);
        gives("48", &[failed, whole()]);
    }
    let list = http("429 Too Many Requests", "", b"[{\"error\":{\"code\":429,\"message\":\"quota\"}}]");
    gives("48", &[list, whole()]);
    let (finished, chats) = play(&[events(&[data(&json!({"error": {"message": "no such voice"}}))])]);
    assert!(finished.exits(6).stderr.contains("reports an error: no such voice"));
    assert_eq!(chats, 1, "another error stays");
}

#[test]
fn streams_are_known_by_their_bytes() {
    let lines = [words(WHOLE), end(&json!("stop")), done()];
    for kind in ["application/json", "text/plain", ""] {
        gives("48", &[typed(kind, &lines)]);
    }
    let reply = json!({"choices": [{"message": {"content": WHOLE}, "finish_reason": "stop"}]}).to_string();
    for kind in ["text/event-stream", ""] {
        gives("48", &[typed(kind, &[format!("\u{feff}\n {reply}")])]);
    }
}

#[test]
fn what_is_meant_is_read() {
    let stop = end(&json!("stop"));
    let repeated = "{\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\",\"reasoning_content\":\"hm\",\"content\":\"\"}}]}";
    let beside = data(&json!({"choices": [{"delta": {"content": WHOLE}, "message": {"content": WHOLE}}]}));
    let behind = data(&json!({"choices": [{"message": {"content": WHOLE}, "finish_reason": "stop"}]}));
    let empty = data(&json!({"choices": null, "usage": {"prompt_tokens": 9, "completion_tokens": 9}}));
    let halves = |half: &str| format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{half}\"}}}}]}}");
    for (name, lines) in [
        ("an empty event", vec![words(WHOLE), "data:".to_owned(), stop.clone(), done()]),
        ("choices of null", vec![words(WHOLE), stop.clone(), empty, done()]),
        ("a field twice", vec![format!("data: {repeated}"), words(WHOLE), stop.clone(), done()]),
        ("a message beside", vec![beside, stop.clone(), done()]),
        ("a message behind", vec![words(WHOLE), behind, done()]),
        ("halves", vec![halves("Party \\ud83d"), halves("\\ude00\\n"), words(WHOLE), stop.clone(), done()]),
    ] {
        let (finished, chats) = play(&[events(&lines)]);
        assert_eq!(finished.exits(0).stdout.trim(), "48", "{name}");
        assert_eq!(chats, 1, "{name}");
    }
}

#[test]
fn two_readings_are_no_answer() {
    let twice = "data: {\"choices\":[{\"delta\":{\"content\":\"Answer: 14\",\"content\":\"Answer: 48\"}}]}"
        .to_owned();
    let behind = data(&json!({"choices": [{"message": {"content": WHOLE}, "finish_reason": "stop"}]}));
    for (name, lines) in [
        ("a field twice", vec![twice, end(&json!("stop")), done()]),
        ("another message", vec![words(CUT), behind, done()]),
        ("two ends", vec![words(CUT), end(&json!("length")), end(&json!("stop")), done()]),
        ("text after the end", vec![words("Answer: 1"), end(&json!("stop")), words("4"), done()]),
        (
            "half of a character",
            vec![
                words(CUT),
                "data: {\"choices\":[{\"delta\":{\"content\":\"\\ud83d\"}}]}".to_owned(),
                end(&json!("stop")),
                done(),
            ],
        ),
    ] {
        is_no_answer(name, &events(&lines)).exits(6);
    }
}

/// A reply that is cut at any byte gives no other answer than the whole one.
#[test]
fn no_cut_gives_another_answer() {
    let reply =
        events(&[words("6 * 8 is 48, plus 100.\nAnswer: 1"), words("48"), end(&json!("stop")), done()]);
    let body = reply.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    for at in (body..reply.len()).step_by(7) {
        let (finished, _) = play(&[reply[..at].to_vec()]);
        let answer = finished.stdout.trim();
        assert!(answer.is_empty() || answer == "148", "cut at {at}: {answer}");
    }
}

#[test]
fn full_context_is_known_in_many_words() {
    for (status, message) in [
        (
            "400 Bad Request",
            "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
        ),
        (
            "422 Unprocessable Entity",
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096",
        ),
        ("400 Bad Request", "prompt is too long: 215000 tokens > 200000 maximum"),
        ("400 Bad Request", "The input token count (1100000) exceeds the maximum number of tokens allowed"),
        ("400 Bad Request", "max_tokens must be at least 1, got -904"),
        ("413 Payload Too Large", "This model's maximum context length is 4096 tokens"),
    ] {
        let body = json!({"object": "error", "message": message, "code": 400}).to_string();
        let (finished, chats) = play(&[http(status, "", body.as_bytes())]);
        assert!(finished.exits(6).stderr.contains("longer than the context of the model"), "{message}");
        assert_eq!(chats, 1, "{message}");
    }
    let older =
        "error: {\"code\":400,\"message\":\"the request exceeds the available context size\"}".to_owned();
    let (finished, _) = play(&[events(&[older, done()])]);
    assert!(finished.exits(6).stderr.contains("longer than the context of the model"));
}
