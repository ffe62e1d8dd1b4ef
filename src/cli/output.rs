//! Writes the answer to stdout, and the story to stderr.

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write};
use std::time::SystemTime;

use console::{Term, measure_text_width};
use humantime::Rfc3339Timestamp;
use serde_json::{Value, json};
use textwrap::{Options, WordSplitter};
use tracing_subscriber::EnvFilter;

use super::args::{Color, Format, Global, LogFormat};
use super::spinner;
use protocol::core::ExitCode;
use protocol::text::escape;

/// The output of the program, as the flags shape it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Output {
    pub(super) format: Format,
    pub(super) quiet: bool,
    verbose: u8,
    pub(super) color: bool,
    story: StoryForm,
    /// Whether only answers, their worth and their losses are printed.
    brief: bool,
}

/// The form of the story's lines.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum StoryForm {
    /// Wrapped, for a person at a terminal.
    Terminal,
    /// Unchanged.
    Plain,
    /// With the time, in UTC, before each line.
    Timed,
    /// As one JSON object a line.
    Json,
}

impl Output {
    pub(super) fn new(global: &Global) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let color = match global.color {
            Color::Auto => is_terminal && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()),
            Color::Always => true,
            Color::Never => false,
        };
        let Global { format, quiet, verbose, log_format, .. } = *global;
        // In JSON, the codes of colours would be part of a message.
        let color = color && log_format == LogFormat::Text;
        let story = match log_format {
            LogFormat::Json => StoryForm::Json,
            LogFormat::Text if is_terminal => StoryForm::Terminal,
            LogFormat::Text => StoryForm::Plain,
        };
        Self { format, quiet, verbose, color, story, brief: false }
    }

    /// Returns the same output with the time, in UTC, before each line of the story, for a process that runs for days.
    pub(super) fn with_times(self) -> Self {
        let story = if self.story == StoryForm::Json { StoryForm::Json } else { StoryForm::Timed };
        Self { story, ..self }
    }

    /// Returns the same output without the lines that would repeat with each question of a chat.
    pub(super) fn in_chat(self) -> Self {
        Self { brief: true, ..self }
    }

    /// Returns whether the lines that would repeat with each question of a chat are left out.
    pub(super) fn is_brief(&self) -> bool {
        self.brief
    }

    /// Sends the program's log to stderr.
    pub(super) fn start_logging(&self) {
        let default = match (self.quiet, self.verbose) {
            (true, _) => "error",
            (false, 0) => "warn",
            (false, 1) => "consensus=info,warn",
            (false, _) => "consensus=debug,info",
        };
        let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
        // A second start happens in tests only, and the first one remains in effect.
        let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| Above);
        let _ = match self.story {
            StoryForm::Terminal | StoryForm::Plain | StoryForm::Timed => {
                log.with_ansi(self.color).with_target(false).try_init()
            }
            StoryForm::Json => log.json().flatten_event(true).with_target(false).try_init(),
        };
    }

    /// Writes to stdout. A reader that has gone away is not an error.
    pub(super) fn print(&self, text: &str) -> anyhow::Result<()> {
        let mut stdout = std::io::stdout().lock();
        // In JSON, characters that act on a terminal are escaped as JSON escapes them.
        let text = if self.format != Format::Text && stdout.is_terminal() {
            Cow::Owned(escape::json(text))
        } else {
            Cow::Borrowed(text)
        };
        match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
            other => Ok(other?),
        }
    }

    pub(super) fn line(&self, text: &str) -> anyhow::Result<()> {
        self.print(&format!("{text}\n"))
    }

    /// Writes the result of a command: a line for people, or JSON for programs.
    pub(super) fn line_or_json(&self, line: &str, value: &Value) -> anyhow::Result<()> {
        if self.format == Format::Text { self.line(line) } else { self.json(value) }
    }

    pub(super) fn lines(&self, lines: impl IntoIterator<Item = String>) -> anyhow::Result<()> {
        for line in lines {
            self.line(&line)?;
        }
        Ok(())
    }

    /// Writes a JSON document to stdout. With `--format jsonl`, each item of an array is a line.
    pub(super) fn json(&self, value: &Value) -> anyhow::Result<()> {
        if self.format != Format::Jsonl {
            return self.line(&serde_json::to_string_pretty(value)?);
        }
        let Value::Array(items) = value else { return self.line(&value.to_string()) };
        for item in items {
            self.line(&item.to_string())?;
        }
        Ok(())
    }

    /// Prints a line of the story, unless `--quiet` is given.
    pub(super) fn status(&self, text: &str) {
        if !self.quiet {
            self.warn(text);
        }
    }

    /// Prints the last line of a process that ends now, in place of the moving lines.
    pub(super) fn print_last(&self, text: &str) {
        spinner::end();
        self.status(text);
    }

    /// Prints a line that matters even with `--quiet`. On a terminal it is broken between words.
    pub(super) fn warn(&self, text: &str) {
        self.print_story("INFO", text);
    }

    /// Prints a line of the story. Its level is in the log of JSON alone.
    fn print_story(&self, level: &str, text: &str) {
        let text = match self.story {
            StoryForm::Terminal => wrap(text, self.columns()),
            StoryForm::Plain => text.to_owned(),
            StoryForm::Timed => format!("{} {text}", now()),
            StoryForm::Json => return log_as_json(level, text),
        };
        print_to_stderr(&text);
    }

    /// Returns the columns of the terminal but one: some terminals break a line that ends in the last column.
    #[expect(clippy::unused_self, reason = "only an Output writes to the terminal")]
    fn columns(&self) -> usize {
        usize::from(Term::stderr().size().1).saturating_sub(1)
    }

    /// Returns whether a person watches the story, so that lines may move in it.
    pub(super) fn is_live(&self) -> bool {
        self.story == StoryForm::Terminal && !self.quiet
    }

    pub(super) fn is_verbose(&self) -> bool {
        self.verbose > 0
    }

    /// Returns the largest width of the story, if it is on a terminal.
    pub(super) fn width(&self) -> Option<usize> {
        (self.story == StoryForm::Terminal).then(|| self.columns())
    }

    /// Reports an error on stderr and, if the format is JSON, on stdout too. A file in a format of other tools never holds one.
    pub(super) fn error(&self, error: &anyhow::Error, code: ExitCode) {
        // Messages may quote files, servers and models.
        let message = escape::terminal(&format!("{error:#}"));
        self.print_story("ERROR", &format!("{}: {message}", self.paint("error", "1;31")));
        if matches!(self.format, Format::Json | Format::Jsonl) {
            json_error(&message, code);
        }
    }

    /// Colours `text` with an SGR code, if stderr is coloured.
    pub(super) fn paint(&self, text: &str, sgr: &str) -> String {
        if self.color { format!("\u{1b}[{sgr}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// The writer of the log, which writes to stderr above the moving lines.
struct Above;

impl Write for Above {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        spinner::above(|| std::io::stderr().lock().write(bytes))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().lock().flush()
    }
}

/// Returns a text with line breaks between its words, where a terminal of this width needs them. A quoted line stays quoted.
pub(super) fn wrap(text: &str, width: usize) -> String {
    let options = Options::new(width).break_words(false).word_splitter(WordSplitter::NoHyphenation);
    let mut lines = Vec::new();
    for line in glue_commands(text, width).lines() {
        let indent = line.len() - line.trim_start().len();
        let indent =
            if line.starts_with("> ") { "> ".to_owned() } else { " ".repeat((indent + 2).min(width / 2)) };
        lines.push(textwrap::fill(line, options.clone().subsequent_indent(&indent)));
    }
    lines.join("\n").replace(GLUE, " ")
}

/// A space at which no line is broken.
const GLUE: char = '\u{a0}';

/// Returns the text with glue in the commands that it quotes and that fit on a line, so that each can be copied.
fn glue_commands(text: &str, width: usize) -> String {
    let mut parts = Vec::new();
    for (number, part) in text.split('`').enumerate() {
        // Every second part is between two quotes.
        let is_quoted = number % 2 == 1;
        let is_command = is_quoted && part.starts_with("consensus ") && measure_text_width(part) + 4 < width;
        parts.push(if is_command { part.replace(' ', &GLUE.to_string()) } else { part.to_owned() });
    }
    parts.join("`")
}

/// Writes a line of the story to stderr as a JSON object.
pub(super) fn log_as_json(level: &str, text: &str) {
    let message = console::strip_ansi_codes(text);
    let line = json!({"timestamp": now().to_string(), "level": level, "message": message.trim()});
    print_to_stderr(&line.to_string());
}

/// Writes a line to stderr in one piece, so that nothing comes between its text and its line break.
fn print_to_stderr(line: &str) {
    // A closed stderr must not end a run.
    let _ = spinner::above(|| std::io::stderr().lock().write_all(format!("{line}\n").as_bytes()));
}

fn now() -> Rfc3339Timestamp {
    humantime::format_rfc3339_seconds(SystemTime::now())
}

/// Writes an error as one JSON object to stdout.
pub(super) fn json_error(message: &str, code: ExitCode) {
    let value = json!({"error": {"message": message, "exit": u8::from(code)}});
    let mut stdout = std::io::stdout().lock();
    // If stdout is closed, no one is left to read the error.
    let _ = writeln!(stdout, "{value}");
}
