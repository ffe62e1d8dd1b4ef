//! A text as its sentences and its blocks of code, with the kind of each word: a number, a name, a negation.
//!
//! The input is prose, often with Markdown, as a model writes it. The output is a [`TextReading`], by which two texts are compared.
//! Nothing is looked up in a dictionary: a kind follows from digits, capitals, the place in a sentence, and short lists of words. A word
//! that might be two things is a plain word. Every step is linear in the length of the text. The sentences of UAX #29 are not used, because
//! their rule SB8 looks ahead from each closing mark, and a row of such marks would take quadratic time.

mod kinds;

use std::borrow::Cow;
use std::collections::BTreeSet;

use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

use super::decimal::{Decimal, DecimalSign};

pub(super) use kinds::is_negation;

use kinds::{
    Polarity, germanness, is_abbreviation, is_common, is_conjunction, is_german_month, is_ordinal_ending,
    is_percent, number_in_words, polarity, scale,
};

/// The longest number of an item in a list, in digits.
const MARKER_DIGITS_MAX: usize = 3;

/// The longest number to which the next word is joined, in bytes.
const JOINED_BYTES_MAX: usize = 40;

/// The most words of a label, as in `Key Point: …`.
const LABEL_WORDS_MAX: usize = 6;

/// The signs in a line after which any word may have a capital.
const OPENING_SIGNS: [char; 12] = [':', ';', '|', '(', '[', '"', '“', '„', '«', '‘', '–', '—'];

/// The signs before a word that begin another clause.
const CLAUSE_SIGNS: [char; 7] = [',', ';', ':', '(', ')', '–', '—'];

/// A text, taken apart.
#[derive(Debug, Default)]
pub(crate) struct TextReading {
    pub(super) sentences: Vec<Sentence>,
    /// The contents of the fenced blocks, without the blanks at the ends of their lines.
    pub(super) code: Vec<String>,
    /// The spans of code inside of lines, each once.
    pub(super) spans: BTreeSet<String>,
}

/// A sentence, a heading, or an item of a list.
#[derive(Debug, Default)]
pub(super) struct Sentence {
    pub(super) text: String,
    pub(super) words: Vec<Word>,
    /// The answer with which it begins, as in "No, it is safe." With a sign behind it, such a word does not negate the rest.
    pub(super) answer: Option<Polarity>,
}

/// A word, or a number with its sign.
#[derive(Debug)]
pub(super) struct Word {
    /// The word as it is written.
    pub(super) written: String,
    /// The form in which it is compared: small letters, or a number in plain notation, with `%` behind a percentage.
    pub(super) form: String,
    pub(super) kind: WordKind,
    /// Whether a negation before it ends here, because another clause begins.
    pub(super) begins_clause: bool,
}

/// The kind of a word.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum WordKind {
    Number,
    Name,
    /// A word with a capital at a place where any word may have one. It is a name if it is a name elsewhere.
    Opening,
    Negation,
    /// A word that is in almost every text, such as an article.
    Common,
    Plain,
}

/// A fenced block whose end has not been found yet.
struct OpenBlock<'a> {
    /// The marks that begin it. As many end it.
    mark: &'a str,
    lines: Vec<&'a str>,
}

impl TextReading {
    /// Takes a text for one block of code, of which every character counts.
    pub(crate) fn of_code(text: &str) -> Self {
        Self { code: vec![text.to_owned()], ..Self::default() }
    }

    /// Takes prose apart.
    pub(crate) fn of_prose(text: &str) -> Self {
        let mut reading = Self::default();
        let has_lines = text.trim().contains('\n');
        let mut block: Option<OpenBlock<'_>> = None;
        for line in text.lines() {
            if let Some(open) = &mut block {
                if open.is_closed_by(line) {
                    reading.code.extend(block.take().map(OpenBlock::into_text));
                } else {
                    open.lines.push(line.trim_end());
                }
            } else if let Some(mark) = fence(line) {
                block = Some(OpenBlock { mark, lines: Vec::new() });
            } else {
                read_line(&normalise(line), has_lines, &mut reading.sentences);
                reading.spans.extend(code_spans(line));
            }
        }
        reading.code.extend(block.map(OpenBlock::into_text));
        reading.spare_german_nouns();
        reading
    }

    /// Returns the words of all sentences.
    pub(super) fn words(&self) -> impl Iterator<Item = &Word> {
        self.sentences.iter().flat_map(|sentence| &sentence.words)
    }

    /// Returns the forms of the names that are names by their places.
    pub(super) fn names(&self) -> BTreeSet<&str> {
        self.words().filter(|word| word.kind == WordKind::Name).map(|word| word.form.as_str()).collect()
    }

    /// Takes the names of a German text for plain words, because every noun has a capital there. A capital inside a word still
    /// makes a name.
    fn spare_german_nouns(&mut self) {
        let common = self.words().filter(|word| word.kind == WordKind::Common);
        if common.map(|word| germanness(&word.form)).sum::<i64>() <= 0 {
            return;
        }
        for word in self.sentences.iter_mut().flat_map(|sentence| &mut sentence.words) {
            if word.kind == WordKind::Name && !has_inner_capital(&word.written) {
                word.kind = WordKind::Plain;
            }
        }
    }
}

impl OpenBlock<'_> {
    fn is_closed_by(&self, line: &str) -> bool {
        let line = line.trim();
        line.starts_with(self.mark) && line.trim_start_matches(&self.mark[..1]).is_empty()
    }

    fn into_text(self) -> String {
        self.lines.join("\n").trim_end().to_owned()
    }
}

impl Sentence {
    /// Adds a word. `gap` is the text before it, back to the last word, and `rest` is the text behind it in its line.
    fn push(&mut self, gap: &str, written: &str, rest: &str, is_opening: bool) {
        let form = fold(written);
        if let Some(last) = self.words.last_mut()
            && let Some(number) = last.joined_number(gap, written, &form)
        {
            last.form = number;
            last.written.push_str(gap);
            last.written.push_str(written);
            return;
        }
        let place = self.words.len();
        if written.starts_with(|c: char| c.is_ascii_digit()) {
            self.push_digits(gap, written, rest);
        } else if let Some(number) = number_in_words(&form) {
            self.words.push(Word::new(written, number.to_string(), WordKind::Number));
        } else {
            self.push_word(written, &form, rest, is_opening);
        }
        self.words[place].begins_clause = gap.contains(CLAUSE_SIGNS) || is_conjunction(&form);
    }

    /// Adds a word that is no number.
    fn push_word(&mut self, written: &str, form: &str, rest: &str, is_opening: bool) {
        let answer = if self.words.is_empty() { polarity(form) } else { None };
        self.answer = self.answer.or(answer);
        // "US" is a name, and "us" is a common word.
        let is_marked = !is_opening && has_inner_capital(written);
        let kind = if answer.is_some() && is_cut_off(rest) {
            WordKind::Common
        } else if is_negation(form) {
            WordKind::Negation
        } else if !is_marked && is_common(form) {
            WordKind::Common
        } else if !written.contains(char::is_uppercase) {
            WordKind::Plain
        } else if is_opening {
            WordKind::Opening
        } else {
            WordKind::Name
        };
        self.words.push(Word::new(written, form.to_owned(), kind));
    }

    /// Adds a word that begins with digits: a number, and the unit that is written with it, as in `5km`.
    fn push_digits(&mut self, gap: &str, written: &str, rest: &str) {
        let end = written.find(|c: char| !c.is_ascii_digit() && !".,".contains(c)).unwrap_or(written.len());
        let (digits, unit) = written.split_at(end);
        let digits = digits.trim_end_matches(['.', ',']);
        let sign = if self.has_minus(gap) { "-" } else { "" };
        let mark = if unit.is_empty() && rest.trim_start().starts_with('%') { "%" } else { "" };
        let form = format!("{sign}{}{mark}", plain_number(digits));
        self.words.push(Word::new(&format!("{sign}{digits}{mark}"), form, WordKind::Number));
        if !unit.is_empty() && !is_ordinal_ending(unit) {
            self.words.push(Word::new(unit, fold(unit), WordKind::Plain));
        }
    }

    /// Returns true if the text before a number ends with a minus sign. A hyphen right behind a word is a hyphen.
    fn has_minus(&self, gap: &str) -> bool {
        let before = gap.strip_suffix(['-', '−']);
        before.is_some_and(|before| !before.ends_with('-') && (self.words.is_empty() || !before.is_empty()))
    }
}

impl Word {
    fn new(written: &str, form: String, kind: WordKind) -> Self {
        Self { written: written.to_owned(), form, kind, begins_clause: false }
    }

    /// Returns the number that this number and the next word are together: `3 million`, `50 percent`, `twenty-one`, `299 792`.
    fn joined_number(&self, gap: &str, written: &str, form: &str) -> Option<String> {
        let is_near = gap == " " || gap == "-";
        if self.kind != WordKind::Number || !is_near || self.written.len() > JOINED_BYTES_MAX {
            return None;
        }
        if let Some(zeros) = scale(form) {
            let number = Decimal::parse(&format!("{}e{zeros}", self.form), Some(DecimalSign::Point));
            return Some(number.ok()?.to_string());
        }
        if is_percent(form) {
            return Some(format!("{}%", self.form));
        }
        let unit = if form == "one" { Some(1) } else { number_in_words(form) };
        if let Some(tens) = number_in_words(&fold(&self.written))
            && let Some(unit) = unit
            && tens >= 20
            && (1..10).contains(&unit)
        {
            return Some((tens + unit).to_string());
        }
        let is_grouped =
            gap == " " && written.len() == 3 && self.written.split(' ').all(is_group) && is_group(written);
        if is_grouped { Some(format!("{}{written}", self.form)) } else { None }
    }
}

/// Reads a line of prose, and adds its sentences.
fn read_line(line: &str, has_lines: bool, sentences: &mut Vec<Sentence>) {
    let title = if has_lines && is_title(line) { line.len() } else { label_bytes(line) };
    let mut open = Sentence::default();
    let (mut begin, mut end) = (0, 0);
    for (at, word) in line.unicode_word_indices() {
        let (gap, rest) = (&line[end..at], &line[at + word.len()..]);
        if let Some(last) = open.words.last()
            && ends_sentence(&last.written, gap, word)
        {
            line[begin..at].trim().clone_into(&mut open.text);
            sentences.push(std::mem::take(&mut open));
            begin = at;
        }
        let is_marker = end == 0 && has_lines && is_list_marker(word, rest);
        if !is_marker {
            let begins = open.words.is_empty() || gap.contains(OPENING_SIGNS) || gap.contains(" - ");
            let is_opening = at < title || begins && !has_inner_capital(word);
            open.push(gap, word, rest, is_opening);
        }
        end = at + word.len();
    }
    if !open.words.is_empty() {
        line[begin..].trim().clone_into(&mut open.text);
        sentences.push(open);
    }
}

/// Returns true if a comma, a dash or another sign follows a word, or nothing at all. A hyphen right behind it is part of a word.
fn is_cut_off(rest: &str) -> bool {
    let next = rest.trim_start_matches([' ', '*', '_', '"', '”', ')']);
    next.is_empty() || rest.starts_with(" -") || next.starts_with([',', '.', ';', ':', '!', '–', '—'])
}

/// Returns true if a sentence ends in the text between two words.
fn ends_sentence(last: &str, gap: &str, next: &str) -> bool {
    if gap.contains('。') {
        return true;
    }
    let is_date = is_group(last) && is_german_month(&fold(next));
    if is_date || next.starts_with(char::is_lowercase) {
        return false;
    }
    if gap.contains(['!', '?']) {
        return true;
    }
    let is_initial = last.len() == 1 && last.starts_with(char::is_uppercase);
    let is_followed = gap.split_once('.').is_some_and(|split| split.1.contains(char::is_whitespace));
    is_followed && !is_initial && !is_abbreviation(&fold(last))
}

/// Returns true for a line that is a heading: marked as one, wholly in bold, in capitals, or in title case without a mark at its end.
fn is_title(line: &str) -> bool {
    let line = line.trim();
    let bold = line
        .trim_end_matches(':')
        .strip_prefix("**")
        .and_then(|rest| rest.trim_end_matches(':').strip_suffix("**"));
    let is_bold = bold.is_some_and(|inner| !inner.contains("**"));
    let is_shouted = !line.contains(char::is_lowercase);
    let is_open = !line.ends_with(['.', '!', '?', ';', ',']);
    line.starts_with('#') || is_bold || is_shouted || is_open && is_title_case(line)
}

/// Returns true if every word of a text that is not very common begins with a capital or a digit.
fn is_title_case(text: &str) -> bool {
    text.unicode_words().all(|word| !word.starts_with(char::is_lowercase) || is_common(&fold(word)))
}

/// Returns the length of the label at the beginning of a line, as in `1. **Key Point**: …`, or 0 without one.
fn label_bytes(line: &str) -> usize {
    let Some(end) = line.find([':', '–', '—']) else { return 0 };
    let label = &line[..end];
    if label.unicode_words().nth(LABEL_WORDS_MAX).is_none() && is_title_case(label) { end } else { 0 }
}

/// Returns true if the first word of a line is the number of an item in a list.
fn is_list_marker(word: &str, rest: &str) -> bool {
    let is_number = word.len() <= MARKER_DIGITS_MAX && word.bytes().all(|byte| byte.is_ascii_digit());
    is_number && rest.starts_with([')', '.']) && !rest[1..].starts_with(|c: char| c.is_alphanumeric())
}

/// Returns the text between two backticks, and between the next two, and so on.
fn code_spans(line: &str) -> impl Iterator<Item = String> {
    let parts: Vec<&str> = line.split('`').collect();
    let closed = parts.len().saturating_sub(1);
    (1..closed).step_by(2).map(move |at| parts[at].trim().to_owned()).filter(|span| !span.is_empty())
}

/// Returns the marks that begin a fenced block, if a line does.
fn fence(line: &str) -> Option<&str> {
    let line = line.trim();
    let rest = line.trim_start_matches('`');
    let rest = if rest.len() == line.len() { line.trim_start_matches('~') } else { rest };
    let mark = &line[..line.len() - rest.len()];
    // Backticks behind it close a span of code in one line.
    if mark.len() >= 3 && !rest.contains('`') { Some(mark) } else { None }
}

/// Returns a line in NFKC, with straight apostrophes and plain hyphens, and with `^` before raised digits, so that 10² is not 102.
fn normalise(line: &str) -> Cow<'_, str> {
    if line.is_ascii() {
        return line.into();
    }
    let mut spread = String::with_capacity(line.len());
    let mut was_raised = false;
    for c in line.chars() {
        let is_raised = matches!(c, '²' | '³' | '¹' | '⁰'..='⁻');
        if is_raised && !was_raised {
            spread.push('^');
        }
        was_raised = is_raised;
        spread.push(match c {
            '’' => '\'',
            '\u{2010}' | '\u{2011}' => '-',
            c => c,
        });
    }
    spread.nfkc().collect::<String>().into()
}

/// Returns true for a word in capitals, or with a capital behind its first letter, as in `iPhone`.
pub(super) fn has_inner_capital(word: &str) -> bool {
    word.chars().skip(1).any(char::is_uppercase)
}

/// Returns the form of a word in which it is compared: in small letters, without a possessive `'s`, and without points.
fn fold(word: &str) -> String {
    let lower = word.to_lowercase();
    lower.strip_suffix("'s").unwrap_or(&lower).replace('.', "")
}

/// Returns a number in plain notation, or as it is written if it is no decimal number, as the version 1.2.3.
///
/// A sign between digits is read in the English way if it can be: 1,000 is a thousand, and 1.000 is one.
fn plain_number(digits: &str) -> String {
    let signs = [DecimalSign::Point, DecimalSign::Comma];
    let number = signs.into_iter().find_map(|sign| Decimal::parse(digits, Some(sign)).ok());
    number.map_or_else(|| digits.to_owned(), |number| number.to_string())
}

/// Returns true for at most three digits.
fn is_group(text: &str) -> bool {
    text.len() <= 3 && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the sentences of a text, each as its words with the letter of their kind.
    fn kinds(text: &str) -> Vec<String> {
        let letter = |word: &Word| match word.kind {
            WordKind::Number => '#',
            WordKind::Name => 'N',
            WordKind::Opening => 'O',
            WordKind::Negation => '-',
            WordKind::Common => '.',
            WordKind::Plain => 'p',
        };
        let reading = TextReading::of_prose(text);
        let words = |sentence: &Sentence| {
            let words: Vec<String> =
                sentence.words.iter().map(|word| format!("{}{}", word.form, letter(word))).collect();
            words.join(" ")
        };
        reading.sentences.iter().map(words).collect()
    }

    #[test]
    fn words_have_kinds() {
        for (text, expected) in [
            ("Rain isn't in New York's NASA.", &["rainO isn't- in. newN yorkN nasaN"][..]),
            ("Dr. J. Doe left. He wrote \u{201c}Rain\u{201d}.", &["drO jN doeN leftp", "he. wrotep rainO"]),
            ("It fell -3.50 °C (10% in the 1990s)!", &["it. fellp -3.5# cN 10%# in. the. 1990#"]),
            ("NASA is NOT in the US, it says.", &["nasaN is. not- in. the. usN it. saysp"]),
            ("A 5km walk, e.g. am 1. Mai", &["a. 5# kmp walkp egp am. 1# maiN"]),
            ("one\n2) two\n3.5 three", &["one.", "2#", "3.5# 3#"]),
            ("**Big Words**\n# And These\nNot So.", &["bigO wordsO", "and. these.", "not- so."]),
        ] {
            assert_eq!(kinds(text), expected, "{text}");
        }
    }
}
