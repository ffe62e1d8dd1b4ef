//! Flags that every command has.

use clap::{Args, ValueEnum};

/// The heading of flags that every command has.
const GLOBAL: &str = "Global";

/// Flags of every command.
#[derive(Args, Debug)]
pub(crate) struct Global {
    /// What stdout carries: text, json, or jsonl.
    #[arg(long, global = true, value_enum, default_value_t = Format::Text, help_heading = GLOBAL, hide_possible_values = true, hide_default_value = true)]
    pub(crate) format: Format,
    /// Say nothing on stderr but errors.
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    pub(crate) quiet: bool,
    /// Log more; twice for everything. RUST_LOG sets it finely.
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = GLOBAL, hide_short_help = true)]
    pub(crate) verbose: u8,
    /// How the story and the log are written to stderr: as text, or as one JSON object a line.
    #[arg(long, global = true, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text, help_heading = GLOBAL, hide_short_help = true)]
    pub(crate) log_format: LogFormat,
    /// Colour on stderr. NO_COLOR is honoured.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, help_heading = GLOBAL, hide_short_help = true)]
    pub(crate) color: Color,
}

/// What stdout carries.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Format {
    #[value(alias = "table")]
    Text,
    Json,
    Jsonl,
    /// A format of one command alone.
    #[value(skip)]
    Own(OwnFormat),
}

/// A format that one command has and no other.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum OwnFormat {
    /// Of `results`: comma-separated values.
    Csv,
    /// Of `results`: a row for each call.
    Calls,
    /// Of `results`: a page.
    Html,
    /// Of `review`: for a comment.
    Markdown,
    /// Of `review`: for code hosts.
    Sarif,
    /// Of `review`: annotations in a workflow.
    Github,
}

/// How stderr is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// When stderr is coloured.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}
