//! The flags for a file of tasks, which `batch` and `pilot` share.

use std::path::Path;

use clap::{Args, ValueEnum};
use regex::Regex;

use crate::batch::{FIELDS, Grader, TaskForm};

/// How a file of tasks is read.
#[derive(Args, Clone, Debug)]
pub(crate) struct TaskFormArgs {
    /// Read NAME from this field of TASKS, such as prompt=question; repeatable.
    ///
    /// A line without an id is then identified by its number, and its other fields become its `meta`.
    #[arg(long, value_name = "NAME=FIELD", value_parser = name_and_field)]
    pub(crate) map: Vec<(String, String)>,
    /// A pattern for the right answer within its field, such as '#### (.*)': the first group of the last match counts.
    #[arg(long, value_name = "REGEX")]
    pub(crate) answer_regex: Option<Regex>,
    /// How it is decided whether an agreed text is right, unless a line of TASKS names a grader [default: exact].
    #[arg(long, value_enum)]
    pub(crate) grader: Option<GraderArg>,
}

impl TaskFormArgs {
    /// Returns how this file of tasks is read. A command that grades is the grader of every line that names none.
    pub(crate) fn form(&self, tasks: &Path, grader_command: Option<&String>) -> TaskForm {
        TaskForm {
            names: self.map.iter().cloned().collect(),
            answer: self.answer_regex.clone(),
            grader: match (self.grader, grader_command) {
                (Some(grader), _) => grader.into(),
                (None, Some(_)) => Grader::Command,
                (None, None) => Grader::default(),
            },
            grader_command: grader_command.cloned(),
            is_table: tasks.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv")),
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum GraderArg {
    /// The canonical texts are equal.
    Exact,
    /// The last number in the text equals the number in the answer.
    Number,
    /// The answer is a regular expression that matches within the text.
    Regex,
    /// The text contains the answer.
    Contains,
    /// The command of --grader-command exits with 0.
    Command,
}

impl From<GraderArg> for Grader {
    fn from(arg: GraderArg) -> Self {
        match arg {
            GraderArg::Exact => Self::Exact,
            GraderArg::Number => Self::Number,
            GraderArg::Regex => Self::Regex,
            GraderArg::Contains => Self::Contains,
            GraderArg::Command => Self::Command,
        }
    }
}

fn name_and_field(text: &str) -> Result<(String, String), String> {
    let (name, field) = text.split_once('=').ok_or("write NAME=FIELD, such as prompt=question")?;
    if !FIELDS.contains(&name) {
        return Err(format!("a task has no `{name}`; it has {}", FIELDS.join(", ")));
    }
    Ok((name.to_owned(), field.to_owned()))
}
