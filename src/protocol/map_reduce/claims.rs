//! What runs write, taken apart: facts with the words that say so, and sentences with the facts they rest on.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use unicode_segmentation::UnicodeSegmentation;

use crate::text::find_verbatim;

/// Stands between a fact and the words of the document.
pub(super) const BETWEEN: &str = " :: ";

/// What the last line of an answer begins with.
pub(super) const NOT_FOUND: &str = "Not found:";

/// What a reader writes that has found nothing.
pub(super) const NOTHING: &str = "NOTHING";

/// The shortest words that prove anything, in characters other than spaces.
const QUOTE_CHARS_MIN: usize = 6;

/// A line about what a piece says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Fact {
    /// With the place of its words in the piece.
    Proven(String, Range<usize>),
    /// Its words stand nowhere, or it has none.
    Unproven(String),
}

/// Something said, and the numbers behind it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Said {
    pub(super) text: String,
    /// Numbers of facts, from 1, each once.
    pub(super) numbers: Vec<usize>,
    /// Numbers that are no fact's.
    pub(super) unknown: Vec<usize>,
}

/// Returns the facts of a reader's text about this piece.
pub(super) fn facts(text: &str, piece: &str) -> Vec<Fact> {
    let lines = lines(text).filter(|line| line.trim_end_matches('.') != NOTHING);
    let fact = |line: &str| {
        let Some((claim, words)) = line.split_once(BETWEEN) else { return Fact::Unproven(line.to_owned()) };
        let marks = ['"', '\u{201C}', '\u{201D}', '\u{AB}', '\u{BB}', '\'', '`'];
        let words = words.trim().trim_matches(marks);
        let proves = words.chars().filter(|c| !c.is_whitespace()).count() >= QUOTE_CHARS_MIN;
        match find_verbatim(piece, words).filter(|_| proves && !claim.trim().is_empty()) {
            Some(place) => Fact::Proven(claim.trim().to_owned(), place),
            None => Fact::Unproven(line.to_owned()),
        }
    };
    lines.map(|line| fact(&line)).collect()
}

/// Returns the lines of a merged list with the numbers in each; `count` is how many facts there are.
pub(super) fn merged(text: &str, count: usize) -> Vec<Said> {
    lines(text).map(|line| cited(&line, count)).collect()
}

/// Takes an answer apart: its sentences with the numbers in them, and what its last line says was not found.
pub(super) fn answer(text: &str, count: usize) -> (Vec<Said>, Option<String>) {
    let lines: Vec<String> = lines(text).collect();
    let (last, before) = lines.split_last().map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
    let head = last.get(..NOT_FOUND.len()).filter(|head| head.eq_ignore_ascii_case(NOT_FOUND));
    let not_found = head.map(|_| last[NOT_FOUND.len()..].trim().to_owned());
    let said = if not_found.is_some() { before } else { &lines };
    let mut sentences: Vec<Said> = Vec::new();
    for sentence in said.iter().flat_map(|line| line.split_sentence_bounds()) {
        // Numbers behind a full stop belong to what stands before it.
        let (leading, rest) = leading_numbers(sentence);
        if let Some(last) = sentences.last_mut() {
            last.add(cited(leading, count));
        }
        let said = cited(rest, count);
        if said.text.chars().any(char::is_alphanumeric) {
            sentences.push(said);
        } else if let Some(last) = sentences.last_mut() {
            last.add(said);
        }
    }
    (sentences, not_found)
}

impl Said {
    fn add(&mut self, more: Self) {
        self.numbers.extend(more.numbers);
        self.unknown.extend(more.unknown);
        for numbers in [&mut self.numbers, &mut self.unknown] {
            numbers.sort_unstable();
            numbers.dedup();
        }
    }
}

/// A group of numbers such as `[2]` or `[2, 5]`; with a space behind the bracket it is something else.
static NUMBERS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\[([0-9]+(?:, ?[0-9]+)*)\]").expect("it is a constant, and a test uses it")
});

/// Returns a text with what looks like the number of a fact so written that it is none.
pub(super) fn without_numbers(text: &str) -> String {
    NUMBERS.replace_all(text, "[ $1]").into_owned()
}

/// Returns the numbers that a text begins with, and the rest.
fn leading_numbers(text: &str) -> (&str, &str) {
    let mut at = 0;
    while let Some(place) =
        NUMBERS.find_at(text, at).filter(|place| text[at..place.start()].trim().is_empty())
    {
        at = place.end();
    }
    text.split_at(at)
}

/// Returns a text without its numbers, and these.
fn cited(text: &str, count: usize) -> Said {
    let mut said = Said::default();
    for group in NUMBERS.captures_iter(text) {
        // One that is too large to be read is none of theirs.
        let numbers = group[1].split(',').map(|number| number.trim().parse().unwrap_or(usize::MAX));
        let (known, unknown) = numbers.partition(|number| (1..=count).contains(number));
        said.add(Said { text: String::new(), numbers: known, unknown });
    }
    let bare = NUMBERS.replace_all(text, "");
    bare.split_whitespace().collect::<Vec<_>>().join(" ").clone_into(&mut said.text);
    for sign in [" .", " ,", " ;"] {
        said.text = said.text.replace(sign, sign.trim());
    }
    said
}

/// Returns the lines of a text without what makes them a list; a model that writes one line only may mean the end of
/// one by `\n`.
fn lines(text: &str) -> impl Iterator<Item = String> {
    let text = if text.trim().contains('\n') { text.to_owned() } else { text.replace("\\n", "\n") };
    let lines: Vec<String> = text.lines().map(|line| bare(line).to_owned()).collect();
    lines.into_iter().filter(|line| !line.is_empty())
}

/// Returns a line without the sign or number that makes it an item of a list.
fn bare(line: &str) -> &str {
    let line = line.trim();
    let line = ["- ", "* ", "\u{2022} "]
        .iter()
        .find_map(|sign| line.strip_prefix(sign))
        .unwrap_or(line)
        .trim_start();
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    match rest.strip_prefix(['.', ')']).filter(|behind| rest.len() < line.len() && behind.starts_with(' ')) {
        Some(behind) => behind.trim(),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn said(text: &str, numbers: &[usize], unknown: &[usize]) -> Said {
        Said { text: text.to_owned(), numbers: numbers.to_vec(), unknown: unknown.to_vec() }
    }

    #[test]
    fn a_fact_counts_if_its_words_stand_in_the_piece() {
        let piece = "The bridge was opened to traffic\non 4 May 1931, in the rain: -4 degrees, a std::vec and printf(\"a\\n\").";
        let text = "- It opened in 1931 :: \"opened to traffic on 4 May 1931\"\n2. It was dry :: in the sun\n* no words\nNOTHING\n\
                    rain :: rain\n-4 degrees :: -4 degrees\na std::vec :: a std::vec and\nit prints :: printf(\"a\\n\")";
        let place = |words: &str| {
            let start = piece.find(words).unwrap();
            start..start + words.len()
        };
        let proven = |claim: &str, words: &str| Fact::Proven(claim.to_owned(), place(words));
        assert_eq!(
            facts(text, piece),
            [
                proven("It opened in 1931", "opened to traffic\non 4 May 1931"),
                Fact::Unproven("It was dry :: in the sun".to_owned()),
                Fact::Unproven("no words".to_owned()),
                Fact::Unproven("rain :: rain".to_owned()),
                proven("-4 degrees", "-4 degrees"),
                proven("a std::vec", "a std::vec and"),
                proven("it prints", "printf(\"a\\n\")"),
            ]
        );
        assert!(facts("NOTHING.", piece).is_empty());
        assert_eq!(
            facts("a :: opened to\\nb :: no such words", piece).len(),
            2,
            "one line may stand for several"
        );
    }

    #[test]
    fn each_sentence_rests_on_its_own_numbers() {
        let text = "It is made of gold. It opened in 1931 [1][3]. It is long. [2, 9] Red [7], and array[ 2] is none.\nNot found: its price";
        assert_eq!(
            answer(text, 3),
            (
                vec![
                    said("It is made of gold.", &[], &[]),
                    said("It opened in 1931.", &[1, 3], &[]),
                    said("It is long.", &[2], &[9]),
                    said("Red, and array[ 2] is none.", &[], &[7]),
                ],
                Some("its price".to_owned())
            )
        );
        let swallowed = "Nothing here. Not found: [1]\nThe bridge is wet [1].";
        assert_eq!(answer(swallowed, 1).1, None, "only the last line says what was not found");
        assert_eq!(answer("All of it [1].", 1), (vec![said("All of it.", &[1], &[])], None));
        assert_eq!(
            merged("- one [1][2]\n- two [3] and more [4]\n- three", 4)[1],
            said("two and more", &[3, 4], &[])
        );
        assert_eq!(without_numbers("see [2], a[1, 3] and [x]"), "see [ 2], a[ 1, 3] and [x]");
    }

    proptest! {
        #[test]
        fn nothing_that_is_said_is_lost(text in "[a-c\\[\\]0-9,. \n]{0,60}", count in 0_usize..5) {
            let (said, _) = answer(&text, count);
            let letters = |text: &str| text.chars().filter(char::is_ascii_lowercase).collect::<String>();
            let kept: String = said.iter().map(|said| letters(&said.text)).collect();
            prop_assert_eq!(kept, letters(&text));
            prop_assert!(said.iter().flat_map(|said| &said.numbers).all(|n| (1..=count).contains(n)));
        }

        #[test]
        fn what_a_document_says_in_brackets_is_no_number(text in "[a-c\\[\\]0-9, ]{0,40}") {
            let said = cited(&without_numbers(&text), 9);
            prop_assert!(said.numbers.is_empty() && said.unknown.is_empty(), "{:?}", said);
        }

        #[test]
        fn a_proven_fact_says_where_its_words_stand(claim in "[a-z ]{1,20}", piece in "[a-z \n]{20,80}", at in 0_usize..10) {
            let words = piece[at..at + 10].trim().replace('\n', " ");
            for fact in facts(&format!("{claim} :: {words}"), &piece) {
                if let Fact::Proven(_, place) = fact {
                    let same = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
                    prop_assert_eq!(same(&piece[place]), same(&words));
                }
            }
        }
    }
}
