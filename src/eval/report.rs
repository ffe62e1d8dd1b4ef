//! The files of an evaluation's report.
//!
//! The input is a summary, and what was found out about each item. The output is `summary.json` and `items.jsonl` in the folder. The rows
//! are flat, one for each item and arm, so that a table of any language reads them.

use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;

use super::error::EvalError;
use super::items::{ArmItem, Evidence};
use super::plan::EvalPlan;
use super::summary::Summary;
use crate::files::write_whole;
use crate::protocol::OutcomeKind;

/// The mode of the files.
const PRIVATE: u32 = 0o600;

/// The row of an item and an arm.
#[derive(Serialize)]
struct Row<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<&'a str>,
    arm: &'a str,
    outcome: &'static str,
    grounds: Option<&'a str>,
    certainty: Option<f64>,
    answer: Option<&'a str>,
    right: bool,
    blind_right: Option<bool>,
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
/// # Errors
///
/// Returns [`EvalError::Io`] if a file cannot be written.
pub fn write_report(
    folder: &Path,
    plan: &EvalPlan,
    evidence: &Evidence,
    summary: &Summary,
) -> Result<(), EvalError> {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        write_whole(&path, text, PRIVATE).map_err(|why| EvalError::Io { action: "write", path, why })
    };
    write("summary.json", &(serde_json::to_string_pretty(summary).unwrap_or_default() + "\n"))?;
    write("items.jsonl", &rows(plan, evidence))
}

fn rows(plan: &EvalPlan, evidence: &Evidence) -> String {
    let mut rows = String::new();
    for item in &evidence.items {
        for (arm, run) in plan.arms.iter().zip(&item.arms) {
            let Some(run) = run else { continue };
            let row = row(&item.id, item.cluster.as_deref(), &arm.name, run);
            let _ = writeln!(rows, "{}", serde_json::to_string(&row).unwrap_or_default());
        }
    }
    rows
}

fn row<'a>(id: &'a str, cluster: Option<&'a str>, arm: &'a str, item: &'a ArmItem) -> Row<'a> {
    let outcome: OutcomeKind = item.outcome;
    Row {
        id,
        cluster,
        arm,
        outcome: outcome.name(),
        grounds: item.grounds.as_deref(),
        certainty: item.certainty,
        answer: item.answer.as_deref(),
        right: item.is_right,
        blind_right: item.blind_is_right,
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
