//! Grades by the user's command: a text goes to the command, and its end says whether the text is right.
//!
//! The input is the text of a run that has ended, and that of its blind vote. The output is the record of each execution, for the run's
//! line of results. A verdict on record is taken over while command, answer and text are the same, so no text is graded twice. Other
//! graders need no command and are decided in `plan`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use crate::batch::folder::BatchError;
use crate::batch::plan::Work;
use crate::batch::store::Grades;
use crate::batch::tasks::{Grader, RunText, TaskLine};
use crate::engine::{Order, Redaction, execute};
use crate::journal::{Executed, Executor};
use crate::sandbox::Sandbox;
use crypto::Digest;
use protocol::text::escape;

/// The user's command that decides whether a text is right.
#[derive(Clone, Debug)]
pub struct CommandGrader {
    /// The command, for a shell.
    pub command: String,
    /// The longest time that it may take for one text.
    pub time_max: Duration,
    /// The sandbox in which it runs.
    pub sandbox: Sandbox,
    /// Whether texts are graded again whose verdict is on record, as after a change of the user's tests.
    pub again: bool,
}

/// Grades the text of a run and that of its blind vote, if the grader of its task is the command. `known` are the grades on
/// record, and `table` is the table of a redacted run.
///
/// Returns [`BatchError::Grader`] if the command cannot be started, and [`BatchError::Redactions`] if the table cannot be read or written.
pub(super) async fn grade(
    by: Option<&CommandGrader>,
    work: &Work,
    texts: [&RunText; 2],
    known: Grades,
    table: Option<PathBuf>,
) -> Result<Grades, BatchError> {
    let Work { task, run, .. } = work;
    let Some(by) = by else { return Ok([None, None]) };
    if task.grader != Grader::Command {
        return Ok([None, None]);
    }
    let redaction = table.map(Redaction::load).transpose();
    let mut redaction = redaction.map_err(|why| BatchError::Redactions { run: *run, why })?;
    let mut grades: Grades = [None, None];
    for (place, text) in texts.into_iter().enumerate() {
        let Some(text) = &text.text else { continue };
        let text = &match &redaction {
            Some(redaction) => redaction.redactions().restore(text),
            None => text.clone(),
        };
        let key = key_of(task, redaction.as_ref(), text);
        let executor = Executor::Command(Digest::new(by.command.as_bytes()));
        let on_record: &[Option<Executed>] = if by.again { &[] } else { &known };
        // The blind vote is often the text itself.
        let mut earlier = on_record.iter().chain(&grades).flatten();
        let known_grade = earlier.find(|executed| executed.key == key && executed.by == executor).cloned();
        if known_grade.is_some() {
            grades[place] = known_grade;
            continue;
        }
        let mut executed = by.run(task, key, text).await?;
        if let Some(redaction) = &mut redaction {
            executed.result = redaction.result(&executed.result);
            let saved = redaction.save_if_new();
            saved.map_err(|why| BatchError::Redactions { run: *run, why: why.to_string() })?;
        }
        grades[place] = Some(executed);
    }
    Ok(grades)
}

/// Returns the key of a grade: the digest of the task, the answer and the text. That of a redacted run is salted, since a plain one
/// would allow guesses at what must not leave the machine.
fn key_of(task: &TaskLine, redaction: Option<&Redaction>, text: &str) -> Digest {
    let key = Digest::new(json!(["grade", task.id, task.answer, text]).to_string().as_bytes());
    redaction.map_or(key, |redaction| redaction.salt(key))
}

impl CommandGrader {
    /// Runs the command on a text, in the current folder.
    async fn run(&self, task: &TaskLine, key: Digest, text: &str) -> Result<Executed, BatchError> {
        let Self { command, time_max, sandbox, .. } = self;
        let (answer, time_max) = (task.answer.as_deref(), *time_max);
        let order = Order::grader(key, command, time_max, &task.id, answer, text);
        let executed = execute(sandbox, Path::new("."), &order).await;
        executed.map_err(|source| BatchError::Grader { task: escape::excerpt(&task.id), source })
    }
}
