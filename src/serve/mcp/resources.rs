//! The resources of a run: its result, its transcript and its journal.
//!
//! The input is the address of a resource. The output is its text. A result that is too long for the report of a tool is read here.

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::Value;
use uuid::Uuid;

use super::results::refuse;
use crate::report::transcript;
use crate::serve::api_error::ApiError;
use crate::serve::caller::Caller;
use crate::serve::known_run::{CallersRun, all_lines, find, in_background, journal_of, past_rows, run_id};
use crate::serve::service::Service;

/// The beginning of each address.
const RUNS: &str = "consensus://runs/";

/// The number of runs in the list.
const LISTED: usize = 20;

/// A part of a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum RunPart {
    Result,
    Transcript,
    Journal,
}

impl RunPart {
    const ALL: [Self; 3] = [Self::Result, Self::Transcript, Self::Journal];

    const fn name(self) -> &'static str {
        match self {
            Self::Result => "result",
            Self::Transcript => "transcript",
            Self::Journal => "journal",
        }
    }

    const fn mime(self) -> &'static str {
        match self {
            Self::Result => "application/json",
            Self::Transcript => "text/markdown",
            Self::Journal => "application/x-ndjson",
        }
    }

    const fn description(self) -> &'static str {
        match self {
            Self::Result => "All that a run came to, by the schema of its result.",
            Self::Transcript => "The run as it happened, for people.",
            Self::Journal => "The records that prove the run; `consensus verify` takes them.",
        }
    }
}

/// Returns the address of a part of a run.
pub(super) fn uri(run: Uuid, part: RunPart) -> String {
    format!("{RUNS}{run}/{}", part.name())
}

/// Returns the forms of all addresses.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    let mut templates = Vec::new();
    for part in RunPart::ALL {
        let template = ResourceTemplate::new(format!("{RUNS}{{run}}/{}", part.name()), part.name());
        templates.push(template.with_description(part.description()).with_mime_type(part.mime()));
    }
    templates
}

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

fn parse_address(address: &str) -> Option<(Uuid, RunPart)> {
    let (run, name) = address.strip_prefix(RUNS)?.split_once('/')?;
    let part = RunPart::ALL.into_iter().find(|part| part.name() == name)?;
    // No run has the id of zeros.
    Some((run_id(run).unwrap_or_default(), part))
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
