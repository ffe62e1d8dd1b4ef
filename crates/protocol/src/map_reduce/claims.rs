//! The check of the runs' texts: sentences are compared with their piece.

use std::ops::Range;

use crate::text::evidence::Quotes;
use crate::text::{find_verbatim, one_line};

/// The minimum length of words that prove anything, in characters other than spaces.
const QUOTE_CHARS_MIN: usize = 6;

/// Returns the places of the sentences that a reader chose, and the number of its quotes that are nowhere in the piece.
///
/// `offered` are the sentences that begin in the piece, with their places in the document. A reader that copies a part of a sentence means
/// all of it, because the words around the part may change its sense.
pub(super) fn quoted_places(
    text: &str,
    document: &str,
    offered: &[Range<usize>],
) -> (Vec<Range<usize>>, usize) {
    let (mut found, mut nowhere) = (Vec::new(), 0);
    for quote in Quotes::read(text).unwrap_or_default() {
        match find_place(&quote, document, offered) {
            Some(place) => found.push(place),
            None => nowhere += 1,
        }
    }
    (found, nowhere)
}

fn find_place(quote: &str, document: &str, offered: &[Range<usize>]) -> Option<Range<usize>> {
    if let Some(same) = offered.iter().find(|place| one_line(&document[(*place).clone()]) == quote) {
        return Some(same.clone());
    }
    if quote.chars().filter(|c| !c.is_whitespace()).count() < QUOTE_CHARS_MIN {
        return None;
    }
    let (first, last) = (offered.first()?, offered.last()?);
    let words = find_verbatim(&document[first.start..last.end], quote)?;
    let (start, end) = (first.start + words.start, first.start + words.end);
    let around = offered.iter().filter(|place| place.start < end && start < place.end);
    around.map(Range::clone).reduce(|all, place| all.start..place.end)
}

/// Returns the numbers of the facts that are among the sentences that a reader chose.
pub(super) fn chosen_facts(text: &str, facts: &[(usize, String)]) -> Vec<usize> {
    let quotes = Quotes::read(text).unwrap_or_default();
    let chosen =
        facts.iter().filter(|(_, fact)| quotes.iter().any(|quote| find_verbatim(fact, quote).is_some()));
    chosen.map(|(number, _)| *number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::evidence::sentences;
    use proptest::prelude::*;
    use serde_json::json;

    /// A sentence counts only if it is in the document.
    #[test]
    fn quoted_part_counts_as_whole_sentence() {
        let document = "Nobody in the town says that the bridge was opened\non 4 May 1931. It rained, and it was cold. 5";
        let offered = sentences(document);
        let text =
            json!(["opened on 4 May 1931", "The bridge was closed.", "rain", "1931. It rained"]).to_string();
        let (found, nowhere) = quoted_places(&text, document, &offered);
        let quotes: Vec<&str> = found.into_iter().map(|place| &document[place]).collect();
        let whole = "Nobody in the town says that the bridge was opened\non 4 May 1931.";
        assert_eq!(
            quotes,
            [
                whole,
                "Nobody in the town says that the bridge was opened\non 4 May 1931. It rained, and it was cold. 5"
            ]
        );
        assert_eq!(nowhere, 2, "too short, or nowhere");
        let short = "A title\n\n| 5 |\n";
        let offered = sentences(short);
        let all: Vec<String> = offered.iter().map(|place| one_line(&short[place.clone()])).collect();
        assert_eq!(
            quoted_places(&json!(all).to_string(), short, &offered),
            (offered.clone(), 0),
            "what was offered counts"
        );
    }

    proptest! {
        /// The sentences hold the words of the quote.
        #[test]
        fn every_place_holds_whole_sentences(document in "[a-c .\n]{12,80}", at in 0_usize..6) {
            let offered = sentences(&document);
            let words = document[at..].split_whitespace().take(4).collect::<Vec<_>>().join(" ");
            let (found, nowhere) = quoted_places(&json!([words]).to_string(), &document, &offered);
            prop_assert_eq!(found.len() + nowhere, 1);
            for place in found {
                prop_assert!(one_line(&document[place.clone()]).contains(&words));
                prop_assert!(offered.iter().any(|sentence| sentence.start == place.start));
                prop_assert!(offered.iter().any(|sentence| sentence.end == place.end));
            }
        }
    }
}
