//! The canonical form of a text, and the digest that agreement compares.
//!
//! Texts that mean the same have one form. The roleset chooses which differences count ([`CanonicalKind`]); the rules
//! within a kind are fixed. Each canonicaliser is idempotent. Texts that are equal under Unicode NFC have equal
//! digests, except for `verbatim`, where every byte counts, and for the strings of `json`, which RFC 8785 leaves as they
//! are. Prose uses NFC rather than NFKC, because `x²` is not `x2`.

use caseless::Caseless;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use super::decimal::{Decimal, DecimalSign, NotANumber};
use super::escape::{self, one_line};
use super::{StrictValue, check_depth};
use crypto::{Digest, NotInteroperable, canonical_json};

/// The kind of text that the answer is, which decides the differences that do not count.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CanonicalKind {
    /// Prose: NFC, with each run of white space as one space, and trimmed.
    #[default]
    Text,
    /// Code and laid-out prose: NFC, with LF line ends, and without trailing white space or outer blank lines.
    Lines,
    /// One finite decimal number, compared exactly.
    Number,
    /// A JSON value in RFC 8785 form.
    Json,
    /// One of the roleset's `choices`: NFKC, case-folded, without outer punctuation.
    Choice,
    /// The bytes as they are.
    Verbatim,
    /// A program in Python, compared by what it does. Its text has the form of `Lines`.
    Behaviour,
}

impl CanonicalKind {
    /// Returns true if an answer of this kind may be a text of any length, which is rarely found twice in the same words.
    pub(crate) fn may_be_long(self) -> bool {
        match self {
            Self::Text | Self::Lines | Self::Verbatim => true,
            Self::Number | Self::Json | Self::Choice | Self::Behaviour => false,
        }
    }

    /// Returns the name of the kind, as rolesets write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Lines => "lines",
            Self::Number => "number",
            Self::Json => "json",
            Self::Choice => "choice",
            Self::Verbatim => "verbatim",
            Self::Behaviour => "behaviour",
        }
    }
}

/// The `canonical` section of a roleset: the kind, the choices for `choice`, and the decimal sign for `number`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CanonicalRule {
    /// The kind, which decides the differences that do not count.
    #[serde(default)]
    pub kind: CanonicalKind,
    /// The allowed answers, for [`CanonicalKind::Choice`] only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// The sign before the decimals, for [`CanonicalKind::Number`] only. Without it, decimals follow a point, and a
    /// comma that may be a decimal sign is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decimal: Option<DecimalSign>,
}

/// The rule of a kind that is given by its name alone. The decimals of a number then follow a point.
impl From<CanonicalKind> for CanonicalRule {
    fn from(kind: CanonicalKind) -> Self {
        let decimal = if kind == CanonicalKind::Number { Some(DecimalSign::Point) } else { None };
        Self { kind, choices: Vec::new(), decimal }
    }
}

impl CanonicalRule {
    /// Describes in words what a text must be.
    pub fn in_words(&self) -> String {
        match self.kind {
            CanonicalKind::Text => {
                "the complete text that the user asked for, without any comment".to_owned()
            }
            CanonicalKind::Lines => {
                "the complete code or lines that the user asked for, without any comment or code fence"
                    .to_owned()
            }
            CanonicalKind::Number => {
                let sign = self.decimal.map(|sign| format!(", decimals after a {}", sign.word()));
                format!("one number in digits{}, without unit and without words", sign.unwrap_or_default())
            }
            CanonicalKind::Json => "one JSON value, written as it is and not inside quotes".to_owned(),
            CanonicalKind::Choice => format!("exactly one of {}", self.choices.join(", ")),
            CanonicalKind::Verbatim => {
                "the complete text that the user asked for; every character counts".to_owned()
            }
            CanonicalKind::Behaviour => {
                "one complete Python program, with the imports that it needs".to_owned()
            }
        }
    }
}

/// A canonical text and its digest.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Canonical {
    /// The canonical form.
    pub text: String,
    /// The SHA-256 of its UTF-8 bytes.
    pub digest: Digest,
}

/// The reason why a text has no canonical form of the wanted kind.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
pub enum NotCanonical {
    /// The text is not one decimal number as the rule wants it.
    #[error(transparent)]
    NotANumber(#[from] NotANumber),
    /// The text is not JSON, or is JSON with repeated keys.
    #[error("it must be one JSON value: {0}")]
    NotJson(String),
    /// The text is JSON with a number that has no exact canonical form.
    #[error(transparent)]
    NotInteroperable(#[from] NotInteroperable),
    /// The text has a character that is not seen and makes it another text.
    #[error("it has the invisible character U+{:04X}; write it without", u32::from(*.0))]
    Invisible(char),
    /// The text is not one of the choices.
    #[error("it must be exactly one of: {0}")]
    NotAChoice(String),
    /// There are no choices, so no text is one of them.
    #[error(
        "an answer of kind `choice` needs `choices`, such as \"canonical\": {{\"kind\": \"choice\", \"choices\": [\"A\", \"B\"]}}"
    )]
    NoChoices,
}

/// The rules of one run, ready to apply.
#[derive(Clone, Debug)]
pub struct Canonicalizer {
    kind: CanonicalKind,
    decimal: Option<DecimalSign>,
    /// The choices, each as written and as folded.
    choices: Vec<(String, String)>,
}

impl Canonicalizer {
    /// Creates the canonicaliser for a rule.
    pub fn new(rule: &CanonicalRule) -> Self {
        let choices = rule.choices.iter().map(|c| (c.clone(), fold_choice(c))).collect();
        Self { kind: rule.kind, decimal: rule.decimal, choices }
    }

    /// Returns the kind of text that this canonicaliser takes.
    pub fn kind(&self) -> CanonicalKind {
        self.kind
    }

    /// Returns the sign before the decimals of a number, which is a point unless the rule names another.
    pub fn decimal_sign(&self) -> DecimalSign {
        self.decimal.unwrap_or(DecimalSign::Point)
    }

    /// Returns the choices as the roleset writes them; empty unless the kind is `choice`.
    pub fn choices(&self) -> impl Iterator<Item = &str> {
        self.choices.iter().map(|(written, _)| written.as_str())
    }

    /// Returns the canonical form of `text`.
    ///
    /// # Errors
    ///
    /// [`NotCanonical`] if the text is not of this kind. `text`, `lines` and `verbatim` accept every text.
    pub fn canonicalize(&self, text: &str) -> Result<Canonical, NotCanonical> {
        self.canonicalize_with(text, self.decimal)
    }

    /// Returns the canonical form of an answer that a person has recorded as the right one.
    ///
    /// A single group of thousands, as in `1,000`, is read even if the rule names no decimal sign.
    pub fn canonicalize_known(&self, text: &str) -> Result<Canonical, NotCanonical> {
        self.canonicalize_with(text, Some(self.decimal_sign()))
    }

    fn canonicalize_with(&self, text: &str, decimal: Option<DecimalSign>) -> Result<Canonical, NotCanonical> {
        let is_read = matches!(self.kind, CanonicalKind::Text | CanonicalKind::Lines | CanonicalKind::Choice);
        if is_read && let Some(hidden) = text.chars().find(|c| is_hidden(*c)) {
            return Err(NotCanonical::Invisible(hidden));
        }
        let text = match self.kind {
            CanonicalKind::Text => one_line(&to_nfc(text)),
            CanonicalKind::Lines | CanonicalKind::Behaviour => trim_lines(&to_nfc(text)),
            CanonicalKind::Number => Decimal::parse(text.trim(), decimal)?.to_text(self.decimal_sign()),
            CanonicalKind::Json => canonical_value(text)?,
            CanonicalKind::Choice => self.choose(text)?,
            CanonicalKind::Verbatim => text.to_owned(),
        };
        let digest = Digest::new(text.as_bytes());
        Ok(Canonical { text, digest })
    }

    /// Returns `text` as it is shown: without the outer characters that its kind ignores, and a choice as the roleset
    /// writes it. The shown text has the same canonical form as `text`.
    pub fn shown(&self, text: &str) -> String {
        match self.kind {
            CanonicalKind::Text | CanonicalKind::Number | CanonicalKind::Json => text.trim().to_owned(),
            CanonicalKind::Choice => {
                let folded = fold_choice(text);
                let listed = self.choices.iter().find(|(_, choice)| *choice == folded);
                listed.map_or(text, |(written, _)| written).to_owned()
            }
            CanonicalKind::Lines | CanonicalKind::Behaviour => {
                let blank = text.split_inclusive('\n').take_while(|line| line.trim().is_empty());
                let skipped: usize = blank.map(str::len).sum();
                text[skipped..].trim_end().to_owned()
            }
            CanonicalKind::Verbatim => text.to_owned(),
        }
    }

    fn choose(&self, text: &str) -> Result<String, NotCanonical> {
        let folded = fold_choice(text);
        if self.choices.iter().any(|(_, choice)| *choice == folded) {
            return Ok(folded);
        }
        if self.choices.is_empty() {
            return Err(NotCanonical::NoChoices);
        }
        Err(NotCanonical::NotAChoice(self.choices().collect::<Vec<_>>().join(", ")))
    }
}

/// Converts to NFC, and skips the work for text that is in NFC already, as almost all text is.
fn to_nfc(text: &str) -> std::borrow::Cow<'_, str> {
    match is_nfc_quick(text.chars()) {
        IsNormalized::Yes => text.into(),
        IsNormalized::No | IsNormalized::Maybe => text.nfc().collect::<String>().into(),
    }
}

fn trim_lines(text: &str) -> String {
    let unified = text.replace("\r\n", "\n").replace('\r', "\n");
    let lines: Vec<&str> = unified.split('\n').map(str::trim_end).collect();
    let Some(first) = lines.iter().position(|line| !line.is_empty()) else {
        return String::new();
    };
    let last = lines.iter().rposition(|line| !line.is_empty()).unwrap_or(first);
    lines[first..=last].join("\n")
}

fn canonical_value(text: &str) -> Result<String, NotCanonical> {
    if !check_depth(text) {
        return Err(NotCanonical::NotJson("it nests deeper than 64 levels".to_owned()));
    }
    let value: StrictValue =
        serde_json::from_str(text).map_err(|e| NotCanonical::NotJson(escape::message(&e.to_string())))?;
    Ok(canonical_json(text, &value.0)?)
}

/// Returns true for a character that shows nothing and is no part of how a language or a symbol is written.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{00AD}' | '\u{200B}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}')
}

/// Applies NFKC and default case folding, and strips everything but letters, digits and symbols from both ends.
fn fold_choice(text: &str) -> String {
    let folded: String = text.nfkc().default_case_fold().nfkc().collect();
    let trimmed = folded
        .trim_matches(|c: char| c.is_whitespace() || is_outer_punctuation(c) && !can_change_a_choice(c));
    // A choice of punctuation alone ("+", "?") is kept as it is.
    if trimmed.is_empty() { folded.trim().to_owned() } else { one_line(trimmed) }
}

fn is_outer_punctuation(c: char) -> bool {
    c.is_ascii_punctuation() && !matches!(c, '+' | '-' | '<' | '=' | '>' | '$' | '%')
        || matches!(c, '\u{2010}'..='\u{2027}' | '\u{3001}' | '\u{3002}' | '«' | '»' | '¿' | '¡')
}

/// Returns true for signs that may negate a neighbouring word or turn it into a question; a dash may be a minus.
fn can_change_a_choice(c: char) -> bool {
    matches!(c, '!' | '~' | '^' | '?' | '¿' | '\u{2010}'..='\u{2015}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of_kind(kind: CanonicalKind) -> Canonicalizer {
        Canonicalizer::new(&kind.into())
    }

    #[track_caller]
    fn check(kind: CanonicalKind, text: &str, form: &str) {
        assert_eq!(of_kind(kind).canonicalize(text).unwrap().text, form);
    }

    #[test]
    fn prose_ignores_layout_and_composition_but_not_letters() {
        check(CanonicalKind::Text, " Cafe\u{301}\r\n\u{a0}au\u{2003}lait ", "Café au lait");
        check(CanonicalKind::Text, "x²", "x²");
        check(CanonicalKind::Text, "\u{3000}", "");
    }

    #[test]
    fn lines_keep_their_indentation() {
        check(CanonicalKind::Lines, "\r\n\tif x:  \r\n    y\r\r\n", "\tif x:\n    y");
        check(CanonicalKind::Lines, " \n\t\n", "");
    }

    #[test]
    fn hidden_characters_are_refused() {
        for kind in [CanonicalKind::Text, CanonicalKind::Lines, CanonicalKind::Choice] {
            let why = of_kind(kind).canonicalize("Par\u{200b}is").unwrap_err().to_string();
            assert_eq!(why, "it has the invisible character U+200B; write it without");
        }
        // Persian and families are written with joiners.
        check(CanonicalKind::Text, "می\u{200c}خواهم 👩\u{200d}👧", "می\u{200c}خواهم 👩\u{200d}👧");
        check(CanonicalKind::Verbatim, "Par\u{200b}is", "Par\u{200b}is");
    }

    #[test]
    fn json_is_compared_by_value() {
        check(CanonicalKind::Json, "{\"b\": 2.0, \"a\": \"\\u00e9\"}", "{\"a\":\"é\",\"b\":2}");
        for bad in ["{\"a\":1,\"a\":2}", "[9007199254740993]", "nope", "1 2"] {
            assert!(of_kind(CanonicalKind::Json).canonicalize(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn choice_ignores_case_width_and_punctuation() {
        let choices = ["A", "Straße", "+", "New York"].map(String::from).to_vec();
        let rule = CanonicalRule { kind: CanonicalKind::Choice, choices, decimal: None };
        let canonicalizer = Canonicalizer::new(&rule);
        let form = |text: &str| canonicalizer.canonicalize(text).map(|c| c.text);
        for text in [" (a). ", "Ａ", "\"A\"", "A)", "**A**", "„A“", "`a`", "a:"] {
            assert_eq!(form(text).unwrap(), "a", "{text}");
        }
        assert_eq!(form("STRASSE").unwrap(), "strasse");
        assert_eq!(form("+").unwrap(), "+");
        assert_eq!(form("new  york").unwrap(), "new york");
        for bad in ["A or B", "a b", "", "Α" /* Greek alpha */, "A) Paris"] {
            assert!(form(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn negated_or_asked_choice_is_refused() {
        let choices = ["yes", "no", "5"].map(String::from).to_vec();
        let rule = CanonicalRule { kind: CanonicalKind::Choice, choices, decimal: None };
        let canonicalizer = Canonicalizer::new(&rule);
        for text in [
            "!yes", "~yes", "yes?", "(!yes)", "！yes", "～yes", "¿yes", "^no", "yes ?", "–5", "—5", "5!",
            "¬yes", "-yes", "−5",
        ] {
            let why = canonicalizer.canonicalize(text).unwrap_err();
            assert_eq!(why.to_string(), "it must be exactly one of: yes, no, 5", "{text}");
        }
    }

    /// Agents read of the decimal sign only where the rule names one.
    #[test]
    fn rule_words_name_its_decimal_sign() {
        let words =
            |decimal| CanonicalRule { decimal, ..CanonicalRule::from(CanonicalKind::Number) }.in_words();
        assert_eq!(words(None), "one number in digits, without unit and without words");
        let point = "one number in digits, decimals after a point, without unit and without words";
        assert_eq!(words(Some(DecimalSign::Point)), point);
        assert_eq!(words(Some(DecimalSign::Comma)), point.replace("point", "comma"));
    }

    #[test]
    fn rule_writes_only_stated_decimal_sign() {
        let rule: CanonicalRule = serde_json::from_str(r#"{"kind":"number"}"#).unwrap();
        assert_eq!(
            (rule.decimal, serde_json::to_string(&rule).unwrap().as_str()),
            (None, r#"{"kind":"number"}"#)
        );
        let rule: CanonicalRule = serde_json::from_str(r#"{"kind":"number","decimal":","}"#).unwrap();
        assert_eq!(rule.decimal, Some(DecimalSign::Comma));
        assert_eq!(serde_json::to_string(&rule).unwrap(), r#"{"kind":"number","decimal":","}"#);
        assert!(serde_json::from_str::<CanonicalRule>(r#"{"kind":"number","decimal":";"}"#).is_err());
    }

    fn any_kind() -> impl Strategy<Value = CanonicalKind> {
        use CanonicalKind::{Lines, Text, Verbatim};
        prop::sample::select(vec![Text, Lines, Verbatim])
    }

    /// Text that is rich in what canonicalisation changes: marks, spaces, line ends and Hangul.
    const RICH: &str = "[a-zé\u{301}\u{327}\u{1100}\u{1161}\u{11a8}\u{212b} \\t\\r\\n\u{a0}\u{85}²ﬁ]{0,40}";

    proptest! {
        #[test]
        fn canonicalising_twice_changes_nothing(kind in any_kind(), text in RICH) {
            let canonicalizer = of_kind(kind);
            let once = canonicalizer.canonicalize(&text).unwrap();
            prop_assert_eq!(canonicalizer.canonicalize(&once.text).unwrap(), once);
        }

        #[test]
        fn what_is_shown_has_the_same_canonical_form(kind in any_kind(), text in RICH) {
            let canonicalizer = of_kind(kind);
            let shown = canonicalizer.shown(&text);
            prop_assert_eq!(canonicalizer.canonicalize(&shown), canonicalizer.canonicalize(&text));
        }

        #[test]
        fn nfc_equal_inputs_have_equal_digests(text in RICH) {
            let (composed, decomposed): (String, String) = (text.nfc().collect(), text.nfd().collect());
            for kind in [CanonicalKind::Text, CanonicalKind::Lines] {
                let canonicalizer = of_kind(kind);
                let digest = |t: &str| canonicalizer.canonicalize(t).unwrap().digest;
                prop_assert_eq!(digest(&composed), digest(&decomposed));
                prop_assert_eq!(digest(&composed), digest(&text));
            }
        }

        #[test]
        fn choice_folding_is_idempotent(text in "\\PC{0,12}") {
            let once = fold_choice(&text);
            prop_assert_eq!(fold_choice(&once), once);
        }

        #[test]
        fn no_text_makes_a_canonicaliser_panic(text in any::<String>()) {
            use CanonicalKind::{Choice, Json, Lines, Number, Text, Verbatim};
            for kind in [Text, Lines, Number, Json, Choice, Verbatim] {
                let _ = of_kind(kind).canonicalize(&text);
            }
        }
    }
}
