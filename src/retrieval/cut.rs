//! Cuts a text along its structure: at headings and paragraphs, then at lines, sentences, words and characters.
//!
//! The input is a text, its layout, and the most that a part may hold. The output is the places of the parts, in order.
//! Each part is within the limit and has no white space at its ends. Nothing but white space is left out. The time grows
//! with the length of the text alone.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation as _;

use super::files::Layout;

/// Where a text may be cut, from the best place to the worst.
#[derive(Clone, Copy)]
enum Level {
    /// Before a heading of at most this rank.
    Heading(usize),
    /// After a blank line.
    Paragraph,
    Line,
    Sentence,
    Word,
    Character,
}

/// The marks that begin and end a block of code.
const FENCES: [&str; 2] = ["```", "~~~"];

/// Returns the places of the parts of `text`, each of at most `max` by `measure`, which adds up over parts of a text.
/// One character must not measure more than `max`.
pub(super) fn cut(text: &str, layout: Layout, max: usize, measure: fn(&str) -> usize) -> Vec<Range<usize>> {
    let first = match layout {
        Layout::Markdown => Level::Heading(1),
        Layout::Plain => Level::Paragraph,
    };
    let mut cutter = Cutter { text, max, measure, parts: Vec::new() };
    cutter.cut(0..text.len(), first);
    cutter.parts
}

struct Cutter<'a> {
    text: &'a str,
    max: usize,
    measure: fn(&str) -> usize,
    parts: Vec<Range<usize>>,
}

impl Cutter<'_> {
    /// Cuts a range at this level, and at the next one where that is not enough.
    fn cut(&mut self, range: Range<usize>, level: Level) {
        let range = trim(self.text, range);
        if range.is_empty() {
            return;
        }
        if (self.measure)(&self.text[range.clone()]) <= self.max {
            self.parts.push(range);
            return;
        }
        let mut start = range.start;
        // The measure of what is between `start` and the place that was reached.
        let mut held = 0;
        let mut reached = range.start;
        for end in ends(&self.text[range.clone()], level) {
            let end = range.start + end;
            let part = reached..end;
            let without_space = self.text[part.clone()].trim_end();
            if held + (self.measure)(without_space) > self.max {
                self.push(start..reached);
                (start, held) = (reached, 0);
                if (self.measure)(without_space.trim_start()) > self.max {
                    if let Some(next) = next(level) {
                        self.cut(part.clone(), next);
                    }
                    (start, reached) = (end, end);
                    continue;
                }
                start += without_space.len() - without_space.trim_start().len();
            }
            held += (self.measure)(&self.text[start.max(reached)..end]);
            reached = end;
        }
        self.push(start..reached);
    }

    fn push(&mut self, range: Range<usize>) {
        let range = trim(self.text, range);
        if !range.is_empty() {
            self.parts.push(range);
        }
    }
}

/// Returns a range without the white space at its ends.
fn trim(text: &str, range: Range<usize>) -> Range<usize> {
    let part = &text[range.clone()];
    let start = range.start + (part.len() - part.trim_start().len());
    start..start + part.trim().len()
}

/// Returns the level after this one.
fn next(level: Level) -> Option<Level> {
    match level {
        Level::Heading(6) => Some(Level::Paragraph),
        Level::Heading(rank) => Some(Level::Heading(rank + 1)),
        Level::Paragraph => Some(Level::Line),
        Level::Line => Some(Level::Sentence),
        Level::Sentence => Some(Level::Word),
        Level::Word => Some(Level::Character),
        Level::Character => None,
    }
}

/// Returns the offsets at which `text` may be cut at this level, the last of which is its end.
fn ends(text: &str, level: Level) -> Vec<usize> {
    let mut ends: Vec<usize> = match level {
        Level::Heading(rank) => headings(text, rank),
        Level::Paragraph => {
            let mut ends = Vec::new();
            let (mut at, mut is_blank) = (0, false);
            for line in text.split_inclusive('\n') {
                let was_blank = std::mem::replace(&mut is_blank, line.trim().is_empty());
                if was_blank && !is_blank {
                    ends.push(at);
                }
                at += line.len();
            }
            ends
        }
        Level::Line => text.match_indices('\n').map(|(at, _)| at + 1).collect(),
        Level::Sentence => text.split_sentence_bound_indices().map(|(at, _)| at).collect(),
        Level::Word => text.split_word_bound_indices().map(|(at, _)| at).collect(),
        Level::Character => text.char_indices().map(|(at, _)| at).collect(),
    };
    ends.retain(|end| (1..text.len()).contains(end));
    ends.push(text.len());
    ends
}

/// Returns the offsets of the headings of at most this rank, outside of blocks of code.
fn headings(text: &str, rank: usize) -> Vec<usize> {
    let mut places = Vec::new();
    let mut fence = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_start();
        let mark = FENCES.into_iter().find(|mark| bare.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) => {
                let marks = line.len() - line.trim_start_matches('#').len();
                if (1..=rank).contains(&marks) && line[marks..].starts_with([' ', '\t', '\n']) {
                    places.push(at);
                }
            }
            (Some(_), _) => {}
        }
        at += line.len();
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str, layout: Layout, max: usize) -> Vec<&str> {
        cut(text, layout, max, str::len).into_iter().map(|place| &text[place]).collect()
    }

    #[test]
    fn best_place_is_chosen() {
        let text = "One two three. Four five six.\nSeven.\n\nEight nine.";
        assert_eq!(parts(text, Layout::Plain, 100), [text]);
        assert_eq!(parts(text, Layout::Plain, 40), ["One two three. Four five six.\nSeven.", "Eight nine."]);
        assert_eq!(
            parts(text, Layout::Plain, 30),
            ["One two three. Four five six.", "Seven.", "Eight nine."]
        );
        assert_eq!(
            parts(text, Layout::Plain, 16),
            ["One two three.", "Four five six.", "Seven.", "Eight nine."]
        );
        assert_eq!(parts("abcdef gh", Layout::Plain, 4), ["abcd", "ef", "gh"]);
    }

    #[test]
    fn headings_come_before_paragraphs() {
        let text = "# A\n\nx x\n\n## B\n\ny\n\n```\n# no heading\n```\n\n# C\n\nz";
        assert_eq!(
            parts(text, Layout::Markdown, 42),
            ["# A\n\nx x\n\n## B\n\ny\n\n```\n# no heading\n```", "# C\n\nz"]
        );
        assert_eq!(
            parts(text, Layout::Markdown, 36),
            ["# A\n\nx x", "## B\n\ny\n\n```\n# no heading\n```", "# C\n\nz"]
        );
    }
}
