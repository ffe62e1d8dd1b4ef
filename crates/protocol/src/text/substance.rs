//! What two texts state differently, as far as code can find it: numbers, names, negations and code.
//!
//! The input is two texts that answer one task. The output is a list of differences for a person. Other words for a thing are no
//! difference, and neither is a thing that only one text says. Names and negations are read in English and German. An empty list does not
//! prove that both texts say the same. A false difference is better than one that is not found. Nothing here judges which text is right.
//!
//! A sentence is compared with the sentence of the other text that shares most plain words, if each is the nearest to the other. A
//! sentence without a counterpart would otherwise meet one that has its own. The first 512 sentences of each text are compared in this
//! way, by an index of their words. Numbers and names of whole texts are compared as well.

mod sorted_sentence;

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use super::escape::excerpt;
use super::reading::{Sentence, WordKind};
use super::wording::excerpts;

use sorted_sentence::{PlacedName, SortedSentence, Vocabulary, nearest_pairs};

pub(crate) use sorted_sentence::SortedText;

/// The most numbers or names that a difference lists for each side.
const LISTED_MAX: usize = 5;

/// The most words of names that are read to be listed.
const NAME_WORDS_MAX: usize = 64;

/// The kind of a difference.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceKind {
    /// The texts have different numbers.
    Number,
    /// The texts have different names.
    Name,
    /// One text denies what the other one says.
    Negation,
    /// The texts have different blocks of code, or no span of code in common.
    Code,
}

/// A difference between two texts, with the words of each side on one line.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct TextDifference {
    /// The kind of difference.
    pub kind: DifferenceKind,
    /// The words of the first text.
    pub one: String,
    /// The words of the second text.
    pub other: String,
}

impl TextDifference {
    /// Returns the difference as the other text has it.
    pub fn swap(&self) -> Self {
        Self { kind: self.kind, one: self.other.clone(), other: self.one.clone() }
    }
}

impl fmt::Display for TextDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, one, other } = self;
        let what = match kind {
            DifferenceKind::Number => "a number",
            DifferenceKind::Name => "a name",
            DifferenceKind::Negation => "a negation",
            DifferenceKind::Code => "code",
        };
        write!(f, "{what} (“{one}” against “{other}”)")
    }
}

/// Returns what two texts state differently, in the order of the first text.
pub(crate) fn differences(one: &SortedText<'_>, other: &SortedText<'_>) -> Vec<TextDifference> {
    let mut found = Vec::new();
    for [first, second] in nearest_pairs(&one.sentences, &other.sentences) {
        let (first, second) = (&one.sentences[first], &other.sentences[second]);
        push_facts(first, second, &mut found);
        let answers = first.sentence.answer.zip(second.sentence.answer);
        let have_other_answers = answers.is_some_and(|(answer, further)| answer != further);
        if have_other_answers || first.denied(second) != second.denied(first) {
            push_sentences(first.sentence, second.sentence, &mut found);
        }
    }
    if let ([one], [other]) = (&one.sentences[..], &other.sentences[..]) {
        push_facts(one, other, &mut found);
    }
    if let (Some(first), Some(second)) = (one.first_answer(), other.first_answer())
        && first.answer != second.answer
    {
        push_sentences(first, second, &mut found);
    }
    push_whole(one, other, &mut found);
    push_code(&one.reading.code, &other.reading.code, &mut found);
    if one.reading.spans.is_disjoint(&other.reading.spans) {
        let spans = [one, other].map(|text| list(text.reading.spans.iter().map(|span| excerpt(span))));
        push(DifferenceKind::Code, spans, &mut found);
    }
    found
}

/// Adds the numbers and names in which two sentences differ: those that are only in one, if both have such.
fn push_facts(one: &SortedSentence<'_>, other: &SortedSentence<'_>, found: &mut Vec<TextDifference>) {
    let numbers = [[one, other], [other, one]].map(|[one, other]| {
        let own = one.numbers.difference(&other.numbers);
        list(own.map(|number| excerpt(number)))
    });
    push(DifferenceKind::Number, numbers, found);
    push_names(&one.vocabulary, &other.vocabulary, found);
}

/// Adds two sentences that contradict each other.
fn push_sentences(one: &Sentence, other: &Sentence, found: &mut Vec<TextDifference>) {
    push(DifferenceKind::Negation, both_excerpts([&one.text, &other.text]), found);
}

/// Adds the numbers and names of whole texts, if both have some and share none. Numbers in words do not count here, because "two reasons"
/// and "three steps" are not about the same thing.
fn push_whole(one: &SortedText<'_>, other: &SortedText<'_>, found: &mut Vec<TextDifference>) {
    let figures = [one, other].map(|text| figures(&text.sentences));
    if figures[0].is_disjoint(&figures[1]) && !has_kind(found, DifferenceKind::Number) {
        let figures = figures.map(|figures| list(figures.iter().map(|number| excerpt(number))));
        push(DifferenceKind::Number, figures, found);
    }
    let are_disjoint = one.vocabulary.names_beside(&other.vocabulary).len() == one.vocabulary.names.len()
        && other.vocabulary.names_beside(&one.vocabulary).len() == other.vocabulary.names.len();
    if are_disjoint && !has_kind(found, DifferenceKind::Name) {
        push_names(&one.vocabulary, &other.vocabulary, found);
    }
}

/// Adds the blocks of code in which two texts differ. A block that only one text has is no difference.
fn push_code(ones: &[String], others: &[String], found: &mut Vec<TextDifference>) {
    let [blocks, other_blocks] = [ones, others].map(|blocks| blocks.iter().collect::<BTreeSet<_>>());
    let own = ones.iter().find(|block| !other_blocks.contains(block));
    let others_own = others.iter().find(|block| !blocks.contains(block));
    if let (Some(one), Some(other)) = (own, others_own) {
        push(DifferenceKind::Code, both_excerpts([one, other]), found);
    }
}

/// Adds the names that only one side has.
fn push_names(one: &Vocabulary<'_>, other: &Vocabulary<'_>, found: &mut Vec<TextDifference>) {
    let names = [one.names_beside(other), other.names_beside(one)];
    push(DifferenceKind::Name, names.each_ref().map(|names| list(joined_names(names))), found);
}

/// Adds a difference that has words on both sides, once.
fn push(kind: DifferenceKind, words: [Option<String>; 2], found: &mut Vec<TextDifference>) {
    if let [Some(one), Some(other)] = words {
        let difference = TextDifference { kind, one, other };
        if !found.contains(&difference) {
            found.push(difference);
        }
    }
}

/// Returns an excerpt of each of two texts, from where they differ.
fn both_excerpts(texts: [&String; 2]) -> [Option<String>; 2] {
    let mut excerpts = excerpts(&texts.map(String::as_str)).into_iter();
    [excerpts.next(), excerpts.next()]
}

fn has_kind(found: &[TextDifference], kind: DifferenceKind) -> bool {
    found.iter().any(|difference| difference.kind == kind)
}

/// Returns the first of some words for a person, each once; `None` without a word.
fn list(words: impl IntoIterator<Item = String>) -> Option<String> {
    let mut listed: Vec<String> = Vec::new();
    for word in words {
        if listed.len() == LISTED_MAX {
            listed.push("…".to_owned());
            break;
        }
        if !listed.contains(&word) {
            listed.push(word);
        }
    }
    if listed.is_empty() { None } else { Some(listed.join(", ")) }
}

/// Returns the first of some names, with the words that follow each other joined: `New York`.
fn joined_names(names: &[PlacedName<'_>]) -> Vec<String> {
    let mut joined: Vec<String> = Vec::new();
    let mut next = None;
    for name in names.iter().take(NAME_WORDS_MAX) {
        let word = excerpt(&name.word.written);
        match joined.last_mut() {
            Some(last) if next == Some(name.place) => *last = format!("{last} {word}"),
            Some(_) | None => joined.push(word),
        }
        next = Some(name.place + 1);
    }
    joined
}

/// Returns the figures of a text: its numbers in digits.
fn figures<'a>(sentences: &[SortedSentence<'a>]) -> BTreeSet<&'a str> {
    let words = sentences.iter().flat_map(|sentence| &sentence.sentence.words);
    let figures = words
        .filter(|word| word.kind == WordKind::Number && word.written.contains(|c: char| c.is_ascii_digit()));
    figures.map(|word| word.form.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::reading::TextReading;
    use proptest::prelude::*;

    fn between(one: &str, other: &str) -> Vec<TextDifference> {
        let readings = [one, other].map(TextReading::of_prose);
        let texts = SortedText::sort(&readings);
        differences(&texts[0], &texts[1])
    }

    /// Returns the differences of two texts as words.
    fn found(one: &str, other: &str) -> Vec<String> {
        let found = between(one, other);
        found.iter().map(|found| format!("{:?}: {} | {}", found.kind, found.one, found.other)).collect()
    }

    fn expect(pairs: &[(&str, &str, &[&str])]) {
        for (one, other, expected) in pairs {
            assert_eq!(found(one, other), *expected, "{one} / {other}");
        }
    }

    #[test]
    fn numbers_are_compared_by_value() {
        expect(&[
            ("It was in 1969.", "It was in 1970.", &["Number: 1969 | 1970"]),
            ("The town has 1,000 houses.", "The town has 1000 houses.", &[]),
            ("Die Stadt hat 1.000.000 Häuser.", "Die Stadt hat 1000000 Häuser.", &[]),
            // A single point is a decimal point, in any language.
            ("Die Stadt hat 1.000 Häuser.", "Die Stadt hat 1000 Häuser.", &["Number: 1 | 1000"]),
            ("The dose is 1.125 mg.", "The dose is 1125 mg.", &["Number: 1.125 | 1125"]),
            ("It weighs 5.0 kg.", "It weighs 5kg.", &[]),
            ("It is -5 degrees.", "It is 5 degrees.", &["Number: -5 | 5"]),
            ("It is 50%.", "It is 50 percent.", &[]),
            ("It is 50%.", "It is 50.", &["Number: 50% | 50"]),
            ("There are twelve months.", "There are 12 months.", &[]),
            ("There are twenty-one.", "There are 21.", &[]),
            ("It has 3.5 million people.", "It has 3,500,000 people.", &[]),
            ("Light covers 299 792 km.", "Light covers 299,792 km.", &[]),
            ("It is 10² m.", "It is 102 m.", &["Number: 10, 2 | 102"]),
            // An omission is no difference, nor is a pronoun.
            ("Use version 2.", "Use this one.", &[]),
            ("It was in July 1969.", "It was on 20 July 1969.", &[]),
            // The numbers of a list count only its items.
            ("1. Mix the eggs.\n2. Bake.", "- Mix the eggs.\n- Bake.\n- Eat in 5 minutes.", &[]),
            // Whole texts that share no figure differ, even if no sentence belongs to another.
            ("Cold soup. Serves 4.", "A warm stew. Made for 6 guests.", &["Number: 4 | 6"]),
            ("Cold soup. Two reasons.", "A warm stew. Three steps.", &[]),
        ]);
    }

    #[test]
    fn names_are_compared_word_by_word() {
        expect(&[
            ("The capital is Canberra.", "The capital is Sydney.", &["Name: Canberra | Sydney"]),
            // A word at the beginning is a name if it is one elsewhere.
            (
                "Canberra is the capital.",
                "The capital is Sydney. See Canberra.",
                &["Name: Canberra | Sydney"],
            ),
            ("It lies in New York.", "It lies in New Jersey.", &["Name: York | Jersey"]),
            ("It lies in New York.", "It lies in Los Angeles.", &["Name: New York | Los Angeles"]),
            ("Ask Neil Armstrong.", "Ask Armstrong about it.", &[]),
            ("It flew for NASA.", "It flew for ESA.", &["Name: NASA | ESA"]),
            // An abbreviation and another form of a name are other names.
            ("It joined the UN.", "It joined the United Nations.", &["Name: UN | United Nations"]),
            ("Take vitamin C.", "Take vitamin D.", &["Name: C | D"]),
            ("It is Australia.", "It is Australian.", &["Name: Australia | Australian"]),
            ("We saw the Moon.", "We saw the moon with Galileo.", &[]),
            // Headings, labels and the beginnings of items are no names.
            ("# Causes Of Rain\nIt rains.", "# What Makes Rain\nIt rains.", &[]),
            ("1. **Main Cause**: it is hot.", "1. **First Reason**: it is hot.", &[]),
            ("- Heat the milk.", "- Warm the milk.", &[]),
            // In German every noun has a capital.
            ("Es ist die größte Stadt.", "Es ist der größte Ort.", &[]),
            // Names that have changed their places are a difference, as other sentences may be.
            (
                "The winner Bell met Watson. The loser Gray met Pitt.",
                "The winner Gray met Pitt. The loser Bell met Watson.",
                &["Name: Bell, Watson | Gray, Pitt", "Name: Gray, Pitt | Bell, Watson"],
            ),
        ]);
    }

    #[test]
    fn denied_words_are_compared() {
        let pairs: [(&str, &str, bool); 24] = [
            ("It is safe.", "It is not safe.", true),
            ("It isn't safe.", "It is not safe.", false),
            ("It never works.", "It doesn't work.", false),
            ("The drug is not safe and not effective.", "The drug is safe and effective.", true),
            ("The drug is not safe but effective.", "The drug is safe but not effective.", true),
            ("The drug is not safe or effective.", "The drug is not safe but effective.", true),
            ("The drug is not currently considered safe.", "The drug is safe.", true),
            ("The drug is not, however, safe.", "The drug is, however, safe.", true),
            ("Eggs freeze.", "Eggs do freeze not.", true),
            ("Such a machine is impossible to build.", "Such a machine is not possible to build.", false),
            ("Such a machine is impossible to build.", "Such a machine is possible to build.", true),
            ("Such a machine is not impossible.", "Such a machine is possible.", false),
            ("You don't need it.", "It is not needed.", false),
            ("Das ist sicher.", "Das ist nicht sicher.", true),
            ("No it is not safe.", "It is not safe.", false),
            ("No evidence supports it.", "Evidence supports it.", true),
            // A negation of a thing that the other text does not mention is no contradiction.
            ("The capital is Canberra.", "The capital is Canberra, not Sydney.", false),
            ("The capital is Canberra.", "The capital is not Sydney but Canberra.", false),
            ("It is dangerous.", "It is not safe.", false),
            ("A thumb war is not violent.", "A thumb war is not considered a violent game.", false),
            ("It is no fruit, it is a berry.", "It is a berry.", false),
            // What code cannot understand is a difference.
            ("You cannot divide by it.", "Dividing by it is not possible.", true),
            ("Is it safe? Ask.", "It is not safe. Ask.", true),
            ("It is fast and cheap.", "It is not only fast but cheap.", true),
        ];
        for (one, other, are_different) in pairs {
            let found = found(one, other);
            assert_eq!(
                found.iter().any(|found| found.starts_with("Negation")),
                are_different,
                "{one} {other}"
            );
        }
    }

    #[test]
    fn yes_is_found_against_no() {
        for (one, other, are_different) in [
            (
                "Great question! Yes, you can freeze eggs.",
                "Great question! No, you cannot freeze eggs.",
                true,
            ),
            ("# Eggs\n\nYes, you can.", "# Frost\n\nNo, never.", true),
            ("Yes – you can freeze eggs.", "No – you cannot freeze eggs.", true),
            ("Yes - they do.", "No - wait for it.", true),
            ("Yes it is safe.", "No it is not safe.", true),
            ("Yes—you may.", "No—you must wait.", true),
            ("**Yes**, go.", "**No**, stay.", true),
            ("Go there. Yes, eggs freeze well.", "No, eggs freeze well. Yes, try it.", true),
            ("Ja, das geht.", "Nein, lieber warten.", true),
            ("Yes, it is safe. Ask.", "Yes, it is safe.", false),
            ("No, it is safe.", "It is safe.", false),
            // A false difference is better than none.
            ("Yes, it does.", "No doubt.", true),
        ] {
            assert_eq!(!found(one, other).is_empty(), are_different, "{one} {other}");
            assert_eq!(!found(other, one).is_empty(), are_different, "{other} {one}");
        }
    }

    #[test]
    fn differing_blocks_of_code_are_found() {
        let block = |code: &str| format!("Run this:\n\n```sh\n{code}\n```\nDone.");
        let (one, other) = (block("git add x"), block("git add y"));
        assert_eq!(found(&one, &other), ["Code: git add x | git add y"]);
        assert_eq!(found(&one, &block("git add x  \n")), [] as [&str; 0]);
        assert_eq!(found(&one, "Run this: git add y"), [] as [&str; 0]);
        assert_eq!(found(&one, &format!("{one}\n{other}")), [] as [&str; 0]);
        let spans = ["Use `git stash`, as `git` says.", "Use `git reset`, or `git`."];
        assert_eq!(found(spans[0], "Use `git reset`."), ["Code: git, git stash | git reset"]);
        assert_eq!(found(spans[0], spans[1]), [] as [&str; 0]);
        // Two backticks mark no span.
        assert_eq!(found("Use ``, then `a`.", "Use ``, then `b`."), ["Code: a | b"]);
        // A block without an end ends with the text, and a longer mark holds shorter ones.
        assert_eq!(found("````\n```\na\n```\n````", "~~~\n```\na\n```"), [] as [&str; 0]);
    }

    /// Rows of similar sentences are matched by what they are about, in any order.
    #[test]
    fn sentences_meet_their_own_counterparts() {
        let one = "Germany has 83 million people. France has 68 million people. Spain has 48 million people.";
        let other = "Spain has 48 million people. Germany has 84 million people.";
        assert_eq!(found(one, other), ["Number: 83000000 | 84000000"]);
    }

    /// A step whose time is quadratic in any of these would take minutes.
    #[test]
    fn hostile_text_is_compared_in_time() {
        for piece in
            [".)", "1 ", "5 percent ", "000 ", "not ", "UN ", "A. ", "a\u{301}:", "`", "漢", "#x\n", "7"]
        {
            let found = between(&piece.repeat(20_000), &format!("x Y {}", piece.repeat(10_000)));
            assert!(found.len() <= 2, "{piece}: {found:?}");
        }
    }

    #[test]
    fn difference_is_written_in_snake_case() {
        let json = serde_json::to_string(&between("It is 1.", "It is 2.")).unwrap();
        assert_eq!(json, r#"[{"kind":"number","one":"1","other":"2"}]"#);
    }

    const WORDS: &str =
        "(It|is|not|No,|Yes|Paris|Rome|NASA|rain|5|1,000|two|million|%|Light|[.:*#`\n -]){0,16}";

    proptest! {
        #[test]
        fn differences_are_mirrored(one in WORDS, other in WORDS) {
            let mut there = between(&one, &other);
            let mut back: Vec<TextDifference> = between(&other, &one).iter().map(TextDifference::swap).collect();
            there.sort();
            back.sort();
            prop_assert_eq!(there, back);
        }

        #[test]
        fn equal_texts_have_no_difference(text in "\\PC{0,80}|(.|\n){0,80}", words in WORDS) {
            prop_assert_eq!(between(&text, &text), []);
            prop_assert_eq!(between(&words, &words), []);
        }

        #[test]
        fn any_texts_can_be_compared(one in any::<String>(), other in any::<String>()) {
            let _ = between(&one, &other);
        }
    }
}
