//! The files of an evaluation's report.
//!
//! The input is a summary, and the results by item. The output is `summary.json`, `items.jsonl`, `report.html` and the pages
//! of items in the folder. The rows are flat, one for each item and arm, so that a table of any language reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::{Error, ErrorKind};
use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};

use super::curve::first_majority;
use super::error::EvalError;
use super::folder::write;
use super::items::{ARMS, ArmItem, BlindLead, EvalResults, Item};
use super::page::{FlippedItem, item_page, report_page};
use super::plan::EvalPlan;
use super::summary::Summary;
use crate::batch::{TaskLine, is_batch, transcripts_of};
use crate::files::{is_unfinished, private_folder};
use protocol::text::escape;

/// The most items with a page of their own.
const FLIPS_MAX: usize = 500;

/// The row of an item and an arm.
#[derive(Serialize)]
struct ItemRow<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<&'a str>,
    arm: &'a str,
    outcome: &'static str,
    grounds: Option<&'a str>,
    certainty: Option<f64>,
    answer: Option<&'a str>,
    right: bool,
    blind_right: Option<f64>,
    rounds: u32,
    prompt_tokens: u64,
    cached_tokens: u64,
    completion_tokens: u64,
    calls: u64,
    milliseconds: u64,
    cost_micro_usd: Option<u64>,
    run: &'a str,
}

/// Writes the files of a report into the folder of an evaluation.
///
/// Returns [`EvalError::Io`] if a file cannot be written, and [`EvalError::Batch`] if a journal cannot be read.
pub(super) fn write_report(
    folder: &Path,
    plan: &EvalPlan,
    tasks: &[TaskLine],
    results: &EvalResults,
    summary: &Summary,
) -> Result<(), EvalError> {
    let items = folder.join("items");
    require_own(&items).map_err(EvalError::io("write", &items))?;
    write(&folder.join("summary.json"), &(serde_json::to_string_pretty(summary).unwrap_or_default() + "\n"))?;
    write(&folder.join("items.jsonl"), &item_lines(plan, results))?;
    let mut flips = find_flips(plan, results, summary);
    let is_cut = flips.len() > FLIPS_MAX;
    flips.truncate(FLIPS_MAX);
    write_items(folder, plan, tasks, results, &flips)?;
    let flipped: Vec<FlippedItem> = flips.into_iter().map(|(_, flipped)| flipped).collect();
    write(&folder.join("report.html"), &report_page(summary, plan, &flipped, is_cut))
}

/// Returns the items on which an arm and the majority that it is compared with are not both right or both wrong, and those on which talk
/// changed the vote over an arm's own drafts. Each has its place among the items. A point of the curve is compared with the first sample.
fn find_flips(plan: &EvalPlan, results: &EvalResults, summary: &Summary) -> Vec<(usize, FlippedItem)> {
    let mut samples: Vec<usize> = Vec::new();
    for (arm, of) in plan.arms.iter().zip(&summary.arms) {
        samples.push(match of.against {
            Some(against) if !arm.is_on_curve => against.samples,
            Some(_) | None => 1,
        });
    }
    let mut flips = Vec::new();
    for (at, item) in results.items.iter().enumerate() {
        let (mut better, mut worse) = (Vec::new(), Vec::new());
        for ((arm, run), samples) in plan.arms.iter().zip(&item.arms).zip(&samples) {
            let Some(run) = run else { continue };
            let name = escape::terminal(&arm.name);
            let bank = item.banks[arm.curve].as_ref();
            let majority = bank.map(|bank| first_majority(&bank.samples, *samples));
            let before = run.blind.and_then(BlindLead::is_right);
            for (was_right, name) in [(majority, name.clone()), (before, format!("{name} by talk"))] {
                match (was_right, run.is_right) {
                    (Some(false), true) => better.push(name),
                    (Some(true), false) => worse.push(name),
                    (Some(_) | None, _) => {}
                }
            }
        }
        if !better.is_empty() || !worse.is_empty() {
            let page = format!("{}.html", at + 1);
            flips.push((at, FlippedItem { page, id: escape::terminal(&item.id), better, worse }));
        }
        // One more says that not all have a page.
        if flips.len() > FLIPS_MAX {
            break;
        }
    }
    flips
}

/// Returns true if a file has the name of an item's page.
fn is_page(name: &OsStr) -> bool {
    let number = name.to_str().and_then(|name| name.strip_suffix(".html"));
    number.is_some_and(|number| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()))
}

/// Refuses a link in place of the folder of items, because it could lead to files of others, and any other file.
fn require_own(items: &Path) -> std::io::Result<()> {
    let why = match items.symlink_metadata() {
        Ok(there) if there.is_symlink() => "it is a link, and not the evaluation's own folder; remove it",
        Ok(there) if !there.is_dir() => "it is a file, and not the evaluation's own folder; remove it",
        _ => return Ok(()),
    };
    Err(Error::new(ErrorKind::NotADirectory, why))
}

/// Makes the folder of items, without pages of an earlier report or of a process that was killed.
fn clear(items: &Path) -> std::io::Result<()> {
    require_own(items)?;
    private_folder(items)?;
    for entry in std::fs::read_dir(items)? {
        let entry = entry?;
        let name = entry.file_name();
        if (is_page(&name) || is_unfinished(&name))
            && let Err(why) = std::fs::remove_file(entry.path())
            && why.kind() != ErrorKind::NotFound
        {
            return Err(why);
        }
    }
    Ok(())
}

/// Writes the page of each item that flips, in place of those of an earlier report.
fn write_items(
    folder: &Path,
    plan: &EvalPlan,
    tasks: &[TaskLine],
    results: &EvalResults,
    flips: &[(usize, FlippedItem)],
) -> Result<(), EvalError> {
    let runs = flips.iter().flat_map(|(at, _)| &results.items[*at].arms).flatten();
    let runs: BTreeSet<String> = runs.map(|run| run.run.clone()).collect();
    let mut transcripts = BTreeMap::new();
    for part in EvalResults::parts(folder, plan) {
        if is_batch(&part.join(ARMS)) {
            transcripts.extend(transcripts_of(&part.join(ARMS), &runs)?);
        }
    }
    let items = folder.join("items");
    clear(&items).map_err(EvalError::io("write", &items))?;
    for (at, FlippedItem { page, .. }) in flips {
        let item = &results.items[*at];
        let mut texts: Vec<Option<&str>> = Vec::new();
        for run in &item.arms {
            let transcript = run.as_ref().and_then(|run| transcripts.get(&run.run));
            texts.push(transcript.map(String::as_str));
        }
        write(&items.join(page), &item_page(plan, &tasks[*at], item, &texts))?;
    }
    Ok(())
}

/// Returns an item as JSON: its task, and the row of each arm.
pub fn item_json(plan: &EvalPlan, task: &TaskLine, item: &Item) -> Value {
    json!({"task": task, "arms": rows_of(plan, item)})
}

fn item_lines(plan: &EvalPlan, results: &EvalResults) -> String {
    let mut rows = String::new();
    for item in &results.items {
        for row in rows_of(plan, item) {
            let _ = writeln!(rows, "{}", serde_json::to_string(&row).unwrap_or_default());
        }
    }
    rows
}

/// Returns the row of each arm whose run of an item has ended.
fn rows_of<'a>(plan: &'a EvalPlan, item: &'a Item) -> Vec<ItemRow<'a>> {
    let mut rows = Vec::new();
    for (arm, run) in plan.arms.iter().zip(&item.arms) {
        if let Some(run) = run {
            rows.push(row(&item.id, item.cluster.as_deref(), &arm.name, run));
        }
    }
    rows
}

fn row<'a>(id: &'a str, cluster: Option<&'a str>, arm: &'a str, item: &'a ArmItem) -> ItemRow<'a> {
    ItemRow {
        id,
        cluster,
        arm,
        outcome: item.outcome.name(),
        grounds: item.grounds.as_deref(),
        certainty: item.certainty,
        answer: item.answer.as_deref(),
        right: item.is_right,
        blind_right: item.blind.map(BlindLead::share),
        rounds: item.rounds,
        prompt_tokens: item.prompt,
        cached_tokens: item.cached,
        completion_tokens: item.completion,
        calls: item.calls,
        milliseconds: item.milliseconds,
        cost_micro_usd: item.cost_micro_usd,
        run: &item.run,
    }
}
