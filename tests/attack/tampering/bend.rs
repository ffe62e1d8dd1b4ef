//! Bends the bytes of a file, with no care for what they mean.
//!
//! In: the bytes and a source of draws. Out: other bytes, and in words what was done to them. The chain of digests is left as it
//! was.

use fastrand::Rng;
use serde_json::Value;

use crate::sweep::{one_of, place_in};

/// What is done to bytes; it may leave them as they are.
type Bend = fn(&mut Vec<u8>, &mut Rng);

const BENDS: [(&str, Bend); 18] = [
    ("a flipped bit", |bytes, draw| {
        let at = draw.usize(..bytes.len());
        bytes[at] ^= 1 << draw.u8(..8);
    }),
    ("another byte", |bytes, draw| {
        let at = draw.usize(..bytes.len());
        bytes[at] = draw.u8(..);
    }),
    ("another digit", |bytes, draw| {
        let digits: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at].is_ascii_digit()).collect();
        bytes[*one_of(draw, &digits)] = b'0' + draw.u8(..10);
    }),
    ("a byte less", |bytes, draw| _ = bytes.remove(draw.usize(..bytes.len()))),
    ("a byte more", |bytes, draw| bytes.insert(draw.usize(..=bytes.len()), draw.u8(..))),
    ("a space more", |bytes, draw| bytes.insert(draw.usize(..=bytes.len()), b' ')),
    ("a range less", |bytes, draw| drop(bytes.drain(range(bytes, draw)))),
    ("a range twice", |bytes, draw| {
        let range = range(bytes, draw);
        let (end, part) = (range.end, bytes[range].to_vec());
        drop(bytes.splice(end..end, part));
    }),
    ("two ranges swapped", |bytes, draw| {
        let length = draw.usize(1..=bytes.len() / 4);
        let half = bytes.len() / 2;
        let (first, second) = bytes.split_at_mut(half);
        let (at, other) = (draw.usize(..=half - length), draw.usize(..=second.len() - length));
        first[at..at + length].swap_with_slice(&mut second[other..other + length]);
    }),
    ("a line less", |bytes, draw| by_lines(bytes, |lines| drop(lines.remove(draw.usize(..lines.len()))))),
    ("a line twice", |bytes, draw| {
        by_lines(bytes, |lines| {
            let line = one_of(draw, lines).clone();
            lines.insert(draw.usize(..=lines.len()), line);
        });
    }),
    ("two lines swapped", |bytes, draw| {
        by_lines(bytes, |lines| {
            let (first, second) = (draw.usize(..lines.len()), draw.usize(..lines.len()));
            lines.swap(first, second);
        });
    }),
    ("lines in another order", |bytes, draw| by_lines(bytes, |lines| draw.shuffle(lines))),
    ("lines cut off", |bytes, draw| by_lines(bytes, |lines| lines.truncate(draw.usize(..lines.len())))),
    ("cut off anywhere", |bytes, draw| bytes.truncate(draw.usize(..bytes.len()))),
    ("bytes behind the end", |bytes, draw| {
        bytes.extend((0..draw.usize(1..40)).map(|_| draw.alphanumeric() as u8));
    }),
    ("a line behind the end", |bytes, draw| {
        bytes.extend((0..draw.usize(..40)).map(|_| draw.alphanumeric() as u8));
        bytes.push(b'\n');
    }),
    ("another value", |bytes, draw| {
        by_lines(bytes, |lines| {
            let at = draw.usize(..lines.len());
            if let Ok(mut value) = serde_json::from_slice::<Value>(&lines[at]) {
                edit(&mut value, draw);
                lines[at] = value.to_string().into_bytes();
                lines[at].push(b'\n');
            }
        });
    }),
];

fn range(bytes: &[u8], draw: &mut Rng) -> std::ops::Range<usize> {
    let start = draw.usize(..bytes.len());
    start..draw.usize(start + 1..=bytes.len().min(start + 200))
}

/// Bends a file line by line, each with its line break.
fn by_lines(bytes: &mut Vec<u8>, bend: impl FnOnce(&mut Vec<Vec<u8>>)) {
    let mut lines: Vec<Vec<u8>> = bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    bend(&mut lines);
    *bytes = lines.concat();
}

/// Gives a drawn leaf another value, and returns its place.
fn edit(value: &mut Value, draw: &mut Rng) -> Option<String> {
    let place = place_in(value, draw)?;
    change(value.pointer_mut(&place)?);
    Some(place)
}

/// Makes a value another one of its kind.
pub(super) fn change(value: &mut Value) {
    *value = match value.take() {
        Value::Null => false.into(),
        Value::Bool(is) => (!is).into(),
        Value::Number(number) => number.as_u64().map_or_else(|| 0.into(), |number| (number + 1).into()),
        Value::String(text) => changed_text(&text).into(),
        Value::Array(mut items) => {
            if items.pop().is_none() {
                items.push(Value::Null);
            }
            items.into()
        }
        Value::Object(mut fields) => {
            let last = fields.keys().next_back().cloned();
            match last {
                Some(name) => drop(fields.shift_remove(&name)),
                None => drop(fields.insert("more".to_owned(), true.into())),
            }
            fields.into()
        }
    };
}

/// Changes the first letter or digit of a text, or gives it one.
fn changed_text(text: &str) -> String {
    match text.find(|c: char| c.is_ascii_alphanumeric()) {
        Some(at) => {
            let other = match text.as_bytes()[at] {
                b'1' => "2",
                b'0'..=b'9' => "1",
                b'x' => "y",
                _ => "x",
            };
            format!("{}{other}{}", &text[..at], &text[at + 1..])
        }
        None => format!("{text}x"),
    }
}

/// Bends bytes until they are others, and returns how.
pub(super) fn differently(bytes: &mut Vec<u8>, draw: &mut Rng) -> &'static str {
    let whole = bytes.clone();
    loop {
        let (name, bend) = one_of(draw, &BENDS);
        bend(bytes, draw);
        if *bytes != whole {
            return name;
        }
    }
}
