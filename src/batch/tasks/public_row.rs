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

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;

use super::grader::Grader;
use super::task_form::{
    Fields, WrittenRule, WrittenTask, add_options, is_label, letters_of, raw, read_texts, text_of,
};
use protocol::text::{CanonicalKind, CanonicalRule, escape};

/// The mark before the answer at the end of a derivation in GSM8K.
const DERIVED: &str = "#### ";

/// A message of a sample's question in a file of `inspect_ai`.
#[derive(Deserialize)]
struct SampleMessage {
    role: String,
    content: String,
}

/// The fields by which forms are known. Each may occur once; the others are labels, and are not read.
#[derive(Deserialize)]
#[expect(dead_code, reason = "a repeated field is an error by itself")]
struct FormFields {
    question: Option<IgnoredAny>,
    answer: Option<IgnoredAny>,
    #[serde(rename = "Body")]
    body: Option<IgnoredAny>,
    #[serde(rename = "Question")]
    story_question: Option<IgnoredAny>,
    #[serde(rename = "Answer")]
    story_answer: Option<IgnoredAny>,
    choices: Option<IgnoredAny>,
    options: Option<IgnoredAny>,
    correct: Option<IgnoredAny>,
    input: Option<IgnoredAny>,
    target: Option<IgnoredAny>,
}

/// Returns the line of a task for a row of a known form; `None` for any other row. The row has this number in its file.
///
/// Returns the reason why a row of a known form is not a task.
pub(super) fn task_line(row: &str, number: u64) -> Result<Option<String>, String> {
    // Of two values for one of these fields, neither is the right one.
    if serde_json::from_str::<FormFields>(row).is_err() {
        return Ok(None);
    }
    let Ok(mut fields) = serde_json::from_str::<Fields>(row) else { return Ok(None) };
    if fields.contains_key("prompt") {
        return Ok(None);
    }
    let Some(RowQuestion { prompt, answer, canonical, grader }) = read_question(&fields)? else {
        return Ok(None);
    };
    let id = fields.remove("id").or_else(|| fields.remove("ID")).or_else(|| raw(&number));
    for used in USED {
        fields.remove(used);
    }
    fields.retain(|_, value| is_label(value));
    let Some(id) = id else { return Ok(None) };
    let task = WrittenTask {
        id,
        prompt,
        documents: None,
        roleset: None,
        answer: raw(&answer),
        canonical: canonical.map(WrittenRule::Rule),
        grader,
        meta: Some(fields),
    };
    Ok(serde_json::to_string(&task).ok())
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

/// Reads a field of a row, if it has this form.
fn read<T: DeserializeOwned>(fields: &Fields, name: &str) -> Option<T> {
    serde_json::from_str(fields.get(name)?.get()).ok()
}

fn read_question(fields: &Fields) -> Result<Option<RowQuestion>, String> {
    let number = Some(CanonicalKind::Number.into());
    let question: Option<String> = read(fields, "question");
    if let (Some(question), Some(answer)) = (&question, read::<String>(fields, "answer"))
        && let Some((_, answer)) = answer.rsplit_once(DERIVED)
    {
        return Ok(Some(RowQuestion::new(question.clone(), answer.trim().to_owned(), number)));
    }
    if let (Some(body), Some(question), Some(answer)) =
        (read::<String>(fields, "Body"), read::<String>(fields, "Question"), fields.get("Answer"))
    {
        let body = body.trim();
        let dot = if body.ends_with(['.', '!', '?']) { "" } else { "." };
        let prompt = format!("{body}{dot} {}", question.trim());
        return Ok(Some(RowQuestion::new(prompt, text_of(answer), number)));
    }
    if let (Some(question), Some(choices), Some(answer)) =
        (&question, read::<Vec<Box<RawValue>>>(fields, "choices"), fields.get("answer"))
    {
        return choose_by_place(question, &choices, answer).map(Some);
    }
    let letter = match (fields.get("answer"), fields.get("correct")) {
        (Some(_), None) => read::<String>(fields, "answer"),
        (None, Some(_)) => read::<String>(fields, "correct"),
        (Some(_), Some(_)) | (None, None) => None,
    };
    if let (Some(question), Some(options), Some(letter)) =
        (&question, read::<Vec<Box<RawValue>>>(fields, "options"), letter)
    {
        let (letters, options) = (letters_of(options.len())?, read_texts(&options)?);
        if !letters.contains(&letter) {
            return Err(format!(
                "its answer `{}` is no letter of its {} options",
                escape::excerpt(&letter),
                options.len()
            ));
        }
        let prompt = add_options(question, &options, &letters);
        return Ok(Some(RowQuestion::new(prompt, letter, Some(one_of(letters)))));
    }
    read_sample(fields)
}

/// Returns a question whose right answer is given by its place among the choices, from 0.
fn choose_by_place(
    question: &str,
    choices: &[Box<RawValue>],
    answer: &RawValue,
) -> Result<RowQuestion, String> {
    let letters = letters_of(choices.len())?;
    let choices = read_texts(choices)?;
    let place: Option<usize> = serde_json::from_str(answer.get()).ok();
    let Some(right) = place.and_then(|place| letters.get(place).cloned()) else {
        return Err(format!(
            "its `answer` is {}, and beside {} choices it is the place of the right one, from 0 to {}",
            escape::excerpt(answer.get()),
            choices.len(),
            choices.len() - 1
        ));
    };
    Ok(RowQuestion::new(add_options(question, &choices, &letters), right, Some(one_of(letters))))
}

/// Returns the question of a sample of `inspect_ai`.
fn read_sample(fields: &Fields) -> Result<Option<RowQuestion>, String> {
    let (text, messages) = (read::<String>(fields, "input"), read::<Vec<SampleMessage>>(fields, "input"));
    let target = read::<String>(fields, "target").map(|target| vec![target]);
    let Some(mut targets) = target.or_else(|| read(fields, "target")) else { return Ok(None) };
    let choices: Option<Vec<Box<RawValue>>> = match fields.get("choices") {
        None => None,
        Some(choices) => match serde_json::from_str(choices.get()) {
            Ok(choices) => choices,
            Err(_) => return Ok(None),
        },
    };
    let prompt = match (text, messages) {
        (Some(text), _) => text,
        (None, Some(messages)) => join_messages(messages)?,
        (None, None) => return Ok(None),
    };
    let is_one = targets.len() == 1;
    let Some(first) = targets.first().cloned() else {
        return Err("its `target` is an empty list".to_owned());
    };
    let Some(choices) = choices else {
        if is_one {
            return Ok(Some(RowQuestion::new(prompt, first, None)));
        }
        for target in &mut targets {
            *target = regex::escape(target.trim());
        }
        let answer = format!("^\\s*(?:{})\\s*$", targets.join("|"));
        let grader = Some(Grader::Regex);
        return Ok(Some(RowQuestion { prompt, answer, canonical: None, grader }));
    };
    let (letters, choices) = (letters_of(choices.len())?, read_texts(&choices)?);
    if !is_one || !letters.contains(&first) {
        return Err(format!("its `target` is no letter of its {} choices", choices.len()));
    }
    let prompt = add_options(&prompt, &choices, &letters);
    Ok(Some(RowQuestion::new(prompt, first, Some(one_of(letters)))))
}

/// Returns the question in the messages of a sample: what the user asks, after what the system says.
fn join_messages(messages: Vec<SampleMessage>) -> Result<String, String> {
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

    /// A field of a form may occur once. Labels are the user's own, whatever they hold.
    #[test]
    fn repeated_field_of_form_is_no_question() {
        let row = |more: &str| format!("{{\"question\": \"2+2?\", \"answer\": \"#### 4\"{more}}}");
        assert_eq!(task_line(&row(r#", "question": "3+3?""#), 1), Ok(None));
        for label in [
            r#", "src": 1, "src": 2"#,
            r#", "metadata": {"k": 1, "k": 2}"#,
            r#", "big": 1e999"#,
            r#", "half": "\ud800""#,
            &format!(r#", "deep": {}{}"#, "[".repeat(100), "]".repeat(100)),
        ] {
            assert!(task_line(&row(label), 1).unwrap().is_some(), "{label}");
        }
    }
}
