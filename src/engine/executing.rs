//! The making of an execution: a text goes to the user's check, or a program to its interpreter, and the end comes back.
//!
//! The record of an execution of a run is durable before anything follows from it.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::FutureExt as _;

use super::drive::Engine;
use super::error::EngineError;
use super::flight::Flight;
use super::observer::RunEvent;
use super::redaction::Redaction;
use crate::files::Scratch;
use crate::journal::{Entry, Executed, Executor, RunSpec};
use crate::provider::Provider;
use crate::sandbox::{CommandJob, CommandResult, PYTHON3, Sandbox, SandboxError, embedded_interpreter};
use crypto::Digest;
use protocol::core::CommandEnd;
use protocol::text::escape;
use protocol::{
    CheckCommand, Execution, ExecutionResult, Interpreter, OUTPUT_BYTES_MAX, Outcome, TAIL_BYTES_MAX,
};

/// The word in a check's command that stands for the file with the text.
const FILE: &str = "{file}";

/// The word that stands for the id of the task.
pub const TASK: &str = "{task}";

/// The word in a grader's command that stands for the file with the known answer.
pub const ANSWER: &str = "{answer}";

impl Engine<'_> {
    /// Begins every execution that is owed and not under way.
    pub(super) fn begin_executions<F>(
        &self,
        flight: &mut Flight<'_, F>,
        providers: &[Provider],
    ) -> Result<(), EngineError> {
        for execution in self.state.to_execute() {
            if !flight.executing.insert(execution.key()) {
                continue;
            }
            let sandbox = self.tools.sandbox.clone().ok_or(EngineError::NoSandbox)?;
            let order = Order::new(self.state.opened(), execution, self.tools.redaction.as_ref());
            self.observer.on_event(RunEvent::Executing { execution });
            let known = self.known_result(execution, providers);
            let executed = async move {
                match known {
                    Some(known) => Ok(known),
                    None => execute(&sandbox, Path::new("."), &order).await,
                }
            };
            flight.executions.push(executed.boxed_local());
        }
        Ok(())
    }

    /// Returns the result of a program that the same interpreter has already run, if a bank has it. A check is made anew.
    fn known_result(&self, execution: &Execution, providers: &[Provider]) -> Option<Executed> {
        if matches!(execution, Execution::Check { .. }) {
            return None;
        }
        let known = providers.iter().find_map(|provider| provider.recorded_result(execution.key()))?;
        let Executor::Interpreter(by) = &known.by else { return None };
        let is_same = match self.state.opened().setup.interpreter {
            Interpreter::Embedded => *by == embedded_interpreter(),
            Interpreter::Python3 => by.name == PYTHON3,
        };
        if is_same { Some(known) } else { None }
    }

    /// Records the result of an execution durably, before anything follows from it.
    pub(super) async fn take_executed<F>(
        &mut self,
        flight: &mut Flight<'_, F>,
        executed: Result<Executed, SandboxError>,
    ) -> Result<(), EngineError> {
        let mut executed = match executed {
            Ok(executed) => executed,
            Err(why) => {
                // The command itself may have an original in it.
                let cause = match &self.tools.redaction {
                    Some(redaction) => redaction.redact(&why.to_string()),
                    None => why.to_string(),
                };
                flight.reason = flight.reason.take().or(Some(Outcome::Failed { cause }));
                return Ok(());
            }
        };
        flight.executing.remove(&executed.key);
        let owed = self.state.to_execute().find(|execution| execution.key() == executed.key);
        let Some(execution) = owed.cloned() else { return Ok(()) };
        if let Some(redaction) = &mut self.tools.redaction {
            executed.result = redaction.result(&executed.result);
            redaction.save_if_new().map_err(|source| redaction.write_error(source))?;
        }
        self.observer.on_event(RunEvent::Executed { executed: &executed, execution: &execution });
        self.record(Entry::Executed(executed))?;
        Ok(self.log.sync().await?)
    }
}

/// An execution with everything that it needs, and with the originals in place of tokens.
#[derive(Clone, Debug)]
pub struct Order {
    /// The key of the execution.
    key: Digest,
    /// The text or the program.
    text: String,
    means: Means,
}

/// The means by which something is executed.
#[derive(Clone, Debug)]
enum Means {
    /// The user's command on a text: a check, or a grader.
    Command {
        /// The SHA-256 of the command on record.
        sha256: Digest,
        command: String,
        /// The id of the task in a batch; empty in a run of its own.
        task: String,
        /// The known answer, which a grader may read.
        answer: Option<String>,
        time_max: Duration,
    },
    Interpreter(Interpreter),
}

impl Order {
    /// Makes the order for an execution of a run, with the originals from its table of redactions.
    pub fn new(opened: &RunSpec, execution: &Execution, table: Option<&Redaction>) -> Self {
        let setup = &opened.setup;
        let means = match (execution, &setup.check_command) {
            (Execution::Check { .. }, Some(CheckCommand { command, timeout_ms })) => Means::Command {
                sha256: Digest::new(command.as_bytes()),
                command: restore(command, table),
                task: opened.cell.as_ref().map(|cell| cell.task.clone()).unwrap_or_default(),
                answer: None,
                time_max: Duration::from_millis(*timeout_ms),
            },
            (Execution::Check { .. }, None) => unreachable!("a machine without a check wants none made"),
            (Execution::Program { .. } | Execution::Trial { .. }, _) => Means::Interpreter(setup.interpreter),
        };
        Self { key: execution.key(), text: restore(execution.text(), table), means }
    }

    /// Makes the order to grade a text by the user's command. `key` identifies it among the orders of the same command.
    pub fn grader(
        key: Digest,
        command: &str,
        time_max: Duration,
        task: &str,
        answer: Option<&str>,
        text: &str,
    ) -> Self {
        let means = Means::Command {
            sha256: Digest::new(command.as_bytes()),
            command: command.to_owned(),
            task: task.to_owned(),
            answer: answer.map(str::to_owned),
            time_max,
        };
        Self { key, text: text.to_owned(), means }
    }
}

fn restore(text: &str, table: Option<&Redaction>) -> String {
    match table {
        Some(redaction) => redaction.redactions().restore(text),
        None => text.to_owned(),
    }
}

/// Makes an execution. A check starts in `folder`.
///
/// Returns [`SandboxError`] if nothing could be run at all.
pub async fn execute(sandbox: &Sandbox, folder: &Path, order: &Order) -> Result<Executed, SandboxError> {
    let Order { key, text, means } = order;
    let (ran, by) = match means {
        Means::Command { sha256, .. } => {
            (check_text(sandbox, folder, order).await?, Executor::Command(*sha256))
        }
        Means::Interpreter(Interpreter::Embedded) => {
            (sandbox.interpret(text).await?, Executor::Interpreter(embedded_interpreter()))
        }
        Means::Interpreter(Interpreter::Python3) => {
            let (ran, note) = sandbox.python3(text).await?;
            (ran, Executor::Interpreter(note))
        }
    };
    let CommandResult { end, output, output_sha256, took } = ran;
    Ok(Executed {
        key: *key,
        by,
        result: ExecutionResult {
            end,
            output: beginning_of(&output),
            tail: ending_of(&output),
            output_sha256,
        },
        no_sandbox: !sandbox.is_walled(),
        took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
    })
}

/// Runs the user's command on a text. It gets the text with one line feed on standard input, and in the file that `{file}`
/// stands for. The word `{task}` stands for the id of the task, and `{answer}` for a file with the known answer.
async fn check_text(sandbox: &Sandbox, folder: &Path, order: &Order) -> Result<CommandResult, SandboxError> {
    let ran = run_once(sandbox, folder, order, &order.text).await?;
    let CommandEnd::Exit(code @ 125..=127) = ran.end else { return Ok(ran) };
    // The text itself may end so, as a script with an unknown command does. An empty text does not.
    let CommandResult { end, output, .. } = run_once(sandbox, folder, order, "").await?;
    if end != CommandEnd::Exit(code) {
        return Ok(ran);
    }
    let said = escape::excerpt(String::from_utf8_lossy(&output).trim());
    Err(SandboxError::NotStarted { code, said })
}

/// Runs the command of an order on a text once.
async fn run_once(
    sandbox: &Sandbox,
    folder: &Path,
    order: &Order,
    text: &str,
) -> Result<CommandResult, SandboxError> {
    let Means::Command { command, task, answer: known_answer, time_max, .. } = &order.means else {
        unreachable!("only the order of a command is run on a text");
    };
    let parent = std::env::temp_dir();
    let scratch = Scratch::new(&parent, "check").map_err(SandboxError::io("make a folder in", &parent))?;
    let file = write(scratch.path(), "text", text)?;
    let mut words = vec![(FILE, quote(&file))];
    require_plain_id(command, task)?;
    words.push((TASK, task.clone()));
    // The folder of the answer is not the command's own, so that a text that runs neither finds the answer nor changes it.
    let mut answer = None;
    if let Some(known) = known_answer
        && command.contains(ANSWER)
    {
        let apart = Scratch::new(&parent, "answer").map_err(SandboxError::io("make a folder in", &parent))?;
        let file = write(apart.path(), "answer", known)?;
        words.push((ANSWER, quote(&file)));
        answer = Some((apart, file));
    }
    let command = ["sh".to_owned(), "-c".to_owned(), put_in(command, &words)];
    let job = CommandJob {
        command: &command,
        folder,
        reads_folder: true,
        scratch: scratch.path(),
        stdin: Some(&file),
        also_reads: answer.as_ref().map(|(_, file)| file.as_path()),
        time_max: *time_max,
        memory_max: None,
    };
    sandbox.run(&job).await
}

fn quote(word: &Path) -> String {
    shlex::try_quote(&word.to_string_lossy()).map(Cow::into_owned).unwrap_or_default()
}

/// Puts values in place of words, in one pass, so that no value is searched for words.
fn put_in(command: &str, words: &[(&str, String)]) -> String {
    let mut written = String::new();
    let mut rest = command;
    while let Some(at) = rest.find('{') {
        written.push_str(&rest[..at]);
        rest = &rest[at..];
        let found = words.iter().find(|(word, _)| rest.starts_with(word));
        let (word, value) = found.map_or(("{", "{"), |(word, value)| (word, value.as_str()));
        written.push_str(value);
        rest = &rest[word.len()..];
    }
    written + rest
}

/// Refuses the id of a task that a shell or a program could take for anything but a name, if the command has a place for it, inside
/// quotes or outside of them. The author of a file of tasks must not be able to write commands.
pub fn require_plain_id(command: &str, id: &str) -> Result<(), SandboxError> {
    if !command.contains(TASK) || id.split('/').all(is_plain_part) {
        return Ok(());
    }
    Err(SandboxError::TaskId(escape::excerpt(id)))
}

fn is_plain_part(part: &str) -> bool {
    let is_plain = part.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    is_plain && !part.is_empty() && !part.starts_with(['.', '-'])
}

/// Writes a text with one line feed at its end.
fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf, SandboxError> {
    let file = folder.join(name);
    let text = format!("{}\n", text.trim_end_matches('\n'));
    std::fs::write(&file, text).map_err(SandboxError::io("write", &file))?;
    Ok(file)
}

/// Returns the end of an output as text, if its beginning is not all of it.
fn ending_of(output: &[u8]) -> String {
    if output.len() <= OUTPUT_BYTES_MAX {
        return String::new();
    }
    let text = String::from_utf8_lossy(&output[output.len() - TAIL_BYTES_MAX..]);
    // Bytes that are no text become longer.
    text[text.ceil_char_boundary(text.len().saturating_sub(TAIL_BYTES_MAX))..].to_owned()
}

/// Returns the beginning of an output as text.
fn beginning_of(output: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(&output[..output.len().min(OUTPUT_BYTES_MAX)]).into_owned();
    // Bytes that are no text become longer.
    let end = text.floor_char_boundary(OUTPUT_BYTES_MAX);
    text.truncate(end);
    text
}
