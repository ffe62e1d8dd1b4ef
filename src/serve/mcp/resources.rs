//! The resources of a run: its result, its transcript and its journal.
//!
//! The input is the address of a resource. The output is its text. A result that is too long for the report of a tool is read here.

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents};
use serde_json::Value;
use uuid::Uuid;

use super::results::refuse;
use super::run_part::{RUNS, RunPart, parse_address, uri};
use crate::report::transcript;
use crate::serve::http::{ApiError, Caller};
use crate::serve::runs::{CallersRun, Service, all_lines, find, in_background, journal_of, past_rows};

/// The number of runs in the list.
const LISTED: usize = 20;

/// Returns the results of the last runs of a caller.
pub(super) fn list(service: &Service, caller: Caller) -> Result<Vec<Resource>, ErrorData> {
    let (rows, _) = past_rows(service, caller, None, LISTED).map_err(|why| refuse(&why))?;
    Ok(rows.iter().filter_map(result_resource).collect())
}

fn result_resource(row: &Value) -> Option<Resource> {
    let run: Uuid = row["run"].as_str()?.parse().ok()?;
    let [roleset, outcome] = ["roleset", "outcome"].map(|name| row[name].as_str().unwrap_or_default());
    let resource = Resource::new(uri(run, RunPart::Result), format!("{roleset}, {outcome}"));
    Some(resource.with_mime_type(RunPart::Result.mime()))
}

/// Reads a resource.
pub(super) async fn read(
    service: &Arc<Service>,
    caller: Caller,
    address: &str,
) -> Result<ReadResourceResult, ErrorData> {
    let Some((run, part)) = parse_address(address) else {
        let why = format!("an address is {RUNS}ID/result, {RUNS}ID/transcript or {RUNS}ID/journal");
        return Err(ErrorData::resource_not_found(why, None));
    };
    let text = read_part(service, caller, run, part).await.map_err(|why| refuse(&why))?;
    let contents = ResourceContents::text(text, address).with_mime_type(part.mime());
    Ok(ReadResourceResult::new(vec![contents]))
}

async fn read_part(
    service: &Arc<Service>,
    caller: Caller,
    run: Uuid,
    part: RunPart,
) -> Result<String, ApiError> {
    let known = find(service, caller, run).await?;
    let lines = match (part, known) {
        (RunPart::Result, CallersRun::Ended(row) | CallersRun::Interrupted(row)) => {
            return Ok(format!("{row:#}"));
        }
        (RunPart::Result, CallersRun::Live(_)) => {
            return Err(ApiError::bad("run_open", "the run has not ended"));
        }
        (RunPart::Transcript | RunPart::Journal, _) => all_lines(service, run).await?,
    };
    if part == RunPart::Transcript {
        return in_background(move || {
            let journal = journal_of(&lines)?;
            transcript(&journal.records).map_err(|why| ApiError::internal(&why))
        })
        .await;
    }
    String::from_utf8(lines).map_err(|why| ApiError::internal(&why))
}
