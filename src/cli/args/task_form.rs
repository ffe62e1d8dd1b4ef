//! The flags for a file of tasks, which `batch` and `calibrate` share.

use std::path::Path;

use clap::Args;
use clap::builder::PossibleValue;
use regex::Regex;

use super::shared::NamedValues;
use crate::batch::{FIELDS, Grader, TaskForm};

/// How a file of tasks is read.
#[derive(Args, Clone, Debug)]
pub(crate) struct TaskFormArgs {
    /// Read NAME from this field of TASKS, such as prompt=question; repeatable.
    ///
    /// A line without an id is then identified by its number, and its other fields become its `meta`.
    #[arg(long, value_name = "NAME=FIELD", value_parser = parse_name_and_field)]
    pub(crate) map: Vec<(String, String)>,
    /// A pattern for the right answer within its field, such as '#### (.*)': the first group of the last match counts.
    #[arg(long, value_name = "REGEX")]
    pub(crate) answer_regex: Option<Regex>,
    /// How it is decided whether an agreed text is right, unless a line of TASKS names a grader [default: exact].
    #[arg(long, value_parser = graders())]
    pub(crate) grader: Option<Grader>,
}

impl TaskFormArgs {
    /// Returns true if the user gave one of these flags.
    pub(crate) fn is_given(&self) -> bool {
        !self.map.is_empty() || self.answer_regex.is_some() || self.grader.is_some()
    }

    /// Returns how this file of tasks is read. A command that grades is the grader of every line that names none.
    pub(crate) fn form(&self, tasks: &Path, grader_command: Option<&String>) -> TaskForm {
        TaskForm {
            names: self.map.iter().cloned().collect(),
            answer: self.answer_regex.clone(),
            grader: match (self.grader, grader_command) {
                (Some(grader), _) => grader,
                (None, Some(_)) => Grader::Command,
                (None, None) => Grader::default(),
            },
            grader_command: grader_command.cloned(),
            is_table: tasks.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv")),
        }
    }
}

fn graders() -> NamedValues<Grader> {
    let number = "The last number in the text equals the number in the answer";
    let regex = "The answer is a regular expression that matches within the text";
    NamedValues::new()
        .with(PossibleValue::new("exact").help("The canonical texts are equal"), Grader::Exact)
        .with(PossibleValue::new("number").help(number), Grader::Number)
        .with(PossibleValue::new("regex").help(regex), Grader::Regex)
        .with(PossibleValue::new("contains").help("The text contains the answer"), Grader::Contains)
        .with(
            PossibleValue::new("command").help("The command of --grader-command exits with 0"),
            Grader::Command,
        )
}

fn parse_name_and_field(text: &str) -> Result<(String, String), String> {
    let (name, field) = text.split_once('=').ok_or("write NAME=FIELD, such as prompt=question")?;
    if !FIELDS.contains(&name) {
        return Err(format!("a task has no `{name}`; it has {}", FIELDS.join(", ")));
    }
    Ok((name.to_owned(), field.to_owned()))
}
