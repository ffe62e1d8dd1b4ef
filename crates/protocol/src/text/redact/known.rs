//! Known originals, wherever they are. A word beside a password may have given it away in an earlier text, and the
//! password may be alone in a later one.
//!
//! The input is originals with their kinds. The output is places in a text. A finder passes a text once, whatever the
//! number of originals.

use std::collections::BTreeMap;
use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};

/// The fewest characters of an original. Shorter ones are found in too many other words.
const CHARS_MIN: usize = 4;

/// Originals, each with the word for its kind.
#[derive(Clone, Debug, Default)]
pub struct Originals(BTreeMap<String, &'static str>);

impl Originals {
    /// Adds an original, unless it is too short.
    pub(super) fn add(&mut self, original: &str, word: &'static str) {
        if original.chars().take(CHARS_MIN).count() == CHARS_MIN {
            self.0.insert(original.to_owned(), word);
        }
    }

    /// Adds the originals of another list.
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
    /// Creates a finder. Returns nothing if there are no originals, or too many to hold.
    pub(super) fn new(originals: &Originals) -> Option<Self> {
        let mut builder = AhoCorasick::builder();
        let finder = builder.match_kind(MatchKind::LeftmostLongest).build(originals.0.keys()).ok()?;
        let words = originals.0.values().copied().collect::<Vec<_>>();
        if words.is_empty() { None } else { Some(Self { finder, words }) }
    }

    /// Returns the places of the originals, with the words for their kinds.
    pub(super) fn find(&self, text: &str) -> impl Iterator<Item = (Range<usize>, &'static str)> {
        self.finder.find_iter(text).map(|place| (place.range(), self.words[place.pattern().as_usize()]))
    }
}
