//! What must not leave the machine is replaced by a token, and put back at the end.
//!
//! In: texts. Out: the same texts with a token such as `[EMAIL_1]` in place of each e-mail address, phone
//! number, IBAN, card number, IP address, secret, and whatever the user's own patterns find; and the table that
//! turns tokens back. The same original has the same token in all texts, so that a model can still tell whether
//! two of them are one. What is written like a token is replaced as well, so that putting back is always exact:
//! every token in a redacted text is one of the table's.
//!
//! What is found is found by its form: a name or a street is not, unless a pattern of the user's finds it.
//! Nothing is guessed at the end either: a token that a model has bent is left as it is, and told.

use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde::{Deserialize, Serialize};

/// Returns how many bytes of what a form has found are the thing itself, if it is one.
type Check = fn(&str) -> Option<usize>;

/// A kind of thing that is replaced, and the word in its tokens.
#[derive(Clone, Debug)]
struct Kind {
    word: &'static str,
    form: Regex,
    /// What the form alone cannot say.
    check: Option<Check>,
}

/// The shapes of keys and secrets that are known by their beginnings, and what stands beside a word such as
/// `password`.
const SECRET: &str = r#"(?x)
    -----BEGIN\ [A-Z\ ]*PRIVATE\ KEY-----[\s\S]*?-----END\ [A-Z\ ]*PRIVATE\ KEY-----
    | \b(?: sk-[A-Za-z0-9_-]{16,} | gh[pousr]_[A-Za-z0-9]{30,} | github_pat_[A-Za-z0-9_]{22,}
        | glpat-[A-Za-z0-9_-]{20,} | xox[a-z]-[A-Za-z0-9-]{10,} | A[KS]IA[0-9A-Z]{16} | AIza[0-9A-Za-z_-]{35}
        | hf_[A-Za-z0-9]{30,} | npm_[A-Za-z0-9]{36} | pypi-[A-Za-z0-9_-]{50,}
        | eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,} )
    | ://[^\s/:@]+:(?<password>[^\s/@]+)@
    | \b(?i:bearer)\s+(?<bearer>[A-Za-z0-9._~+/-]{16,}=*)
    | (?i:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|auth[_-]?token)["']?\s*[:=]\s*["']?
        (?<value>[^\s"',;]{6,})
"#;

/// Numbers in international form, and in the national forms that are hardly ever anything else.
const PHONE: &str = r"(?x)
    (?:\+|\b00)[1-9][0-9]{0,2}(?:[\ ./-]?\(?[0-9]{1,5}\)?){2,6}
    | \(0?[0-9]{2,4}\)[\ -]?[0-9]{3,4}[\ -]?[0-9]{3,5}
    | \b0[0-9]{1,4}[\ /-][0-9]{2,4}(?:[\ -]?[0-9]{2,4}){1,3}\b
    | \b[2-9][0-9]{2}[.-][0-9]{3}[.-][0-9]{4}\b";

/// In the order in which they are preferred where two find the same place.
static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let kind = |word, form: &str, check: Option<Check>| Kind {
        word,
        form: Regex::new(form).expect("the forms are constants, and a test uses each"),
        check,
    };
    vec![
        kind("TOKEN", r"\[[A-Z]+_[0-9]+\]", None),
        kind("SECRET", SECRET, None),
        kind("EMAIL", r"[\w.%+-]+@[\w-]+(?:\.[\w-]+)+", None),
        kind("IBAN", r"\b[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b", Some(iban)),
        kind("CARD", r"\b[0-9](?:[ -]?[0-9]){12,18}\b", Some(card)),
        kind(
            "IP",
            r"\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b|(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f.]{0,15}",
            Some(address),
        ),
        kind("PHONE", PHONE, Some(phone)),
    ]
});

/// The word in the tokens of what the user's own patterns find.
const OWN: &str = "PRIVATE";

/// A token as a model may have bent it: without its brackets, in other letters, with other signs.
static BENT: LazyLock<Regex> = LazyLock::new(|| {
    let words: Vec<&str> = KINDS.iter().map(|kind| kind.word).chain([OWN]).collect();
    let word = words.join("|");
    let form = format!(r"(?i)\[ *(?:{word})[ _-]*[0-9]+ *\]|\b(?:{word})_[0-9]+\b");
    Regex::new(&form).expect("it is made of constants")
});

/// Tokens and what they stand for.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Redactions(BTreeMap<String, String>);

/// Finds what must not leave the machine.
#[derive(Clone, Debug)]
pub struct Redactor {
    own: Vec<Regex>,
    redactions: Redactions,
}

impl Redactor {
    /// Makes one that also replaces whatever these regular expressions find, and goes on with a table.
    ///
    /// # Errors
    ///
    /// The first pattern that is none, with what is wrong about it.
    pub fn new(patterns: &[String], redactions: Redactions) -> Result<Self, (String, regex::Error)> {
        let compile = |pattern: &String| Regex::new(pattern).map_err(|why| (pattern.clone(), why));
        Ok(Self { own: patterns.iter().map(compile).collect::<Result<_, _>>()?, redactions })
    }

    /// Returns the table of everything replaced so far.
    #[must_use]
    pub fn redactions(&self) -> &Redactions {
        &self.redactions
    }

    /// Returns the text without what must not leave the machine.
    pub fn redact(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut end = 0;
        for (place, word) in self.find(text) {
            // Of two that overlap the one that begins first is replaced, with all of what is left of the other.
            let start = place.start.max(end);
            if start >= place.end {
                continue;
            }
            out.push_str(&text[end..start]);
            out.push_str(&self.redactions.token(word, &text[start..place.end]));
            end = place.end;
        }
        out.push_str(&text[end..]);
        out
    }

    /// Returns what is to be replaced, by where it begins.
    fn find(&self, text: &str) -> Vec<(Range<usize>, &'static str)> {
        let mut found = Vec::new();
        for kind in KINDS.iter() {
            let places = kind.form.captures_iter(text).map(|captures| secret_part(&captures));
            let exact = |place: Range<usize>| {
                let length = kind.check.map_or(Some(place.len()), |check| check(&text[place.clone()]))?;
                Some((place.start..place.start + length, kind.word))
            };
            found.extend(places.filter_map(exact));
        }
        for pattern in &self.own {
            let places = pattern.find_iter(text).map(|place| place.range());
            found.extend(places.filter(|place| !place.is_empty()).map(|place| (place, OWN)));
        }
        // A stable sort: among those that begin at one place, the longest, then the earlier kind.
        found.sort_by_key(|(place, _)| (place.start, std::cmp::Reverse(place.end)));
        found
    }
}

/// Of a form with a named part, that part; else all of it.
fn secret_part(captures: &Captures<'_>) -> Range<usize> {
    let named = ["password", "bearer", "value"].iter().find_map(|name| captures.name(name));
    named.map_or_else(|| captures.get_match().range(), |part| part.range())
}

impl Redactions {
    /// Returns how many tokens there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    fn token(&mut self, word: &str, original: &str) -> String {
        let begins = format!("[{word}_");
        let mut same_word = self.0.iter().filter(|(token, _)| token.starts_with(&begins));
        if let Some((token, _)) = same_word.clone().find(|(_, known)| *known == original) {
            return token.clone();
        }
        let token = format!("{begins}{}]", same_word.by_ref().count() + 1);
        self.0.insert(token.clone(), original.to_owned());
        token
    }

    /// Returns the text with the originals in place of their tokens.
    #[must_use]
    pub fn restore(&self, text: &str) -> String {
        let form = &KINDS[0].form;
        let original = |captures: &Captures<'_>| {
            let token = captures.get_match().as_str();
            self.0.get(token).map_or(token, String::as_str).to_owned()
        };
        form.replace_all(text, original).into_owned()
    }
}

/// Whether a text is one token and nothing else.
#[must_use]
pub fn is_token(text: &str) -> bool {
    let word =
        text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).and_then(|rest| rest.rsplit_once('_'));
    word.is_some_and(|(word, number)| {
        let is_known = word == OWN || KINDS.iter().any(|kind| kind.word == word);
        is_known && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Returns every token in a text.
pub fn tokens(text: &str) -> impl Iterator<Item = &str> {
    KINDS[0].form.find_iter(text).map(|place| place.as_str())
}

/// Returns what looks like a token that a model has bent, or made up: it cannot be put back.
///
/// `known` is the tokens that there are.
#[must_use]
pub fn bent_tokens(known: &BTreeSet<String>, text: &str) -> Vec<String> {
    let found = BENT.find_iter(text).map(|place| place.as_str());
    found.filter(|token| !known.contains(*token)).map(str::to_owned).collect()
}

/// Returns the longest beginning that passes a check and does not end inside a word or a number: what follows
/// a number may look like more of it.
fn beginning(text: &str, is_one: fn(&str) -> bool) -> Option<usize> {
    let ends = (1..=text.len()).rev().filter(|&end| {
        text.as_bytes()[end - 1].is_ascii_alphanumeric()
            && text.as_bytes().get(end).is_none_or(|next| !next.is_ascii_alphanumeric())
    });
    ends.into_iter().find(|&end| is_one(&text[..end]))
}

fn iban(text: &str) -> Option<usize> {
    beginning(text, |text| text.parse::<iban::Iban>().is_ok())
}

/// A number of 13 to 19 digits whose last one is its check digit (ISO/IEC 7812-1).
fn card(text: &str) -> Option<usize> {
    beginning(text, |text| {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_digit).collect();
        (13..=19).contains(&digits.len()) && luhn3::valid(&digits)
    })
}

/// An address with digits: `::` alone, or `a::b`, is more often part of a program.
fn address(text: &str) -> Option<usize> {
    let is_one = match text.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => true,
        Ok(IpAddr::V6(_)) => text.bytes().any(|byte| byte.is_ascii_digit()),
        Err(_) => false,
    };
    is_one.then_some(text.len())
}

/// ITU-T E.164 allows 15 digits; below 8 there are too many other numbers.
fn phone(text: &str) -> Option<usize> {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    (8..=15).contains(&digits).then_some(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn redactor() -> Redactor {
        Redactor::new(&[], Redactions::default()).unwrap()
    }

    #[test]
    fn what_must_not_leave_is_replaced() {
        for (text, redacted) in [
            ("Write to ann.lee+x@example.co.uk, please.", "Write to [EMAIL_1], please."),
            ("Call +31 20 123 4567 or (020) 123-4567.", "Call [PHONE_1] or [PHONE_2]."),
            ("Call 0049 (89) 1234-567 now", "Call [PHONE_1] now"),
            ("To NL91 ABNA 0417 1643 00, or DE89370400440532013000.", "To [IBAN_1], or [IBAN_2]."),
            ("NL91 ABNA 0417 1643 00 BY FRIDAY", "[IBAN_1] BY FRIDAY"),
            ("4111 1111 1111 1111 12/27", "[CARD_1] 12/27"),
            ("Card 4111 1111 1111 1111 and 5500-0000-0000-0004", "Card [CARD_1] and [CARD_2]"),
            ("from 192.168.0.1 and 2001:db8::1 to fe80::1", "from [IP_1] and [IP_2] to [IP_3]"),
            ("key sk-abcdefghijklmnopqrstuv and AKIAIOSFODNN7EXAMPLE", "key [SECRET_1] and [SECRET_2]"),
            ("ghp_0123456789abcdefghijklmnopqrstuvwxyz", "[SECRET_1]"),
            ("password: hunter22, api_key=\"abcdef123\"", "password: [SECRET_1], api_key=\"[SECRET_2]\""),
            (
                "postgres://ann:s3cr3t@db/x and Authorization: Bearer abcdefghijklmnop1234",
                "postgres://ann:[SECRET_1]@db/x and Authorization: Bearer [SECRET_2]",
            ),
            ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "[SECRET_1]"),
            ("ann@example.org twice: ann@example.org", "[EMAIL_1] twice: [EMAIL_1]"),
            ("the literal [EMAIL_1] and ann@example.org", "the literal [TOKEN_1] and [EMAIL_1]"),
        ] {
            let mut redactor = redactor();
            assert_eq!(redactor.redact(text), redacted);
            assert_eq!(redactor.redactions().restore(redacted), text);
        }
    }

    #[test]
    fn ordinary_text_is_left_alone() {
        for text in [
            "On 2026-11-22 at 12:30:45 version 1.2.3 of std::io::Read had 1,234,567 users.",
            "12 + 30 = 42, and 3.14159265358979 is near pi; see section 4.2.1.",
            "4111 1111 1111 1112 fails the check, and so does GB82 WEST 1234 5698 7654 33.",
            "999.1.1.1 is no address; a list [1], [2] and a[0] are no tokens.",
            "The secret of bread is time. Pass the word on.",
        ] {
            assert_eq!(redactor().redact(text), text);
        }
    }

    #[test]
    fn own_patterns_find_what_has_no_form() {
        let mut redactor = Redactor::new(&["(?i)ann lee".to_owned()], Redactions::default()).unwrap();
        assert_eq!(redactor.redact("Ann Lee met ANN LEE."), "[PRIVATE_1] met [PRIVATE_2].");
        assert_eq!(Redactor::new(&["(".to_owned()], Redactions::default()).unwrap_err().0, "(");
    }

    #[test]
    fn a_bent_token_is_told_and_a_whole_one_is_not() {
        let known = BTreeSet::from(["[EMAIL_1]".to_owned(), "[PHONE_12]".to_owned()]);
        assert!(bent_tokens(&known, "Write to [EMAIL_1], or call [PHONE_12].").is_empty());
        let bent = "Write to EMAIL_1, [email_1], [EMAIL 1] or [EMAIL_2].";
        assert_eq!(bent_tokens(&known, bent), ["EMAIL_1", "[email_1]", "[EMAIL 1]", "[EMAIL_2]"]);
        assert!(bent_tokens(&known, "Send 3 emails to phone 4; card 2 is [1].").is_empty());
    }

    /// Pieces of texts: things to be replaced, look-alikes, and signs that could join them.
    fn piece() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a-z ]{0,6}",
            "[\\[\\]_@.:/+0-9A-Z-]{1,8}",
            "\\[[A-Z]{1,7}_[0-9]{1,2}\\]",
            Just("EMAIL_1".to_owned()),
            "[a-c]{1,2}@[a-c]{1,2}\\.(nl|org)",
            "\\+31 20 [0-9]{3} [0-9]{4}",
            "(10|192)\\.0\\.[0-9]\\.[0-9]",
            "sk-[a-c]{16,18}",
            "[éß漢\u{1F600}]",
        ]
    }

    proptest! {
        #[test]
        fn every_text_comes_back_as_it_was(texts in prop::collection::vec(prop::collection::vec(piece(), 0..12), 1..5)) {
            let texts: Vec<String> = texts.into_iter().map(|pieces| pieces.concat()).collect();
            let mut redactor = Redactor::new(&["c+".to_owned()], Redactions::default()).unwrap();
            let redacted: Vec<String> = texts.iter().map(|text| redactor.redact(text)).collect();
            for (redacted, text) in redacted.iter().zip(&texts) {
                prop_assert_eq!(&redactor.redactions().restore(redacted), text);
            }
            // A table that was written down serves as well, and gives the same tokens again.
            let mut again = Redactor::new(&["c+".to_owned()], redactor.redactions().clone()).unwrap();
            for (redacted, text) in redacted.iter().zip(&texts) {
                prop_assert_eq!(&again.redact(text), redacted);
            }
        }
    }
}
