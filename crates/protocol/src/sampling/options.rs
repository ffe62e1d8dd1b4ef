//! The options of a question with lettered choices, in an order of their own for each sample.
//!
//! The input is the task's prompt, the letters, and a call. The output is the prompt with its options in another order, and the letter of
//! the task for a letter that a voter names. A small model names one letter more often than the others, whatever option it is for, so each
//! sample sees another order. The order follows from the run's seed and the call alone, so that a replay draws the same.

use std::sync::LazyLock;

use regex::Regex;

use super::quantity::pattern;
use crate::contract::CallId;
use crypto::{Digest, Hasher};

/// The words with which an option speaks of options by their number or order.
static ORDER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?i)\b(?:options?|choices?|answers?|former|latter|foregoing)\b|",
        r"\b(?:first|second|third|fourth|last|top)\s+(?:[0-9]|one|two|three|and|or|only)\b|",
        r"\b(?:the|only|both)\s+(?:first|second|third|fourth|last|others?)\W*$|",
        r"\b(?:next|following|other)\s+(?:[0-9]|one|two|three|four|ones)\b|",
        r"\b[0-9](?:st|nd|rd|th)\s+(?:and|or|only)\b|",
        r"\bbefore\W*$|",
        r"^\W*[a-z]\W*(?:[&/+,–-]|to|and|or)\W*[a-z]\W*$|\b[a-e]\s+(?:to|through)\s+[a-e]\b",
    ))
});

/// A prompt whose lines hold one option each, under letters.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct LetteredOptions {
    lines: Vec<String>,
    options: Vec<LetteredOption>,
    /// Whether an option is about the places of others, as `All of the above` and `Both A and B` are. Such options keep their places.
    is_fixed: bool,
}

/// One option of a prompt.
#[derive(Clone, Debug, Eq, PartialEq)]
struct LetteredOption {
    /// The line that holds it, from 0.
    line: usize,
    /// The choice, as the task names it.
    choice: String,
    /// The part of the line before its text: the letter and its sign.
    label: String,
    text: String,
}

/// Returns the text of the first option of a question, which means the same in every order; `None` for one that has no lettered options.
pub fn first_option(prompt: &str, choices: &[String]) -> Option<String> {
    Some(LetteredOptions::find(prompt, choices)?.options.first()?.text.clone())
}

impl LetteredOptions {
    /// Finds the options in a prompt. Returns `None` unless the choices are letters in a row, and each begins exactly one line, as in
    /// `A) Rome` or `(b) Rome`. A word says something itself, so it cannot be given to another option.
    pub(super) fn find(prompt: &str, choices: &[String]) -> Option<Self> {
        let lines: Vec<String> = prompt.lines().map(str::to_owned).collect();
        let mut options: Vec<LetteredOption> = Vec::new();
        for (place, choice) in choices.iter().enumerate() {
            let letter = u8::try_from(place).ok().and_then(|place| b'a'.checked_add(place))?;
            if !choice.eq_ignore_ascii_case(char::from(letter).encode_utf8(&mut [0; 4])) {
                return None;
            }
            let mut found = lines.iter().enumerate().filter_map(|(line, text)| {
                let label = label_of(text, choice)?;
                let (label, text) = text.split_at(label);
                let (label, text) = (label.to_owned(), text.trim_end().to_owned());
                Some(LetteredOption { line, choice: choice.clone(), label, text })
            });
            let (Some(option), None) = (found.next(), found.next()) else { return None };
            options.push(option);
        }
        if options.len() < 2 {
            return None;
        }
        let is_fixed = has_long_options(&lines, &options)
            || names_places(&lines, &options, choices)
            || names_order(&options, choices);
        Some(Self { lines, options, is_fixed })
    }

    /// Draws the order that a sample sees: for each place the index of the option that is shown there.
    pub(super) fn draw(&self, seed: u64, call: CallId) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.options.len()).collect();
        if !self.is_fixed {
            order.sort_by_key(|option| draw_lot(seed, call, *option));
        }
        order
    }

    /// Returns the choice of the task that is shown at each letter in turn.
    pub(super) fn choices_in_order(&self, order: &[usize]) -> Vec<String> {
        order.iter().map(|shown| self.options[*shown].choice.clone()).collect()
    }

    /// Returns the prompt with its options in this order. The letters stay in their places.
    pub(super) fn arrange(&self, order: &[usize]) -> String {
        let mut lines = self.lines.clone();
        for (place, shown) in self.options.iter().zip(order) {
            lines[place.line] = format!("{}{}", place.label, self.options[*shown].text);
        }
        lines.join("\n")
    }

    /// Returns the choice of the task behind an answer of a voter who saw this order: the letter of a place, with or without the text
    /// of its option, or that text alone. `None` for anything else, and for a letter with the text of another option.
    pub(super) fn choice(&self, order: &[usize], answer: &str) -> Option<&str> {
        let answer = answer.trim().trim_end_matches('.').trim();
        if let Some(place) = self.place_of(answer) {
            return Some(&self.option_at(order, place)?.choice);
        }
        let text = fold(answer);
        if let Some(option) = self.options.iter().find(|option| fold(&option.text) == text) {
            return Some(&option.choice);
        }
        // `C, mine` names the letter and its own option.
        if let Some((letter, text)) = answer.split_once(',')
            && let Some(place) = self.place_of(letter)
            && let Some(option) = self.option_at(order, place)
            && fold(&option.text) == fold(text)
        {
            return Some(&option.choice);
        }
        let (place, label) = self.options.iter().enumerate().find_map(|(place, option)| {
            let label = label_of(answer, &option.choice)?;
            Some((place, label))
        })?;
        let option = self.option_at(order, place)?;
        if fold(&option.text) == fold(&answer[label..]) { Some(&option.choice) } else { None }
    }

    /// Returns the place whose letter this is.
    fn place_of(&self, letter: &str) -> Option<usize> {
        let letter = strip_brackets(letter);
        self.options.iter().position(|option| letter == strip_signs(&option.choice))
    }

    /// Returns the option that is shown at a place.
    fn option_at(&self, order: &[usize], place: usize) -> Option<&LetteredOption> {
        self.options.get(*order.get(place)?)
    }
}

fn draw_lot(seed: u64, call: CallId, option: usize) -> Digest {
    let mut hasher = Hasher::default();
    hasher.part(b"options").part(&seed.to_be_bytes()).part(&(call.agent as u64).to_be_bytes());
    hasher.part(&call.draft.to_be_bytes()).part(&(option as u64).to_be_bytes()).finish()
}

fn fold(text: &str) -> String {
    text.trim().trim_end_matches('.').to_lowercase()
}

/// Returns true if an option may have more than one line: something that is not blank comes between two options, or an indented line
/// comes after the last one.
fn has_long_options(lines: &[String], options: &[LetteredOption]) -> bool {
    let (Some(first), Some(last)) = (options.first(), options.last()) else { return false };
    let (from, to) = (first.line.min(last.line), first.line.max(last.line));
    for (number, line) in lines.iter().enumerate().take(to + 1).skip(from) {
        if !line.trim().is_empty() && options.iter().all(|option| option.line != number) {
            return true;
        }
    }
    lines.get(to + 1).is_some_and(|line| line.starts_with([' ', '\t', '`']))
}

/// Returns true if an option or the question may be about the places or the letters of options. To keep the order costs little, so any
/// letter that is alone counts.
fn names_places(lines: &[String], options: &[LetteredOption], choices: &[String]) -> bool {
    lines.iter().enumerate().any(|(number, line)| {
        let option = options.iter().find(|option| option.line == number);
        text_names_places(option.map_or(line, |option| &option.text), choices)
    })
}

fn text_names_places(text: &str, choices: &[String]) -> bool {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty());
    let words: Vec<&str> = words.collect();
    for (at, word) in words.iter().enumerate() {
        if ["above", "below", "preceding", "previous"].contains(&word.to_lowercase().as_str()) {
            return true;
        }
        let next = words.get(at + 1);
        let is_article = *word == "A" && next.is_some_and(|next| next.starts_with(char::is_lowercase));
        if is_choice(word, choices) && word.chars().all(char::is_uppercase) && !is_article {
            return true;
        }
    }
    words.windows(3).any(|three| {
        let is_joined = ["and", "or", "nor"].contains(&three[1].to_lowercase().as_str());
        is_joined && is_choice(three[0], choices) && is_choice(three[2], choices)
    })
}

fn is_choice(word: &str, choices: &[String]) -> bool {
    choices.iter().any(|choice| choice.eq_ignore_ascii_case(word))
}

/// Returns true if an option is a letter alone, in either case, or speaks of options by their order. An option `b` at letter A would be
/// read as the letter B.
fn names_order(options: &[LetteredOption], choices: &[String]) -> bool {
    options.iter().any(|option| {
        let is_letter = choices.iter().any(|choice| strip_signs(choice) == strip_signs(&option.text));
        is_letter || ORDER.is_match(&option.text)
    })
}

/// Returns a letter without the brackets and the punctuation around it. Any other sign may say the opposite, as in `!A`.
fn strip_brackets(text: &str) -> String {
    text.trim_matches(|c: char| c.is_whitespace() || "()[]{}*_`\"'.,:;".contains(c)).to_lowercase()
}

/// Returns a letter without the signs around it.
fn strip_signs(text: &str) -> String {
    text.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}

/// Returns the length of the label at the beginning of a line, with its sign and the space after it, if the line is that of this choice.
fn label_of(line: &str, choice: &str) -> Option<usize> {
    let indent = line.len() - line.trim_start().len();
    let rest = &line[indent..];
    let open = rest.strip_prefix('(').unwrap_or(rest);
    let after = open.get(..choice.len()).filter(|label| label.eq_ignore_ascii_case(choice))?.len();
    let after = &open[after..];
    let sign = after.chars().next().filter(|sign| matches!(sign, ')' | '.' | ':'))?;
    let text = after[sign.len_utf8()..].trim_start();
    if text.trim().is_empty() { None } else { Some(line.len() - text.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::contract::Step;
    use proptest::prelude::*;

    const PROMPT: &str = "Which is the capital of Italy?\nA) Rome\nB) Milan.\n  (C) Naples\nD: Turin, the old town\nChoose one.";

    fn letters() -> Vec<String> {
        ["A", "B", "C", "D"].map(str::to_owned).to_vec()
    }

    fn call(draft: u32) -> CallId {
        CallId { part: 0, round: 1, agent: 0, draft, step: Step::Sample, attempt: 0 }
    }

    proptest! {
        #[test]
        fn answer_maps_back_to_shown_option(seed: u64, draft in 0..100_u32, place in 0..4_usize) {
            let options = LetteredOptions::find(PROMPT, &letters()).unwrap();
            let arrangement = options.draw(seed, call(draft));
            let shown = options.arrange(&arrangement);
            let line = shown.lines().nth(place + 1).unwrap();
            let text = line.trim_start_matches([' ', '(']).trim_start_matches(['A', 'B', 'C', 'D', ')', ':', '.', ' ']);
            let meant = ["Rome", "Milan.", "Naples", "Turin, the old town"].iter().position(|known| *known == text);
            let expected = letters()[meant.unwrap()].clone();
            let letter = letters()[place].clone();
            for answer in [letter.clone(), format!("({letter})"), format!("{}.", letter.to_lowercase()), line.to_owned(), text.to_owned()] {
                prop_assert_eq!(options.choice(&arrangement, &answer), Some(expected.as_str()), "{}", answer);
            }
        }
    }

    /// Every option comes to every place about as often.
    #[test]
    fn options_fall_evenly_on_places() {
        let options = LetteredOptions::find(PROMPT, &letters()).unwrap();
        let mut counts = [[0_u32; 4]; 4];
        for draft in 0..4000 {
            for (place, option) in options.draw(7, call(draft)).iter().enumerate() {
                counts[place][*option] += 1;
            }
        }
        // 1000 expected, standard deviation 27.
        assert!(counts.iter().flatten().all(|count| (880..1120).contains(count)), "{counts:?}");
    }

    #[test]
    fn options_that_belong_to_their_places_keep_them() {
        let keeps = |prompt: &str| {
            let options = LetteredOptions::find(prompt, &letters()).unwrap();
            (0..20).all(|draft| options.draw(3, call(draft)) == [0, 1, 2, 3])
        };
        for last in [
            "All of the above",
            "None of the above.",
            "Both A and B",
            "both a and b",
            "A, C",
            "(A) and (C) only",
            "All except B",
            "A but not B",
            "Vitamin A",
            "a",
            "b.",
            "Only the first two",
            "The last option",
            "The first and third",
            "the latter",
            "Both others",
            "Only the first 2",
            "1st and 2nd",
            "a & b",
            "(a) & (b)",
            "a-c",
            "a/b",
            "Any of a to c",
            "The two before",
            "None of the foregoing",
            "the top two",
        ] {
            assert!(keeps(&format!("Which?\nA) one\nB) two\nC) three\nD) {last}")), "{last}");
        }
        for prompt in [
            "Compare A and C.\nA) one\nB) two\nC) three\nD) four",
            "Which?\nA) def f(x):\n    return x\nB) two\nC) three\nD) four",
            "Which?\nA) one\nB) two\nC) three\nD) def f(x):\n    return x",
        ] {
            assert!(keeps(prompt), "{prompt}");
        }
        for last in [
            "A dog and a cat",
            "I think so",
            "the sea, the sky",
            "the First Amendment",
            "the second half",
            "the others' view",
        ] {
            assert!(
                !keeps(&format!("Which?\nA) one\n\nB) two\n\nC) three\n\nD) {last}\nChoose one.")),
                "{last}"
            );
        }
    }

    #[test]
    fn words_are_no_letters() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        for (prompt, choices) in [
            ("Which?\npositive: it is liked\nnegative: it is not", words(&["positive", "negative"])),
            ("Which?\n1: bad\n2: good", words(&["1", "2"])),
            ("Which?\nA+: one\nA-: two", words(&["A+", "A-"])),
            ("Which?\nA) one\nC) two", words(&["A", "C"])),
        ] {
            assert_eq!(LetteredOptions::find(prompt, &choices), None, "{prompt}");
        }
    }

    /// Options are found only where each letter begins one line.
    #[test]
    fn options_need_one_line_per_letter() {
        for prompt in
            ["Yes or no?", "A) one\nB) two", "A) a\nB) b\nC) c\nD) d\nA) again", "A a\nB b\nC c\nD d"]
        {
            assert_eq!(LetteredOptions::find(prompt, &letters()), None, "{prompt}");
        }
    }

    #[test]
    fn what_names_no_option_is_no_choice() {
        let options = LetteredOptions::find(PROMPT, &letters()).unwrap();
        let arrangement = options.draw(1, call(0));
        for answer in
            ["", "E", "A or B", "none of them", "Florence", "B. Florence", "!A", "~A", "¬A", "≠A", "A?"]
        {
            assert_eq!(options.choice(&arrangement, answer), None, "{answer}");
        }
    }
}
