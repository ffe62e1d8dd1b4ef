//! Whether two short answers are the same one, so that they count as one.
//!
//! The input is texts of one line. The output is yes or no. Nothing here knows what a word means: two answers are the same if their words
//! are equal behind what repeats the question. What one of them repeats must hold all that the other one does. Any other wording counts as
//! another answer, because a further sample costs less than two answers that were counted as one.

use std::collections::BTreeSet;

use unicode_normalization::UnicodeNormalization;

use super::reading::{has_inner_capital, is_negation};

/// The longest text that is short, in characters.
const SHORT_CHARS_MAX: usize = 200;

/// The most words of a short text.
const SHORT_WORDS_MAX: usize = 12;

/// The signs that end a word and do not belong to it.
const ENDING_SIGNS: [char; 6] = ['.', ',', ':', ';', '!', '?'];

/// The signs around words that only mark them, if as many words begin with them as end with them: `*Emma*`, but not `A*` or `5"`.
const PAIRED_MARKS: [char; 4] = ['"', '\'', '*', '`'];

/// The words between a repeated question and its answer.
const COPULAS: [&str; 14] = [
    "are", "equals", "ergibt", "has", "hat", "have", "ist", "is", "sind", "war", "waren", "was", "were", "=",
];

/// The words that may be before such a word without being words of the question.
const FRAME: [&str; 26] = [
    "a", "an", "and", "answer", "antwort", "correct", "das", "der", "die", "ergebnis", "es", "final",
    "finale", "it", "korrekte", "of", "product", "result", "richtige", "sum", "that", "the", "there", "this",
    "und", "von",
];

/// A short answer as its words.
#[derive(Clone, Debug)]
pub(crate) struct ShortAnswer {
    words: Vec<String>,
}

impl ShortAnswer {
    /// Splits a text into its words. Returns `None` for a text that is not short, or has no word.
    pub(crate) fn new(text: &str) -> Option<Self> {
        if !is_short(text) {
            return None;
        }
        let words = split_words(text);
        if words.is_empty() { None } else { Some(Self { words }) }
    }

    /// Returns true if two answers to a prompt have the same words, but for what they repeat of the prompt: `Canberra.` and `The capital of
    /// Australia is Canberra.`
    pub(crate) fn is_same_as(&self, other: &Self, prompt: &str) -> bool {
        let asked = split_words(prompt);
        let (one, other) = (SplitWords::new(&self.words, &asked), SplitWords::new(&other.words, &asked));
        let are_nested = one.repeated.is_subset(&other.repeated) || other.repeated.is_subset(&one.repeated);
        one.answer == other.answer && are_nested
    }
}

/// The words of a short answer, split behind what repeats the question.
#[derive(Debug)]
struct SplitWords<'a> {
    /// The words of the question before the answer.
    repeated: BTreeSet<&'a str>,
    answer: Vec<&'a str>,
}

impl<'a> SplitWords<'a> {
    fn new(words: &'a [String], asked: &[String]) -> Self {
        let words = put_place_first(words);
        let ends = (1..words.len()).rev();
        let end = ends.into_iter().find(|end| repeats(&words[..*end], asked)).unwrap_or(0);
        let (beginning, answer) = words.split_at(end);
        let repeated = beginning.iter().filter(|word| !is_frame(word)).copied().collect();
        Self { repeated, answer: answer.to_vec() }
    }
}

/// Returns `there are 366 days in a leap year` as `a leap year has 366 days`, and any other words as they are.
fn put_place_first(words: &[String]) -> Vec<&str> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if let ["there", "is" | "are", rest @ ..] = &words[..]
        && let Some(at) = rest.iter().position(|word| *word == "in")
        && let (things, [_, place @ ..]) = rest.split_at(at)
    {
        return [place, &["has"], things].concat();
    }
    words
}

/// Returns true for one line of at most 200 characters and 12 words, without the white space around it. A longer sentence can be said in
/// many ways, so it is compared as a long text is.
pub fn is_short(text: &str) -> bool {
    let text = text.trim();
    !text.contains(['\n', '\r'])
        && text.chars().nth(SHORT_CHARS_MAX).is_none()
        && text.split_whitespace().nth(SHORT_WORDS_MAX).is_none()
}

/// Returns true for words of the question or the frame that deny nothing and lead to an answer.
fn repeats(beginning: &[&str], asked: &[String]) -> bool {
    let leads = beginning.last().is_some_and(|last| COPULAS.contains(last));
    let is_repeated = |word: &&str| is_frame(word) || asked.iter().any(|asked| asked == word);
    leads && beginning.iter().all(|word| !is_negation(word) && is_repeated(word))
}

fn is_frame(word: &str) -> bool {
    FRAME.contains(&word) || COPULAS.contains(&word)
}

/// Returns the words of a text in small letters, without the signs around them that say nothing.
///
/// A word with a capital behind its first letter keeps its letters, because `MB` is not `Mb`.
fn split_words(text: &str) -> Vec<String> {
    let text: String = text.nfc().map(straighten).collect();
    let marks = PAIRED_MARKS.into_iter().filter(|mark| is_paired(&text, *mark)).collect::<Vec<_>>();
    let mut words = Vec::new();
    for written in text.split_whitespace() {
        let word = bare_word(written, &marks);
        if has_inner_capital(word) {
            words.push(word.to_owned());
        } else if !word.is_empty() {
            words.push(word.to_lowercase());
        }
    }
    words
}

/// Returns a quotation mark in its straight form.
fn straighten(sign: char) -> char {
    match sign {
        '“' | '”' | '„' | '«' | '»' => '"',
        '‘' | '’' | '‚' => '\'',
        other => other,
    }
}

/// Returns true if as many words begin with a mark as end with it.
fn is_paired(text: &str, mark: char) -> bool {
    let (mut begin, mut end) = (0, 0);
    for word in text.split_whitespace() {
        let behind = word.trim_start_matches(PAIRED_MARKS);
        begin += usize::from(word[..word.len() - behind.len()].contains(mark));
        let before =
            word.trim_end_matches(|sign| PAIRED_MARKS.contains(&sign) || ENDING_SIGNS.contains(&sign));
        end += usize::from(word[before.len()..].contains(mark));
    }
    begin == end
}

/// Returns a word without these marks around it and the signs behind it. In `5!` and `n!`, the sign belongs to the word.
fn bare_word<'a>(written: &'a str, marks: &[char]) -> &'a str {
    let begun = written.trim_start_matches(marks);
    let word = begun.trim_end_matches(|sign| marks.contains(&sign) || ENDING_SIGNS.contains(&sign));
    let is_spelled = word.chars().nth(1).is_some() && word.chars().all(char::is_alphabetic);
    if !is_spelled && begun[word.len()..].starts_with('!') { &begun[..=word.len()] } else { word }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn give_same_answer(one: &str, other: &str, prompt: &str) -> bool {
        match (ShortAnswer::new(one), ShortAnswer::new(other)) {
            (Some(one), Some(other)) => one.is_same_as(&other, prompt),
            (None | Some(_), None) | (None, Some(_)) => false,
        }
    }

    const CAPITAL: &str = "What is the capital of Australia?";

    #[test]
    fn answer_may_repeat_its_question() {
        for (one, other, prompt) in [
            ("Canberra.", "The capital of Australia is Canberra.", CAPITAL),
            ("Canberra", "It is **Canberra**!", CAPITAL),
            ("canberra", "\u{201c}Canberra.\u{201d}", CAPITAL),
            ("New York", "*New York*.", CAPITAL),
            (
                "Berlin.",
                "Die Hauptstadt von Deutschland ist Berlin.",
                "Was ist die Hauptstadt von Deutschland?",
            ),
            ("42", "The final answer is: 42.", ""),
            ("It isn't safe.", "it isn\u{2019}t safe", ""),
            ("not safe", "It is not safe.", ""),
            ("È sicuro.", "E\u{300} sicuro", ""),
            ("17 + 25 equals 42.", "The sum of 17 and 25 is 42.", "What is 17 + 25?"),
            (
                "A leap year has 366 days.",
                "There are 366 days in a leap year.",
                "How many days are in a leap year?",
            ),
            ("8 legs", "There are 8 legs.", "How many legs has a spider?"),
        ] {
            assert!(give_same_answer(one, other, prompt), "{one} {other}");
            assert!(give_same_answer(other, one, prompt), "{other} {one}");
        }
    }

    #[test]
    fn different_short_answers_stay_apart() {
        for (one, other, prompt) in [
            ("Before breakfast.", "After breakfast.", "Is it before or after breakfast?"),
            ("More than 5.", "Less than 5.", "Are there more or less than 5?"),
            ("Bob.", "Everyone except Bob.", "Who was invited? Was everyone, except Bob?"),
            ("Paris.", "Paris and Lyon.", "Is it Paris, Lyon, or both?"),
            ("Lyon.", "Paris and Lyon.", "Is it Paris and Lyon?"),
            ("Alice is taller than Bob.", "Bob is taller than Alice.", "Is Alice taller than Bob?"),
            ("Alice is taller.", "Bob is taller.", "Is Alice or Bob taller?"),
            ("Alice is 5.", "Bob is 5.", "How old are Alice and Bob?"),
            ("The minimum is 5.", "The maximum is 5.", "Is the minimum or the maximum 5?"),
            (
                "There are 2 cats in the box.",
                "There are 2 boxes in the cat.",
                "How many cats are in the box?",
            ),
            ("There is no cat in the box.", "The box has a cat.", "Is there a cat in the box?"),
            ("2-1", "1-2", ""),
            ("C++", "C#", ""),
            ("C", "C#", ""),
            ("B+", "B-", ""),
            ("A*", "A", ""),
            ("5\"", "5'", ""),
            ("-5", "5", ""),
            (".5", "5", ""),
            ("5!", "5", ""),
            ("n!.", "n", ""),
            ("8 MB", "8 Mb", ""),
            ("`a*b*`", "a*b", ""),
            ("__init__", "init", ""),
            (
                "The drug increases the risk of heart failure.",
                "The drug decreases the risk of heart failure.",
                "Does the drug increase or decrease the risk of heart failure?",
            ),
            ("It is safe.", "It is not currently considered safe.", "Is it currently considered safe?"),
            ("It is safe.", "It is not safe.", "Is it safe?"),
            ("A shark", "The animal that is not a mammal is a shark", "Is that animal not a mammal?"),
            ("1.125", "1125", ""),
            ("5.0", "5", ""),
            ("È sicuro.", "Non è sicuro.", "È sicuro o non è sicuro?"),
            ("安全", "不安全", "安全 不安全"),
            ("Paris", "It is Paris, I think.", ""),
            ("Sydney.", "The capital of Australia is Canberra.", CAPITAL),
            ("Canberra.", "The capital of Austria is Canberra.", CAPITAL),
            ("Yes.", "No.", ""),
            ("?", "!", ""),
            ("", "Paris", ""),
            ("one\ntwo", "one\ntwo", ""),
        ] {
            assert!(!give_same_answer(one, other, prompt), "{one} {other}");
            assert!(!give_same_answer(other, one, prompt), "{other} {one}");
        }
    }

    #[test]
    fn short_text_is_one_short_line() {
        let words = |count: usize| "é ".repeat(count);
        assert!(is_short("") && is_short(" one\n") && is_short(&"é".repeat(200)) && is_short(&words(12)));
        assert!(!is_short("one\ntwo") && !is_short("one\rtwo"));
        assert!(!is_short(&"é".repeat(201)) && !is_short(&words(13)));
    }

    proptest! {
        #[test]
        fn sameness_ignores_order(one in "\\PC{0,12}|(It|is|not|5|!|[*\"'. ]){0,8}", other in "(It|is|not|5|!|[*\"'. ]){0,8}") {
            prop_assert_eq!(give_same_answer(&one, &other, &one), give_same_answer(&other, &one, &one));
            prop_assert_eq!(give_same_answer(&one, &one, ""), ShortAnswer::new(&one).is_some());
        }
    }
}
