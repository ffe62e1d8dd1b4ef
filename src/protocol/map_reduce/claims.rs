//! What runs write, held against what it must rest on: sentences against their piece, answers against the facts.

use std::ops::Range;

use super::report::Claim;
use crate::text::evidence::{Answers, Part, Quotes};
use crate::text::find_verbatim;

/// The shortest words that prove anything, in characters other than spaces.
const QUOTE_CHARS_MIN: usize = 6;

/// What the last line of an answer begins with.
const NOT_FOUND: &str = "Not found:";

/// An answer, taken apart.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Said {
    /// What is said, each once.
    pub(super) claims: Vec<Claim>,
    /// What is asked for and stands in no fact.
    pub(super) not_found: Vec<String>,
    /// Numbers that are no fact's.
    pub(super) unknown: Vec<usize>,
}

/// Returns where the sentences that a reader names stand in its piece, and how many stand nowhere.
pub(super) fn places(text: &str, piece: &str) -> (Vec<Range<usize>>, usize) {
    let quotes = Quotes::read(text).unwrap_or_default();
    let proves = |quote: &str| {
        let is_long = quote.chars().filter(|c| !c.is_whitespace()).count() >= QUOTE_CHARS_MIN;
        find_verbatim(piece, quote).filter(|_| is_long)
    };
    let found: Vec<Range<usize>> = quotes.iter().filter_map(|quote| proves(quote)).collect();
    let nowhere = quotes.len() - found.len();
    (found, nowhere)
}

/// Returns which of these facts are among the sentences that a reader chose.
pub(super) fn chosen<'a>(text: &str, facts: impl Iterator<Item = (usize, &'a str)>) -> Vec<usize> {
    let quotes = Quotes::read(text).unwrap_or_default();
    let is_chosen = |fact: &str| quotes.iter().any(|quote| find_verbatim(fact, quote).is_some());
    facts.filter(|(_, fact)| is_chosen(fact)).map(|(number, _)| number).collect()
}

/// Takes an answer apart; `facts` are the numbers that there are.
pub(super) fn answer(text: &str, facts: &[usize]) -> Said {
    let mut said = Said::default();
    for Part { asked, facts: named, says } in Answers::read(text).unwrap_or_default() {
        let (mut findings, unknown): (Vec<usize>, Vec<usize>) =
            named.iter().partition(|number| facts.contains(number));
        findings.sort_unstable();
        findings.dedup();
        said.unknown.extend(unknown);
        let (asked, text) = (one_line(&asked), one_line(&says));
        if named.is_empty() || text.is_empty() {
            said.not_found.push(asked);
        } else if !said.claims.iter().any(|claim| claim.text == text && claim.findings == findings) {
            said.claims.push(Claim { asked, text, findings });
        }
    }
    said
}

impl Said {
    /// Returns the answer as people read it: each thing with the numbers of its facts, and last what was not found.
    pub(super) fn shown(&self) -> String {
        let mut lines: Vec<String> = Vec::new();
        for Claim { text, findings, .. } in &self.claims {
            let numbers: Vec<String> = findings.iter().map(|number| format!("[{number}]")).collect();
            lines.push(format!("{text} {}", numbers.concat()).trim_end().to_owned());
        }
        let missing =
            if self.not_found.is_empty() { "nothing".to_owned() } else { self.not_found.join("; ") };
        lines.push(format!("{NOT_FOUND} {missing}"));
        lines.join("\n")
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_sentence_counts_if_it_stands_in_the_piece() {
        let piece = "The bridge was opened to traffic\non 4 May 1931, in the rain.";
        let text = json!(["opened to traffic on 4 May 1931", "The bridge was closed.", "rain"]).to_string();
        let (found, nowhere) = places(&text, piece);
        assert_eq!(
            (&piece[found[0].clone()], nowhere),
            ("opened to traffic\non 4 May 1931", 2),
            "too short, or nowhere"
        );
        assert_eq!(places("[]", piece), (vec![], 0));
    }

    #[test]
    fn an_answer_keeps_its_facts_and_says_what_is_missing() {
        let part =
            |asked: &str, facts: &[usize], says: &str| json!({"asked": asked, "facts": facts, "says": says});
        let parts = [
            part("the year", &[3, 1, 3], "It opened\nin 1931."),
            part("the day", &[3, 1], "It opened in 1931."),
            part("its price", &[], "Nobody says."),
            part("its colour", &[9], "It is red."),
        ];
        let said = answer(&json!(parts).to_string(), &[1, 3]);
        assert_eq!(said.not_found, ["its price"]);
        assert_eq!(said.unknown, [9]);
        assert_eq!(said.shown(), "It opened in 1931. [1][3]\nIt is red.\nNot found: its price");
        assert_eq!(answer("[]", &[]).shown(), "Not found: nothing");
    }

    proptest! {
        #[test]
        fn no_claim_rests_on_what_there_is_not(facts in proptest::collection::vec(1_usize..9, 0..4), named in proptest::collection::vec(0_usize..12, 0..5)) {
            let text = json!([{"asked": "a", "facts": named, "says": "b"}]).to_string();
            let said = answer(&text, &facts);
            prop_assert!(said.claims.iter().flat_map(|claim| &claim.findings).all(|number| facts.contains(number)));
            prop_assert_eq!(said.not_found.len() + said.claims.len(), 1);
        }

        #[test]
        fn every_place_holds_the_words(piece in "[a-c \n]{12,60}", at in 0_usize..6) {
            let words = piece[at..].split_whitespace().collect::<Vec<_>>().join(" ");
            let (found, nowhere) = places(&json!([words]).to_string(), &piece);
            prop_assert_eq!(found.len() + nowhere, 1);
            for place in found {
                prop_assert_eq!(one_line(&piece[place]), words.clone());
            }
        }
    }
}
