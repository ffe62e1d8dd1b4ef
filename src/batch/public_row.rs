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
//! | `question`, `options`, and `answer` or `correct` as a letter | MMLU-Pro, `AQuA` | a letter |
//! | `input`, `target`, with `choices` or without | files of `inspect_ai` | a letter, a text, or one of several texts |
//!
//! A row without an id gets its number. All other fields become labels. No file is read here.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::grader::Grader;
use super::task_form::{Fields, in_words, is_label, lettered, letters, raw, texts};
use protocol::text::{CanonicalKind, CanonicalRule, escape};

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

/// A question with the letter of the right option.
#[derive(Deserialize)]
struct LetteredRow {
    question: String,
    options: Vec<Box<RawValue>>,
    #[serde(alias = "correct")]
    answer: String,
}

/// A sample of `inspect_ai`.
#[derive(Deserialize)]
struct Inspected {
    input: SampleInput,
    target: SampleTarget,
    #[serde(default)]
    choices: Option<Vec<Box<RawValue>>>,
}

/// The question of a sample.
#[derive(Deserialize)]
#[serde(untagged)]
enum SampleInput {
    Text(String),
    Messages(Vec<SampleMessage>),
}

/// A message of a sample's question.
#[derive(Deserialize)]
struct SampleMessage {
    role: String,
    content: String,
}

/// The right answer of a sample, or all right answers.
#[derive(Deserialize)]
#[serde(untagged)]
enum SampleTarget {
    One(String),
    Any(Vec<String>),
}

/// A task in its written form.
#[derive(Serialize)]
struct Task {
    id: Box<RawValue>,
    prompt: String,
    answer: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    canonical: Option<CanonicalRule>,
    #[serde(skip_serializing_if = "Option::is_none")]
    grader: Option<Grader>,
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
    let Some(RowQuestion { prompt, answer, canonical, grader }) = question(row)? else { return Ok(None) };
    let id = fields.remove("id").or_else(|| fields.remove("ID")).or_else(|| raw(&number));
    for used in USED {
        fields.remove(used);
    }
    fields.retain(|_, value| is_label(value));
    let line = id.and_then(|id| {
        serde_json::to_string(&Task { id, prompt, answer, canonical, grader, meta: fields }).ok()
    });
    Ok(line)
}

/// The fields that are no labels of a row.
const USED: [&str; 10] =
    ["question", "answer", "correct", "choices", "options", "Body", "Question", "Answer", "input", "target"];

/// A question and its right answer.
struct RowQuestion {
    prompt: String,
    answer: String,
    /// The rule for which differences between answers do not count.
    canonical: Option<CanonicalRule>,
    /// The way to grade, if equality is not it.
    grader: Option<Grader>,
}

impl RowQuestion {
    fn new(prompt: String, answer: String, canonical: Option<CanonicalRule>) -> Self {
        Self { prompt, answer, canonical, grader: None }
    }
}

fn question(row: &str) -> Result<Option<RowQuestion>, String> {
    let number = Some(CanonicalKind::Number.into());
    if let Ok(Derived { question, answer }) = serde_json::from_str(row)
        && let Some((_, answer)) = answer.rsplit_once(DERIVED)
    {
        return Ok(Some(RowQuestion::new(question, answer.trim().to_owned(), number)));
    }
    if let Ok(Story { body, question, answer }) = serde_json::from_str(row) {
        let body = body.trim();
        let dot = if body.ends_with(['.', '!', '?']) { "" } else { "." };
        let prompt = format!("{body}{dot} {}", question.trim());
        return Ok(Some(RowQuestion::new(prompt, in_words(&answer), number)));
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
        return Ok(Some(RowQuestion::new(
            lettered(&question, &choices, &letters),
            right,
            Some(one_of(letters)),
        )));
    }
    if let Ok(LetteredRow { question, options, answer }) = serde_json::from_str(row) {
        let (letters, options) = (letters(options.len())?, texts(&options)?);
        if !letters.contains(&answer) {
            return Err(format!(
                "its answer `{}` is no letter of its {} options",
                escape::excerpt(&answer),
                options.len()
            ));
        }
        return Ok(Some(RowQuestion::new(
            lettered(&question, &options, &letters),
            answer,
            Some(one_of(letters)),
        )));
    }
    serde_json::from_str(row).ok().map(inspected).transpose()
}

/// Returns the question of a sample of `inspect_ai`.
fn inspected(sample: Inspected) -> Result<RowQuestion, String> {
    let Inspected { input, target, choices } = sample;
    let prompt = match input {
        SampleInput::Text(text) => text,
        SampleInput::Messages(messages) => asked_in(messages)?,
    };
    let mut targets = match target {
        SampleTarget::One(target) => vec![target],
        SampleTarget::Any(targets) => targets,
    };
    let is_one = targets.len() == 1;
    let Some(first) = targets.first().cloned() else {
        return Err("its `target` is an empty list".to_owned());
    };
    let Some(choices) = choices else {
        if is_one {
            return Ok(RowQuestion::new(prompt, first, None));
        }
        for target in &mut targets {
            *target = regex::escape(target.trim());
        }
        let answer = format!("^\\s*(?:{})\\s*$", targets.join("|"));
        return Ok(RowQuestion { grader: Some(Grader::Regex), ..RowQuestion::new(prompt, answer, None) });
    };
    let (letters, choices) = (letters(choices.len())?, texts(&choices)?);
    if !is_one || !letters.contains(&first) {
        return Err(format!("its `target` is no letter of its {} choices", choices.len()));
    }
    Ok(RowQuestion::new(lettered(&prompt, &choices, &letters), first, Some(one_of(letters))))
}

/// Returns the question in the messages of a sample: what the user asks, after what the system says.
fn asked_in(messages: Vec<SampleMessage>) -> Result<String, String> {
    if let Some(other) = messages.iter().find(|message| !["system", "user"].contains(&message.role.as_str()))
    {
        let role = escape::excerpt(&other.role);
        return Err(format!("its `input` has a message of the role `{role}`, and a task has one question"));
    }
    let texts: Vec<String> = messages.into_iter().map(|message| message.content).collect();
    Ok(texts.join("\n\n"))
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
                json!({"question_id": 7, "question": "Which is even?", "options": ["1", "2"], "answer": "B", "answer_index": 1}),
                json!({"id": 7, "prompt": options, "answer": "B", "canonical": choice, "meta": {"question_id": 7, "answer_index": 1}}),
            ),
            (
                json!({"question": "Which is even?", "options": ["A)1", "B)2"], "rationale": "so", "correct": "B"}),
                json!({"id": 7, "prompt": "Which is even?\nA)1\nB)2", "answer": "B", "canonical": choice, "meta": {"rationale": "so"}}),
            ),
            (
                json!({"input": [{"role": "system", "content": "Be short."}, {"role": "user", "content": "2+2?"}], "target": ["4"]}),
                json!({"id": 7, "prompt": "Be short.\n\n2+2?", "answer": "4", "meta": {}}),
            ),
            (
                json!({"input": "2+2?", "target": ["4", "four."]}),
                json!({"id": 7, "prompt": "2+2?", "answer": "^\\s*(?:4|four\\.)\\s*$", "grader": "regex", "meta": {}}),
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
            (json!({"question": "q", "options": ["1", "2"], "answer": "C"}), "no letter of its 2 options"),
            (
                json!({"input": [{"role": "assistant", "content": "x"}], "target": "A"}),
                "of the role `assistant`",
            ),
            (json!({"input": "q", "target": []}), "an empty list"),
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
