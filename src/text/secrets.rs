//! Secrets: keys by their known beginnings, and what stands beside a word that says that it is secret.
//!
//! In: a folded text. Out: places in it. Each form is searched for by itself, so that one that fails late is not tried
//! again after each match of another. A value of any length is measured by code that passes each byte once. The time is
//! therefore linear in the text, whatever it says.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// A form of a key: what every text with one contains, and the form, of which the group `part`, if there is one, is
/// the secret.
const KEYS: [(&str, &str); 9] = [
    // Private keys, also if only their beginning is there.
    (
        "-----BEGIN ",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:(?s:.)*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|(?s:.)*)",
    ),
    // Lines from the middle of one.
    ("", r"(?:^|\s)(?:[A-Za-z0-9+/=]{60,76}\s+){2,}[A-Za-z0-9+/=]*"),
    (
        "",
        r"(?x) (?-u:\b)(?: sk-[A-Za-z0-9_-]{16,} | [sr]k_(?:live|test)_[A-Za-z0-9]{10,} | gh[pousr]_[A-Za-z0-9]{30,}
        | github_pat_[A-Za-z0-9_]{22,} | glpat-[A-Za-z0-9_-]{20,} | xox[a-z]-[A-Za-z0-9-]{10,}
        | A[KS]IA[0-9A-Z]{16} | AIza[0-9A-Za-z_-]{35} | GOCSPX-[A-Za-z0-9_-]{20,} | ya29\.[A-Za-z0-9_-]{10,}
        | hf_[A-Za-z0-9]{30,} | npm_[A-Za-z0-9]{36} | pypi-[A-Za-z0-9_-]{50,} | gsk_[A-Za-z0-9]{20,}
        | dop_v1_[a-f0-9]{40,} | whsec_[A-Za-z0-9+/=]{16,} )",
    ),
    (":AA", r"(?-u:\b)[0-9]{8,10}:AA[A-Za-z0-9_-]{30,}"),
    ("eyJ", r"(?-u:\b)eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    ("SG.", r"(?-u:\b)SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("://", r"[a-zA-Z]://[^\s/:@]*:(?<part>[^\s/]+)@"),
    (
        "",
        r#"(?i:(?-u:\b)(?:bearer|basic|authorization["']?\s*[:=]\s*["']?[a-z]+))\s+(?<part>[A-Za-z0-9._~+/-]{16,}=*)"#,
    ),
    ("curl", r#"(?-u:\b)curl\s[^\n]*?(?:-u|--user)[ =]["']?[^\s:]+:(?<part>[^\s"']+)"#),
];

/// A name that says that its value is secret, up to the value.
const NAME: &str = r#"(?xi)
    (?: passwor[dt] | passwd | passphrase | passcode | (?:(?-u:\b)|[a-z]_)pass | pwd | (?-u:\b)pw | secret | (?-i:[A-Z]_KEY)
      | (?:secret|private|account|api|access|auth|signing|encryption)[\ _-]?key | token )
    (?: ["']?\s*(?: := | => | [:=] )\s* | ["']?> )"#;

/// A sentence that tells a password, up to the password.
const SPOKEN: &str = r#"(?i)passw?(?:ord|code|phrase)\s+is\s+["']?"#;

/// A flag with a secret, up to the secret.
const FLAG: &str = r"(?i)--[a-z-]*(?:password|token|secret|key)\s+";

/// The fewest characters of a secret that nothing quotes.
const BARE_MIN: usize = 5;

/// The fewest characters of one in quotes.
const QUOTED_MIN: usize = 3;

/// Values that are words of a form.
const WORDS: [&str; 13] = [
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

/// The longest of them.
const WORD_MAX: usize = 9;

fn regex(form: &str) -> Regex {
    Regex::new(form).expect("the forms are constants, and a test uses each")
}

/// Returns keys, also those of which only a part is there.
pub(super) fn keys(text: &str) -> Vec<Range<usize>> {
    static FORMS: LazyLock<Vec<(&str, Regex)>> =
        LazyLock::new(|| KEYS.map(|(hint, form)| (hint, regex(form))).into());
    let mut found: Vec<_> = torn_key(text).into_iter().collect();
    for (_, form) in FORMS.iter().filter(|(hint, _)| text.contains(hint)) {
        if form.captures_len() == 1 {
            found.extend(form.find_iter(text).map(|place| place.range()));
        } else {
            let parts = form.captures_iter(text).filter_map(|captures| captures.name("part"));
            found.extend(parts.map(|part| part.range()));
        }
    }
    found
}

/// Returns where the rest of a private key stands whose beginning is in an earlier part of the text.
fn torn_key(text: &str) -> Option<Range<usize>> {
    static END: LazyLock<Regex> = LazyLock::new(|| regex("-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"));
    let end = END.find(text)?;
    let has_begun = text[..end.start()].contains("-----BEGIN ");
    (!has_begun).then(|| 0..end.end())
}

/// Returns what stands beside a word that says that it is secret.
pub(super) fn named(text: &str) -> Vec<Range<usize>> {
    static NAMES: LazyLock<Regex> = LazyLock::new(|| regex(NAME));
    let mut found = Vec::new();
    let (mut at, mut run_end) = (0, 0);
    while let Some(name) = NAMES.find_at(text, at) {
        let start = name.end();
        let place = match text.as_bytes().get(start) {
            Some(quote @ (b'"' | b'\'')) => quoted(text, start + 1, char::from(*quote)),
            _ => bare(text, start, name.as_str().ends_with(":="), &mut run_end),
        };
        // A value that is refused may hold a name with a value of its own.
        at = start;
        if let Some(place) = place.filter(|place| is_value(&text[place.clone()])) {
            at = place.end;
            found.push(place);
        }
    }
    found.extend(spoken(text));
    found.extend(flags(text));
    found
}

/// Returns a value in quotes, without them; it ends in its line.
fn quoted(text: &str, start: usize, quote: char) -> Option<Range<usize>> {
    let mut count = 0;
    let mut rest = text[start..].char_indices();
    while let Some((at, c)) = rest.next() {
        match c {
            '\n' => return None,
            '\\' => {
                rest.next().filter(|(_, escaped)| *escaped != '\n')?;
                count += 1;
            }
            c if c == quote => return (count >= QUOTED_MIN).then_some(start..start + at),
            _ => count += 1,
        }
    }
    None
}

/// Returns a value without quotes. `run_end` is where the last one ended, so that names inside of one do not have it
/// measured again and again.
fn bare(text: &str, start: usize, is_assigned: bool, run_end: &mut usize) -> Option<Range<usize>> {
    if start >= *run_end {
        let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | ',' | ';');
        *run_end = text[start..].find(is_end).map_or(text.len(), |length| start + length);
    }
    let count = text[start..*run_end].chars().take(BARE_MIN).count();
    // Of `:=` the second half may be the value's own.
    let start = if is_assigned && count == BARE_MIN - 1 { start - 1 } else { start };
    (text[start..*run_end].chars().take(BARE_MIN).count() == BARE_MIN).then_some(start..*run_end)
}

/// Returns passwords that a sentence tells: they have a digit, so that `is simple` is not taken for one.
fn spoken(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    static FORM: LazyLock<Regex> = LazyLock::new(|| regex(SPOKEN));
    FORM.find_iter(text).filter_map(|told| {
        let rest = &text[told.end()..];
        let length = rest.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'')).unwrap_or(rest.len());
        let value = rest[..length].trim_end_matches(['.', ',', ';', '!', '?']);
        let (last, _) = value.char_indices().next_back()?;
        let has_digit = value[..last].bytes().any(|byte| byte.is_ascii_digit());
        (has_digit && is_value(value)).then(|| told.end()..told.end() + value.len())
    })
}

/// Returns what follows flags such as `--password`.
fn flags(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    static FORM: LazyLock<Regex> = LazyLock::new(|| regex(FLAG));
    FORM.find_iter(text).filter_map(|flag| {
        let rest = &text[flag.end()..];
        let value = &rest[..rest.find(char::is_whitespace).unwrap_or(rest.len())];
        let is_long = value.chars().take(BARE_MIN).count() == BARE_MIN;
        (is_long && !value.starts_with('-') && is_value(value)).then(|| flag.end()..flag.end() + value.len())
    })
}

/// Whether a text beside a word such as `password` is neither a word of a form nor a piece of a program.
fn is_value(text: &str) -> bool {
    if text.ends_with(['(', ')']) {
        return false;
    }
    let word = text.trim_end_matches(['.', '!', '?']);
    word.len() > WORD_MAX || !WORDS.iter().any(|known| known.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<&str> {
        named(text).into_iter().map(|place| &text[place]).collect()
    }

    #[test]
    fn a_refused_value_hides_no_other() {
        assert_eq!(values("token=password=hunter22()"), Vec::<&str>::new());
        assert_eq!(values("token = getpass() password=hunter22"), ["hunter22"]);
        assert_eq!(values("pw:=abcd pw := 'x y z' pw => abcde"), ["=abcd", "x y z", "abcde"]);
        assert_eq!(values("--token none --key abcde --secret -abcde"), ["abcde"]);
        assert_eq!(values("secret: none... secret: None! secret: nonesuch"), ["nonesuch"]);
    }

    #[test]
    fn words_of_forms_are_no_longer_than_is_looked_at() {
        assert_eq!(WORDS.iter().map(|word| word.len()).max(), Some(WORD_MAX));
    }
}
