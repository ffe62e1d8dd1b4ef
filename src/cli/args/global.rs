//! Flags that every command has.

use clap::{Args, ValueEnum};

/// The heading of flags that every command has.
const GLOBAL: &str = "Global";

/// Flags of every command.
#[derive(Args, Debug)]
pub(crate) struct Global {
    /// The format of stdout: text, json or jsonl.
    #[arg(long, global = true, value_enum, default_value_t = Format::Text, help_heading = GLOBAL, hide_possible_values = true, hide_default_value = true)]
    pub(crate) format: Format,
    /// Print only warnings and errors on stderr.
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    pub(crate) quiet: bool,
    /// Verbose logging (-vv for debug). RUST_LOG overrides.
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = GLOBAL, hide_short_help = true)]
    pub(crate) verbose: u8,
    /// The format of the story and the log on stderr: text, or one JSON object a line.
    #[arg(long, global = true, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text, help_heading = GLOBAL, hide_short_help = true)]
    pub(crate) log_format: LogFormat,
    /// When to colour stderr. NO_COLOR is honoured.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, help_heading = GLOBAL, hide_short_help = true)]
    pub(crate) color: Color,
}

/// The format of stdout.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
    Jsonl,
    /// Comma-separated values, for `results`.
    #[value(skip)]
    Csv,
    /// A row for each call, for `results`.
    #[value(skip)]
    Calls,
    /// A page, for `results` and `show`.
    #[value(skip)]
    Html,
    /// A log of `inspect_ai`, for `results`.
    #[value(skip)]
    Inspect,
    /// Markdown for a comment, for `review`.
    #[value(skip)]
    Markdown,
    /// SARIF for code hosts, for `review`.
    #[value(skip)]
    Sarif,
    /// Annotations in a workflow, for `review`.
    #[value(skip)]
    Github,
}

/// The format of stderr.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// The choice of when stderr is coloured.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}
