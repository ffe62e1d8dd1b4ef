//! Cutting a text into passages along its structure.

use super::cut;
use super::files::Layout;
use protocol::PASSAGE_CHARS_MAX;

/// Returns the parts of `text`, each with its offset in bytes. Parts are as long as allowed, and cut where the text
/// itself has a break.
pub(super) fn passages(text: &str, layout: Layout) -> Vec<(usize, &str)> {
    let places = cut::cut(text, layout, PASSAGE_CHARS_MAX, |part| part.chars().count());
    places.into_iter().map(|place| (place.start, &text[place])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_is_cut_at_breaks() {
        let section = |name: &str| format!("# {name}\n\n{}\n\n", "A sentence about it. ".repeat(40).trim());
        let text = section("One") + &section("Two");
        let parts = passages(&text, Layout::Markdown);
        assert_eq!(parts.len(), 2);
        assert!(parts[0].1.starts_with("# One") && parts[1].1.starts_with("# Two"));
    }

    #[test]
    fn endless_line_is_cut_by_length() {
        let text = "apples ".repeat(200_000) + &"漢".repeat(100_000);
        let parts = passages(&text, Layout::Plain);
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
                for (start, part) in passages(&text, layout) {
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
