//! `consensus results`: prints the results of batches.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::Path;
use std::time::SystemTime;

use console::{Term, measure_text_width};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::chosen_runs::{for_each_chosen, require_fitting};
use super::inspect_log::inspect_log;
use crate::batch::{
    By, Difference, Group, Groups, MissingParts, PageContent, Samples, calls, format_share, mixed_variants,
    page, provenance, status, stray_files, transcripts,
};
use crate::cli::args::{Format, ResultsArgs};
use crate::cli::error::UsageError;
use crate::cli::output::{Output, wrap};
use crate::eval::EvalPlan;
use crate::program::VERSION;
use protocol::core::ExitCode;
use protocol::text::escape;

/// The number of tasks below which intervals over several seeds are too narrow: with 5 tasks, they hold in 86 to 89 % of simulated
/// cases.
const TASKS_MIN: u64 = 10;

pub(crate) fn results(args: &ResultsArgs, output: &Output) -> anyhow::Result<ExitCode> {
    if args.with_transcripts && !matches!(args.format, Format::Html | Format::Inspect) {
        let why = "only a page or a log has transcripts: add --format html or --format inspect";
        return Err(UsageError(why.to_owned()).into());
    }
    if !args.only.is_empty() && args.format == Format::Calls {
        let why = "--only chooses runs, and not calls: leave it out, and choose among the rows";
        return Err(UsageError(why.to_owned()).into());
    }
    if args.tasks.is_some() && args.format != Format::Inspect {
        return Err(UsageError("--tasks is for a log only: add --format inspect".to_owned()).into());
    }
    for dir in &args.dirs {
        EvalPlan::require_batch(dir)?;
    }
    require_fitting(&args.only, &args.dirs)?;
    match args.format {
        Format::Text | Format::Json | Format::Html | Format::Markdown | Format::Sarif | Format::Github => {
            print_groups(args, output)?;
        }
        Format::Jsonl => print_each_run(args, output, json_line)?,
        Format::Csv => {
            let mut is_first = true;
            print_each_run(args, output, |row| csv_line(row, std::mem::take(&mut is_first)))?;
        }
        Format::Inspect => {
            warn_of_missing(args, output)?;
            inspect_log(args, output)?;
        }
        Format::Calls => {
            warn_of_missing(args, output)?;
            let mut printer = RowPrinter::new(output);
            for dir in &args.dirs {
                calls(dir, |row| printer.print(json_line(&row)))?;
            }
            printer.finish()?;
        }
    }
    Ok(ExitCode::Success)
}

/// Warns of everything that is missing in the records, before their rows are printed.
fn warn_of_missing(args: &ResultsArgs, output: &Output) -> anyhow::Result<()> {
    for dir in &args.dirs {
        for words in describe_missing(args, dir)? {
            output.warn(&words);
        }
    }
    Ok(())
}

/// Returns what is missing in the record of the batch in `dir`, one of several, in words.
fn describe_missing(args: &ResultsArgs, dir: &Path) -> anyhow::Result<Vec<String>> {
    let of = if args.dirs.len() > 1 { format!("`{}`: ", dir.display()) } else { String::new() };
    let words = MissingParts::find(dir)?.summary();
    Ok(words.into_iter().map(|words| escape::terminal(&format!("{of}{words}"))).collect())
}

/// The printer of rows as they come. A program receives them unchanged. On a terminal they are escaped, so that the words of models
/// cannot control it.
struct RowPrinter<'a> {
    output: &'a Output,
    is_terminal: bool,
    failure: Option<anyhow::Error>,
}

impl<'a> RowPrinter<'a> {
    fn new(output: &'a Output) -> Self {
        Self { output, is_terminal: std::io::stdout().is_terminal(), failure: None }
    }

    fn print(&mut self, line: anyhow::Result<String>) {
        if self.failure.is_none() {
            self.failure = line.and_then(|line| self.print_line(&line)).err();
        }
    }

    fn print_line(&self, line: &str) -> anyhow::Result<()> {
        if self.is_terminal {
            return self.output.line(&escape::terminal(line.trim_end()));
        }
        self.output.print(line)
    }

    fn finish(self) -> anyhow::Result<()> {
        match self.failure {
            Some(why) => Err(why),
            None => Ok(()),
        }
    }
}

/// Prints each run in the form that `write` gives it.
fn print_each_run(
    args: &ResultsArgs,
    output: &Output,
    mut write: impl FnMut(&Value) -> anyhow::Result<String>,
) -> anyhow::Result<()> {
    warn_of_missing(args, output)?;
    let mut printer = RowPrinter::new(output);
    for dir in &args.dirs {
        for stray in stray_files(dir)? {
            output.warn(&escape::terminal(&stray));
        }
        for_each_chosen(&args.only, dir, |row| printer.print(write(&json!(row.flat()))))?;
    }
    printer.finish()
}

fn json_line(row: &impl Serialize) -> anyhow::Result<String> {
    Ok(serde_json::to_string(row)? + "\n")
}

/// Returns a row of comma-separated values, with a heading before the first. Lists and objects are written as JSON.
fn csv_line(row: &Value, is_first: bool) -> anyhow::Result<String> {
    let none = Map::new();
    let fields = row.as_object().unwrap_or(&none);
    let mut lines = csv::Writer::from_writer(Vec::new());
    if is_first {
        lines.write_record(fields.keys())?;
    }
    let mut cells = Vec::new();
    for value in fields.values() {
        cells.push(match value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
        });
    }
    lines.write_record(cells)?;
    Ok(String::from_utf8(lines.into_inner()?)?)
}

fn print_groups(args: &ResultsArgs, output: &Output) -> anyhow::Result<()> {
    let mut by = args.by.clone();
    if args.dirs.len() > 1 && !by.contains(&By::Folder) {
        by.insert(0, By::Folder);
    }
    let (mut groups, mut samples) = (Groups::new(&by), Samples::new(&by));
    for dir in &args.dirs {
        for_each_chosen(&args.only, dir, |row| {
            groups.add(&row);
            if args.format == Format::Html {
                samples.add(&row);
            }
        })?;
    }
    if let Some(why) = groups.unknown_label() {
        return Err(UsageError(why).into());
    }
    let differences = args.versus.as_ref().map(|versus| groups.versus(versus)).transpose();
    let differences = differences.map_err(UsageError)?;
    let groups = groups.finish();
    let warnings = warnings(args, &groups)?;
    for warning in &warnings {
        output.warn(warning);
    }
    if args.format == Format::Json {
        return output.json(&match &differences {
            Some(differences) => json!({"groups": groups, "versus": differences}),
            None => json!(groups),
        });
    }
    let differences = differences.unwrap_or_default();
    if args.format == Format::Html {
        return output.print(&make_page(args, &groups, &differences, &warnings, &samples)?);
    }
    if groups.is_empty() {
        output.status("no run has ended yet");
        return Ok(());
    }
    print_table(&groups, output)?;
    print_phases(&groups, output)?;
    for difference in &differences {
        print_sentence(&escape::terminal(&difference.summary()), output)?;
    }
    Ok(())
}

fn make_page(
    args: &ResultsArgs,
    groups: &[Group],
    differences: &[Difference],
    warnings: &[String],
    samples: &Samples,
) -> anyhow::Result<String> {
    let title: Vec<String> = args.dirs.iter().map(|dir| dir.display().to_string()).collect();
    let provenances = args.dirs.iter().map(|dir| provenance(dir)).collect::<Result<Vec<_>, _>>()?;
    let mut all = BTreeMap::new();
    if args.with_transcripts {
        for dir in &args.dirs {
            for (run, text) in transcripts(dir)? {
                all.insert((dir.display().to_string(), run), text);
            }
        }
    }
    Ok(page(&PageContent {
        title: &title.join(", "),
        made_at: &humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        program: &format!("consensus {VERSION}"),
        provenances: &provenances,
        warnings,
        groups,
        differences,
        samples,
        transcripts: &all,
    }))
}

/// Prints a table or, if it does not fit into the terminal, a block for each group.
fn print_table(groups: &[Group], output: &Output) -> anyhow::Result<()> {
    let mut header = header(&groups[0]);
    let mut rows: Vec<Vec<String>> = groups.iter().map(cells).collect();
    let mut names = groups[0].of.len();
    // A person does not need columns without a figure; a program counts on them.
    let is_terminal = std::io::stdout().is_terminal();
    for column in (0..header.len()).rev() {
        if is_terminal && rows.iter().all(|row| row[column] == "-") {
            header.remove(column);
            for row in &mut rows {
                row.remove(column);
            }
            names -= usize::from(column < names);
        }
    }
    let mut widths = vec![0; header.len()];
    for row in rows.iter().chain([&header]) {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = measure_text_width(cell).max(*width);
        }
    }
    let width = usize::from(Term::stdout().size().1);
    if is_terminal && widths.iter().sum::<usize>() + 2 * widths.len() > width + 2 {
        return print_blocks(&header, &rows, names, width, output);
    }
    for row in std::iter::once(&header).chain(&rows) {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| pad(cell, *width)).collect();
        output.line(cells.join("  ").trim_end())?;
    }
    Ok(())
}

fn pad(cell: &str, width: usize) -> String {
    format!("{cell}{}", " ".repeat(width.saturating_sub(measure_text_width(cell))))
}

/// Prints a block for each group: its names, and below them its figures, as many in a line as fit.
fn print_blocks(
    header: &[String],
    rows: &[Vec<String>],
    names: usize,
    width: usize,
    output: &Output,
) -> anyhow::Result<()> {
    for row in rows {
        let group: Vec<&str> = row[..names].iter().map(String::as_str).filter(|name| *name != "-").collect();
        output.line(&group.join(" · "))?;
        let mut line = String::new();
        for (name, cell) in header.iter().zip(row).skip(names).filter(|(_, cell)| *cell != "-") {
            let figure = format!("  {name} {cell}");
            if !line.is_empty() && measure_text_width(&line) + measure_text_width(&figure) > width {
                output.line(&std::mem::take(&mut line))?;
            }
            line += &figure;
        }
        output.line(&line)?;
    }
    Ok(())
}

/// Prints the tokens of each phase, if the results have them.
fn print_phases(groups: &[Group], output: &Output) -> anyhow::Result<()> {
    for group in groups.iter().filter(|group| !group.tokens_by_phase.is_empty()) {
        let all: f64 = group.tokens_by_phase.values().sum();
        let mut parts = Vec::new();
        for (phase, tokens) in &group.tokens_by_phase {
            parts.push(format!("{phase} {tokens:.0} ({:.0} %)", tokens / all.max(1.0) * 100.0));
        }
        let parts = escape::terminal(&parts.join(", "));
        print_sentence(&format!("tokens a run of {}: {parts}", group_name(group)), output)?;
    }
    Ok(())
}

/// Prints a sentence, in lines that fit if stdout is a terminal.
fn print_sentence(text: &str, output: &Output) -> anyhow::Result<()> {
    if !std::io::stdout().is_terminal() {
        return output.line(text);
    }
    output.line(&wrap(text, usize::from(Term::stdout().size().1).saturating_sub(1)))
}

fn group_name(group: &Group) -> String {
    let names: Vec<&str> = group.of.iter().map(|(_, name)| name.as_str()).filter(|n| !n.is_empty()).collect();
    if names.is_empty() { "-".to_owned() } else { escape::terminal(&names.join(" · ")) }
}

/// Returns the warnings that a reader of these groups must see first.
fn warnings(args: &ResultsArgs, groups: &[Group]) -> anyhow::Result<Vec<String>> {
    let mut warnings = Vec::new();
    let cut_off: u64 = groups.iter().map(|group| group.ended.all() - group.ended.by_protocol()).sum();
    if cut_off > 0 {
        warnings.push(format!(
            "{cut_off} runs failed or reached a limit, and are in no share; `consensus batch … --retry failed,budget` continues those of a batch"
        ));
    }
    let mut agreed = groups.iter().map(|group| &group.agreed);
    if agreed.any(|share| share.tasks > 0 && share.tasks < TASKS_MIN.min(share.of)) {
        warnings.push(format!(
            "a group has several runs of fewer than {TASKS_MIN} tasks: its intervals are too narrow, since so few tasks say little about others"
        ));
    }
    for dir in &args.dirs {
        let of = if args.dirs.len() > 1 { format!(" of `{}`", dir.display()) } else { String::new() };
        warnings.extend(describe_missing(args, dir)?);
        warnings.extend(stray_files(dir)?);
        for variant in mixed_variants(dir)? {
            let variant = escape::terminal(&variant);
            warnings.push(format!("{variant}, in one row{of}, since --keep-old allowed it"));
        }
        for shard in status(dir)? {
            if !shard.has_ended() {
                warnings.push(format!("incomplete: shard {}{of} is still open", shard.index));
            }
        }
    }
    Ok(warnings)
}

fn header(group: &Group) -> Vec<String> {
    let names = [
        "runs",
        "cut off",
        "agreed",
        "right",
        "when agreed",
        "right blind",
        "talk",
        "rounds",
        "calls",
        "tokens",
        "s p50",
        "s p95",
        "USD",
    ];
    group.of.iter().map(|(name, _)| name.clone()).chain(names.map(str::to_owned)).collect()
}

fn cells(group: &Group) -> Vec<String> {
    let names = group
        .of
        .iter()
        .map(|(_, name)| if name.is_empty() { "-".to_owned() } else { escape::terminal(name) });
    let cost = group.cost_micro_usd.map_or("-".to_owned(), |cost| format!("{:.4}", cost as f64 / 1e6));
    let talk = &group.talk;
    let talk = match talk.kept + talk.lost + talk.gained + talk.missed {
        0 => "-".to_owned(),
        _ => format!("+{} −{}", talk.gained, talk.lost),
    };
    let figures = [
        group.ended.all().to_string(),
        (group.ended.all() - group.ended.by_protocol()).to_string(),
        format_share(&group.agreed),
        format_share(&group.right),
        format_share(&group.right_when_agreed),
        format_share(&group.blind_right),
        talk,
        format!("{:.1}", group.rounds),
        format!("{:.1}", group.calls),
        format!("{:.0}", group.tokens),
        format!("{:.2}", group.seconds_p50),
        format!("{:.2}", group.seconds_p95),
        cost,
    ];
    names.chain(figures).collect()
}
