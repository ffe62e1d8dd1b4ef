//! Secrets beside a word that says that they are secret: a password by its name, a cookie, a PIN.
//!
//! The input is a folded text. The output is places in it. Each form is searched for separately, so one that fails late
//! is not tried again after each match of another. A value of any length is measured by code that passes each byte
//! once. The time is therefore linear in the text, whatever its content.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::places::{compile_forms, find_forms, regex};

/// A name that marks its value as secret, up to the value. `password` is also listed in the languages of Europe and
/// East Asia.
const NAME: &str = r#"(?xi)
    (?: passwor[dt] | passwd | passphrase | passcode | (?:(?-u:\b)|[a-z]_)pass | pwd | (?-u:\b)pw | secret | (?-i:[A-Z]_KEY)
      | (?:secret|private|account|api|access|auth|signing|encryption)[\ _-]?key | token
      | mot\ de\ passe | contraseña | contrasenya | (?-u:\b)senha | kennwort | wachtwoord | lösenord | adgangskode | salasana
      | (?-u:\b)has[łl]o | parola | (?-u:\b)jelszó | şifre | парол[ья] | κωδικός | 密码 | 密碼 | 口令 | パスワード | 비밀번호 )
    (?: ["']?\s*(?: := | => | [:=] )\s* | ["']?> )"#;

/// A sentence that gives a password, up to the password.
const SPOKEN: &str =
    r#"(?i)(?:passw?(?:ord|code|phrase|ort)\s+(?:is|ist)|mot de passe\s+est|contraseña\s+es)\s+["']?"#;

/// Pairs of the characters that each text with such a secret contains, and its form, whose group `part` is the secret.
const SHAPES: [(&str, &str); 6] = [
    // The words of a phrase, up to the end of the line or of the clause.
    (
        "",
        r#"(?i)(?:pass[ _-]?phrase|(?:recovery|seed|backup)[ _-]?phrase|mnemonic)["']?\s*(?:=>|:=|[:=]|(?-u:\b)is(?-u:\b))\s*["']?(?<part>\pL+(?:[ -]\pL+){2,24})"#,
    ),
    ("", r#"(?i)passwor[dt]["']?\s*[:=]\s*["']?(?<part>[a-z]{3,}(?:[ -][a-z]{3,}){3,7})["']?\s*(?:\n|\z)"#),
    (
        "",
        r#"(?i)(?-u:\b)(?:pin|cvv|cvc|otp)(?:[ -]?code)?["']?\s*(?:=>|:=|[:=]|(?-u:\b)is(?-u:\b))\s*["']?(?<part>[0-9]{3,8})(?-u:\b)"#,
    ),
    (
        "ookie",
        r#"(?i)(?-u:\b)(?:set-)?cookie["']?\s*[:=]\s*["']?(?<part>[\w.-]+=[^\s"';]+(?: *; *[^\n"']+)?)"#,
    ),
    ("machine", r"(?-u:\b)machine\s+\S+\s+login\s+\S+\s+password\s+(?<part>\S+)"),
    ("login", r"(?-u:\b)login\s+\S+\s+password\s+(?<part>\S+)"),
];

/// A flag with a secret, up to the secret.
const FLAG: &str = r"(?i)--[a-z-]*(?:password|token|secret|key)\s+";

/// The fewest characters of a secret without quotes.
const BARE_MIN: usize = 5;

/// The fewest characters of a secret in quotes.
const QUOTED_MIN: usize = 3;

/// Values that are words of a form, and so are not secret.
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

/// The length of the longest of these words, in bytes.
const WORD_MAX: usize = 9;

/// Returns the places of values beside a word that marks them as secret.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    static NAMES: LazyLock<Regex> = LazyLock::new(|| regex(NAME));
    static FORMS: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(|| compile_forms(&SHAPES));
    let mut found = Vec::new();
    let (mut at, mut run_end) = (0, 0);
    while let Some(name) = NAMES.find_at(text, at) {
        let start = name.end();
        let place = match text.as_bytes().get(start) {
            Some(quote @ (b'"' | b'\'')) => quoted_value(text, start + 1, char::from(*quote)),
            _ => bare_value(text, start, name.as_str().ends_with(":="), &mut run_end),
        };
        // A refused value may contain a name with a value of its own.
        at = start;
        if let Some(place) = place.filter(|place| is_value(&text[place.clone()])) {
            at = place.end;
            found.push(place);
        }
    }
    found.extend(spoken_passwords(text));
    found.extend(flag_values(text));
    found.extend(find_forms(&FORMS, text));
    found
}

/// Returns the place of a value in quotes, without the quotes. The value ends on its line.
fn quoted_value(text: &str, start: usize, quote: char) -> Option<Range<usize>> {
    let mut count = 0;
    let mut rest = text[start..].char_indices();
    while let Some((at, c)) = rest.next() {
        match c {
            '\n' => return None,
            '\\' => {
                rest.next().filter(|(_, escaped)| *escaped != '\n')?;
                count += 1;
            }
            c if c == quote && count >= QUOTED_MIN => return Some(start..start + at),
            c if c == quote => return None,
            _ => count += 1,
        }
    }
    None
}

/// Returns the place of a value without quotes. `run_end` is the end of the last one, so that a value is not measured
/// again for each name inside it.
fn bare_value(text: &str, start: usize, is_assigned: bool, run_end: &mut usize) -> Option<Range<usize>> {
    if start >= *run_end {
        let end = text[start..].find(|c: char| c.is_whitespace() || "\"'<>,;".contains(c));
        *run_end = end.map_or(text.len(), |length| start + length);
    }
    let count = text[start..*run_end].chars().take(BARE_MIN).count();
    // The second half of `:=` may belong to the value.
    let start = if is_assigned && count == BARE_MIN - 1 { start - 1 } else { start };
    if text[start..*run_end].chars().take(BARE_MIN).count() < BARE_MIN {
        return None;
    }
    Some(start..*run_end)
}

/// Returns the places of passwords that a sentence gives. They have a letter and a digit, so that `is simple` is not
/// taken for one.
fn spoken_passwords(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    static FORM: LazyLock<Regex> = LazyLock::new(|| regex(SPOKEN));
    FORM.find_iter(text).filter_map(|sentence| {
        let start = sentence.end();
        let rest = &text[start..];
        let length = rest.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'')).unwrap_or(rest.len());
        let value = rest[..length].trim_end_matches(['.', ',', ';', '!', '?']);
        let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
        let has_both = has_digit && value.chars().any(char::is_alphabetic);
        if has_both && is_value(value) { Some(start..start + value.len()) } else { None }
    })
}

/// Returns the places of the values after flags such as `--password`.
fn flag_values(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    static FORM: LazyLock<Regex> = LazyLock::new(|| regex(FLAG));
    FORM.find_iter(text).filter_map(|flag| {
        let start = flag.end();
        let rest = &text[start..];
        let value = &rest[..rest.find(char::is_whitespace).unwrap_or(rest.len())];
        let is_long = value.chars().take(BARE_MIN).count() == BARE_MIN;
        let is_secret = is_long && !value.starts_with('-') && is_value(value);
        if is_secret { Some(start..start + value.len()) } else { None }
    })
}

/// Returns true if a text beside a word such as `password` is neither a word of a form nor a piece of a program.
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
        find(text).into_iter().map(|place| &text[place]).collect()
    }

    #[test]
    fn a_refused_value_hides_no_other() {
        assert_eq!(values("token=password=hunter22()"), Vec::<&str>::new());
        assert_eq!(values("token = getpass() password=hunter22"), ["hunter22"]);
        assert_eq!(values("pw:=abcd pw := 'x y z' pw => abcde"), ["=abcd", "x y z", "abcde"]);
        assert_eq!(values("--token none --key abcde --secret -abcde"), ["abcde"]);
        assert_eq!(values("secret: none... secret: None! secret: nonesuch"), ["nonesuch"]);
    }

    /// No word of a form is longer than the part of a text that is looked at.
    #[test]
    fn longest_word_equals_word_max() {
        assert_eq!(WORDS.iter().map(|word| word.len()).max(), Some(WORD_MAX));
    }
}
