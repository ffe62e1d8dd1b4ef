//! `consensus verify`: everything that a journal claims, derived again and compared.

use serde_json::{Value, json};

use super::args::RunRef;
use super::error::IntegrityError;
use super::output::{Format, Output};
use super::{ExitCode, answer, locate};
use crate::crypto::Digest;
use crate::engine::Ledger;
use crate::journal::{Entry, FILE_NAME, Journal, read};
use crate::report::{RESULT_FILE, RunResult};

pub(super) fn verify(args: &RunRef, output: &Output) -> anyhow::Result<ExitCode> {
    let dir = locate::run_folder(args)?;
    let journal = read(&dir.join(FILE_NAME))?;
    let ledger = Ledger::replay(&journal.records)
        .map_err(|(line, why)| IntegrityError(format!("the journal's line {line} does not verify: {why}")))?;
    let result = answer::result(&ledger, journal.head);
    let stored = std::fs::read_to_string(dir.join(RESULT_FILE)).ok();
    let has_ended = ledger.outcome().is_some();
    if stored.as_ref().is_some_and(|text| !is_result_of(text, &result, &journal, has_ended)) {
        let why =
            "result.json is not what the journal leads to; `consensus show --format json` prints what is";
        return Err(IntegrityError(why.to_owned()).into());
    }
    let count = |wanted: fn(&Entry) -> bool| journal.records.iter().filter(|r| wanted(&r.event)).count();
    let asked = count(|e| matches!(e, Entry::Asked(_)));
    let replied = count(|e| matches!(e, Entry::Replied(_)));
    let totals = ledger.totals();
    if output.format != Format::Text {
        output.json(&json!({
            "verified": true,
            "run": result.run,
            "outcome": if has_ended { result.outcome } else { "open" },
            "sha256": result.sha256,
            "records": journal.records.len(),
            "prompts": asked,
            "replies": replied,
            "lost_calls": totals.lost,
            "torn_bytes": journal.torn_bytes,
            "result_file": stored.is_some(),
            "journal_head": journal.head,
        }))?;
        return Ok(ExitCode::Success);
    }
    let outcome = if has_ended { result.outcome } else { "open (no end on record)" };
    output.line(&format!("verified: run {}, {outcome}", result.run))?;
    output.line(&format!("  chain        {} records, head {}", journal.records.len(), journal.head))?;
    output.line(&format!("  prompts      {asked} sent, each as the protocol issues it"))?;
    output.line(&format!("  replies      {replied}, and they lead to this outcome"))?;
    output.line(&format!(
        "  budget       {} + {} tokens, every call within its limits",
        totals.usage.prompt, totals.usage.completion
    ))?;
    if let Some(digest) = result.sha256 {
        output.line(&format!("  text         sha256 {digest}"))?;
    }
    if totals.lost > 0 {
        output.line(&format!("  lost calls   {} made again after an interruption", totals.lost))?;
    }
    if journal.torn_bytes > 0 {
        output.line(&format!("  torn line    {} bytes at the end do not count", journal.torn_bytes))?;
    }
    let file = if stored.is_some() { "matches" } else { "is not there" };
    output.line(&format!("  result.json  {file}"))?;
    Ok(ExitCode::Success)
}

/// Returns true if `stored` is this run's result: that of its end, or of an earlier stop after which
/// the run was taken up again.
fn is_result_of(stored: &str, result: &RunResult, journal: &Journal, has_ended: bool) -> bool {
    if has_ended {
        return stored == result.to_json();
    }
    let value: Value = serde_json::from_str(stored).unwrap_or_default();
    let head = value["journal_head"].as_str().and_then(|text| text.parse().ok());
    head.is_some_and(|head: Digest| journal.head == head || journal.records.iter().any(|r| r.prev == head))
}
