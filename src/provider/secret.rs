//! Removes an endpoint's keys from what its server says.
//!
//! The input is the keys of one endpoint, and a text from its server. The output is the text, with [`MARK`] in place of
//! each key and of each piece of one. A piece is eight characters or more of a key's secret part, which follows the
//! issuer's prefix, such as `sk-proj-`. A key is found through JSON escapes, percent-encoding and invisible characters,
//! because later readers of the text undo those. It is not found through base64. The time is linear in the text.
//! Nothing here touches a file, a clock or a connection, and no key is ever shown, not even by `Debug`.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use protocol::text::escape;

/// The mark that takes the place of a key.
pub(super) const MARK: &str = "[key removed]";

/// The length from which a key is removed from replies too, in bytes. A shorter key, such as `ollama`, may be a word.
const LONG_BYTES: usize = 16;

/// The shortest piece of a secret part that is removed, in bytes.
const PIECE_BYTES: usize = 8;

/// The number of 64-bit words that hold the hints.
const HINT_WORDS: usize = 1 << 10;

/// The texts that issuers put before the secret part of a key. The longest prefix that fits a key counts.
const PREFIXES: [&str; 27] = [
    "sk-",
    "sk-proj-",
    "sk-svcacct-",
    "sk-admin-",
    "sk-None-",
    "sk-ant-",
    "sk-ant-api03-",
    "sk-ant-admin01-",
    "sk-ant-oat01-",
    "sk-or-",
    "sk-or-v1-",
    "gsk_",
    "hf_",
    "xai-",
    "nvapi-",
    "pplx-",
    "csk-",
    "tgp_v1_",
    "r8_",
    "fw_",
    "fpk_",
    "dapi",
    "AIza",
    "AKIA",
    "ASIA",
    "ABSK",
    "bedrock-api-key-",
];

/// The keys of one endpoint.
#[derive(Default)]
pub(super) struct Secrets {
    /// Every eight consecutive bytes of a secret part, in order of their value.
    pieces: Vec<u64>,
    /// One bit for the hash of each piece, so that one look rules out most places of a text.
    hints: Vec<u64>,
    /// The issuers' prefixes of the keys, the longest first.
    prefixes: Vec<&'static str>,
    /// Long keys whose secret part is too short to have pieces.
    whole: Vec<String>,
    /// The short keys.
    short: Vec<String>,
    /// Whether a key has a character beyond ASCII, which no issuer's key has.
    beyond_ascii: bool,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

impl Secrets {
    /// Takes note of these keys, and ignores empty ones.
    pub(super) fn new<'k>(keys: impl IntoIterator<Item = &'k str>) -> Self {
        let mut secrets = Self::default();
        for key in keys.into_iter().filter(|key| !key.is_empty()) {
            secrets.beyond_ascii |= !key.is_ascii();
            let prefix = prefix(key);
            let secret = &key.as_bytes()[prefix.len()..];
            if key.len() < LONG_BYTES {
                secrets.short.push(key.to_owned());
            } else if secret.len() < PIECE_BYTES {
                secrets.whole.push(key.to_owned());
            } else {
                secrets.pieces.extend(secret.windows(PIECE_BYTES).map(value));
                secrets.prefixes.push(prefix);
            }
        }
        secrets.pieces.sort_unstable();
        secrets.pieces.dedup();
        secrets.prefixes.sort_unstable_by_key(|prefix| std::cmp::Reverse(prefix.len()));
        if !secrets.pieces.is_empty() {
            secrets.hints = vec![0; HINT_WORDS];
            for piece in &secrets.pieces {
                let (word, bit) = hint(*piece);
                secrets.hints[word] |= bit;
            }
        }
        secrets
    }

    /// Returns whether a character can be in the middle of a key. An invisible one can, because the text is shown without it.
    pub(super) fn may_contain(&self, c: char) -> bool {
        !c.is_whitespace() && (c.is_ascii() || escape::is_invisible(c) || self.beyond_ascii)
    }

    /// Removes long keys and their pieces from a text that a model or its server wrote as a reply.
    pub(super) fn in_reply<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.remove_keys(text, &[])
    }

    /// Removes all keys, and the pieces of long ones, from an error or a header.
    pub(super) fn in_message<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.remove_keys(text, &self.short)
    }

    fn remove_keys<'t>(&self, text: &'t str, further: &[String]) -> Cow<'t, str> {
        let mut spans = self.find_all_pieces(text);
        for key in self.whole.iter().chain(further) {
            spans.extend(text.match_indices(key.as_str()).map(|(at, key)| at..at + key.len()));
        }
        if spans.is_empty() {
            return Cow::Borrowed(text);
        }
        for span in &mut spans {
            let before = &text[..span.start];
            let prefix = self.prefixes.iter().find(|prefix| before.ends_with(**prefix));
            span.start -= prefix.map_or(0, |prefix| prefix.len());
            span.start = escape_start(text.as_bytes(), span.start);
        }
        spans.sort_unstable_by_key(|span| span.start);
        let (mut out, mut end) = (String::with_capacity(text.len()), 0);
        for (index, span) in spans.iter().enumerate() {
            if index == 0 || span.start > end {
                out.push_str(&text[end..span.start]);
                out.push_str(MARK);
            }
            end = end.max(span.end);
        }
        out.push_str(&text[end..]);
        Cow::Owned(out)
    }

    fn find_all_pieces(&self, text: &str) -> Vec<Range<usize>> {
        if self.pieces.is_empty() {
            return Vec::new();
        }
        let mut spans = self.find_pieces(text, false);
        if text.bytes().any(|byte| matches!(byte, b'\\' | b'%')) {
            spans.extend(self.find_pieces(text, true));
        }
        spans
    }

    /// Finds the places of pieces. `undo` says whether escapes count as the characters that they stand for.
    fn find_pieces(&self, text: &str, undo: bool) -> Vec<Range<usize>> {
        let mut spans: Vec<Range<usize>> = Vec::new();
        // These are the last eight characters, and the place where each of them begins.
        let (mut last, mut starts, mut count) = (0_u64, [0; PIECE_BYTES], 0);
        let mut at = 0;
        while at < text.len() {
            let (byte, length) = next(text, at, undo);
            if let Some(byte) = byte {
                last = (last << 8) | u64::from(byte);
                starts[count % PIECE_BYTES] = at;
                count += 1;
                if self.is_piece(last) {
                    let (start, end) = (starts[count % PIECE_BYTES], at + length);
                    match spans.last_mut() {
                        Some(span) if start <= span.end => span.end = end,
                        Some(_) | None => spans.push(start..end),
                    }
                }
            }
            at += length;
        }
        spans
    }

    fn is_piece(&self, value: u64) -> bool {
        let (word, bit) = hint(value);
        self.hints[word] & bit != 0 && self.pieces.binary_search(&value).is_ok()
    }
}

/// A cleaner that removes keys from the parts of one reply, and records whether there were any.
pub(super) struct Cleaner<'s> {
    secrets: &'s Secrets,
    /// Whether a long key, or a piece of one, was removed.
    pub(super) removed: bool,
}

impl<'s> Cleaner<'s> {
    pub(super) fn new(secrets: &'s Secrets) -> Self {
        Self { secrets, removed: false }
    }

    /// Cleans a text of the reply.
    pub(super) fn text(&mut self, text: String) -> String {
        match self.secrets.in_reply(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(clean) => {
                self.removed = true;
                clean
            }
        }
    }

    /// Cleans a header that came with the reply. A short key in it does not count as removed.
    pub(super) fn header(&mut self, text: String) -> String {
        let text = self.text(text);
        self.secrets.in_message(&text).into_owned()
    }
}

/// Returns the prefix that the issuer of a key put before its secret part; empty if it is not known.
fn prefix(key: &str) -> &'static str {
    let known = PREFIXES.iter().filter(|prefix| key.starts_with(**prefix));
    known.max_by_key(|prefix| prefix.len()).copied().unwrap_or_default()
}

/// Returns eight bytes as a number.
fn value(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, byte| (value << 8) | u64::from(*byte))
}

/// Returns the place of a piece's bit among the hints.
fn hint(piece: u64) -> (usize, u64) {
    let [high, low, ..] = piece.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
    let hash = u16::from_be_bytes([high, low]);
    (usize::from(hash >> 6), 1 << (hash & 63))
}

/// The value that stands for any character that is in no key.
const OTHER: u8 = 0xFF;

/// Reads the character at `at`, and its length in bytes. An invisible character counts as nothing.
fn next(text: &str, at: usize, undo: bool) -> (Option<u8>, usize) {
    let bytes = text.as_bytes();
    match bytes[at] {
        b'\\' if undo => escape(bytes, at),
        b'%' if undo => match number(bytes, at + 1, 2) {
            Some(code) => (visible_byte(code), 3),
            None => (Some(b'%'), 1),
        },
        byte @ b' '..=b'~' => (Some(byte), 1),
        _ => {
            let c = text[at..].chars().next().unwrap_or_default();
            (visible_byte(u32::from(c)), c.len_utf8().max(1))
        }
    }
}

/// Reads the escape that a backslash begins. There are several backslashes if JSON is inside JSON.
fn escape(bytes: &[u8], at: usize) -> (Option<u8>, usize) {
    let slashes = bytes[at..].iter().take_while(|byte| **byte == b'\\').count();
    let after = at + slashes;
    match bytes.get(after) {
        Some(b'u') => match (number(bytes, after + 1, 4), low_half(bytes, after + 5)) {
            (Some(high @ 0xD800..0xDC00), Some((low, length))) => {
                (visible_byte(0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00)), slashes + 5 + length)
            }
            (Some(code), _) => (visible_byte(code), slashes + 5),
            (None, _) => (Some(b'\\'), slashes),
        },
        Some(b'n' | b't') => (Some(b'\n'), slashes + 1),
        Some(b'r' | b'b' | b'f') => (None, slashes + 1),
        Some(&byte @ (b'/' | b'"' | b'\'')) => (Some(byte), slashes + 1),
        Some(_) | None => (Some(b'\\'), slashes),
    }
}

/// Reads the second half of a character that takes two escapes, and its length.
fn low_half(bytes: &[u8], at: usize) -> Option<(u32, usize)> {
    let slashes = bytes.get(at..)?.iter().take_while(|byte| **byte == b'\\').count();
    if slashes == 0 || bytes.get(at + slashes) != Some(&b'u') {
        return None;
    }
    let low = number(bytes, at + slashes + 1, 4)?;
    if (0xDC00..0xE000).contains(&low) { Some((low, slashes + 5)) } else { None }
}

/// Reads this many hexadecimal digits.
fn number(bytes: &[u8], at: usize, digits: usize) -> Option<u32> {
    let digits = bytes.get(at..at + digits)?;
    digits.iter().try_fold(0, |sum, digit| Some((sum << 4) | char::from(*digit).to_digit(16)?))
}

/// Returns a character as it counts here: nothing if it is invisible, because the text is shown without it.
fn visible_byte(code: u32) -> Option<u8> {
    let c = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
    if matches!(c, '\n' | '\t') {
        return Some(b'\n');
    }
    if escape::is_invisible(c) {
        return None;
    }
    Some(u8::try_from(c).ok().filter(u8::is_ascii).unwrap_or(OTHER))
}

/// Returns the start of the escape that a place is in the middle of, so that no half of it is left. A reply that is
/// JSON remains JSON.
fn escape_start(bytes: &[u8], at: usize) -> usize {
    let from = at.saturating_sub(5);
    let Some(slash) = bytes[from..at].iter().rposition(|byte| *byte == b'\\').map(|place| from + place)
    else {
        return at;
    };
    let is_inside = match &bytes[slash + 1..at] {
        [] => true,
        [b'u', digits @ ..] => digits.iter().all(u8::is_ascii_hexdigit) && digits.len() < 4,
        _ => false,
    };
    let slashes = bytes[..=slash].iter().rev().take_while(|byte| **byte == b'\\').count();
    if is_inside && slashes % 2 == 1 { slash } else { at }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: &str = "sk-proj-Ab12Cd34Ef56Gh78/Ij9+nQ==";

    fn reply(text: &str) -> String {
        Secrets::new([KEY]).in_reply(text).into_owned()
    }

    /// A key is removed with its prefix, and so is a long piece of it, while seven characters stay.
    #[test]
    fn key_and_long_piece_are_removed() {
        assert_eq!(reply(&format!("it is {KEY}.")), "it is [key removed].");
        assert_eq!(reply(&format!("{KEY}{KEY}")), "[key removed]");
        assert_eq!(reply("it ends in 78/Ij9+nQ=="), "it ends in [key removed]");
        assert_eq!(reply("it ends in 9+nQ=="), "it ends in 9+nQ==");
        assert_eq!(reply("like sk-proj-Ab12Cd3…"), "like sk-proj-Ab12Cd3…");
        assert_eq!(reply("all begin with sk-proj-"), "all begin with sk-proj-");
    }

    #[test]
    fn escapes_and_invisible_characters_hide_no_key() {
        for text in [
            r"\u0073k-proj-\u0041b12Cd34Ef56Gh78\/Ij9\u002bnQ\u003d\u003d",
            r"\\u0073k-proj-\\u0041b12Cd34Ef56Gh78\\/Ij9\\u002bnQ\\u003d\\u003d",
            "sk-proj-Ab12Cd34Ef56Gh78%2FIj9%2bnQ%3D%3D",
            "sk-proj-Ab12\u{200B}Cd34Ef56\u{0}Gh78/Ij9\r+nQ==",
            r"sk-proj-Ab12\u200bCd34Ef56\u0000Gh78/Ij9\r+nQ==",
            // Each character is followed by an invisible one that takes two escapes.
            &KEY.chars().flat_map(|c| [c.to_string(), r"\udb40\udc61".to_owned()]).collect::<String>(),
            &KEY.chars().flat_map(|c| [c.to_string(), r"\\udb40\\udc61".to_owned()]).collect::<String>(),
        ] {
            let clean = reply(&format!(r#"{{"a":"x {text} y"}}"#));
            assert!(clean.contains(MARK) && !clean.contains("Cd34"), "{clean}");
            assert!(
                serde_json::from_str::<serde_json::Value>(&clean).is_ok() || text.contains('\u{0}'),
                "{clean}"
            );
        }
    }

    #[test]
    fn removal_inside_escape_keeps_json_valid() {
        let secrets = Secrets::new(["nXyZ1234567890abcd", "e4bcdefghijklmnop"]);
        for (text, clean) in [
            (r#""line\nXyZ12345""#, r#""line[key removed]""#),
            (r#""\u00e4bcdefgh""#, r#""[key removed]""#),
            (r#""back\\nXyZ12345""#, r#""back\\[key removed]""#),
        ] {
            assert_eq!(secrets.in_reply(text), clean);
        }
    }

    /// A short key such as `ollama` may be a word, so only messages lose it.
    #[test]
    fn short_key_stays_in_reply() {
        let secrets = Secrets::new(["ollama", "", "sk-ant-api03-abc"]);
        assert_eq!(secrets.in_reply("ollama serves sk-ant-api03-x"), "ollama serves sk-ant-api03-x");
        assert_eq!(secrets.in_reply("sk-ant-api03-abc"), MARK);
        assert_eq!(secrets.in_message("no key ollama"), "no key [key removed]");
        assert_eq!(format!("{secrets:?}"), "Secrets { .. }");
    }

    #[test]
    fn a_long_reply_is_read_in_a_moment() {
        let secrets = Secrets::new([KEY, &"x1Y2z3".repeat(300)]);
        let text = r"\\\u00e4 %41 Ab12Cd3 ".repeat(50_000);
        let began = std::time::Instant::now();
        assert_eq!(secrets.in_reply(&text), text);
        assert!(began.elapsed() < std::time::Duration::from_secs(5), "{:?}", began.elapsed());
    }

    proptest! {
        #[test]
        fn no_eight_secret_characters_survive(
            before in r"[ -~\\u0e4é\n]{0,40}",
            after in r"[ -~\\u0e4é\n]{0,40}",
            secret in "[A-Za-z0-9/+_-]{13,60}",
            issuer in prop::sample::select(vec!["", "sk-proj-", "gsk_", "sk-ant-api03-"]),
            from in 0_usize..40, length in 8_usize..80,
        ) {
            let key = format!("{issuer}{secret}");
            prop_assume!(key.len() >= LONG_BYTES);
            // Random text before a secret may look like an issuer's prefix.
            let secret = &key[prefix(&key).len()..];
            prop_assume!(secret.len() >= PIECE_BYTES);
            let secrets = Secrets::new([key.as_str()]);
            let part: String = key.chars().skip(from).take(length).collect();
            let text = format!("{before}{part}{after}");
            let clean = secrets.in_reply(&text);
            let left: Vec<&[u8]> = secret.as_bytes().windows(PIECE_BYTES).filter(|piece| {
                clean.as_bytes().windows(PIECE_BYTES).any(|found| found == *piece)
            }).collect();
            prop_assert!(left.is_empty(), "{clean}: {left:?}");
            // The text must also remain readable inside a JSON string.
            let quoted = serde_json::to_string(&text).unwrap();
            prop_assert!(serde_json::from_str::<String>(&secrets.in_reply(&quoted)).is_ok());
        }

        #[test]
        fn what_holds_no_piece_stays_as_it_is(text in ".{0,200}") {
            prop_assert_eq!(Secrets::new([KEY]).in_reply(&text), text.clone());
        }
    }
}
