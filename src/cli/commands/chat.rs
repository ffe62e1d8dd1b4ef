//! `consensus chat`: asks one question after another, in a session.
//!
//! The input is lines from a person or from a pipe. The output is a run for each of them. Each question has a process of its own, which
//! is `consensus chat` again and reads that question from its standard input. So a run that is stopped, or that cannot begin, does not
//! end the chat, and no list of processes shows a question. A run ends with the chat's own process. The lines are kept in the records
//! of the runs and nowhere else.

use std::ffi::OsString;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
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
use crate::run::{RunError, Session, runs_folder};
use protocol::core::ExitCode;

/// The name of the command, as it appears among the arguments.
const NAME: &str = "chat";

/// The text for a person who types `help`.
const HELP: &str = "\
type a question and press Enter; the agents know the earlier questions and agreed answers
  exit, Ctrl-D   end the chat
  Ctrl-C         stop the open question, or discard the line
  arrow keys     bring back earlier lines
`consensus show` prints the newest run, and `consensus sessions` lists the sessions";

pub(crate) fn chat(args: &ChatArgs, words: &[OsString], output: &Output) -> anyhow::Result<ExitCode> {
    if let Some(name) = &args.session_name {
        // Without this, a run whose chat is killed would continue unseen and cost money.
        #[cfg(target_os = "linux")]
        nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGTERM)
            .context("cannot tie the run to its chat")?;
        return run(&one_run(args, name), &output.in_chat());
    }
    if args.run.dry_run {
        let why = "a chat has no --dry-run; `consensus run --dry-run` prints what one question can cost";
        return Err(UsageError(why.to_owned()).into());
    }
    let file = FileConfig::load()?;
    let folder = runs_folder(args.run.runs.runs_dir.as_ref(), &file);
    let name = args.run.session.clone().unwrap_or_else(new_name);
    let earlier = Session::open(&folder, &name).map_err(RunError::from)?.turns();
    let mut input = QuestionSource::new()?;
    greet(&name, earlier.len(), &input, output);
    // While a question is open, Ctrl-C stops its process, and this one continues. In between, Ctrl-C ends a chat that reads from a pipe.
    let is_idle = Arc::new(AtomicBool::new(true));
    signal_hook::flag::register_conditional_default(SIGINT, Arc::clone(&is_idle))
        .context("cannot listen for signals")?;
    let mut asker = Asker { words, name: &name, output, is_idle, failed: None };
    if let Some(question) = read_first_question(&args.run)? {
        asker.ask(question.as_bytes())?;
    }
    while let Some(line) = input.next(output)? {
        match line.trim_ascii() {
            b"" => {}
            b"exit" | b"quit" | b"/exit" | b"/quit" | b"/bye" => break,
            b"help" | b"/help" | b"/?" | b"?" => output.status(HELP),
            question => asker.ask(question)?,
        }
    }
    Ok(if input.is_person() { ExitCode::Success } else { asker.failed.unwrap_or(ExitCode::Success) })
}

/// Returns the arguments of the run for the one question on standard input.
fn one_run(args: &ChatArgs, session: &str) -> RunArgs {
    RunArgs {
        words: Vec::new(),
        prompt: Some("-".to_owned()),
        prompt_file: None,
        session: Some(session.to_owned()),
        ..args.run.clone()
    }
}

/// Returns the question of the command line, if there is one. It is asked before the first line is read.
fn read_first_question(args: &RunArgs) -> anyhow::Result<Option<String>> {
    if let Some(path) = &args.prompt_file {
        let text = std::fs::read_to_string(path)
            .map_err(|why| UsageError(format!("cannot read the question in `{}`: {why}", path.display())))?;
        return Ok(Some(text));
    }
    if args.prompt.is_none() && !args.words.is_empty() {
        return Ok(Some(args.words.join(" ")));
    }
    Ok(args.prompt.clone())
}

fn greet(name: &str, earlier: usize, input: &QuestionSource, output: &Output) {
    let known = match earlier {
        0 => "a new session".to_owned(),
        1 => "it has one earlier question".to_owned(),
        _ => format!("it has {earlier} earlier questions"),
    };
    output.status(&format!("session `{name}`: {known}; `consensus chat --session {name}` continues it"));
    if input.is_person() {
        output.status("type a question; `help` shows more, and `exit` or Ctrl-D ends the chat");
    }
}

/// Returns the name of a session whose name is not given: the time, to the second.
fn new_name() -> String {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let digits: String = now.chars().filter(char::is_ascii_digit).collect();
    format!("chat-{}-{}", &digits[..8], &digits[8..])
}

enum QuestionSource {
    Person(Box<DefaultEditor>),
    Pipe(std::io::Split<std::io::StdinLock<'static>>),
}

impl QuestionSource {
    fn new() -> anyhow::Result<Self> {
        if !std::io::stdin().is_terminal() {
            return Ok(Self::Pipe(std::io::stdin().lock().split(b'\n')));
        }
        Ok(Self::Person(Box::new(DefaultEditor::new().context("cannot read from this terminal")?)))
    }

    fn is_person(&self) -> bool {
        matches!(self, Self::Person(_))
    }

    /// Returns the next line, or nothing at the end.
    fn next(&mut self, output: &Output) -> anyhow::Result<Option<Vec<u8>>> {
        match self {
            Self::Pipe(lines) => lines.next().transpose().context("cannot read the questions"),
            Self::Person(editor) => loop {
                match editor.readline("> ") {
                    Ok(line) => {
                        let _ = editor.add_history_entry(&line);
                        return Ok(Some(line.into_bytes()));
                    }
                    // Ctrl-C discards the line that is being typed.
                    Err(ReadlineError::Interrupted) => output.status("`exit` or Ctrl-D ends the chat"),
                    Err(ReadlineError::Io(why)) if why.kind() == std::io::ErrorKind::InvalidData => {
                        output.status("that line is not UTF-8; type it again");
                    }
                    Err(ReadlineError::Eof) => return Ok(None),
                    Err(why) => return Err(why).context("cannot read from this terminal"),
                }
            },
        }
    }
}

/// The part of a chat that asks questions, each in a process of its own.
struct Asker<'a> {
    words: &'a [OsString],
    name: &'a str,
    output: &'a Output,
    /// Whether no question is open.
    is_idle: Arc<AtomicBool>,
    /// The exit code of the first question that was not answered.
    failed: Option<ExitCode>,
}

impl Asker<'_> {
    fn ask(&mut self, question: &[u8]) -> anyhow::Result<()> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let at = self.words.iter().position(|word| word == NAME).map_or(self.words.len(), |at| at + 1);
        let (before, after) = self.words.split_at(at);
        let mut command = Command::new(program);
        command.args(before.iter().skip(1)).arg(format!("--in={}", self.name)).args(after);
        self.is_idle.store(false, Ordering::SeqCst);
        let status = run_question(command.stdin(Stdio::piped()), question);
        self.is_idle.store(true, Ordering::SeqCst);
        let status = match status {
            Ok(status) => status,
            Err(why) => {
                self.output.warn(&format!("cannot start the run of this question: {why}"));
                self.failed.get_or_insert(ExitCode::Internal);
                return Ok(());
            }
        };
        if let Some(signal) = status.signal() {
            self.output.warn(&format!("the run of this question was ended by signal {signal}; `consensus resume --last` continues it"));
        }
        let code = status.code().and_then(ExitCode::from_number).unwrap_or(ExitCode::Internal);
        if code != ExitCode::Success {
            self.failed.get_or_insert(code);
        }
        Ok(())
    }
}

/// Starts the run of a question, and waits for its end.
fn run_question(command: &mut Command, question: &[u8]) -> std::io::Result<ExitStatus> {
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A run that ends before it has read its question reports the reason itself.
        let _ = stdin.write_all(question);
    }
    child.wait()
}
