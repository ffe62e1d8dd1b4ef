//! Driving a run to its end, and keeping its result: in its files, and in its line of a session.

use std::path::Path;

use tokio::sync::watch;

use super::error::RunError;
use super::folders::folder_of_runs;
use super::notices::Notices;
use super::session::Session;
use crate::engine::{Engine, Redaction, RunState, StopRequest};
use crate::journal::{FILE_NAME, read};
use crate::provider::launch::Launched;
use crate::report::{RunResult, write_run};
use crate::text::CanonicalKind;

/// A run that has ended or was put down.
#[derive(Debug)]
pub struct FinishedRun {
    /// How it ended.
    pub result: RunResult,
    /// Whether its files could be written: an answer that was paid for is printed, whatever became of them.
    pub written: Result<(), RunError>,
}

/// Runs an engine to its end, ends the server that was started for it, and writes the run's files into its folder.
///
/// # Errors
///
/// [`RunError`] if there is no result; the run can be resumed.
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
    Ok(FinishedRun { result, written })
}

/// Adds the answer with the originals in place of their tokens, where there are any: for its reader alone. `table` is the file that
/// has them.
#[must_use]
pub fn restore(mut result: RunResult, state: &RunState, table: &Path, notices: &dyn Notices) -> RunResult {
    let Some(text) = result.text.as_ref().filter(|_| state.opened().redacted) else { return result };
    match Redaction::load(table.to_owned()) {
        Ok(redaction) if state.opened().setup.canonical.kind == CanonicalKind::Json => {
            result.restored_text = Some(redaction.redactions().restore_json(text));
        }
        Ok(redaction) => result.restored_text = Some(redaction.redactions().restore(text)),
        Err(why) => notices.warn(&format!("the answer has tokens in place of its originals: {why}")),
    }
    result
}

/// Adds a run to the session that its record names, if it names one and the session does not say so already.
pub fn note_in_session(state: &RunState, result: &RunResult, dir: &Path, notices: &dyn Notices) {
    let spec = state.opened();
    let Some(place) = &spec.session else { return };
    let added =
        Session::open(&folder_of_runs(dir), &place.name).and_then(|mut session| session.add(spec, result));
    // A run that was paid for ends as it did, also if the next one of its session will not know of it.
    if let Err(why) = added {
        notices.warn(&format!(
            "the run was not added to its session, which `consensus resume` makes up for: {why}"
        ));
    }
}
