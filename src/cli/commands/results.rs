//! `consensus results`: what came out of a batch.

use std::io::IsTerminal as _;

use serde_json::json;

use crate::batch::{By, Flat, Group, Groups, State, page, results, share_in_words, status, strays};
use crate::cli::args::Format;
use crate::cli::args::ResultsArgs;
use crate::cli::output::Output;
use crate::core::ExitCode;
use crate::text::escape;

pub(crate) fn tell(args: &ResultsArgs, output: &Output) -> anyhow::Result<ExitCode> {
    match args.format {
        Format::Text | Format::Json | Format::Html => together(args, output)?,
        Format::Jsonl => each(args, output, |row| Ok(serde_json::to_string(row)? + "\n"))?,
        Format::Csv => {
            let mut is_first = true;
            each(args, output, |row| {
                let mut line = csv::WriterBuilder::new().has_headers(is_first).from_writer(Vec::new());
                is_first = false;
                line.serialize(row)?;
                Ok(String::from_utf8(line.into_inner()?)?)
            })?;
        }
    }
    Ok(ExitCode::Success)
}

/// Prints each row as `write` writes it. A program gets it as it is; a terminal must not be driven by what models have said.
fn each(
    args: &ResultsArgs,
    output: &Output,
    mut write: impl FnMut(&Flat<'_>) -> anyhow::Result<String>,
) -> anyhow::Result<()> {
    for stray in strays(&args.dir)? {
        output.warn(&escape::terminal(&stray));
    }
    let is_terminal = std::io::stdout().is_terminal();
    let mut failure = None;
    results(&args.dir, |told| {
        if failure.is_none() {
            let printed = write(&told.flat()).and_then(|line| {
                let line = if is_terminal { escape::terminal(line.trim_end()) + "\n" } else { line };
                output.print(&line)
            });
            failure = printed.err();
        }
    })?;
    failure.map_or(Ok(()), Err)
}

/// Tells groups of runs.
fn together(args: &ResultsArgs, output: &Output) -> anyhow::Result<()> {
    let by: Vec<By> = args.by.iter().copied().map(By::from).collect();
    let mut groups = Groups::new(&by);
    results(&args.dir, |told| groups.add(&told))?;
    let groups = groups.finish();
    let warnings = warnings(args, &groups)?;
    for warning in &warnings {
        output.warn(warning);
    }
    if args.format == Format::Json {
        return output.json(&json!(groups));
    }
    if args.format == Format::Html {
        return output.print(&page(&args.dir.display().to_string(), &groups, &warnings));
    }
    if groups.is_empty() {
        output.status(&format!("no run has ended in `{}`", args.dir.display()));
        return Ok(());
    }
    let mut table = vec![header(&groups[0])];
    table.extend(groups.iter().map(cells));
    let widths: Vec<usize> = (0..table[0].len())
        .map(|column| table.iter().map(|row| row[column].chars().count()).max().unwrap_or_default())
        .collect();
    for row in table {
        let row: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        output.line(row.join("  ").trim_end())?;
    }
    Ok(())
}

/// What a reader of these groups must know first.
fn warnings(args: &ResultsArgs, groups: &[Group]) -> anyhow::Result<Vec<String>> {
    let mut warnings = strays(&args.dir)?;
    let cut_off: u64 = groups.iter().map(|group| group.ended.all() - group.ended.by_protocol()).sum();
    if cut_off > 0 {
        warnings.push(format!(
            "{cut_off} runs have failed or come to a limit, and are in no share; `consensus batch … --retry failed,budget` goes on with them"
        ));
    }
    for shard in status(&args.dir)? {
        let state = shard.progress.map(|progress| progress.state);
        if state != Some(State::Ended) || shard.is_live == Some(true) {
            warnings.push(format!("shard {} has not ended: these are not all runs", shard.index));
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
        "right blind",
        "rounds",
        "calls",
        "tokens",
        "s p50",
        "s p95",
        "USD",
    ];
    group.of.iter().map(|(name, _)| *name).chain(names).map(str::to_owned).collect()
}

fn cells(group: &Group) -> Vec<String> {
    let names = group
        .of
        .iter()
        .map(|(_, name)| if name.is_empty() { "-".to_owned() } else { escape::terminal(name) });
    let cost = group.cost_micro_usd.map_or("-".to_owned(), |cost| format!("{:.4}", cost as f64 / 1e6));
    let figures = [
        group.ended.all().to_string(),
        (group.ended.all() - group.ended.by_protocol()).to_string(),
        share_in_words(&group.agreed),
        share_in_words(&group.right),
        share_in_words(&group.blind_right),
        format!("{:.1}", group.rounds),
        format!("{:.1}", group.calls),
        format!("{:.0}", group.tokens),
        format!("{:.2}", group.seconds_p50),
        format!("{:.2}", group.seconds_p95),
        cost,
    ];
    names.chain(figures).collect()
}
