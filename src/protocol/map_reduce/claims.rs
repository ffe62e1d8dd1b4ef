//! What runs write, taken apart: facts with the words that say so, and sentences with the facts they rest on.

use std::ops::Range;

use crate::text::find_verbatim;

/// Stands between a fact and the words of the document.
pub(super) const BETWEEN: &str = "::";

/// What the last line of an answer begins with.
pub(super) const NOT_FOUND: &str = "Not found:";

/// What a reader writes that has found nothing.
pub(super) const NOTHING: &str = "NOTHING";

/// The most facts that one run may bring.
const FACTS_MAX: usize = 50;

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
    lines.map(|line| fact(&line)).take(FACTS_MAX).collect()
}

/// Returns the lines of a merged list with the numbers behind each, from 1; none of a number above `count`.
pub(super) fn merged(text: &str, count: usize) -> Vec<(String, Vec<usize>)> {
    let with_numbers = |line: String| {
        let pieces = cited(&line, count);
        let numbers = pieces.iter().flat_map(|(_, numbers)| numbers.iter().copied()).collect();
        let words: Vec<&str> = pieces.iter().map(|(words, _)| words.as_str()).collect();
        (words.join(" "), numbers)
    };
    lines(text).take(FACTS_MAX).map(with_numbers).collect()
}

/// Takes an answer apart: what it says with the numbers behind it, and what it says was not found.
pub(super) fn answer(text: &str, count: usize) -> (Vec<(String, Vec<usize>)>, Option<String>) {
    let lower = text.to_ascii_lowercase();
    let (said, not_found) = match lower.rfind(&NOT_FOUND.to_ascii_lowercase()) {
        Some(at) => (&text[..at], Some(text[at + NOT_FOUND.len()..].trim().to_owned())),
        None => (text, None),
    };
    (cited(said, count), not_found)
}

/// Cuts a text behind each group of numbers in brackets, such as `[2][5]` or `[2, 5]`; what no number follows has
/// none, and a number above `count` is none.
fn cited(text: &str, count: usize) -> Vec<(String, Vec<usize>)> {
    let mut parts: Vec<(String, Vec<usize>)> = Vec::new();
    let (mut words, mut rest) = (String::new(), text);
    let mut is_open = false;
    while let Some(at) = rest.find('[') {
        let (before, from) = rest.split_at(at);
        let group = from[1..].split_once(']').map(|(inside, behind)| {
            let numbers: Option<Vec<usize>> = inside.split(',').map(|n| n.trim().parse().ok()).collect();
            (numbers.filter(|numbers| !numbers.is_empty()), behind)
        });
        let Some((Some(numbers), behind)) = group else {
            // A bracket like any other.
            words.push_str(before);
            words.push('[');
            rest = &from[1..];
            is_open = false;
            continue;
        };
        let known = numbers.into_iter().filter(|number| (1..=count).contains(number));
        let goes_on = is_open && before.trim().is_empty() && words.trim().is_empty();
        if let Some((_, all)) = parts.last_mut().filter(|_| goes_on) {
            all.extend(known);
        } else {
            words.push_str(before);
            parts.push((std::mem::take(&mut words), known.collect()));
        }
        is_open = true;
        rest = behind;
    }
    words.push_str(rest);
    parts.push((words, Vec::new()));
    for (words, numbers) in &mut parts {
        let bare =
            words.trim_matches(|c: char| c.is_whitespace() || matches!(c, '.' | ',' | ';' | '-' | '*'));
        *words = bare.to_owned();
        numbers.sort_unstable();
        numbers.dedup();
    }
    parts.retain(|(words, _)| words.chars().any(char::is_alphanumeric));
    parts
}

/// Returns the lines of a text without what makes them a list; models write an end of a line also as `\n`.
fn lines(text: &str) -> impl Iterator<Item = String> {
    let text = text.replace("\\n", "\n");
    let lines: Vec<String> = text.lines().map(|line| bare(line).to_owned()).collect();
    lines.into_iter().filter(|line| !line.is_empty())
}

/// Returns a line without the sign or number that makes it an item of a list.
fn bare(line: &str) -> &str {
    let line = line.trim().trim_start_matches(['-', '*', '\u{2022}']).trim_start();
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

    #[test]
    fn a_fact_counts_if_its_words_stand_in_the_piece() {
        let piece = "The bridge was opened to traffic\non 4 May 1931, in the rain.";
        let text = "- It opened in 1931 :: \"opened to traffic on 4 May 1931\"\n2. It was dry :: in the sun\\n* no words\nNOTHING\nrain :: rain";
        let opened = piece.find("opened").unwrap();
        assert_eq!(
            facts(text, piece),
            [
                Fact::Proven(
                    "It opened in 1931".to_owned(),
                    opened..opened + "opened to traffic\non 4 May 1931".len()
                ),
                Fact::Unproven("It was dry :: in the sun".to_owned()),
                Fact::Unproven("no words".to_owned()),
                Fact::Unproven("rain :: rain".to_owned()),
            ]
        );
        assert!(facts("NOTHING.", piece).is_empty());
    }

    #[test]
    fn a_sentence_rests_on_the_numbers_behind_it() {
        let text = "It opened in 1931 [1][3]. It is long [2, 9], red [7] and array[0] is no number.\nNot found: its price";
        let (said, not_found) = answer(text, 3);
        let part = |words: &str, numbers: &[usize]| (words.to_owned(), numbers.to_vec());
        assert_eq!(
            said,
            [
                part("It opened in 1931", &[1, 3]),
                part("It is long", &[2]),
                part("red", &[]),
                part("and array", &[]),
                part("is no number", &[]),
            ]
        );
        assert_eq!(not_found.as_deref(), Some("its price"));
        assert_eq!(answer("All of it [1].", 1), (vec![part("All of it", &[1])], None));
        assert_eq!(
            merged("- one [1][2]\n- two [3] and more [4]\n- three", 4)[1],
            part("two and more", &[3, 4])
        );
    }

    proptest! {
        #[test]
        fn nothing_that_is_said_is_lost(text in "[a-c\\[\\]0-9,. \n]{0,60}", count in 0_usize..5) {
            let (said, _) = answer(&text, count);
            let letters = |text: &str| text.chars().filter(char::is_ascii_lowercase).collect::<String>();
            let kept: String = said.iter().map(|(words, _)| letters(words)).collect();
            prop_assert_eq!(kept, letters(&text));
            prop_assert!(said.iter().all(|(_, numbers)| numbers.iter().all(|n| (1..=count).contains(n))));
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
