//! The lines of a client on standard input, each of which gets an answer.
//!
//! ```text
//!  client ──line──► is it a message? ──yes──► protocol ──► client
//!                          └──no──► error ──────────────────┘
//! ```
//!
//! The library of the protocol drops a line that is no JSON, and the client would wait for its answer for ever. So such a line is answered
//! here, by its id if that can be read. A message is passed on as it was written. Nothing here knows a tool.

use std::io;

use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc::{Receiver, Sender};

use crate::serve::http::BODY_BYTES_MAX;
use protocol::text::escape;

/// The errors of JSON-RPC that are answered here.
const PARSE_ERROR: i32 = -32_700;
const INVALID_REQUEST: i32 = -32_600;
const INVALID_PARAMS: i32 = -32_602;

/// Passes messages on until the client has gone. The answers to all other lines go to `refusals`.
pub(super) async fn pass_on(
    from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    refusals: Sender<String>,
) -> io::Result<()> {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while read_line(&mut from, &mut line).await? {
        let refusal = if line.len() > BODY_BYTES_MAX {
            let why = format!("a message has at most {} MiB", BODY_BYTES_MAX >> 20);
            Some(error(&Value::Null, INVALID_REQUEST, &why))
        } else {
            refusal(line.trim_ascii())
        };
        if let Some(refusal) = refusal {
            drop(refusals.send(refusal).await);
        } else {
            to.write_all(&line).await?;
            to.write_all(b"\n").await?;
        }
    }
    to.shutdown().await
}

/// Writes the lines of the protocol, and the refusals between them, until the protocol has ended.
pub(super) async fn write(
    from: impl AsyncRead + Unpin,
    mut refusals: Receiver<String>,
    mut to: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut lines = BufReader::new(from).split(b'\n');
    loop {
        let line = tokio::select! {
            line = lines.next_segment() => line?,
            Some(refusal) = refusals.recv() => Some(refusal.into_bytes()),
        };
        let Some(line) = line else { break };
        to.write_all(&[line.as_slice(), b"\n"].concat()).await?;
        to.flush().await?;
    }
    while let Ok(refusal) = refusals.try_recv() {
        to.write_all(format!("{refusal}\n").as_bytes()).await?;
    }
    to.flush().await
}

/// Reads a line without its end, and returns false at the end of the input. No more of a line than one byte beyond the limit is kept. A
/// line without an end is no message.
async fn read_line(
    from: &mut (impl tokio::io::AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
) -> io::Result<bool> {
    line.clear();
    loop {
        let read = from.fill_buf().await?;
        if read.is_empty() {
            return Ok(false);
        }
        let end = read.iter().position(|byte| *byte == b'\n');
        let room = (BODY_BYTES_MAX + 1).saturating_sub(line.len());
        let part = &read[..end.unwrap_or(read.len())];
        line.extend(&part[..part.len().min(room)]);
        let used = end.map_or(read.len(), |end| end + 1);
        from.consume(used);
        if end.is_some() {
            return Ok(true);
        }
    }
}

/// Returns the answer to a line that is no message; `None` for a message, and for an empty line.
fn refusal(line: &[u8]) -> Option<String> {
    // Some programs begin every text with this mark.
    let line = line.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(line);
    if line.is_empty() {
        return None;
    }
    let message: Value = match serde_json::from_slice(line) {
        Ok(message) => message,
        Err(why) => {
            return Some(error(&readable_id(line), PARSE_ERROR, &format!("the line is no JSON: {why}")));
        }
    };
    let (code, why) = fault(&message)?;
    Some(error(&message["id"], code, why))
}

/// Returns the code and the words of the error in a message, as far as the library of the protocol would answer it without its id.
fn fault(message: &Value) -> Option<(i32, &'static str)> {
    if message.is_array() {
        return Some((
            INVALID_REQUEST,
            "this version of the protocol has no lists of messages; send each on its own line",
        ));
    }
    if message["jsonrpc"] != "2.0" {
        return Some((INVALID_REQUEST, "a message is an object with `\"jsonrpc\": \"2.0\"`"));
    }
    let params = message.get("params");
    if !params.is_none_or(Value::is_object) {
        return Some((INVALID_PARAMS, "`params` is an object"));
    }
    let arguments = params.and_then(|params| params.get("arguments"));
    if message["method"] == "tools/call" && !arguments.is_none_or(Value::is_object) {
        return Some((INVALID_PARAMS, "`arguments` is an object; give it itself, not its JSON as a text"));
    }
    None
}

fn error(id: &Value, code: i32, why: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": escape::one_line(why)}}).to_string()
}

/// Returns the id of a message, if it comes before the place where its JSON breaks; else null.
fn readable_id(line: &[u8]) -> Value {
    let mut id = Value::Null;
    let mut json = serde_json::Deserializer::from_slice(line);
    // The line is broken, so this fails behind the id or before it.
    let _ = json.deserialize_map(IdReader(&mut id));
    if id.is_string() || id.is_number() { id } else { Value::Null }
}

/// Keeps the value of `id` while it reads an object.
struct IdReader<'a>(&'a mut Value);

impl<'de> Visitor<'de> for IdReader<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == "id" {
                *self.0 = map.next_value()?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_message_is_answered() {
        for (line, id, code) in [
            (r#"{"jsonrpc":"2.0","id":5,"params":{"task":"\ud83d x"}}"#, json!(5), PARSE_ERROR),
            (r#"{"jsonrpc":"2.0","id":"a","method":"tools/list",}"#, json!("a"), PARSE_ERROR),
            (r#"{"jsonrpc":"2.0","method":"tools/list",,"id":6}"#, Value::Null, PARSE_ERROR),
            ("hello", Value::Null, PARSE_ERROR),
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"arguments":"{}"}}"#,
                json!(7),
                INVALID_PARAMS,
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"arguments":[1]}}"#,
                json!(7),
                INVALID_PARAMS,
            ),
            (r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":"x"}"#, json!(8), INVALID_PARAMS),
            (r#"{"id":9,"method":"tools/list"}"#, json!(9), INVALID_REQUEST),
            ("null", Value::Null, INVALID_REQUEST),
            (r#"[{"jsonrpc":"2.0","id":3,"method":"ping"}]"#, Value::Null, INVALID_REQUEST),
        ] {
            let answer: Value = serde_json::from_str(&refusal(line.as_bytes()).unwrap()).unwrap();
            assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(code)), "{line}");
        }
        for line in [
            "",
            "\u{FEFF}{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"arguments":{}}}"#,
        ] {
            assert_eq!(refusal(line.as_bytes()), None, "{line}");
        }
    }
}
