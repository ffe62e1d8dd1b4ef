//! The ballot of an evaluator, read strictly.
//!
//! The input is a reply's text and the line-up that its author saw. The output is a mark for every answer in it, or a [`Violation`] for its
//! author. Nothing is filled in and nothing is repaired. No total is read: code adds up.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::lineup::Lineup;
use crate::text::{StrictValue, Violation, closed, escape, extract, read_one};
use crate::turn::Valid;

/// The lowest score of one criterion.
pub const SCORE_MIN: u8 = 1;
/// The highest score of one criterion.
pub const SCORE_MAX: u8 = 10;
/// The highest total of one evaluation: four criteria.
pub const TOTAL_MAX: u32 = 4 * SCORE_MAX as u32;

/// The maximum length of the feedback on one answer, in characters. Every member sees the feedback on the best answer.
pub(super) const FEEDBACK_CHARS_MAX: usize = 400;

/// What an evaluator is to write about one answer.
const PART_FORM: &str = "write an object with feedback and four whole numbers";

/// The scores of one answer, [`SCORE_MIN`] to [`SCORE_MAX`] each.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Scores {
    /// The score for being true.
    pub accuracy: u8,
    /// The score for answering what was asked.
    pub relevance: u8,
    /// The score for covering all that was asked.
    pub completeness: u8,
    /// The score for being understandable.
    pub clarity: u8,
}

impl Scores {
    /// The criteria's names, in the order in which they are written.
    pub const CRITERIA: [&str; 4] = ["accuracy", "relevance", "completeness", "clarity"];

    /// Returns the sum of the four, 4 to 40.
    pub fn total(self) -> u32 {
        [self.accuracy, self.relevance, self.completeness, self.clarity].into_iter().map(u32::from).sum()
    }

    fn are_in_range(self) -> bool {
        let all = [self.accuracy, self.relevance, self.completeness, self.clarity];
        all.iter().all(|score| (SCORE_MIN..=SCORE_MAX).contains(score))
    }
}

/// The judgement of an evaluator on one answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mark {
    /// The index of the answer's author.
    pub target: usize,
    /// The scores of the answer.
    pub scores: Scores,
    /// The improvement that the evaluator suggests.
    pub feedback: String,
}

/// One answer's part of a ballot, as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BallotPart {
    feedback: String,
    accuracy: u8,
    relevance: u8,
    completeness: u8,
    clarity: u8,
}

/// Reads a ballot: one mark for each answer of the line-up, in the order in which they were shown.
pub(super) fn read(reply: &str, lineup: &Lineup) -> Result<Valid<Vec<Mark>>, Violation> {
    let object = extract(reply)?.object;
    // This refuses a repeated label, like any repeated key.
    let StrictValue(mut value) = read_one(object)?;
    let mut written = value.as_object_mut().map(std::mem::take).unwrap_or_default();
    let labels = lineup.labels();
    let mut marks = Vec::new();
    for (label, target) in lineup.entries() {
        let pointer = format!("/{label}");
        let Some(part) = written.remove(&label.to_string()) else {
            return Err(Violation::schema(&pointer, format!("there is no entry for {label}")));
        };
        // A list would be read by the order of its entries, so it is refused.
        if !part.is_object() {
            return Err(Violation::schema(&pointer, PART_FORM));
        }
        let BallotPart { feedback, accuracy, relevance, completeness, clarity } =
            serde_json::from_value(part)
                .map_err(|why| Violation::schema(&pointer, format!("{PART_FORM}; {why}")))?;
        let scores = Scores { accuracy, relevance, completeness, clarity };
        if !scores.are_in_range() {
            let message = format!("each score is a whole number from {SCORE_MIN} to {SCORE_MAX}");
            return Err(Violation::schema(&pointer, message));
        }
        let feedback = feedback.trim().to_owned();
        let found = feedback.chars().count();
        if found > FEEDBACK_CHARS_MAX {
            let message = format!("feedback has {found} characters; {FEEDBACK_CHARS_MAX} are allowed");
            return Err(Violation::schema(&pointer, message));
        }
        marks.push(Mark { target, scores, feedback });
    }
    if let Some(unknown) = written.keys().next() {
        let known = labels.iter().map(char::to_string).collect::<Vec<_>>().join(", ");
        let message = format!("there is no such answer; there is {known}");
        return Err(Violation::schema(&format!("/{}", escape::excerpt(unknown)), message));
    }
    Ok(Valid { content: marks, object: object.to_owned() })
}

/// Returns the schema of a ballot on this line-up, in the order in which its answers are shown.
pub(super) fn schema(lineup: &Lineup) -> Value {
    let scores: Vec<u8> = (SCORE_MIN..=SCORE_MAX).collect();
    // The feedback on an answer comes before its scores: the reason, then the number.
    let mut part = Map::new();
    part.insert("feedback".to_owned(), json!({"type": "string", "maxLength": FEEDBACK_CHARS_MAX}));
    part.extend(Scores::CRITERIA.map(|name| (name.to_owned(), json!({"enum": scores}))));
    let part = closed(&part.into());
    closed(&lineup.entries().map(|(label, _)| (label.to_string(), part.clone())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lineup() -> Lineup {
        Lineup::draw(1, 1, 0, &[1, 2], &['A', 'B'])
    }

    fn entry(score: i64) -> Value {
        json!({"feedback": "fine", "accuracy": score, "relevance": 5, "completeness": 5, "clarity": 5})
    }

    /// The scores of an answer add up to its total.
    #[test]
    fn ballot_marks_every_answer() {
        let ballot = json!({"A": entry(10), "B": entry(1)}).to_string();
        let marks = read(&ballot, &lineup()).unwrap().content;
        let total = |label: char| {
            let target = lineup().member(label).unwrap();
            marks.iter().find(|mark| mark.target == target).unwrap().scores.total()
        };
        assert_eq!((total('A'), total('B')), (25, 16));
        assert!(
            crate::text::schema::compile(&schema(&lineup()))
                .is_valid(&serde_json::from_str(&ballot).unwrap())
        );
    }

    /// A ballot that is not whole counts for nothing.
    #[test]
    fn malformed_ballot_is_refused() {
        let mut long = entry(5);
        long["feedback"] = "x".repeat(FEEDBACK_CHARS_MAX + 1).into();
        let mut more = entry(5);
        more["total"] = 40.into();
        for ballot in [
            json!({"A": entry(5)}),
            json!({"A": entry(5), "B": entry(5), "C": entry(5)}),
            json!({"A": entry(5), "b": entry(5)}),
            json!({"A": entry(0), "B": entry(5)}),
            json!({"A": entry(11), "B": entry(5)}),
            json!({"A": entry(-1), "B": entry(5)}),
            json!({"A": {"feedback": "fine", "accuracy": 5.5, "relevance": 5, "completeness": 5, "clarity": 5}, "B": entry(5)}),
            json!({"A": {"feedback": "fine", "accuracy": "10", "relevance": 5, "completeness": 5, "clarity": 5}, "B": entry(5)}),
            json!({"A": long, "B": entry(5)}),
            json!({"A": more, "B": entry(5)}),
            json!({"A": ["fine", 10, 10, 10, 10], "B": entry(5)}),
        ] {
            assert!(read(&ballot.to_string(), &lineup()).is_err(), "{ballot}");
        }
        let twice = format!(r#"{{"A":{e},"A":{e},"B":{e}}}"#, e = entry(5));
        assert!(read(&twice, &lineup()).is_err());
        assert!(read("Response C deserves 10/10", &lineup()).is_err());
    }
}
