//! Finds a server's error in what it sent, in any of the forms that servers use, and its own words for it.
//!
//! The input is JSON of a server, or text that should have been JSON. The output is a [`ServerFailure`]. Whether a request is
//! repeated depends on the status and on the words listed here. Nothing here knows a conversation.

use std::fmt::Write as _;

use serde_json::Value;

use protocol::text::escape;

/// The names under which servers write an HTTP status or a code of their own.
const CODES: [&str; 6] = ["code", "status_code", "statusCode", "status", "http_status", "error_code"];

/// The names under which servers write a message, best first.
const MESSAGES: [&str; 8] =
    ["message", "Message", "msg", "error_msg", "status_msg", "detail", "error_description", "reason"];

/// The places of an error within an object, best first.
const PLACES: [&str; 3] = ["error", "errors", "detail"];

/// The object in which `MiniMax` writes a code and a message with every reply.
const MINIMAX: &str = "base_resp";

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

/// The words of a server whose context is full. Each server has its own.
const OVERFLOW: [&str; 13] = [
    "exceed_context_size",
    "exceeds the available context size",
    "context_length_exceeded",
    "context length",
    "context window",
    "context_window",
    "max_model_len",
    "max_new_tokens` must be <=",
    "max_new_tokens must be <=",
    "prompt is too long",
    "input is too long",
    "exceeds the maximum number of tokens",
    "max_tokens must be at least 1, got -",
];

/// The most characters of a server's message that are shown.
const MESSAGE_CHARS_MAX: usize = 300;

/// An error, as a server reported it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct ServerFailure {
    /// The HTTP status within the error, if there is one between 400 and 599.
    pub(super) status: Option<u16>,
    /// The server's own words, neutralised and shortened.
    pub(super) message: String,
    /// Whether the words say that the same request may succeed later.
    pub(super) may_pass: bool,
}

impl ServerFailure {
    /// Reads an error from a whole body or event. Keys must have been removed from it. The words of a model beside the
    /// error do not count.
    pub(super) fn of_text(text: &str) -> Self {
        let whole: Value = serde_json::from_str(text).unwrap_or_default();
        let error = find_error(&whole).unwrap_or(&whole);
        let status = find_status(error).or_else(|| find_status(&whole));
        let words = if error.is_null() { text.to_owned() } else { error.to_string() };
        let mut message = shorten(find_message(error).unwrap_or(&words));
        if let Some(name) = find_parameter(error)
            && !message.contains(name)
        {
            let _ = write!(message, " (`{}`)", escape::excerpt(name));
        }
        Self { status, message, may_pass: may_pass(&words) }
    }
}

/// Returns true if an object of a reply says that something went wrong: the body, its choice, or its message. `field`
/// returns the value of a field, or null.
pub(super) fn has_error(field: impl Fn(&str) -> Value) -> bool {
    let has_place = PLACES.iter().any(|place| !is_blank(&field(place)));
    let is_named_so = ["object", "type"].iter().any(|name| field(name) == "error");
    has_place || is_named_so || has_bad_code(&field) || has_bad_code(|name| field(MINIMAX)[name].clone())
}

/// Returns true if a code is not one of those that servers send with what went well.
fn has_bad_code(field: impl Fn(&str) -> Value) -> bool {
    CODES.iter().any(|name| match field(name) {
        Value::Number(number) => !is_success(number.as_u64()),
        Value::String(word) => match word.trim().parse() {
            Ok(number) => !is_success(Some(number)),
            // A status in words may be one of progress.
            Err(_) => {
                name.contains("code") && !["", "ok", "success"].contains(&&*word.trim().to_ascii_lowercase())
            }
        },
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
    })
}

fn is_success(code: Option<u64>) -> bool {
    code.is_some_and(|code| code == 0 || (200..300).contains(&code))
}

/// Returns a text on one line, neutralised.
fn shorten(text: &str) -> String {
    let short: String = escape::plain(text).chars().take(MESSAGE_CHARS_MAX).collect();
    let short = short.trim().replace('\n', " ");
    if short.is_empty() { "(no message)".to_owned() } else { short }
}

/// Returns the innermost error in a body, its choices, or their messages.
fn find_error(value: &Value) -> Option<&Value> {
    if let Value::Array(list) = value {
        return list.iter().find_map(find_error);
    }
    for name in PLACES.iter().chain([&MINIMAX]) {
        let error = &value[*name];
        if !is_blank(error) {
            return find_error(error).or(Some(error));
        }
    }
    let inside = ["choices", "delta", "message"].map(|name| &value[name]);
    inside.into_iter().filter(|inner| !is_blank(inner)).find_map(find_error)
}

/// Returns the parameter that an error names beside its message, as OpenAI does and servers in Python do.
fn find_parameter(value: &Value) -> Option<&str> {
    let error = value.as_array().and_then(|list| list.first()).unwrap_or(value);
    let place = error["loc"].as_array().and_then(|loc| loc.last());
    let name = error["param"].as_str().or_else(|| place?.as_str());
    name.filter(|name| !name.is_empty())
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

/// Returns true if the context overflowed, in the words of a server. llama.cpp and OpenAI report this with a code, too.
pub(super) fn is_overflow(words: &str) -> bool {
    let lower = words.to_lowercase();
    OVERFLOW.iter().any(|sign| lower.contains(sign))
}

fn only_letters(words: &str) -> String {
    words.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Returns the first message of an error.
fn find_message(error: &Value) -> Option<&str> {
    match error {
        Value::String(text) => Some(text),
        Value::Array(list) => list.iter().find_map(find_message),
        Value::Object(_) => {
            let mut named = MESSAGES.iter().filter_map(|name| error[*name].as_str());
            named.find(|text| !text.trim().is_empty())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Returns the HTTP status in an error.
fn find_status(error: &Value) -> Option<u16> {
    CODES.iter().find_map(|name| as_status(&error[*name]))
}

fn as_status(code: &Value) -> Option<u16> {
    let number = code.as_u64().or_else(|| code.as_str()?.trim().parse().ok())?;
    u16::try_from(number).ok().filter(|status| (400..600).contains(status))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_of_an_error_are_its_own() {
        let beside = |delta: Value, error: Value| json!({"choices": [{"delta": delta, "error": error}]});
        for (value, status, message, may_pass) in [
            (json!({"error": {"message": "slow down", "code": "429"}}), Some(429), "slow down", false),
            (json!([{"error": {"message": "quota", "code": 429}}]), Some(429), "quota", false),
            (json!({"detail": "the worker died", "status_code": 502}), Some(502), "the worker died", true),
            (json!({"object": "error", "message": "no voice", "code": 50001}), None, "no voice", false),
            (
                json!({"detail": [{"loc": ["body", "seed"], "msg": "no extra"}]}),
                None,
                "no extra (`seed`)",
                false,
            ),
            (json!({"error": {"message": "no", "param": "top_p"}}), None, "no (`top_p`)", false),
            (
                json!({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}),
                None,
                "x",
                true,
            ),
            (beside(json!({"content": "a timeout"}), json!("no such voice")), None, "no such voice", false),
            (
                json!({"choices": null, "base_resp": {"status_code": 1002, "status_msg": "rate limit"}}),
                None,
                "rate limit",
                true,
            ),
        ] {
            let expected = ServerFailure { status, message: message.to_owned(), may_pass };
            assert_eq!(ServerFailure::of_text(&value.to_string()), expected, "{value}");
        }
    }

    #[test]
    fn errors_differ_from_what_went_well() {
        let reports = |value: &Value| has_error(|name| value[name].clone());
        for well in [
            json!({"object": "chat.completion", "error": null, "errors": [], "detail": ""}),
            json!({"code": 0, "message": "Success", "status": "generating"}),
            json!({"base_resp": {"status_code": 0, "status_msg": ""}, "status_code": "200"}),
        ] {
            assert!(!reports(&well), "{well}");
        }
        for ill in [
            json!({"error": {}, "errors": ["x"]}),
            json!({"object": "error"}),
            json!({"code": 1302}),
            json!({"code": "rate_limited"}),
            json!({"status": "502"}),
            json!({"base_resp": {"status_code": 1002}}),
        ] {
            assert!(reports(&ill), "{ill}");
        }
    }
}
