//! The end of a run: drives the run to it, and keeps the result in the run's files and in its session.

use std::path::Path;

use tokio::sync::watch;

use super::error::RunError;
use super::folders::folder_of_runs;
use super::notices::Notices;
use super::session::Session;
use crate::engine::{Engine, Redaction, RunState, StopRequest};
use crate::journal::{FILE_NAME, Record, read};
use crate::provider::launch::Launched;
use crate::report::{RunResult, write_run};
use protocol::text::CanonicalKind;

/// A run that has ended or was interrupted.
#[derive(Debug)]
pub struct FinishedRun {
    /// The result of the run.
    pub result: RunResult,
    /// The records of the run.
    pub records: Vec<Record>,
    /// Whether its files could be written. An answer that was paid for is printed in any case.
    pub written: Result<(), RunError>,
}

/// Runs an engine to its end, stops the server that was started for it, and writes the run's files into its folder.
///
/// # Errors
///
/// Returns [`RunError`] if there is no result; the run can be resumed.
pub async fn drive(
    engine: &mut Engine<'_>,
    server: Option<Launched>,
    stop: watch::Receiver<StopRequest>,
    dir: &Path,
) -> Result<FinishedRun, RunError> {
    let ended = engine.run(stop).await;
    if let Some(server) = server {
        server.end().await;
    }
    ended?;
    let result = RunResult::new(engine.state(), engine.journal_head());
    let records = read(&dir.join(FILE_NAME))?.records;
    let (outcome, dir) = (result.outcome, dir.to_owned());
    let written = write_run(&dir, &result, &records);
    let written = written.map_err(|source| RunError::Files { dir, outcome, source });
    Ok(FinishedRun { result, records, written })
}

/// Adds the answer with the original text in place of tokens, if it has any, for its reader alone. `table` is the file with the
/// originals.
pub fn restore(mut result: RunResult, state: &RunState, table: &Path, notices: &dyn Notices) -> RunResult {
    let Some(text) = result.text.as_ref().filter(|_| state.opened().redacted) else { return result };
    match Redaction::load(table.to_owned()) {
        Ok(redaction) if state.opened().setup.canonical.kind == CanonicalKind::Json => {
            result.restored_text = Some(redaction.redactions().restore_json(text));
        }
        Ok(redaction) => result.restored_text = Some(redaction.redactions().restore(text)),
        Err(why) => {
            notices.warn(&format!("the answer still has tokens in place of the original text: {why}"));
        }
    }
    result
}

/// Adds a run to the session that its record names, unless the session has the run already.
pub fn note_in_session(state: &RunState, result: &RunResult, dir: &Path, notices: &dyn Notices) {
    let spec = state.opened();
    let Some(place) = &spec.session else { return };
    let added =
        Session::open(&folder_of_runs(dir), &place.name).and_then(|mut session| session.add(spec, result));
    // A run that was paid for keeps its end, even if the next run of its session does not learn of it.
    if let Err(why) = added {
        notices.warn(&format!("the run was not added to its session; add it with `consensus resume`: {why}"));
    }
}
