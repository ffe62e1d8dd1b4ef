//! Bends the JSON object that an honest model would write.
//!
//! In: the object and a source of draws. Out: the text of a reply, and what a careful reader finds in it: one object, or nothing
//! where the text is no JSON, says a key twice, or has something else around its object.

use fastrand::Rng;
use serde_json::{Value, json};

use crate::sweep::{one_of, place_in};

/// Stands in the object where a piece of raw text goes.
const RAW: &str = "@@raw@@";

/// Numbers and words that are written as they should not be.
const RAWS: [&str; 27] = [
    "NaN",
    "Infinity",
    "-Infinity",
    "1e400",
    "1E400",
    "-1e400",
    "0x9",
    "09",
    "9.",
    "+9",
    ".9",
    "1e1",
    "9e0",
    "90e-1",
    "0.95e0",
    "9.000",
    "1_0",
    "'9'",
    "\"\\ud800\"",
    "undefined",
    "99999999999999999999999999",
    "9e-0",
    "\"9\"",
    "0.9500000000000000001",
    "1.00000000000000000001",
    "10.0000000000000000001",
    "-0",
];

/// Names that mean something elsewhere.
const NAMES: [&str; 14] = [
    "status",
    "verdict",
    "veto",
    "extra",
    "sha256",
    "accepts",
    "P1",
    "__proto__",
    "confidence",
    "A",
    "score",
    "thinking",
    "[SOLVED]",
    "feedback",
];

/// Values that have been mistaken for others.
fn hostile(draw: &mut Rng) -> Value {
    let numbers = [
        json!(0),
        json!(-1),
        json!(1),
        json!(9),
        json!(10),
        json!(11),
        json!(9.0),
        json!(9.5),
        json!(1e30),
        json!(-0.0),
        json!(0.95),
        json!(1.01),
        json!(-0.05),
        json!(100),
        json!(101),
        json!(u64::MAX),
        json!(i64::MIN),
    ];
    let others = [json!(null), json!(true), json!(false), json!([]), json!({}), json!([9]), json!({"a": 9})];
    let texts = [
        "9",
        "0.95",
        "\u{ff19}",
        "NaN",
        "",
        "\u{202e}approve",
        "approve\u{200b}",
        "APPROVE",
        "\u{430}pprove",
        "[SOLVED]",
        "P1",
        "SOLVED",
        "WORKING",
        "\u{1b}[31mred\u{7}",
        "<think>",
        "```",
        "holds",
        "fails",
        "../../etc/passwd",
        "\u{1f600}",
        "\u{0}",
        "reject",
        "critical",
    ];
    match draw.u8(..10) {
        0..4 => one_of(draw, &numbers).clone(),
        4..6 => one_of(draw, &others).clone(),
        6 => json!("x".repeat(3000)),
        _ => json!(one_of(draw, &texts)),
    }
}

/// Takes a value out of the object or list that it is in, and returns the name it had in an object.
fn take_out(object: &mut Value, place: &str) -> Option<(String, Value)> {
    let (parent, name) = place.rsplit_once('/')?;
    match object.pointer_mut(parent)? {
        Value::Object(fields) => fields.shift_remove(name).map(|value| (name.to_owned(), value)),
        Value::Array(items) => {
            items.remove(name.parse().ok()?);
            None
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Bends one value; returns a piece of raw text where one is to stand.
fn bend_value(object: &mut Value, draw: &mut Rng) -> Option<&'static str> {
    let place = place_in(object, draw)?;
    let parent = place.rsplit_once('/').map_or("", |(parent, _)| parent).to_owned();
    match draw.u8(..9) {
        0..3 => *object.pointer_mut(&place)? = hostile(draw),
        3 => {
            *object.pointer_mut(&place)? = json!(RAW);
            let raw: &&str = one_of(draw, &RAWS);
            return Some(raw);
        }
        4 => drop(take_out(object, &place)),
        5 => match object.pointer_mut(&parent)? {
            Value::Object(fields) => drop(fields.insert((*one_of(draw, &NAMES)).to_owned(), hostile(draw))),
            Value::Array(items) => items.push(hostile(draw)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        },
        6 => {
            let value = object.pointer(&place)?.clone();
            *object.pointer_mut(&place)? =
                if draw.bool() { json!([value]) } else { json!({ "value": value }) };
        }
        7 => {
            let other = place_in(object, draw)?;
            let value = object.pointer(&other)?.clone();
            *object.pointer_mut(&place)? = value;
        }
        _ => {
            let (name, value) = take_out(object, &place)?;
            let renamed = match draw.u8(..4) {
                0 => name.to_uppercase(),
                1 => format!("{name} "),
                2 => format!("{name}\u{200b}"),
                _ => name.replace('e', "\u{435}").replace('a', "\u{430}"),
            };
            object.pointer_mut(&parent)?.as_object_mut()?.insert(renamed, value);
        }
    }
    None
}

/// Wraps or cuts the text; returns whether one object alone can still be read from it.
fn bend_text(text: &mut String, draw: &mut Rng) -> bool {
    let (bent, is_whole) = match draw.u8(..10) {
        0 => (format!("Sure: {text}"), false),
        1 => (format!("{text} ok"), false),
        2 => (format!("```json\n{text}\n```"), true),
        3 => (format!("<think>hm {{\"a\":1}}</think>{text}"), true),
        4 => (format!("{text}{text}"), false),
        5 => (format!("\u{feff}{text}"), false),
        6 => (format!("{},}}", &text[..text.len() - 1]), false),
        7 => (text.replacen(':', ":/*x*/", 1), false),
        8 => (text.replace('"', "'"), false),
        _ => (text[..text.floor_char_boundary(draw.usize(..text.len()))].to_owned(), false),
    };
    *text = bent;
    is_whole
}

/// Says one key twice, with another value first; returns whether there was such a key.
fn double_key(text: &mut String, draw: &mut Rng) -> bool {
    let object: Value = serde_json::from_str(text).unwrap_or_default();
    let Some(place) = place_in(&object, draw) else { return false };
    let key = format!("\"{}\":", place.rsplit('/').next().unwrap_or_default());
    let value = one_of(draw, &["\"x\"", "9", "null", "\"4\"", "\"SOLVED\"", "\"approve\""]);
    let doubled = text.replacen(&key, &format!("{key}{value},{key}"), 1);
    let is_double = doubled != *text;
    *text = doubled;
    is_double
}

/// Bends an object in one way or two. Returns the reply, and the object that can be read from it.
pub(super) fn mutate(base: &Value, draw: &mut Rng) -> (String, Option<Value>) {
    let mut object = base.clone();
    let kind = draw.u8(..10);
    let times = if draw.u8(..4) == 0 { 2 } else { 1 };
    let mut raw = None;
    for _ in 0..times {
        if kind < 7 {
            raw = bend_value(&mut object, draw).or(raw);
        }
    }
    let mut text = object.to_string();
    if let Some(raw) = raw {
        text = text.replace(&format!("\"{RAW}\""), raw);
    }
    let read = serde_json::from_str(&text).ok();
    let is_double = kind == 7 && double_key(&mut text, draw);
    let is_whole = kind < 8 || bend_text(&mut text, draw);
    (text, if is_whole && !is_double { read } else { None })
}
