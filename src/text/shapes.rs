//! The shapes of what must not leave the machine: what is found by its form alone.
//!
//! In: a text. Out: places, each with the word for its kind. A form finds what may be one; where the form says too
//! little, a check decides, such as a check digit. What fails its check is looked at again from its next character
//! on: a number that stands beside another hides nothing.

use core::net::IpAddr;
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// The form of a token, which stands for something already.
pub(super) const TOKEN: &str = r"\[[A-Z]+_[0-9]+\]";

/// A kind of thing that is replaced, and the word in its tokens.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) word: &'static str,
    form: Regex,
    /// What the form alone cannot say.
    check: Option<Check>,
}

/// Returns how many bytes of what a form has found are the thing itself, if it is one.
type Check = fn(&str) -> Option<usize>;

/// Keys by their known beginnings, and private keys, also if only their beginning or end is there.
const KEY: &str = r#"(?x)
    -----BEGIN\ [A-Z0-9\ ]*PRIVATE\ KEY(?:\ BLOCK)?-----(?: (?s:.)*? -----END\ [A-Z0-9\ ]*PRIVATE\ KEY(?:\ BLOCK)?----- | (?s:.)* )
    | (?:^|\s) (?: [A-Za-z0-9+/=]{60,76} \s+ ){2,} [A-Za-z0-9+/=]*
    | \b(?: sk-[A-Za-z0-9_-]{16,} | [sr]k_(?:live|test)_[A-Za-z0-9]{10,} | gh[pousr]_[A-Za-z0-9]{30,}
        | github_pat_[A-Za-z0-9_]{22,} | glpat-[A-Za-z0-9_-]{20,} | xox[a-z]-[A-Za-z0-9-]{10,}
        | A[KS]IA[0-9A-Z]{16} | AIza[0-9A-Za-z_-]{35} | GOCSPX-[A-Za-z0-9_-]{20,} | ya29\.[A-Za-z0-9_-]{10,}
        | SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,} | hf_[A-Za-z0-9]{30,} | npm_[A-Za-z0-9]{36}
        | pypi-[A-Za-z0-9_-]{50,} | gsk_[A-Za-z0-9]{20,} | dop_v1_[a-f0-9]{40,} | whsec_[A-Za-z0-9+/=]{16,}
        | [0-9]{8,10}:AA[A-Za-z0-9_-]{30,} | eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,} )
    | [a-zA-Z]://[^\s/:@]*:(?<user>[^\s/]+)@
    | (?i:\b(?:bearer|basic|authorization["']?\s*[:=]\s*["']?[a-z]+))\s+(?<scheme>[A-Za-z0-9._~+/-]{16,}=*)
    | \bcurl\s[^\n]*?(?:-u|--user)[\ =]["']?[^\s:]+:(?<login>[^\s"']+)"#;

/// What stands beside a word that says that it is secret.
const NAMED: &str = r#"(?xi)
    (?: passwor[dt] | passwd | passphrase | passcode | \b(?:[a-z]+_)?pass | pwd | \bpw | secret | (?-i:\b[A-Z]+_KEY)
      | (?:secret|private|account|api|access|auth|signing|encryption)[\ _-]?key | (?:access|refresh|auth|api|id)?[_-]?token )
    (?: ["']?\s*(?: := | => | [:=] )\s* | ["']?> )
    (?: "(?<double>(?:\\.|[^"\\\n]){3,})" | '(?<single>(?:\\.|[^'\\\n]){3,})' | (?<bare>[^\s"'<>,;]{5,}) )
    | passw?(?:ord|code|phrase)\s+is\s+["']?(?<spoken>[^\s"']*[0-9][^\s"']*[^\s"'.,;!?])
    | --[a-z-]*(?: password | token | secret | key )\s+(?<flag>[^\s-][^\s]{4,})"#;

/// Numbers in international form, and in national forms that are hardly ever anything else.
const PHONE: &str = r"(?x)
    \+[1-9][0-9]{0,2}(?:[\ ./-]{0,2}\(?[0-9]{1,8}\)?){1,7}
    | 00\ ?[1-9][0-9]{0,2}[\ ./-]?\(?[1-9][0-9]{0,8}\)?(?:[\ ./-]?[0-9]{1,8}){0,6}
    | \(0?[0-9]{2,4}\)[\ -]?[0-9]{3,4}[\ -]?[0-9]{3,5}
    | 0[1-9][0-9]{7,9}
    | 0[1-9][0-9]{0,3}[\ /-][0-9]{2,4}(?:[\ -]?[0-9]{2,4}){1,3}
    | 0[1-9](?:\.[0-9]{2}){4}
    | 8[\ -]?\([0-9]{3}\)[\ -]?[0-9]{3}[\ -]?[0-9]{2}[\ -]?[0-9]{2}
    | (?:1[\ .-])?[2-9][0-9]{2}[\ .-][0-9]{3}[\ .-][0-9]{4}";

/// Stands in a [`Folded::unbroken`] text for white space that is more than one space between two words: the end of a
/// line, a column.
const GAP: char = '\u{1F}';

/// What is torn over a gap, by stricter forms than what stands in one line: a column of numbers is no card.
const TORN: [(&str, &str, Check); 4] = [
    ("EMAIL", r"[\w.%+'-]+@\x1F[\w-]+(?:\.[\w-]+)*\.\p{L}{2,}", |text| Some(text.len())),
    ("IBAN", r"(?i)[A-Z]{2}[0-9]{2}(?:[ \x1F]?[A-Z0-9]{2,}){1,9}", iban),
    (
        "CARD",
        r"[2-6][0-9]{3}(?:[ .\x1F-]?[0-9]{4}){3}(?:[ .\x1F-]?[0-9]{1,3})?|3[47][0-9]{2}[ .\x1F-]?[0-9]{6}[ .\x1F-]?[0-9]{5}",
        card,
    ),
    (
        "PHONE",
        r"\+[1-9][0-9]{0,2}(?:[ ./-]?\(?[0-9]{1,4}\)?){0,3}\x1F[0-9]{2,4}(?:[ ./-][0-9]{2,4}){0,4}",
        torn_phone,
    ),
];

static SHAPES: LazyLock<Vec<Shape>> = LazyLock::new(|| {
    let shape = |word, form: &str, check: Option<Check>| Shape {
        word,
        form: Regex::new(form).expect("the forms are constants, and a test uses each"),
        check,
    };
    // In the order in which they are preferred where two find the same place.
    vec![
        shape("TOKEN", TOKEN, None),
        shape("SECRET", KEY, None),
        shape("SECRET", NAMED, Some(value)),
        shape(
            "EMAIL",
            r#"(?:[\w.%+'-]+|"[^"\n]{1,64}")(?:@|%40)(?:localhost\b|[\w-]+(?:\.[\w-]+)*\.(?:xn--[\w-]+|\p{L}{2,}))"#,
            None,
        ),
        shape("IBAN", r"(?i)[A-Z]{2}[0-9]{2}(?:[ .-]?[A-Z0-9]){11,30}", Some(iban)),
        shape("CARD", r"[2-6](?:[ ._-]?[0-9]){12,18}", Some(card)),
        shape(
            "IP",
            r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}|(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f.]{0,15}",
            Some(address),
        ),
        shape("PHONE", PHONE, Some(phone)),
    ]
});

/// Returns every shape.
pub(super) fn all() -> &'static [Shape] {
    &SHAPES
}

/// Returns what has one of the shapes, with the word for it.
pub(super) fn find(text: &str) -> Vec<(Range<usize>, &'static str)> {
    let mut found: Vec<_> = torn_key(text).into_iter().map(|place| (place, "SECRET")).collect();
    for shape in SHAPES.iter() {
        let mut at = 0;
        while let Some(captures) = shape.form.captures_at(text, at) {
            let place = secret_part(&captures);
            let length = match shape.check {
                None => Some(place.len()),
                Some(check) => check(&text[place.clone()]).filter(|&length| {
                    // Part of a longer word or number is something else.
                    let (before, after) = (&text[..place.start], &text[place.start + length..]);
                    shape.word == "SECRET"
                        || !goes_on(before, &text[place.clone()], after, shape.word == "IP")
                }),
            };
            at = match length {
                Some(length) => {
                    let end = place.start + length;
                    found.push((place.start..end, shape.word));
                    if shape.word == "PHONE" {
                        found.extend(torn_number(text, end).map(|rest| (rest, shape.word)));
                    }
                    end.max(at + 1)
                }
                None => captures.get_match().start() + 1,
            };
            at = text.ceil_char_boundary(at);
            if at > text.len() {
                break;
            }
        }
    }
    found
}

/// Returns what stands torn over the end of a line, or over columns, in a [`Folded::unbroken`] text.
pub(super) fn find_torn(text: &str) -> Vec<(Range<usize>, &'static str)> {
    static FORMS: LazyLock<Vec<(&str, Regex, Check)>> = LazyLock::new(|| {
        let form = |(word, form, check): (&'static str, &str, Check)| {
            (word, Regex::new(form).expect("the forms are constants, and a test uses each"), check)
        };
        TORN.into_iter().map(form).collect()
    });
    if !text.contains(GAP) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (word, form, check) in FORMS.iter() {
        let mut at = 0;
        while let Some(place) = form.find_at(text, at) {
            let whole = place.as_str();
            let length = check(whole).filter(|&length| {
                let (before, after) = (&text[..place.start()], &text[place.start() + length..]);
                whole[..length].contains(GAP) && (*word == "EMAIL" || !goes_on(before, whole, after, false))
            });
            at = match length {
                Some(length) => {
                    found.push((place.start()..place.start() + length, *word));
                    place.start() + length
                }
                None => text.ceil_char_boundary(place.start() + 1),
            };
        }
    }
    found
}

/// A phone number of which so little stands before the gap that it cannot be all of it.
fn torn_phone(text: &str) -> Option<usize> {
    let (before, _) = text.split_once(GAP)?;
    (digits(before).len() < 9).then(|| phone(text)).flatten()
}

/// Returns where the rest of a second phone number stands, whose beginning the one before it has swallowed.
fn torn_number(text: &str, end: usize) -> Option<Range<usize>> {
    static REST: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"\A[ ./-]?([0-9][0-9 ./-]*[0-9])\b").expect("it is a constant, and a test uses it")
    });
    let rest = REST.captures(&text[end..])?.get(1)?;
    (5..=15).contains(&digits(rest.as_str()).len()).then(|| end + rest.start()..end + rest.end())
}

/// Whether a number is part of a longer word or number.
fn goes_on(before: &str, number: &str, after: &str, may_be_range: bool) -> bool {
    let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let (mut before, mut after) = (before.chars().rev(), after.chars());
    // `12+34` is a sum, and so `+34` is no phone number there.
    let is_joined = if number.starts_with(['+', '(']) { is_digit } else { is_letter };
    match (before.next(), after.next()) {
        (last, _) if is_joined(last) => true,
        (_, next) if is_letter(next) => true,
        // Of a date, a decimal number or a range this is only a part.
        (Some('-'), _) if may_be_range => false,
        (Some('.' | ',' | '-' | '/' | ':'), _) if is_digit(before.next()) => true,
        (_, Some('.' | ',')) => is_digit(after.next()),
        (_, _) => false,
    }
}

/// Returns where the rest of a private key stands whose beginning is in an earlier part of the text.
fn torn_key(text: &str) -> Option<Range<usize>> {
    static END: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new("-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----")
            .expect("it is a constant, and a test uses it")
    });
    let end = END.find(text)?;
    let has_begun = text[..end.start()].contains("-----BEGIN ");
    (!has_begun).then(|| 0..end.end())
}

/// Of a form with a named part, that part; else all of it.
fn secret_part(captures: &Captures<'_>) -> Range<usize> {
    let parts = ["user", "scheme", "login", "double", "single", "bare", "spoken", "flag"];
    let named = parts.iter().find_map(|name| captures.name(name));
    named.map_or_else(|| captures.get_match().range(), |part| part.range())
}

/// What stands beside a word such as `password`, unless it is a word of a form or a piece of a program.
fn value(text: &str) -> Option<usize> {
    let words = [
        "required",
        "optional",
        "string",
        "number",
        "false",
        "none",
        "null",
        "empty",
        "unknown",
        "undefined",
        "forgotten",
        "missing",
        "invalid",
    ];
    let is_word = words.contains(&text.trim_end_matches(['.', '!', '?']).to_ascii_lowercase().as_str());
    (!is_word && !text.ends_with(['(', ')'])).then_some(text.len())
}

/// Returns the longest beginning that passes a check and does not end inside a word or a number: what follows
/// a number may look like more of it.
fn beginning(text: &str, is_one: fn(&str) -> bool) -> Option<usize> {
    let ends = (1..=text.len()).rev().filter(|&end| {
        let is_end = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b')';
        is_end(&text.as_bytes()[end - 1])
            && text.as_bytes().get(end).is_none_or(|next| !next.is_ascii_alphanumeric())
    });
    ends.into_iter().find(|&end| is_one(&text[..end]))
}

fn digits(text: &str) -> Vec<u8> {
    text.bytes().filter(u8::is_ascii_digit).collect()
}

fn iban(text: &str) -> Option<usize> {
    beginning(text, |text| {
        let bare: String = text.chars().filter(char::is_ascii_alphanumeric).collect();
        bare.to_ascii_uppercase().parse::<iban::Iban>().is_ok()
    })
}

/// A number of 13 to 19 digits whose last one is its check digit (ISO/IEC 7812-1).
fn card(text: &str) -> Option<usize> {
    beginning(text, |text| {
        let digits = digits(text);
        (13..=19).contains(&digits.len()) && luhn3::valid(&digits)
    })
}

/// An address: of IPv6 at least three groups or one of three digits, since `a::b` and `[::2]` are more often parts
/// of programs.
fn address(text: &str) -> Option<usize> {
    let text = text.trim_end_matches('.');
    let is_one = match text.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => true,
        Ok(IpAddr::V6(_)) => {
            let groups: Vec<&str> = text.split(':').filter(|group| !group.is_empty()).collect();
            text.bytes().any(|byte| byte.is_ascii_digit())
                && (groups.len() >= 3 || groups.iter().any(|group| group.len() >= 3))
        }
        Err(_) => false,
    };
    is_one.then_some(text.len())
}

/// ITU-T E.164 allows 15 digits; below 8 there are too many other numbers. A date is none.
fn phone(text: &str) -> Option<usize> {
    beginning(text, |text| {
        let groups: Vec<&str> =
            text.split(|c: char| !c.is_ascii_digit()).filter(|group| !group.is_empty()).collect();
        let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
        let is_date = matches!(lengths[..], [1 | 2, 1 | 2, 4] | [4, 2, 2]) && !text.starts_with('+');
        (8..=15).contains(&digits(text).len()) && !is_date
    })
}

/// A text as it is searched: without what cannot be seen, and with one kind of space and dash.
pub(super) struct Folded {
    text: String,
    /// Where each byte, and the end, stands in the text itself.
    places: Vec<usize>,
}

impl Folded {
    pub(super) fn new(text: &str) -> Self {
        let mut folded =
            Self { text: String::with_capacity(text.len()), places: Vec::with_capacity(text.len() + 1) };
        for (at, c) in text.char_indices() {
            let c = match c {
                '\n' | '\r' | '\t' => c,
                '\u{2028}' | '\u{2029}' => '\n',
                c if super::quote::is_invisible(c) => continue,
                '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{FE58}' | '\u{FE63}' | '\u{FF0D}' => '-',
                // Full-width letters, digits and signs.
                '\u{FF01}'..='\u{FF5E}' => char::from_u32(u32::from(c) - 0xFEE0).unwrap_or(c),
                c if c.is_whitespace() => ' ',
                c => c,
            };
            folded.text.push(c);
            folded.places.resize(folded.text.len(), at);
        }
        folded.places.push(text.len());
        folded
    }

    /// The same text with [`GAP`] in place of all white space that is more than one space.
    pub(super) fn unbroken(&self) -> Self {
        let mut unbroken = Self { text: String::with_capacity(self.text.len()), places: Vec::new() };
        let mut at = 0;
        while let Some(c) = self.text[at..].chars().next() {
            let rest = &self.text[at..];
            let space = rest.len() - rest.trim_start().len();
            let (c, length) = match &rest[..space] {
                "" => (c, c.len_utf8()),
                " " => (' ', 1),
                _ => (GAP, space),
            };
            unbroken.text.push(c);
            unbroken.places.resize(unbroken.text.len(), self.places[at]);
            at += length;
        }
        unbroken.places.extend(self.places.last());
        unbroken
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns where a place of the folded text stands in the text itself.
    pub(super) fn unfold(&self, place: &Range<usize>) -> Range<usize> {
        self.places[place.start]..self.places[place.end]
    }
}
