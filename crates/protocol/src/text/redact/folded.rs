//! The form of a text that is searched for what must not leave the machine.
//!
//! The input is a text. The output is the same text without invisible characters, with one kind of space and one kind
//! of dash. Each place in it maps to the place in the text that it came from. A second folding closes the gaps that
//! lines and columns tear. The text itself is never changed here, and each folding takes one pass.

use std::ops::Range;

/// The sign for white space other than a single space in a [`Folded::unbroken`] text: the end of a line, a column.
pub(super) const GAP: char = '\u{1F}';

/// The sign [`GAP`] as a byte.
pub(super) const GAP_BYTE: u8 = 0x1F;

/// The number of bytes that are examined at once.
const BLOCK: usize = 64;

/// The zeros of the scripts in which numbers are written most, apart from the Latin one: Arabic, Persian, Devanagari,
/// Bengali, Gurmukhi, Gujarati, Tamil, Telugu, Kannada, Malayalam, Thai, Lao, Burmese, Khmer. Nine more digits follow
/// each.
const ZEROS: [char; 14] = [
    '\u{660}', '\u{6F0}', '\u{966}', '\u{9E6}', '\u{A66}', '\u{AE6}', '\u{BE6}', '\u{C66}', '\u{CE6}',
    '\u{D66}', '\u{E50}', '\u{ED0}', '\u{1040}', '\u{17E0}',
];

/// A folded text.
pub(super) struct Folded {
    text: String,
    /// The places where the distance to the other text changes: a place here and the same place there, in ascending
    /// order.
    shifts: Vec<(usize, usize)>,
}

impl Folded {
    /// Folds a text.
    pub(super) fn new(text: &str) -> Self {
        let mut folded = Self { text: String::with_capacity(text.len()), shifts: Vec::new() };
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            let plain = plain_run(rest.as_bytes());
            if plain > 0 {
                folded.push(&rest[..plain], at);
                at += plain;
                continue;
            }
            let Some(c) = rest.chars().next() else { break };
            if let Some(c) = fold(c) {
                folded.push(c.encode_utf8(&mut [0; 4]), at);
            }
            at += c.len_utf8();
        }
        folded.end(text.len());
        folded
    }

    /// Returns this text with [`GAP`] in place of all white space other than single spaces. Places in the result map to
    /// places in this text.
    pub(super) fn unbroken(&self) -> Self {
        let mut unbroken = Self { text: String::with_capacity(self.text.len()), shifts: Vec::new() };
        let mut at = 0;
        while at < self.text.len() {
            let rest = &self.text[at..];
            let word = rest.bytes().position(is_space).unwrap_or(rest.len());
            unbroken.push(&rest[..word], at);
            let space = rest[word..].bytes().position(|byte| !is_space(byte)).unwrap_or(rest.len() - word);
            match &rest[word..word + space] {
                "" => {}
                " " => unbroken.push(" ", at + word),
                _ => unbroken.push(GAP.encode_utf8(&mut [0; 4]), at + word),
            }
            at += word + space;
        }
        unbroken.end(self.text.len());
        unbroken
    }

    /// Returns true if the text has any white space other than single spaces.
    pub(super) fn has_gaps(&self) -> bool {
        let mut blocks = self.text.as_bytes().chunks(BLOCK);
        blocks.any(has_break) || self.text.contains("  ")
    }

    /// Returns the folded text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the place in the original text that belongs to a place in the folded text.
    pub(super) fn unfold(&self, place: &Range<usize>) -> Range<usize> {
        self.origin(place.start)..self.origin(place.end)
    }

    fn origin(&self, at: usize) -> usize {
        let earlier = self.shifts.partition_point(|(here, _)| *here <= at);
        let (here, there) =
            earlier.checked_sub(1).and_then(|last| self.shifts.get(last)).copied().unwrap_or((0, 0));
        there + (at - here)
    }

    /// Appends a piece that begins at `from` in the other text.
    fn push(&mut self, piece: &str, from: usize) {
        self.note(from);
        self.text.push_str(piece);
    }

    fn end(&mut self, from: usize) {
        self.note(from);
    }

    /// Records that the next piece is at `from` in the other text.
    fn note(&mut self, from: usize) {
        let here = self.text.len();
        if self.origin(here) == from {
            return;
        }
        match self.shifts.last_mut() {
            Some((last, there)) if *last == here => *there = from,
            Some(_) | None => self.shifts.push((here, from)),
        }
    }
}

/// Returns true if a block has white space other than spaces. No byte ends the examination early, as in [`plain_run`].
fn has_break(block: &[u8]) -> bool {
    block.iter().fold(false, |any, byte| any | matches!(byte, b'\n' | b'\r' | b'\t'))
}

/// Returns the number of bytes at the beginning that stay as they are. Most texts are plain for long stretches, so
/// whole blocks are examined at once.
fn plain_run(bytes: &[u8]) -> usize {
    // No byte ends the examination of a block early, so that a processor examines many bytes at a time.
    let blocks = bytes.chunks_exact(BLOCK);
    let plain = blocks.take_while(|block| block.iter().fold(true, |all, byte| all & is_plain(*byte)));
    let whole = BLOCK * plain.count();
    let rest = &bytes[whole..];
    whole + rest.iter().position(|byte| !is_plain(*byte)).unwrap_or(rest.len())
}

/// Returns true if a byte is a character that stays as it is.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t')
}

/// Returns true if a byte of a folded text is white space, which has one byte there.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

/// Returns the character that replaces this one, or nothing if it is invisible.
fn fold(c: char) -> Option<char> {
    match c {
        '\n' | '\r' | '\t' => Some(c),
        '\u{2028}' | '\u{2029}' => Some('\n'),
        c if crate::text::escape::is_invisible(c) => None,
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{FE58}' | '\u{FE63}' | '\u{FF0D}' => Some('-'),
        // Full-width letters, digits and signs.
        '\u{FF01}'..='\u{FF5E}' => Some(char::from_u32(u32::from(c) - 0xFEE0).unwrap_or(c)),
        c if c.is_whitespace() => Some(' '),
        c => Some(ascii_digit(c).unwrap_or(c)),
    }
}

/// Returns the ASCII digit for a digit of another script.
fn ascii_digit(c: char) -> Option<char> {
    let zero =
        ZEROS.iter().find(|zero| (u32::from(**zero)..u32::from(**zero) + 10).contains(&u32::from(c)))?;
    char::from_digit(u32::from(c) - u32::from(*zero), 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn places_map_back_through_both_foldings() {
        let text = "a\u{200B}b\u{2014}c\u{A0}\n  d\u{FF21}\u{AD}";
        let folded = Folded::new(text);
        assert_eq!(folded.text(), "ab-c \n  dA");
        let unbroken = folded.unbroken();
        assert_eq!(unbroken.text(), "ab-c\u{1F}dA");
        let back = |place: Range<usize>| &text[folded.unfold(&unbroken.unfold(&place))];
        assert_eq!(back(0..1), "a\u{200B}");
        assert_eq!(back(2..3), "\u{2014}");
        assert_eq!(back(4..5), "\u{A0}\n  ");
        assert_eq!(back(6..7), "\u{FF21}\u{AD}");
        assert_eq!(back(0..unbroken.text().len()), text);
    }

    proptest! {
        #[test]
        fn folded_character_leads_to_its_origin(text in "[a\u{200B}\u{2014}\u{A0}\n \u{FF21}漢]{0,12}") {
            let kept: Vec<(usize, char)> =
                text.char_indices().filter_map(|(at, c)| Some((at, fold(c)?))).collect();
            let folded = Folded::new(&text);
            prop_assert_eq!(folded.text().chars().count(), kept.len());
            for ((here, c), (there, expected)) in folded.text().char_indices().zip(kept) {
                prop_assert_eq!((c, folded.unfold(&(here..here)).start), (expected, there));
            }
            let whole = folded.unfold(&(folded.text().len()..folded.text().len()));
            prop_assert_eq!(whole.start, text.len());
        }
    }
}
