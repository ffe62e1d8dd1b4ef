//! Cutting a text into passages along its structure.

use text_splitter::{ChunkConfig, MarkdownSplitter, TextSplitter};

use super::files::Layout;
use crate::protocol::PASSAGE_CHARS_MAX;

/// Returns the parts of `text`, each with its offset in bytes. Parts are as long as allowed, and cut where the text
/// itself has a break.
pub(super) fn cut(text: &str, layout: Layout) -> Vec<(usize, &str)> {
    let config = ChunkConfig::new(PASSAGE_CHARS_MAX);
    match layout {
        // The time of the splitters grows with the square of the length of a line; a minified program has very long
        // ones.
        _ if text.lines().any(|line| line.len() > LINE_BYTES_MAX) => lines(text),
        Layout::Markdown => MarkdownSplitter::new(config).chunk_indices(text).collect(),
        Layout::Plain => TextSplitter::new(config).chunk_indices(text).collect(),
    }
}

/// The length limit of a line that is cut along its structure, in bytes. Lines of prose are shorter.
pub(super) const LINE_BYTES_MAX: usize = 20_000;

/// Cuts a text by its length alone, between words where there are any.
fn lines(text: &str) -> Vec<(usize, &str)> {
    let mut parts = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let begin = at + (rest.len() - rest.trim_start().len());
        let rest = &text[begin..];
        let limit = rest.char_indices().nth(PASSAGE_CHARS_MAX).map_or(rest.len(), |(limit, _)| limit);
        let is_whole = limit == rest.len();
        let word = rest[..limit].rfind(char::is_whitespace).filter(|&end| !is_whole && end > 0);
        let part = rest[..word.unwrap_or(limit)].trim_end();
        if !part.is_empty() {
            parts.push((begin, part));
        }
        at = begin + word.unwrap_or(limit).max(1);
        at = text.ceil_char_boundary(at.min(text.len()));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_is_cut_at_breaks() {
        let section = |name: &str| format!("# {name}\n\n{}\n\n", "A sentence about it. ".repeat(40).trim());
        let text = section("One") + &section("Two");
        let parts = cut(&text, Layout::Markdown);
        assert_eq!(parts.len(), 2);
        assert!(parts[0].1.starts_with("# One") && parts[1].1.starts_with("# Two"));
    }

    #[test]
    fn endless_line_is_cut_by_length() {
        let text = "apples ".repeat(200_000) + &"漢".repeat(100_000);
        let parts = cut(&text, Layout::Plain);
        assert!(parts.iter().all(|(start, part)| text[*start..].starts_with(part)));
        assert!(parts.iter().all(|(_, part)| (1..=PASSAGE_CHARS_MAX).contains(&part.chars().count())));
        let chars: usize = parts.iter().map(|(_, part)| part.chars().filter(|c| *c != ' ').count()).sum();
        assert_eq!(chars, 200_000 * 6 + 100_000);
    }

    proptest! {
        /// Each passage is at its stated place in the text and within the limit of length.
        #[test]
        fn passages_leave_out_only_white_space(
            words in prop::collection::vec("[a-zé漢.]{1,12}|\n\n|# ", 0..600),
        ) {
            let text = words.join(" ");
            for layout in [Layout::Markdown, Layout::Plain] {
                let mut at = 0;
                for (start, part) in cut(&text, layout) {
                    prop_assert_eq!(&text[start..start + part.len()], part);
                    prop_assert!(part.chars().count() <= PASSAGE_CHARS_MAX);
                    prop_assert!(text[at..start].trim().is_empty(), "{:?}", &text[at..start]);
                    at = start + part.len();
                }
                prop_assert!(text[at..].trim().is_empty());
            }
        }
    }
}
