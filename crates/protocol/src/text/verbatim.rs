//! Finds a quotation in its source, word for word.

use std::ops::Range;

/// The most white space that one space of a quote stands for, in bytes: a page break, but not an empty page.
const GAP_BYTES_MAX: usize = 64;

/// Returns the place of `quote` in `source`, as a range of bytes. If there are several places, it returns the first.
///
/// Every character counts, except that any run of white space equals any other, because a model that quotes across a
/// line break writes a space. A quote of nothing but white space is not found anywhere.
pub fn find_verbatim(source: &str, quote: &str) -> Option<Range<usize>> {
    let words: Vec<&str> = quote.split_whitespace().collect();
    let first = words.first()?;
    // Every place is tried, because a word may begin inside another match of itself.
    source.char_indices().find_map(|(start, _)| {
        let rest = &source[start..];
        if !rest.starts_with(first) {
            return None;
        }
        Some(start..start + words_follow(rest, &words)?)
    })
}

/// Returns the length of the beginning of `text` that contains `words` with white space between them.
fn words_follow(text: &str, words: &[&str]) -> Option<usize> {
    let mut rest = text;
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            let trimmed = rest.trim_start();
            let gap = rest.len() - trimmed.len();
            if gap == 0 || gap > GAP_BYTES_MAX {
                return None;
            }
            rest = trimmed;
        }
        rest = rest.strip_prefix(word)?;
    }
    Some(text.len() - rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn white_space_may_differ_and_nothing_else() {
        let source = "The tower is 330 m tall.\n  It was\tbuilt in 1889 — by Eiffel.";
        assert_eq!(
            find_verbatim(source, "tall. It was built").map(|r| &source[r]),
            Some("tall.\n  It was\tbuilt")
        );
        assert_eq!(find_verbatim(source, " 330 m "), Some(13..18));
        for differs in ["331 m", "330m", "the tower", "1889 - by", "", "  ", "Eiffel..", "builtin"] {
            assert_eq!(find_verbatim(source, differs), None, "{differs}");
        }
        assert_eq!(find_verbatim("a a b", "a b"), Some(2..5));
        assert_eq!(find_verbatim("aaa b", "aa b"), Some(1..5));
        assert_eq!(find_verbatim(&format!("a{}b", "\n".repeat(65)), "a b"), None);
    }

    proptest! {
        /// The span holds the same words, though line breaks may separate them.
        #[test]
        fn quote_in_source_is_found(
            before in "\\PC{0,20}", quote in "[a-zé漢]{1,5}( [a-z.é漢]{1,5}){0,4}", after in "\\PC{0,20}",
        ) {
            let source = format!("{before}{}{after}", quote.replace(' ', " \n "));
            let span = find_verbatim(&source, &quote).unwrap();
            let found: Vec<&str> = source[span].split_whitespace().collect();
            prop_assert_eq!(found.join(" "), quote);
        }
    }
}
