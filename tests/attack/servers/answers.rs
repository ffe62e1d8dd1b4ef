//! Answers as a server that is well writes them, to be bent.
//!
//! In: a reply. Out: its completion as one body or as events, and heads for them. Nothing is wrong with what is made here.

use serde_json::{Value, json};

use crate::support::{Act, http};

/// Returns a completion with this text.
pub(super) fn whole(reply: &str) -> Value {
    json!({
        "id": "x", "created": 0, "model": "tiny-model", "object": "chat.completion",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": reply}}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20},
    })
}

/// Returns the same in events: four parts of the text, the end, and the usage.
pub(super) fn events(reply: &str) -> Vec<Value> {
    let characters: Vec<char> = reply.chars().collect();
    let event = |delta: Value, finish: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    let parts = characters.chunks(characters.len().div_ceil(4).max(1));
    let mut all: Vec<Value> =
        parts.map(|part| event(json!({"content": part.iter().collect::<String>()}), Value::Null)).collect();
    all.push(event(json!({}), json!("stop")));
    all.push(json!({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20}}));
    all
}

/// Writes events, each with its line breaks.
pub(super) fn written(events: &[Value]) -> String {
    events.iter().flat_map(|event| ["data: ".to_owned(), event.to_string(), "\n\n".to_owned()]).collect()
}

/// Writes all events of a reply, and the last line of a stream.
pub(super) fn stream(reply: &str) -> String {
    written(&events(reply)) + "data: [DONE]\n\n"
}

/// Returns the head of an answer with these further lines.
pub(super) fn head(lines: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{lines}\r\n").into_bytes()
}

/// Returns the head of a stream of chunks.
pub(super) fn head_of_chunks() -> Vec<u8> {
    head("content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n")
}

/// Returns one chunk.
pub(super) fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// Sends this body as JSON with this status.
pub(super) fn body(status: &str, bytes: &[u8]) -> Vec<Act> {
    vec![Act::Send(http(status, "", bytes))]
}

/// Sends this value as JSON.
pub(super) fn ok(value: &Value) -> Vec<Act> {
    body("200 OK", value.to_string().as_bytes())
}

/// Sends this body as this kind of content, whole.
pub(super) fn typed(kind: &str, bytes: &[u8]) -> Vec<Act> {
    let head = head(&format!("content-type: {kind}\r\ncontent-length: {}\r\n", bytes.len()));
    vec![Act::Send([head.as_slice(), bytes].concat())]
}

/// Sends these events as a stream that is well framed.
pub(super) fn sse(bytes: &[u8]) -> Vec<Act> {
    typed("text/event-stream", bytes)
}
