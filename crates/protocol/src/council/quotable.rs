//! The sentences that can be quoted from a source, as a list to which a grammar can restrict a model.
//!
//! The input is the text of a source. The output is its sentences, each word for word. A small model that is asked to copy words letter for
//! letter writes its own: a 1.5B model quoted words that were in no source in 18 checks of 18. Offered the sentences, it has to choose one.
//! A reply is checked against the source all the same.

use unicode_segmentation::UnicodeSegmentation;

/// The minimum and maximum length of a quote, in characters. A quote of a letter or two is in every text.
pub(super) const QUOTE_CHARS: (usize, usize) = (6, 400);

/// The maximum number of quotes that one source offers. A grammar with more of them makes servers slow.
const QUOTES_MAX: usize = 40;

/// Returns the sentences of a text; `None` if there are too many to offer, or if no sentence is long enough.
pub(super) fn quotes(text: &str) -> Option<Vec<String>> {
    let (min, max) = QUOTE_CHARS;
    let mut found: Vec<String> = Vec::new();
    for sentence in text.lines().flat_map(UnicodeSegmentation::unicode_sentences) {
        for part in parts(sentence.trim(), max) {
            if part.chars().count() >= min && !found.iter().any(|known| known == part) {
                found.push(part.to_owned());
            }
        }
        if found.len() > QUOTES_MAX {
            return None;
        }
    }
    (!found.is_empty()).then_some(found)
}

/// Cuts a text between words into parts of at most `chars_max` characters.
fn parts(text: &str, chars_max: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((limit, _)) = rest.char_indices().nth(chars_max) {
        // A word that is longer than a part is cut inside.
        let end = rest[..limit].rfind(char::is_whitespace).filter(|&end| end > 0).unwrap_or(limit);
        parts.push(rest[..end].trim_end());
        rest = rest[end..].trim_start();
    }
    parts.push(rest);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::text::find_verbatim;
    use proptest::prelude::*;

    #[test]
    fn each_sentence_can_be_quoted() {
        let text = "Suggest one gift. It must cost less than 20 euros.\nA mug costs 12 euros, a lamp costs 45 euros. No.";
        let expected = [
            "Suggest one gift.",
            "It must cost less than 20 euros.",
            "A mug costs 12 euros, a lamp costs 45 euros.",
        ];
        assert_eq!(quotes(text).unwrap(), expected);
        assert_eq!(quotes("No."), None);
        assert_eq!(quotes(&"Not again. But yes. ".repeat(3)).unwrap().len(), 2);
        let many: Vec<String> = (0..50).map(|n| format!("This is number {n}.")).collect();
        assert_eq!(quotes(&many.join(" ")), None);
    }

    proptest! {
        #[test]
        fn whatever_is_offered_stands_in_its_source(text in "[a-zA-Z.!? \n\u{e9}\u{4e00}]{0,900}") {
            for quote in quotes(&text).into_iter().flatten() {
                prop_assert!(find_verbatim(&text, &quote).is_some(), "{quote:?}");
                prop_assert!((QUOTE_CHARS.0..=QUOTE_CHARS.1).contains(&quote.chars().count()));
            }
        }
    }
}
