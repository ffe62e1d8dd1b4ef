//! Cutting a long text into pieces that overlap, along its structure.

use std::ops::Range;
use std::path::Path;

use text_splitter::{ChunkConfig, ChunkSizer, MarkdownSplitter, TextSplitter};

use super::passages::LINE_BYTES_MAX;

/// The divisor that gives the overlap: each piece begins with a tenth of the one before, so words at an edge are
/// whole in one of the two.
const OVERLAP: usize = 10;

/// A sizer that measures a text in bytes.
struct Bytes;

impl ChunkSizer for Bytes {
    fn size(&self, chunk: &str) -> usize {
        chunk.len()
    }
}

/// Returns the pieces of a text, each of at most `bytes_max` bytes (at least 64), cut where the text itself has a
/// break. Together they contain all of the text but white space. The extension of the file's `name` marks it as
/// Markdown.
pub fn pieces(name: &str, text: &str, bytes_max: usize) -> Vec<Range<usize>> {
    let bytes_max = bytes_max.max(64);
    let place = |(start, part): (usize, &str)| start..start + part.len();
    // The time of the splitters grows with the square of the length of a line.
    if text.lines().any(|line| line.len() > LINE_BYTES_MAX) {
        return by_length(text, bytes_max);
    }
    let overlap = bytes_max / OVERLAP;
    let back = |piece: Range<usize>| earlier(text, piece.start, overlap)..piece.end;
    let config = ChunkConfig::new(bytes_max - overlap).with_sizer(Bytes);
    let extension = Path::new(name).extension().unwrap_or_default();
    if ["md", "markdown"].iter().any(|known| extension.eq_ignore_ascii_case(known)) {
        MarkdownSplitter::new(config).chunk_indices(text).map(place).map(back).collect()
    } else {
        TextSplitter::new(config).chunk_indices(text).map(place).map(back).collect()
    }
}

/// Returns the start of a word that is at most `overlap` bytes before `start`.
fn earlier(text: &str, start: usize, overlap: usize) -> usize {
    let from = text.ceil_char_boundary(start.saturating_sub(overlap));
    if from == 0 {
        return 0;
    }
    let word = text[from..start].find(char::is_whitespace).map(|at| from + at);
    word.map_or(start, |at| start - text[at..start].trim_start().len())
}

/// Cuts a text by its length, between words where there are any.
fn by_length(text: &str, bytes_max: usize) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let limit = text.floor_char_boundary(at + bytes_max);
        let word = text[at..limit]
            .rfind(char::is_whitespace)
            .filter(|&end| limit < text.len() && end > bytes_max / 2);
        let end = word.map_or(limit, |word| at + word);
        if !text[at..end].trim().is_empty() {
            pieces.push(at..end);
        }
        if end == text.len() {
            break;
        }
        at = text.floor_char_boundary(end - bytes_max / OVERLAP);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn piece_begins_with_end_of_previous() {
        let text = format!("{}\n\n", "A sentence about the harbour. ".repeat(24)).repeat(40);
        for name in ["a.md", "a.txt"] {
            let pieces = pieces(name, &text, 6_000);
            assert!(pieces.len() > 4);
            for pair in pieces.windows(2) {
                let shared = pair[0].end.saturating_sub(pair[1].start);
                assert!((500..=600).contains(&shared), "{shared} bytes of a tenth");
            }
        }
    }

    proptest! {
        #[test]
        fn pieces_cover_text_within_byte_limit(
            words in prop::collection::vec("[a-zé漢.]{1,12}|\n\n|# ", 0..600), bytes_max in 64_usize..400, long in 0_usize..2,
        ) {
            let mut text = words.join(" ");
            text.push_str(&"endless ".repeat(long * 3_000));
            for name in ["a.md", "a.txt"] {
                let mut covered = 0;
                for piece in pieces(name, &text, bytes_max) {
                    prop_assert!(piece.len() <= bytes_max && !text[piece.clone()].trim().is_empty());
                    prop_assert!(piece.start <= covered || text[covered..piece.start].trim().is_empty());
                    prop_assert!(piece.end > covered, "each goes on");
                    covered = piece.end;
                }
                prop_assert!(text[covered..].trim().is_empty());
            }
        }
    }
}
