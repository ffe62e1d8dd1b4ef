//! Originals that are known already, wherever they stand: what an earlier text has told by a word beside it, such as a password,
//! stands alone in a later one.
//!
//! In: originals with their kinds. Out: places in a text. A finder passes a text once, whatever the number of originals.

use std::collections::BTreeMap;
use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};

/// Originals of fewer characters are found in too many other words.
const CHARS_MIN: usize = 4;

/// Originals, each with the word for its kind.
#[derive(Clone, Debug, Default)]
pub struct Originals(BTreeMap<String, &'static str>);

impl Originals {
    /// Takes one more.
    pub(super) fn add(&mut self, original: &str, word: &'static str) {
        if original.chars().take(CHARS_MIN).count() == CHARS_MIN {
            self.0.insert(original.to_owned(), word);
        }
    }

    /// Takes those of another list as well.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

/// Originals, ready to be found.
#[derive(Clone, Debug)]
pub(super) struct KnownOriginals {
    finder: AhoCorasick,
    words: Vec<&'static str>,
}

impl KnownOriginals {
    /// Makes a finder; none, where there is nothing to find, or too much to hold.
    pub(super) fn new(originals: &Originals) -> Option<Self> {
        let mut builder = AhoCorasick::builder();
        let finder = builder.match_kind(MatchKind::LeftmostLongest).build(originals.0.keys()).ok()?;
        let words = originals.0.values().copied().collect::<Vec<_>>();
        (!words.is_empty()).then_some(Self { finder, words })
    }

    /// Returns the places of the originals, with the words for their kinds.
    pub(super) fn find(&self, text: &str) -> impl Iterator<Item = (Range<usize>, &'static str)> {
        self.finder.find_iter(text).map(|place| (place.range(), self.words[place.pattern().as_usize()]))
    }
}
