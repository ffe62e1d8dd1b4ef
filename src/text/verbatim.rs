//! Finding a quotation in its source, word for word.

use std::ops::Range;

/// Returns where `quote` stands in `source`, as a range of bytes: the first place, if it stands there more
/// than once.
///
/// Every character counts, except that any run of white space stands for any other: a model that quotes
/// across a line break writes a space. A quote of nothing but white space stands nowhere.
#[must_use]
pub fn find_verbatim(source: &str, quote: &str) -> Option<Range<usize>> {
    let words: Vec<&str> = quote.split_whitespace().collect();
    let first = words.first()?;
    source.match_indices(first).find_map(|(start, _)| {
        let end = words_follow(&source[start..], &words)?;
        Some(start..start + end)
    })
}

/// Returns the length of the beginning of `text` that holds `words` with white space between them.
fn words_follow(text: &str, words: &[&str]) -> Option<usize> {
    let mut rest = text;
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            let trimmed = rest.trim_start();
            if trimmed.len() == rest.len() {
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
    }

    proptest! {
        #[test]
        fn whatever_stands_in_a_source_is_found_and_its_span_says_the_same(
            before in "\\PC{0,20}", quote in "[a-zé漢]{1,5}( [a-z.é漢]{1,5}){0,4}", after in "\\PC{0,20}",
        ) {
            let source = format!("{before}{}{after}", quote.replace(' ', " \n "));
            let span = find_verbatim(&source, &quote).unwrap();
            let found: Vec<&str> = source[span].split_whitespace().collect();
            prop_assert_eq!(found.join(" "), quote);
        }
    }
}
