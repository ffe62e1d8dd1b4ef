//! Rows of public sets of questions, in the forms in which these sets are published.
//!
//! The input is a row that has no `prompt`. The output is the line of a task, or nothing for a row of another form. A row is known by its
//! fields, so no flag names its set:
//!
//! | fields | sets | answer |
//! |---|---|---|
//! | `question`, and `answer` with `#### ` in it | GSM8K | a number |
//! | `Body`, `Question`, `Answer` | SVAMP | a number |
//! | `question`, `choices`, and `answer` as a place from 0 | MMLU, MMLU-Redux | a letter |
//! | `input`, `target`, with `choices` or without | files of `inspect_ai` | a letter or a text |
//!
//! A row without an id gets its number. All other fields become labels. No file is read here.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::task_form::{Fields, in_words, is_label, label, raw};
use crate::text::{CanonicalKind, CanonicalRule, counted, escape};

/// The mark before the answer at the end of a derivation in GSM8K.
const DERIVED: &str = "#### ";

/// A question with its derivation.
#[derive(Deserialize)]
struct Derived {
    question: String,
    answer: String,
}

/// A question that follows a story.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Story {
    body: String,
    question: String,
    answer: Box<RawValue>,
}

/// A question with the place of the right option.
#[derive(Deserialize)]
struct Options {
    question: String,
    choices: Vec<Box<RawValue>>,
    answer: Box<RawValue>,
}

/// A sample of `inspect_ai`.
#[derive(Deserialize)]
struct Inspected {
    input: String,
    target: String,
    #[serde(default)]
    choices: Option<Vec<Box<RawValue>>>,
}

/// A task in its written form.
#[derive(Serialize)]
struct Task {
    id: Box<RawValue>,
    prompt: String,
    answer: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    canonical: Option<CanonicalRule>,
    meta: Fields,
}

/// Returns the line of a task for a row of a known form; `None` for any other row. The row has this number in its file.
///
/// # Errors
///
/// Returns the reason why a row of a known form is not a task.
pub(super) fn task_line(row: &str, number: u64) -> Result<Option<String>, String> {
    let Ok(mut fields) = serde_json::from_str::<Fields>(row) else { return Ok(None) };
    if fields.contains_key("prompt") {
        return Ok(None);
    }
    let Some((prompt, answer, canonical)) = question(row)? else { return Ok(None) };
    let id = fields.remove("id").or_else(|| fields.remove("ID")).or_else(|| raw(&number));
    for used in ["question", "answer", "choices", "Body", "Question", "Answer", "input", "target"] {
        fields.remove(used);
    }
    fields.retain(|_, value| is_label(value));
    let line =
        id.and_then(|id| serde_json::to_string(&Task { id, prompt, answer, canonical, meta: fields }).ok());
    Ok(line)
}

/// A question, its right answer, and the rule for which differences between answers do not count.
type Question = (String, String, Option<CanonicalRule>);

fn question(row: &str) -> Result<Option<Question>, String> {
    let number = Some(CanonicalKind::Number.into());
    if let Ok(Derived { question, answer }) = serde_json::from_str(row)
        && let Some((_, answer)) = answer.rsplit_once(DERIVED)
    {
        return Ok(Some((question, answer.trim().to_owned(), number)));
    }
    if let Ok(Story { body, question, answer }) = serde_json::from_str(row) {
        let body = body.trim();
        let dot = if body.ends_with(['.', '!', '?']) { "" } else { "." };
        return Ok(Some((format!("{body}{dot} {}", question.trim()), in_words(&answer), number)));
    }
    if let Ok(Options { question, choices, answer }) = serde_json::from_str(row) {
        let letters = letters(choices.len())?;
        let choices = texts(&choices)?;
        let place: Option<usize> = serde_json::from_str(answer.get()).ok();
        let right = place.and_then(|place| letters.get(place).cloned());
        let right = right.ok_or_else(|| {
            format!(
                "its `answer` is {}, and beside {} choices it is the place of the right one, from 0 to {}",
                escape::excerpt(answer.get()),
                choices.len(),
                choices.len() - 1
            )
        })?;
        return Ok(Some((lettered(&question, &choices, &letters), right, Some(one_of(letters)))));
    }
    let Ok(Inspected { input, target, choices }) = serde_json::from_str(row) else { return Ok(None) };
    let Some(choices) = choices else { return Ok(Some((input, target, None))) };
    let (letters, choices) = (letters(choices.len())?, texts(&choices)?);
    if !letters.contains(&target) {
        return Err(format!("its `target` is no letter of its {} choices", choices.len()));
    }
    Ok(Some((lettered(&input, &choices, &letters), target, Some(one_of(letters)))))
}

/// Returns options as texts.
fn texts(choices: &[Box<RawValue>]) -> Result<Vec<String>, String> {
    let texts: Option<Vec<String>> = choices.iter().map(|choice| label(choice)).collect();
    texts.ok_or_else(|| "its `choices` are not all texts or numbers".to_owned())
}

/// Returns the letters of so many options.
fn letters(count: usize) -> Result<Vec<String>, String> {
    let letters: Vec<String> = ('A'..='Z').take(count).map(String::from).collect();
    if count < 2 || letters.len() < count {
        return Err(format!("it has {}, and a question has 2 to 26", counted(count as u64, "choice")));
    }
    Ok(letters)
}

/// Returns the question with an option on each line.
fn lettered(question: &str, choices: &[String], letters: &[String]) -> String {
    let options = letters.iter().zip(choices).map(|(letter, choice)| format!("\n{letter}) {choice}"));
    options.fold(question.trim().to_owned(), |text, option| text + &option)
}

fn one_of(letters: Vec<String>) -> CanonicalRule {
    CanonicalRule { choices: letters, ..CanonicalKind::Choice.into() }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn line(row: &Value) -> Value {
        serde_json::from_str(&task_line(&row.to_string(), 7).unwrap().unwrap()).unwrap()
    }

    #[test]
    fn rows_of_public_sets_are_tasks() {
        let options = "Which is even?\nA) 1\nB) 2";
        let choice = json!({"kind": "choice", "choices": ["A", "B"]});
        let number = json!({"kind": "number", "decimal": "."});
        for (row, wanted) in [
            (
                json!({"question": "How much?", "answer": "9 * 2 = 18.\n#### 1,018"}),
                json!({"id": 7, "prompt": "How much?", "answer": "1,018", "canonical": number, "meta": {}}),
            ),
            (
                json!({"ID": "chal-1", "Body": "It costs 76.", "Question": "How much?", "Answer": 51.0, "Type": "Sum", "Equation": []}),
                json!({"id": "chal-1", "prompt": "It costs 76. How much?", "answer": "51.0", "canonical": number, "meta": {"Type": "Sum"}}),
            ),
            (
                json!({"id": "m", "subject": "sums", "question": "Which is even?", "choices": ["1", "2"], "answer": 1}),
                json!({"id": "m", "prompt": options, "answer": "B", "canonical": choice, "meta": {"subject": "sums"}}),
            ),
            (
                json!({"input": "Which is even?", "choices": ["1", "2"], "target": "B"}),
                json!({"id": 7, "prompt": options, "answer": "B", "canonical": choice, "meta": {}}),
            ),
            (
                json!({"input": "Name a metal.", "target": "iron", "id": "x"}),
                json!({"id": "x", "prompt": "Name a metal.", "answer": "iron", "meta": {}}),
            ),
        ] {
            assert_eq!(line(&row), wanted);
        }
    }

    #[test]
    fn answer_outside_choices_is_refused() {
        for (row, part) in [
            (
                json!({"question": "q", "choices": ["1", 2], "answer": 2}),
                "its `answer` is 2, and beside 2 choices it is the place of the right one, from 0 to 1",
            ),
            (json!({"question": "q", "choices": ["1", "2"], "answer": "B"}), "its `answer` is \"B\", and"),
            (json!({"question": "q", "choices": ["1", []], "answer": 0}), "are not all texts or numbers"),
            (json!({"input": "q", "choices": ["1", "2"], "target": "2"}), "no letter of its 2 choices"),
            (
                json!({"input": "q", "choices": ["1"], "target": "A"}),
                "it has 1 choice, and a question has 2 to 26",
            ),
        ] {
            let why = task_line(&row.to_string(), 1).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
        for other in [
            json!({"prompt": "p", "question": "q", "answer": "#### 1"}),
            json!({"question": "q", "answer": "1"}),
            json!([]),
        ] {
            assert_eq!(task_line(&other.to_string(), 1), Ok(None));
        }
    }
}
