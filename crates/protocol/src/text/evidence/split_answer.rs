//! The answer of a run that worked from numbered facts, split into its claims.

use std::sync::LazyLock;

use regex::Regex;
use serde::Serialize;

use super::{AnswerPart, Answers};
use crate::text::one_line;

/// The words that begin the last line of an answer.
const NOT_FOUND: &str = "Not found:";

/// A part of the answer.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Claim {
    /// The thing that was asked for.
    pub asked: String,
    /// The statement about it.
    pub text: String,
    /// The numbers of the findings that it rests on.
    pub findings: Vec<usize>,
}

/// An answer, split into its parts.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SplitAnswer {
    pub claims: Vec<Claim>,
    /// The things that are asked for and are in no fact.
    pub not_found: Vec<String>,
}

impl SplitAnswer {
    /// Splits an answer into its parts. The answer passes its rule, so it names only existing facts.
    pub(crate) fn read(text: &str) -> Self {
        let mut split = Self::default();
        for AnswerPart { asked, facts: mut findings, says } in Answers::read(text).unwrap_or_default() {
            let asked = one_line(&asked);
            if findings.is_empty() {
                split.not_found.push(asked);
                continue;
            }
            findings.sort_unstable();
            findings.dedup();
            let text = without_numbers(&one_line(&says));
            split.claims.push(Claim { asked, text, findings });
        }
        // A thing that one item answers is found, whatever another item says.
        split.not_found.retain(|asked| !split.claims.iter().any(|claim| claim.asked == *asked));
        split
    }

    /// Returns the answer for people: each statement once with the numbers of its facts, and last the things that were not found.
    pub(crate) fn text(&self) -> String {
        let mut lines: Vec<String> = Vec::new();
        for Claim { text, findings, .. } in &self.claims {
            let numbers: Vec<String> = findings.iter().map(|number| format!("[{number}]")).collect();
            let line = format!("{text} {}", numbers.concat());
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        let missing =
            if self.not_found.is_empty() { "nothing".to_owned() } else { self.not_found.join("; ") };
        lines.push(format!("{NOT_FOUND} {missing}"));
        lines.join("\n")
    }
}

/// Returns a text in which nothing looks like the number of a fact: numbers in square brackets get round ones.
fn without_numbers(text: &str) -> String {
    static NUMBERS: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\[([0-9][0-9, ]*)\]").expect("it is a constant, and a test uses it"));
    NUMBERS.replace_all(text, "($1)").into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answer_keeps_facts_and_names_missing() {
        let part =
            |asked: &str, facts: &[usize], says: &str| json!({"asked": asked, "facts": facts, "says": says});
        let parts = [
            part("the year", &[3, 1, 3], "It opened [2]\nin 1931."),
            part("the day", &[3, 1], "It opened [2] in 1931."),
            part("its price", &[], "Nobody says."),
            part("the year", &[], ""),
        ];
        let split = SplitAnswer::read(&json!(parts).to_string());
        assert_eq!(
            split.claims.iter().map(|claim| claim.asked.as_str()).collect::<Vec<_>>(),
            ["the year", "the day"]
        );
        assert_eq!(split.not_found, ["its price"]);
        assert_eq!(split.text(), "It opened (2) in 1931. [1][3]\nNot found: its price");
    }
}
