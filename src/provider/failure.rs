//! Finds a server's error in what it sent, in any of the forms that servers use, and its own words for it.
//!
//! The input is JSON of a server, or text that should have been JSON. The output is a [`Failure`]. Whether a request is
//! repeated depends on the status and on the words listed here. Nothing here knows a conversation.

use std::fmt::Write as _;

use serde_json::Value;

use crate::text::escape;

/// The names under which servers write an HTTP status or a code of their own.
const CODES: [&str; 6] = ["code", "status_code", "statusCode", "status", "http_status", "error_code"];

/// The names under which servers write a message, best first.
const MESSAGES: [&str; 8] =
    ["message", "Message", "msg", "error_msg", "status_msg", "detail", "error_description", "reason"];

/// The fields by which an object of a reply shows that something went wrong.
pub(super) const SIGNS: [&str; 12] = [
    "error",
    "errors",
    "detail",
    "base_resp",
    "object",
    "type",
    "code",
    "status_code",
    "statusCode",
    "status",
    "http_status",
    "error_code",
];

/// The places of an error within an object, best first.
const PLACES: [&str; 4] = ["error", "errors", "detail", "base_resp"];

/// Words of a server that has too much to do, in small letters without anything between them.
const RATE_LIMITS: [&str; 6] =
    ["overload", "ratelimit", "requestlimit", "resourceexhausted", "throttl", "toomanyrequests"];

/// Further words of an error that may pass, in the same form.
const PASSING: [&str; 14] = [
    "badgateway",
    "busy",
    "capacity",
    "gatewaytimeout",
    "insufficientsystemresource",
    "internalerror",
    "internalservererror",
    "servererror",
    "temporar",
    "timedout",
    "timeout",
    "tryagain",
    "unavailable",
    "workerdied",
];

/// The most characters of a server's message that are shown.
const MESSAGE_CHARS_MAX: usize = 300;

/// An error, as a server reported it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Failure {
    /// The HTTP status within the error, if there is one between 400 and 599.
    pub(super) status: Option<u16>,
    /// The server's own words, neutralised and shortened.
    pub(super) message: String,
    /// Whether the words say that the same request may succeed later.
    pub(super) may_pass: bool,
}

impl Failure {
    /// Reads an error from a whole body or event that is nothing else. Keys must have been removed from it.
    pub(super) fn of_text(text: &str) -> Self {
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        Self { status: find_status(&value), message: error_message(text), may_pass: may_pass(text) }
    }
}

/// Returns true if an object of a reply says that something went wrong: the body, its choice, or its message.
pub(super) fn has_error(object: &Value) -> bool {
    if PLACES[..3].iter().any(|place| !is_blank(&object[place])) {
        return true;
    }
    if ["object", "type"].iter().any(|name| object[name] == "error") {
        return true;
    }
    let is_bad = |object: &Value| {
        let mut codes = CODES.iter().map(|name| &object[name]);
        codes.any(|code| !is_blank(code) && !is_success(code))
    };
    is_bad(object) || is_bad(&object["base_resp"])
}

/// Returns the message in a server's error body, whatever its form.
pub(super) fn error_message(body: &str) -> String {
    let value: Value = serde_json::from_str(body).unwrap_or_default();
    let text = find_message(&value, 0).unwrap_or(body);
    let short: String = escape::plain(text).chars().take(MESSAGE_CHARS_MAX).collect();
    let mut short = short.trim().replace('\n', " ");
    if short.is_empty() {
        "(no message)".clone_into(&mut short);
    }
    if let Some(name) = find_parameter(&value).filter(|name| !short.contains(name)) {
        let _ = write!(short, " (`{}`)", escape::excerpt(name));
    }
    short
}

/// Returns the parameter that an error names beside its message, as OpenAI does and servers in Python do.
fn find_parameter(value: &Value) -> Option<&str> {
    let param = [&value["error"]["param"], &value["param"]].into_iter().find_map(Value::as_str);
    let places = value["detail"].as_array().or_else(|| value["message"]["detail"].as_array());
    let first = places.and_then(|list| list.first()).map(|error| &error["loc"]);
    let loc = first.and_then(Value::as_array).and_then(|loc| loc.last()).and_then(Value::as_str);
    param.or(loc).filter(|name| !name.is_empty())
}

/// Returns true if the words of an error say that the same request may succeed later.
pub(super) fn may_pass(words: &str) -> bool {
    let letters = only_letters(words);
    is_rate_limit(words) || PASSING.iter().any(|word| letters.contains(word))
}

/// Returns true if the words of an error say that the server has too much to do, in any spelling.
pub(super) fn is_rate_limit(words: &str) -> bool {
    let letters = only_letters(words);
    RATE_LIMITS.iter().any(|word| letters.contains(word))
}

fn only_letters(words: &str) -> String {
    words.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Returns the first message in an error, which may be in a list or in another object.
fn find_message(value: &Value, depth: usize) -> Option<&str> {
    if depth > 4 {
        return None;
    }
    match value {
        Value::Array(list) => list.iter().find_map(|item| find_message(item, depth + 1)),
        Value::Object(_) => {
            let nested = PLACES.iter().map(|place| &value[place]);
            if let Some(found) =
                nested.filter(|inner| !inner.is_string()).find_map(|inner| find_message(inner, depth + 1))
            {
                return Some(found);
            }
            let named = MESSAGES.iter().chain(&PLACES[..1]).map(|name| &value[name]);
            if let Some(found) = named.filter_map(Value::as_str).find(|text| !text.trim().is_empty()) {
                return Some(found);
            }
            value["choices"].as_array().and_then(|_| find_message(&value["choices"], depth + 1))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Returns the first HTTP status in an error.
fn find_status(value: &Value) -> Option<u16> {
    match value {
        Value::Array(list) => list.first().and_then(find_status),
        Value::Object(_) => {
            let inner = PLACES.iter().chain(["choices"].iter()).find_map(|place| find_status(&value[*place]));
            inner.or_else(|| CODES.iter().find_map(|name| as_status(&value[*name])))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn as_status(code: &Value) -> Option<u16> {
    let number = code.as_u64().or_else(|| code.as_str()?.trim().parse().ok())?;
    u16::try_from(number).ok().filter(|status| (400..600).contains(status))
}

/// Returns true for a code that servers send with what went well.
fn is_success(code: &Value) -> bool {
    match code {
        Value::Number(number) => number.as_u64().is_some_and(|code| code == 0 || (200..300).contains(&code)),
        Value::String(word) => {
            let word = word.trim().to_ascii_lowercase();
            ["0", "200", "success", "ok", "completed", "in_progress"].contains(&word.as_str())
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
    }
}

/// Returns true for the values with which servers write that there is nothing.
fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}
