//! Flags of `consensus results`.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

use super::global::Format;
use crate::batch::By;

const AFTER_HELP: &str = "\
A table (text), a JSON document and a page with plots (html) put runs together, with 95 % intervals (Wilson); csv and
jsonl have a row for each run. The page is one file that loads nothing.

Examples:
  consensus results out
  consensus results out --by model,seed
  consensus results out --format csv >runs.csv
  consensus results out --format html >out.html";

/// The formats of tables, which no other command has.
fn format() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(["table", "json", "jsonl", "csv", "html"]).map(|name| match name.as_str() {
        "json" => Format::Json,
        "jsonl" => Format::Jsonl,
        "csv" => Format::Csv,
        "html" => Format::Html,
        _ => Format::Text,
    })
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum ByArg {
    Roleset,
    Model,
    Seed,
    Task,
}

impl From<ByArg> for By {
    fn from(arg: ByArg) -> Self {
        match arg {
            ByArg::Roleset => Self::Roleset,
            ByArg::Model => Self::Model,
            ByArg::Seed => Self::Seed,
            ByArg::Task => Self::Task,
        }
    }
}

/// Arguments of `results`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ResultsArgs {
    /// The batch's folder.
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// What runs have in common that are put together.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT,…", default_value = "roleset,model")]
    pub(crate) by: Vec<ByArg>,
    /// What stdout carries: a table, one JSON document, one JSON object a run, comma-separated values, or a page with plots.
    #[arg(long, value_name = "FORMAT", default_value = "table", value_parser = format())]
    pub(crate) format: Format,
}
