//! Cutting a long text into pieces that overlap, along its structure.

use std::ops::Range;
use std::path::Path;

use super::cut;
use super::files::Layout;

/// The divisor that gives the overlap: each piece begins with a tenth of the one before, so words at an edge are
/// whole in one of the two.
const OVERLAP: usize = 10;

/// Returns the pieces of a text, each of at most `bytes_max` bytes (at least 64), cut where the text itself has a
/// break. Together they contain all of the text but white space. The extension of the file's `name` marks it as
/// Markdown.
pub fn pieces(name: &str, text: &str, bytes_max: usize) -> Vec<Range<usize>> {
    let bytes_max = bytes_max.max(64);
    let overlap = bytes_max / OVERLAP;
    let extension = Path::new(name).extension().unwrap_or_default();
    let is_markdown = ["md", "markdown"].iter().any(|known| extension.eq_ignore_ascii_case(known));
    let layout = if is_markdown { Layout::Markdown } else { Layout::Plain };
    let mut pieces = cut::cut(text, layout, bytes_max - overlap, str::len);
    for piece in &mut pieces {
        piece.start = earlier(text, piece.start, overlap);
    }
    pieces
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
                    prop_assert!(piece.end > covered, "each has new text");
                    covered = piece.end;
                }
                prop_assert!(text[covered..].trim().is_empty());
            }
        }
    }
}
