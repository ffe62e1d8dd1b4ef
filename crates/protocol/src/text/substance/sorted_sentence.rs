//! The sentences of a text, made comparable: which belong to those of another text, and what each of them denies.
//!
//! The input is sentences with the kinds of their words. The output is pairs of sentences about the same thing, and sets of words. Nothing
//! here decides what a difference is.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::core::BasisPoints;
use crate::text::likeness::Likeness;
use crate::text::reading::{Sentence, TextReading, Word, WordKind};

/// The most sentences of a text that are compared one by one.
const SENTENCES_MAX: usize = 512;

/// The share of plain words that two sentences have in common if they are about the same thing.
const NEAR: BasisPoints = BasisPoints::of_ten_thousand(5_000);

/// The beginnings with which a word denies another one: `impossible` is `not possible`.
const DENYING: [&str; 7] = ["dis", "il", "im", "in", "ir", "non", "un"];

/// The endings that a word loses, the bytes that must remain, and the characters of them that count.
const ENDINGS: [&str; 6] = ["e", "ed", "en", "es", "ing", "s"];
const ROOT_BYTES_MIN: usize = 3;
const STEM_CHARS: usize = 6;

/// A text with its words sorted by kind.
pub(crate) struct SortedText<'a> {
    pub(super) reading: &'a TextReading,
    pub(super) sentences: Vec<SortedSentence<'a>>,
    /// The vocabularies of all sentences, joined.
    pub(super) vocabulary: Vocabulary<'a>,
}

/// A sentence with its words sorted by kind.
pub(super) struct SortedSentence<'a> {
    pub(super) sentence: &'a Sentence,
    pub(super) numbers: BTreeSet<&'a str>,
    pub(super) vocabulary: Vocabulary<'a>,
    /// The stems of the plain words.
    plain: BTreeSet<&'a str>,
    /// The stems of all words but negations and the very common ones.
    content: BTreeSet<&'a str>,
    /// The stems of what remains of these words without a beginning that denies: of `impossible`, that of `possible`.
    roots: BTreeSet<&'a str>,
}

/// The words of a sentence or a text, and which of them are names.
#[derive(Default)]
pub(super) struct Vocabulary<'a> {
    words: BTreeSet<&'a str>,
    pub(super) names: Vec<PlacedName<'a>>,
}

/// A word of a name, with its place in its text.
#[derive(Clone, Copy)]
pub(super) struct PlacedName<'a> {
    pub(super) place: usize,
    pub(super) word: &'a Word,
}

impl<'a> SortedText<'a> {
    /// Sorts the words of texts that are compared with each other. A word that is a name in one of them is one in all.
    pub(crate) fn sort(readings: &'a [TextReading]) -> Vec<Self> {
        let names: BTreeSet<&str> = readings.iter().flat_map(TextReading::names).collect();
        readings.iter().map(|reading| Self::new(reading, &names)).collect()
    }

    fn new(reading: &'a TextReading, names: &BTreeSet<&str>) -> Self {
        let mut sorted = Self { reading, sentences: Vec::new(), vocabulary: Vocabulary::default() };
        let mut first = 0;
        for sentence in &reading.sentences {
            let own = SortedSentence::new(sentence, first, names);
            sorted.vocabulary.words.extend(&own.vocabulary.words);
            sorted.vocabulary.names.extend(&own.vocabulary.names);
            sorted.sentences.push(own);
            // The last word of a sentence and the first word of the next one are no neighbours.
            first += sentence.words.len() + 1;
        }
        sorted
    }

    /// Returns the first sentence that answers yes or no. Headings and other sentences may be before it.
    pub(super) fn first_answer(&self) -> Option<&'a Sentence> {
        self.reading.sentences.iter().find(|sentence| sentence.answer.is_some())
    }
}

impl<'a> SortedSentence<'a> {
    /// Sorts the words of a sentence. `first` is the place of its first word, and `names` are the words that are names in either text.
    fn new(sentence: &'a Sentence, first: usize, names: &BTreeSet<&str>) -> Self {
        let mut sorted = Self {
            sentence,
            numbers: BTreeSet::new(),
            vocabulary: Vocabulary::default(),
            plain: BTreeSet::new(),
            content: BTreeSet::new(),
            roots: BTreeSet::new(),
        };
        for (place, word) in sentence.words.iter().enumerate() {
            let form = word.form.as_str();
            sorted.vocabulary.words.insert(form);
            let is_name = match word.kind {
                WordKind::Name => true,
                WordKind::Opening => names.contains(form),
                WordKind::Number | WordKind::Plain => false,
                WordKind::Negation | WordKind::Common => continue,
            };
            sorted.content.insert(stem(form));
            sorted.roots.extend(roots(form));
            if is_name {
                sorted.vocabulary.names.push(PlacedName { place: first + place, word });
            } else if word.kind == WordKind::Number {
                sorted.numbers.insert(form);
            } else {
                sorted.plain.insert(stem(form));
            }
        }
        sorted
    }

    /// Returns the stems of the words of another sentence that this one denies, and an empty one for a negation of nothing in particular.
    ///
    /// A negation denies all further words of its clause, and a word like `impossible` does so from `possible` on.
    pub(super) fn denied(&self, other: &Self) -> BTreeSet<&'a str> {
        let mut denied = BTreeSet::new();
        // Whether the words deny something, and whether they have still to say what.
        let (mut is_denying, mut is_open) = (false, false);
        for word in &self.sentence.words {
            if word.begins_clause {
                if is_open {
                    denied.insert("");
                }
                (is_denying, is_open) = (false, false);
            }
            match word.kind {
                WordKind::Negation => (is_denying, is_open) = (true, true),
                WordKind::Common => {}
                WordKind::Number | WordKind::Name | WordKind::Opening | WordKind::Plain => {
                    is_open = false;
                    let root = roots(&word.form).find(|root| other.content.contains(root));
                    is_denying ^= root.is_some();
                    let stem = root.unwrap_or(stem(&word.form));
                    if is_denying && (other.content.contains(stem) || other.roots.contains(stem)) {
                        denied.insert(stem);
                    }
                }
            }
        }
        if is_open {
            denied.insert("");
        }
        denied
    }
}

impl<'a> Vocabulary<'a> {
    /// Returns the names that are not among the words of another vocabulary.
    pub(super) fn names_beside(&self, other: &Self) -> Vec<PlacedName<'a>> {
        self.names.iter().copied().filter(|name| !other.words.contains(name.word.form.as_str())).collect()
    }
}

/// Returns the sentences of two texts that are each other's nearest, as pairs of their places.
pub(super) fn nearest_pairs(ones: &[SortedSentence<'_>], others: &[SortedSentence<'_>]) -> Vec<[usize; 2]> {
    let ones = &ones[..ones.len().min(SENTENCES_MAX)];
    let others = &others[..others.len().min(SENTENCES_MAX)];
    let (forth, back) = (nearest(ones, others), nearest(others, ones));
    let pairs = forth.iter().enumerate().filter_map(|(one, other)| Some([one, (*other)?]));
    pairs.filter(|[one, other]| back[*other] == Some(*one)).collect()
}

/// Returns for each sentence the nearest one of the other text, if one is near. Of equally near ones, it is the one with which most
/// numbers and names are shared, and then the first.
fn nearest(ones: &[SortedSentence<'_>], others: &[SortedSentence<'_>]) -> Vec<Option<usize>> {
    let plain = index(others.iter().map(|other| &other.plain));
    let content = index(others.iter().map(|other| &other.content));
    let nearest = ones.iter().map(|one| {
        let shared = shared_counts(&one.plain, &plain, others.len());
        let shared_content = shared_counts(&one.content, &content, others.len());
        let near = others.iter().enumerate().filter_map(|(place, other)| {
            let words = (one.plain.len() + other.plain.len()) as u64;
            let share = if shared[place] == 0 { None } else { Some(Likeness::new(2 * shared[place], words)) };
            let share = share.filter(|share| share.reaches(NEAR))?;
            Some((share, shared_content[place], Reverse(place)))
        });
        near.max().map(|(_, _, Reverse(place))| place)
    });
    nearest.collect()
}

/// Returns the places of the sets in which each word is.
fn index<'a, 'b: 'a>(sets: impl Iterator<Item = &'a BTreeSet<&'b str>>) -> BTreeMap<&'b str, Vec<usize>> {
    let mut index: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, set) in sets.enumerate() {
        for word in set {
            index.entry(word).or_default().push(place);
        }
    }
    index
}

/// Returns how many words each indexed set shares with this one.
fn shared_counts(words: &BTreeSet<&str>, index: &BTreeMap<&str, Vec<usize>>, sets: usize) -> Vec<u64> {
    let mut counts = vec![0; sets];
    for place in words.iter().filter_map(|word| index.get(word)).flatten() {
        counts[*place] += 1;
    }
    counts
}

/// Returns the stems of what remains of a word without a beginning that denies it.
fn roots(form: &str) -> impl Iterator<Item = &str> {
    DENYING.iter().filter_map(|beginning| form.strip_prefix(beginning)).map(stem)
}

/// Returns the beginning that a word has in common with its other forms: of `reduces` and `reducing`, it is `reduc`.
fn stem(word: &str) -> &str {
    let roots = ENDINGS.iter().filter_map(|ending| word.strip_suffix(ending));
    let root =
        roots.filter(|root| root.len() >= ROOT_BYTES_MIN).min_by_key(|root| root.len()).unwrap_or(word);
    root.char_indices().nth(STEM_CHARS).map_or(root, |(end, _)| &root[..end])
}
