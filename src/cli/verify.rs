//! `consensus verify`: everything that a journal claims, derived again and compared.

use serde_json::{Value, json};

use super::args::RunRef;
use super::error::IntegrityError;
use super::output::{Format, Output};
use super::{ExitCode, locate};
use crate::crypto::Digest;
use crate::engine::Ledger;
use crate::journal::{Entry, FILE_NAME, Journal, read};
use crate::report::{RESULT_FILE, RunResult};
use crate::text::quote;

pub(super) fn verify(args: &RunRef, output: &Output) -> anyhow::Result<ExitCode> {
    let dir = locate::run_folder(args)?;
    let journal = read(&dir.join(FILE_NAME))?;
    let ledger = Ledger::replay(&journal.records)
        .map_err(|(line, why)| IntegrityError(format!("the journal's line {line} does not verify: {why}")))?;
    let result = RunResult::new(&ledger, journal.head);
    let stored = match std::fs::read(dir.join(RESULT_FILE)) {
        Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
        Err(e) => return Err(IntegrityError(format!("result.json cannot be read: {e}")).into()),
    };
    let has_ended = ledger.outcome().is_some();
    if stored.as_ref().is_some_and(|text| !is_result_of(text, &journal)) {
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
            "cancelled_calls": totals.cancelled,
            "torn_bytes": journal.torn_bytes,
            "result_file": stored.is_some(),
            "journal_head": journal.head,
        }))?;
        return Ok(ExitCode::Success);
    }
    let outcome = if has_ended { result.outcome } else { "open (no end on record)" };
    output.line(&format!("verified: run {}, {outcome}", quote::terminal(&result.run)))?;
    output.line(&format!("  chain        {} records, head {}", journal.records.len(), journal.head))?;
    output.line(&format!("  prompts      {asked} sent, each as the protocol issues it"))?;
    let leads = match ledger.verdict() {
        Some(_) => "they lead to this outcome",
        None => "they lead to no outcome yet; why the run was put down is the record's word",
    };
    output.line(&format!("  replies      {replied}; {leads}"))?;
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
    if totals.cancelled > 0 {
        let count = totals.cancelled;
        output.line(&format!(
            "  cancelled    {count} calls that could change nothing; what they used is not known"
        ))?;
    }
    if ledger.opened().redacted {
        output.line(
            "  redactions   what its tokens stand for is in redactions.json, which nothing here covers",
        )?;
    }
    if journal.torn_bytes > 0 {
        output.line(&format!("  torn line    {} bytes at the end do not count", journal.torn_bytes))?;
    }
    let file = if stored.is_some() { "matches" } else { "is not there" };
    output.line(&format!("  result.json  {file}"))?;
    Ok(ExitCode::Success)
}

/// Returns true if `stored` is the result of this run's end, or of an earlier stop after which the run
/// was taken up again: what the journal led to when its last line had the head that it names.
fn is_result_of(stored: &str, journal: &Journal) -> bool {
    let value: Value = serde_json::from_str(stored).unwrap_or_default();
    let head: Option<Digest> = value["journal_head"].as_str().and_then(|text| text.parse().ok());
    let Some(head) = head else { return false };
    // A record names the head of all records before it.
    let mut heads = journal.records.iter().skip(1).map(|record| record.prev).chain([journal.head]);
    let Some(count) = heads.position(|h| h == head).map(|index| index + 1) else { return false };
    let earlier = Ledger::replay(&journal.records[..count]);
    earlier
        .is_ok_and(|ledger| ledger.outcome().is_some() && stored == RunResult::new(&ledger, head).to_json())
}
