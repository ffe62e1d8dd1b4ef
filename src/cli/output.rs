//! Writing to stdout and stderr: the answer to the one, the story to the other.

use std::io::{ErrorKind, IsTerminal, Write};
use std::time::SystemTime;

use serde_json::{Value, json};
use tracing_subscriber::EnvFilter;

use super::args::{Color, Format, Global};
use crate::core::ExitCode;
use crate::text::escape;

/// Where the program writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Output {
    pub(super) format: Format,
    pub(super) quiet: bool,
    verbose: u8,
    pub(super) color: bool,
    /// Whether each line of the story begins with the time.
    has_times: bool,
}

impl Output {
    pub(super) fn new(global: &Global) -> Self {
        let wanted =
            std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        let color = match global.color {
            Color::Auto => wanted,
            Color::Always => true,
            Color::Never => false,
        };
        Self { format: global.format, quiet: global.quiet, verbose: global.verbose, color, has_times: false }
    }

    /// The same with the time, in UTC, before each line of the story: for what works for days.
    pub(super) fn with_times(self, has_times: bool) -> Self {
        Self { has_times, ..self }
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
        // Starting twice happens in tests only, and the first start serves.
        let _ = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(std::io::stderr)
            .with_ansi(self.color)
            .with_target(false)
            .try_init();
    }

    /// Writes to stdout. A reader that has gone away is no error.
    #[expect(clippy::unused_self, reason = "whoever prints goes through an Output")]
    pub(super) fn print(&self, text: &str) -> anyhow::Result<()> {
        let mut stdout = std::io::stdout().lock();
        match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
            other => Ok(other?),
        }
    }

    /// Writes a line to stdout.
    pub(super) fn line(&self, text: &str) -> anyhow::Result<()> {
        self.print(&format!("{text}\n"))
    }

    /// Writes a JSON document to stdout; as lines, an array's items are one each.
    pub(super) fn json(&self, value: &Value) -> anyhow::Result<()> {
        match (self.format, value) {
            (Format::Jsonl, Value::Array(items)) => {
                items.iter().try_for_each(|item| self.line(&item.to_string()))
            }
            (Format::Jsonl, _) => self.line(&value.to_string()),
            (Format::Text | Format::Json | Format::Own(_), _) => {
                self.line(&serde_json::to_string_pretty(value)?)
            }
        }
    }

    /// Tells a line of the story, unless it is not wanted.
    pub(super) fn status(&self, text: &str) {
        if !self.quiet {
            self.warn(text);
        }
    }

    /// Tells a line that matters also where no story is wanted.
    pub(super) fn warn(&self, text: &str) {
        let time =
            self.has_times.then(|| format!("{} ", humantime::format_rfc3339_seconds(SystemTime::now())));
        let mut stderr = std::io::stderr().lock();
        // A closed stderr must not end a run.
        let _ = writeln!(stderr, "{}{text}", time.unwrap_or_default());
    }

    /// Reports an error, as JSON on stdout too where JSON was asked for.
    pub(super) fn error(&self, error: &anyhow::Error, code: ExitCode) {
        // Messages may quote files, servers and models.
        let message = escape::terminal(&format!("{error:#}"));
        self.warn(&format!("{}: {message}", self.paint("error", "1;31")));
        if self.format != Format::Text {
            json_error(&message, code);
        }
    }

    /// Colours `text` with an SGR code, if stderr is coloured.
    pub(super) fn paint(&self, text: &str, sgr: &str) -> String {
        if self.color { format!("\u{1b}[{sgr}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// Writes an error as one JSON object to stdout.
pub(super) fn json_error(message: &str, code: ExitCode) {
    let value = json!({"error": {"message": message, "exit": u8::from(code)}});
    let mut stdout = std::io::stdout().lock();
    // There is nobody left to tell if stdout is gone.
    let _ = writeln!(stdout, "{value}");
}
