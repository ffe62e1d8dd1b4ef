//! The flags of `consensus results`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use super::global::Format;
use crate::batch::{By, RunFilter};

const AFTER_HELP: &str = "\
A table (text), a JSON document (json) and a page with plots (html) group runs. Rows of runs are `csv` and `jsonl`. \
With `calls`, each call of a model is a JSON line. The log of `inspect` is for \
the viewer and the readers of inspect_ai, and is of one way of answering. The page is one file that loads nothing, and it names its source.

Intervals are of 95 %. Several seeds of one task are one unit: the interval is Wilson's for as many independent runs as would vary \
as much as the means of tasks do.

Examples:
  consensus results out
  consensus results out --by model,meta.level
  consensus results out --versus solver_checker
  consensus results monday tuesday
  consensus results out --format csv >runs.csv
  consensus results out --format html --with-transcripts >out.html
  consensus results study/arms --only arm=sc@5 --format inspect --tasks study/tasks.jsonl >logs/2026-01-01T00-00-00_sc.json";

/// Returns a parser for the formats of results, which no other command has. `table` is the old name of `text`.
fn format() -> impl TypedValueParser<Value = Format> {
    let names = ["text", "json", "jsonl", "csv", "calls", "html", "inspect"].map(PossibleValue::new);
    let old = PossibleValue::new("table").hide(true);
    PossibleValuesParser::new(names.into_iter().chain([old])).map(|name| match name.as_str() {
        "json" => Format::Json,
        "jsonl" => Format::Jsonl,
        "csv" => Format::Csv,
        "html" => Format::Html,
        "calls" => Format::Calls,
        "inspect" => Format::Inspect,
        _ => Format::Text,
    })
}

/// Arguments of `results`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ResultsArgs {
    /// The folders of batches; with several, runs are grouped by folder too.
    #[arg(value_name = "DIR", required = true)]
    pub(crate) dirs: Vec<PathBuf>,
    /// Group runs by these: roleset, model, arm, seed, task, folder, outcome or meta.NAME.
    #[arg(long, value_delimiter = ',', value_name = "WHAT,…", value_parser = By::parse, default_value = "roleset,model,arm")]
    pub(crate) by: Vec<By>,
    /// Use only the runs with this value, such as arm=sc@5; repeatable.
    #[arg(long, value_name = "WHAT=VALUE", value_parser = RunFilter::parse)]
    pub(crate) only: Vec<RunFilter>,
    /// Compare the other groups with this one, task by task.
    ///
    /// The comparison has the difference between the shares of right answers, its interval, and a sign test.
    #[arg(long, value_name = "GROUP")]
    pub(crate) versus: Option<String>,
    /// The format of stdout: a table, one JSON document, one JSON object a run, comma-separated values, one JSON object a call, a
    /// page with plots, or a log for `inspect_ai`.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = format())]
    pub(crate) format: Format,
    /// Put the transcript of each run on the page, below its task, or into the log.
    #[arg(long)]
    pub(crate) with_transcripts: bool,
    /// The tasks of the batch, for the right answers in a log.
    #[arg(long, value_name = "TASKS")]
    pub(crate) tasks: Option<PathBuf>,
}
