//! `consensus chat`: one question after another, in a session.
//!
//! In: lines from a person or from a pipe. Out: a run for each of them. Each question has a process of its own, which is `consensus
//! chat` again with that question: a run that is stopped, or that cannot begin, ends no chat. The lines themselves are kept nowhere but
//! in the records of the runs.

use std::ffi::OsString;
use std::io::{BufRead as _, IsTerminal as _};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use anyhow::Context as _;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use signal_hook::consts::SIGINT;

use crate::cli::args::{ChatArgs, RunArgs};
use crate::cli::commands::run::run;
use crate::cli::error::UsageError;
use crate::cli::output::Output;
use crate::config::FileConfig;
use crate::core::ExitCode;
use crate::run::{Session, runs_folder};

/// The name of the command, as it stands among its words.
const NAME: &str = "chat";

pub(crate) fn chat(args: &ChatArgs, words: &[OsString], output: &Output) -> anyhow::Result<ExitCode> {
    if let Some(question) = &args.question {
        return run(&one_run(args, question), output);
    }
    if args.run.dry_run {
        let why = "a chat asks what you type; `consensus run --dry-run` prints what one question can cost";
        return Err(UsageError(why.to_owned()).into());
    }
    let file = FileConfig::load()?;
    let folder = runs_folder(args.run.runs.runs_dir.as_ref(), &file);
    let name = args.run.session.clone().unwrap_or_else(new_name);
    let earlier = Session::open(&folder, &name)?.turns();
    let mut input = Input::new()?;
    greet(&name, earlier.len(), &input, output);
    let mut asking =
        Asking { words, name: &name, interrupted: Arc::new(AtomicBool::new(false)), failed: None };
    // While a question is open its process heeds Ctrl-C, and this one goes on.
    signal_hook::flag::register(SIGINT, Arc::clone(&asking.interrupted))
        .context("cannot listen for signals")?;
    if let Some(question) = first_question(&args.run)? {
        asking.ask(&question)?;
    }
    while let Some(line) = input.next()? {
        if !input.is_person() && asking.interrupted.load(Ordering::SeqCst) {
            return Ok(ExitCode::Interrupted);
        }
        match line.trim() {
            "" => {}
            "exit" | "quit" => break,
            question => asking.ask(question)?,
        }
    }
    Ok(if input.is_person() { ExitCode::Success } else { asking.failed.unwrap_or(ExitCode::Success) })
}

/// The run of one question.
fn one_run(args: &ChatArgs, question: &str) -> RunArgs {
    RunArgs {
        words: Vec::new(),
        prompt: Some(question.to_owned()),
        prompt_file: None,
        session: args.session_name.clone(),
        ..args.run.clone()
    }
}

/// What is asked before the first line is read, if the command says it.
fn first_question(args: &RunArgs) -> anyhow::Result<Option<String>> {
    if let Some(path) = &args.prompt_file {
        let text = std::fs::read_to_string(path)
            .map_err(|why| UsageError(format!("cannot read the question in `{}`: {why}", path.display())))?;
        return Ok(Some(text));
    }
    Ok(args.prompt.clone().or_else(|| (!args.words.is_empty()).then(|| args.words.join(" "))))
}

fn greet(name: &str, earlier: usize, input: &Input, output: &Output) {
    let known = match earlier {
        0 => "a new session".to_owned(),
        1 => "it has one earlier question".to_owned(),
        _ => format!("it has {earlier} earlier questions"),
    };
    output.status(&format!("session `{name}`: {known}; `consensus chat --session {name}` goes on with it"));
    if input.is_person() {
        output.status("type a question; `exit` or Ctrl-D ends the chat");
    }
}

/// The name of a session that was given none: the time, to the second.
fn new_name() -> String {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let digits: String = now.chars().filter(char::is_ascii_digit).collect();
    format!("chat-{}-{}", &digits[..8], &digits[8..])
}

/// Where the lines are from.
enum Input {
    Person(Box<DefaultEditor>),
    Pipe(std::io::Lines<std::io::StdinLock<'static>>),
}

impl Input {
    fn new() -> anyhow::Result<Self> {
        if !std::io::stdin().is_terminal() {
            return Ok(Self::Pipe(std::io::stdin().lock().lines()));
        }
        Ok(Self::Person(Box::new(DefaultEditor::new().context("cannot read from this terminal")?)))
    }

    fn is_person(&self) -> bool {
        matches!(self, Self::Person(_))
    }

    /// The next line; none at the end.
    fn next(&mut self) -> anyhow::Result<Option<String>> {
        match self {
            Self::Pipe(lines) => lines.next().transpose().context("cannot read the questions"),
            Self::Person(editor) => loop {
                match editor.readline("> ") {
                    Ok(line) => {
                        let _ = editor.add_history_entry(&line);
                        return Ok(Some(line));
                    }
                    // Ctrl-C gives up the line that is being typed.
                    Err(ReadlineError::Interrupted) => {}
                    Err(ReadlineError::Eof) => return Ok(None),
                    Err(why) => return Err(why).context("cannot read from this terminal"),
                }
            },
        }
    }
}

/// Asks questions, each by a process of its own.
struct Asking<'a> {
    words: &'a [OsString],
    name: &'a str,
    interrupted: Arc<AtomicBool>,
    /// How the first question ended that was not answered.
    failed: Option<ExitCode>,
}

impl Asking<'_> {
    fn ask(&mut self, question: &str) -> anyhow::Result<()> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let at = self.words.iter().position(|word| word == NAME).map_or(self.words.len(), |at| at + 1);
        let (before, after) = self.words.split_at(at);
        let mut command = Command::new(program);
        command.args(before.iter().skip(1));
        command.arg(format!("--question={question}")).arg(format!("--in={}", self.name)).args(after);
        self.interrupted.store(false, Ordering::SeqCst);
        let status =
            command.stdin(Stdio::null()).status().context("cannot start the run of this question")?;
        let code = code(status);
        if code != ExitCode::Success {
            self.failed.get_or_insert(code);
        }
        Ok(())
    }
}

fn code(status: ExitStatus) -> ExitCode {
    status.code().and_then(ExitCode::from_number).unwrap_or(ExitCode::Internal)
}
