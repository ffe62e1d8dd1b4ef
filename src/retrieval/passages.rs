//! Cutting a text into passages along its structure.

use text_splitter::{ChunkConfig, MarkdownSplitter, TextSplitter};

use super::files::Layout;
use crate::protocol::PASSAGE_CHARS_MAX;

/// Returns the parts of `text` with the byte at which each begins: as long as allowed, and cut where the text
/// itself has a break.
pub(super) fn cut(text: &str, layout: Layout) -> Vec<(usize, &str)> {
    let config = ChunkConfig::new(PASSAGE_CHARS_MAX);
    match layout {
        Layout::Markdown => MarkdownSplitter::new(config).chunk_indices(text).collect(),
        Layout::Plain => TextSplitter::new(config).chunk_indices(text).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_text_is_cut_where_it_has_a_break() {
        let section = |name: &str| format!("# {name}\n\n{}\n\n", "A sentence about it. ".repeat(40).trim());
        let text = section("One") + &section("Two");
        let parts = cut(&text, Layout::Markdown);
        assert_eq!(parts.len(), 2);
        assert!(parts[0].1.starts_with("# One") && parts[1].1.starts_with("# Two"));
    }

    proptest! {
        #[test]
        fn passages_stand_in_the_text_where_they_say_and_leave_out_only_white_space(
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
