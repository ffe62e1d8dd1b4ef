//! What the records of a run prove.
//!
//! The input is the lines of a run. The output is its journal, once its chain is checked, and everything that follows from it. Nothing is
//! taken from the line of results but what is compared with it.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use uuid::Uuid;

use super::reports::{RecordedParts, ToolReport, VerifyReport};
use crate::engine::RunState;
use crate::journal::read_from;
use crate::report::{RunResult, review_text, worth};
use crate::serve::http::ApiError;
use crate::serve::runs::{CallersRun, RECORDS, Service, all_lines, in_background, journal_of};
use protocol::Section;

/// Returns the report of a run that has ended with this line of results.
pub(super) async fn ended_report(
    service: &Arc<Service>,
    run: Uuid,
    row: &Value,
) -> Result<ToolReport, ApiError> {
    let recorded = match all_lines(service, run).await {
        Ok(lines) => in_background(move || read_recorded_parts(&lines)).await,
        Err(why) => Err(why),
    };
    // The result is known, whatever became of the records. The log and `verify` say what is wrong with them.
    ToolReport::ended(run, row, recorded.unwrap_or_default())
}

/// Returns the parts of a report that only the records of a run hold.
fn read_recorded_parts(lines: &[u8]) -> Result<RecordedParts, ApiError> {
    let journal = journal_of(lines)?;
    let state = RunState::replay(&journal.records).map_err(|why| ApiError::internal(&why))?;
    let result = RunResult::new(&state, journal.head);
    let findings = match &result.section {
        Section::Approval(section) => Some(review_text(section, result.outcome)),
        Section::Pair(_)
        | Section::Council(_)
        | Section::Panel(_)
        | Section::Vote(_)
        | Section::MapReduce(_) => None,
    };
    Ok(RecordedParts { findings, worth: worth(&result) })
}

/// Derives a run again from its records, and compares it with its line of results.
pub(super) fn verify(run: Uuid, lines: &[u8], known: &CallersRun) -> VerifyReport {
    let mut report = VerifyReport {
        run: run.to_string(),
        verified: false,
        fault: None,
        outcome: "open".to_owned(),
        records: 0,
        journal_head: String::new(),
    };
    if let Err(why) = derive(lines, known, &mut report) {
        report.fault = Some(why);
    }
    report.verified = report.fault.is_none();
    report
}

fn derive(lines: &[u8], known: &CallersRun, report: &mut VerifyReport) -> Result<(), String> {
    let journal = read_from(lines, Path::new(RECORDS)).map_err(|why| why.to_string())?;
    report.records = journal.records.len() as u64;
    report.journal_head = journal.head.to_string();
    let state = RunState::replay(&journal.records).map_err(|why| why.to_string())?;
    let result = RunResult::new(&state, journal.head);
    if state.outcome().is_some() {
        result.outcome.name().clone_into(&mut report.outcome);
    }
    let CallersRun::Ended(row) = known else { return Ok(()) };
    let Value::Object(derived) = json!(result) else { return Ok(()) };
    match derived.iter().find(|(name, value)| row.get(name.as_str()) != Some(*value)) {
        Some((name, _)) => Err(format!("the result has another `{name}` than the records lead to")),
        None => Ok(()),
    }
}
