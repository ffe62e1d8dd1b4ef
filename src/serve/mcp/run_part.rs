//! The parts of a run that can be read, and their addresses.
//!
//! The input is the id of a run and a part, or an address. The output is the other of the two.

use rmcp::model::ResourceTemplate;
use uuid::Uuid;

use crate::serve::runs::run_id;

/// The beginning of each address.
pub(super) const RUNS: &str = "consensus://runs/";

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

    pub(super) const fn mime(self) -> &'static str {
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

/// Returns the run and the part of an address, if it is one.
pub(super) fn parse_address(address: &str) -> Option<(Uuid, RunPart)> {
    let (run, name) = address.strip_prefix(RUNS)?.split_once('/')?;
    let part = RunPart::ALL.into_iter().find(|part| part.name() == name)?;
    // No run has the id of zeros.
    Some((run_id(run).unwrap_or_default(), part))
}
