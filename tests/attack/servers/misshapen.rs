//! Faults within the body: shapes, errors that come as answers, types, streams and counts of tokens.
//!
//! In: an honest reply. Out: what the server sends in its place, in an answer that is well framed.

use serde_json::{Value, json};

use super::answers::{body, events, ok, sse, stream, typed, whole, written};
use super::faults::Fault;

/// Bends the events of a stream.
type OfEvents = fn(&[Value]) -> String;

/// Bends a stream as it is written.
type OfText = fn(&str) -> String;

/// Gives the completion of a reply another value at a place.
fn with(reply: &str, place: &str, value: Value) -> Value {
    let mut answer = whole(reply);
    *answer.pointer_mut(place).expect("the place is in every completion") = value;
    answer
}

/// Replaces a part of the completion's text.
fn bent(reply: &str, from: &str, to: &str) -> Vec<u8> {
    whole(reply).to_string().replacen(from, to, 1).into_bytes()
}

pub(super) fn bodies() -> Vec<Fault> {
    let lost = [
        ("no choices", "/choices", json!([])),
        ("choices of null", "/choices", json!(null)),
        ("choices in an object", "/choices", json!({"0": 1})),
        ("a choice of null", "/choices/0", json!(null)),
        ("no message", "/choices/0/message", json!(null)),
        ("a message that is a text", "/choices/0/message", json!("4")),
        ("content of null", "/choices/0/message/content", json!(null)),
        ("content of a number", "/choices/0/message/content", json!(4)),
        ("content of an object", "/choices/0/message/content", json!({"a": 1})),
        ("content of lists", "/choices/0/message/content", json!([["4"]])),
        ("empty content", "/choices/0/message/content", json!("")),
        ("content of white space", "/choices/0/message/content", json!(" \n\t ")),
        ("content of zeros", "/choices/0/message/content", json!("\u{0}\u{0}")),
        ("prose", "/choices/0/message/content", json!("Sure! The answer is 4. [SOLVED]")),
        ("content that is nested deeply", "/choices/0/message/content", json!("{\"a\":".repeat(5000) + "1")),
        ("a refusal", "/choices/0/message", json!({"content": null, "refusal": "I will not"})),
    ];
    let lost = lost
        .map(|(name, place, value)| Fault::new(name, move |reply| ok(&with(reply, place, value.clone()))));
    let texts: [(&str, &[u8]); 10] = [
        ("a list", b"[]"),
        ("null", b"null"),
        ("a number", b"4"),
        ("a text", b"\"4\""),
        ("nothing", b""),
        ("an empty object", b"{}"),
        ("words", b"upstream connect error"),
        ("not UTF-8", b"{\"choices\":\"\xff\xfe\xc0\x80\"}"),
        ("a key twice", b"{\"choices\":[{\"message\":{\"content\":\"x\"}}],\"choices\":[{\"message\":{\"content\":\"y\"}}]}"),
        ("NaN", b"{\"choices\":NaN}"),
    ];
    let texts =
        texts.map(|(name, text)| Fault::new(format!("a body of {name}"), move |_| body("200 OK", text)));
    let moved =
        [("in tool calls", "tool_calls"), ("as reasoning", "reasoning_content")].map(|(name, field)| {
            Fault::new(format!("the reply {name}"), move |reply| {
                let call =
                    json!([{"id": "1", "type": "function", "function": {"name": "f", "arguments": reply}}]);
                let value = if field == "tool_calls" { call } else { json!(reply) };
                ok(&with(reply, "/choices/0/message", json!({"content": null, field: value})))
            })
        });
    lost.into_iter().chain(texts).chain(moved).chain(odd_bodies()).collect()
}

/// Bodies that hold the reply, in an odd way.
fn odd_bodies() -> Vec<Fault> {
    let finishes = [
        json!("length"),
        json!("content_filter"),
        json!(3),
        json!(null),
        json!({"a": 1}),
        json!("\u{1b}[2J"),
    ];
    let finishes = finishes.map(|value| {
        let name = format!("finish_reason {value}");
        Fault::around(name, move |reply| ok(&with(reply, "/choices/0/finish_reason", value.clone())))
    });
    let mut all = vec![
        Fault::new("nested deeply", |_| {
            body(
                "200 OK",
                format!("{{\"choices\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000)).as_bytes(),
            )
        }),
        Fault::around("content in parts", |reply| {
            ok(&with(reply, "/choices/0/message/content", json!([{"type": "text", "text": reply}])))
        }),
        Fault::around("a second choice", |reply| {
            let first = whole(reply)["choices"][0].clone();
            let second = json!({"index": 1, "finish_reason": "stop", "message": {"content": "another"}});
            ok(&with(reply, "/choices", json!([first, second])))
        }),
        Fault::around("a first choice that is another", |reply| {
            let first = whole(reply)["choices"][0].clone();
            let second = json!({"index": 1, "finish_reason": "stop", "message": {"content": "another"}});
            ok(&with(reply, "/choices", json!([second, first])))
        }),
        Fault::around("reasoning of an object", |reply| {
            let message = json!({"content": reply, "reasoning_content": {"a": 1}});
            ok(&with(reply, "/choices/0/message", message))
        }),
        Fault::around("an error beside the reply", |reply| {
            let mut answer = whole(reply);
            answer["error"] = json!({"message": "late", "code": null});
            ok(&answer)
        }),
        Fault::around("a byte order mark", |reply| {
            body("200 OK", &[b"\xef\xbb\xbf", bent(reply, "", "").as_slice()].concat())
        }),
        Fault::around("words behind the body", |reply| {
            body("200 OK", &[bent(reply, "", "").as_slice(), b"junk"].concat())
        }),
        Fault::around("the body twice", |reply| body("200 OK", &bent(reply, "", "").repeat(2))),
        Fault::new("half a pair of surrogates", |reply| {
            body("200 OK", &bent(reply, "\"content\":\"", "\"content\":\"\\ud800"))
        }),
        Fault::new("a zero in the reply", |reply| {
            body("200 OK", &bent(reply, "\"content\":\"", "\"content\":\"\\u0000"))
        }),
        Fault::new("an escape in the reply", |reply| {
            body("200 OK", &bent(reply, "\"content\":\"", "\"content\":\"\\u001b[31m"))
        }),
    ];
    all.extend(finishes);
    all
}

pub(super) fn errors() -> Vec<Fault> {
    let messages = [
        ("an error as an answer", json!({"message": "boom", "type": "server_error", "code": null})),
        ("an error that is a text", json!("just a string")),
        ("an error with 429", json!({"message": "boom", "code": 429})),
        ("an error with 500", json!({"message": "boom", "code": 500})),
        ("an error with 400", json!({"message": "boom", "code": 400})),
        ("an error with 99999", json!({"message": "boom", "code": 99999})),
        (
            "an error with escapes",
            json!({"message": "\u{1b}]0;pwn\u{7}\u{1b}[2J\u{202e}evil\u{85} \u{200b}"}),
        ),
        ("an error of a megabyte", json!({"message": "x".repeat(1 << 20)})),
        ("an error in lists", json!([[["boom"]]])),
    ];
    let answers = messages.map(|(name, error)| Fault::new(name, move |_| ok(&json!({"error": error}))));
    let refused = [
        ("a full context", "400 Bad", "This model's maximum context length is 10 tokens"),
        ("no schemas", "400 Bad", "response_format json_schema is not supported"),
        ("a model that loads for ever", "503 Busy", "Loading model"),
        ("escapes in a refusal", "400 Bad", "\u{1b}]0;pwn\u{7}\u{1b}[2J\u{202e}evil"),
        ("escapes in a fault", "500 Bad", "\u{1b}]0;pwn\u{7}\u{1b}[2J\u{202e}evil"),
    ];
    let refused = refused.map(|(name, status, message)| {
        let error = json!({"error": {"message": message, "code": 503}}).to_string();
        Fault::new(name, move |_| body(status, error.as_bytes()))
    });
    let page = Fault::new("a page with escapes", |_| {
        body("502 Bad", b"<html><body>502 <script>\x1b[31m</script> Bad gateway</body></html>")
    });
    answers.into_iter().chain(refused).chain([page]).collect()
}

pub(super) fn types() -> Vec<Fault> {
    let kinds = ["text/plain", "Application/JSON", "application/octet-stream", "text/event-stream", "x", ""];
    let wholes = kinds.map(|kind| {
        Fault::around(format!("a body of type {kind:?}"), move |reply| {
            typed(kind, whole(reply).to_string().as_bytes())
        })
    });
    let kinds =
        ["text/plain", "application/json", "Text/Event-Stream; charset=utf-8", "application/x-ndjson", ""];
    let streams = kinds.map(|kind| {
        Fault::around(format!("a stream of type {kind:?}"), move |reply| {
            typed(kind, stream(reply).as_bytes())
        })
    });
    let page = Fault::new("a page", |_| typed("text/html", b"<html><body>It works!</body></html>"));
    wholes.into_iter().chain(streams).chain([page]).collect()
}

pub(super) fn streams() -> Vec<Fault> {
    let lost: [(&str, OfEvents); 9] = [
        ("parts twice", |all| all.iter().map(|event| written(&[event.clone(), event.clone()])).collect()),
        ("the first part twice", |all| written(&[&all[..1], all].concat())),
        ("parts in another order", |all| written(&[&[all[1].clone(), all[0].clone()], &all[2..]].concat())),
        ("a part less", |all| written(&[&all[..1], &all[2..]].concat())),
        ("an early end", |all| written(&all[..2]) + "data: [DONE]\n\n"),
        ("nothing but the end", |_| "data: [DONE]\n\n".to_owned()),
        ("no events", |_| String::new()),
        ("an error on the way", |all| {
            written(&all[..2])
                + "data: {\"error\":{\"message\":\"boom\",\"code\":500}}\n\n"
                + &written(&all[2..])
        }),
        ("an event that is no JSON", |all| written(&all[..1]) + "data: {\"choices\n\n" + &written(&all[1..])),
    ];
    let lost = lost.map(|(name, bend)| {
        Fault::new(format!("a stream with {name}"), move |reply| sse(bend(&events(reply)).as_bytes()))
    });
    let odd: [(&str, OfText); 15] = [
        ("CRLF", |text| text.replace('\n', "\r\n")),
        ("CR", |text| text.replace('\n', "\r")),
        ("a byte order mark", |text| format!("\u{feff}{text}")),
        ("comments", |text| text.replace("\n\n", "\n\n: a comment\n\n")),
        ("unknown fields", |text| format!("event: x\nid: 1\nretry: 5\nfoo: bar\n{text}")),
        ("an event of a list", |text| format!("data: [[]]\n\n{text}")),
        ("a bad retry", |text| format!("retry: abc\n{text}")),
        ("lines without a colon", |text| format!("data\nx\n{text}")),
        ("no space behind the colon", |text| text.replace("data: ", "data:")),
        ("no last line", |text| text.replace("data: [DONE]\n\n", "")),
        ("its end first", |text| format!("data: [DONE]\n\n{text}")),
        ("no reason for its end", |text| {
            text.replace("\"finish_reason\":\"stop\"", "\"finish_reason\":null")
        }),
        ("no counts", |text| text.replace("\"usage\"", "\"unused\"")),
        ("data in several lines", |text| text.replace(",\"delta\"", ",\ndata: \"delta\"")),
        ("no empty line at its end", |text| text.trim_end().to_owned()),
    ];
    let odd = odd.map(|(name, bend)| {
        Fault::around(format!("a stream with {name}"), move |reply| sse(bend(&stream(reply)).as_bytes()))
    });
    let bytes = Fault::new("a stream that is not UTF-8", |reply| {
        sse(&[b"data: {\"choices\":[{\"delta\":{\"content\":\"\xff\xfe\"}}]}\n\n", stream(reply).as_bytes()]
            .concat())
    });
    lost.into_iter().chain(odd).chain([bytes]).collect()
}

pub(super) fn usages() -> Vec<Fault> {
    const HONEST: &str = "{\"prompt_tokens\":100,\"completion_tokens\":20}";
    let counts = [
        "{\"prompt_tokens\":-1,\"completion_tokens\":-5}",
        "{\"prompt_tokens\":1e30,\"completion_tokens\":1e30}",
        "{\"prompt_tokens\":18446744073709551615,\"completion_tokens\":18446744073709551615}",
        "{\"prompt_tokens\":9223372036854775807,\"completion_tokens\":9223372036854775807}",
        "{\"prompt_tokens\":5,\"completion_tokens\":18446744073709551610,\"cost\":1e308}",
        "{\"prompt_tokens\":5,\"completion_tokens\":5,\"cost\":-1}",
        "{\"prompt_tokens\":5,\"completion_tokens\":5,\"prompt_tokens_details\":{\"cached_tokens\":99999}}",
        "\"x\"",
        "null",
        "[]",
        "{\"prompt_tokens\":\"5\"}",
    ];
    let bodies = counts.map(|count| {
        Fault::around(format!("counts {count}"), move |reply| body("200 OK", &bent(reply, HONEST, count)))
    });
    let streams = counts.map(|count| {
        Fault::around(format!("counts {count} in a stream"), move |reply| {
            sse(stream(reply).replace(HONEST, count).as_bytes())
        })
    });
    bodies.into_iter().chain(streams).collect()
}
