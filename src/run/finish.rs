//! The end of a run: drives the run to it, and keeps the result in the run's files, in its session, and in a copy of the answer.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use tokio::sync::watch;

use super::error::RunError;
use super::folders::folder_of_runs;
use super::reporter::Reporter;
use super::session::Session;
use crate::engine::{Engine, Redaction, RunState, StopRequest};
use crate::journal::{FILE_NAME, Record, read};
use crate::report::{RunResult, write_run};
use protocol::text::CanonicalKind;

/// A run whose engine has stopped, with the result that is printed and the records that it was made of.
#[derive(Debug)]
pub struct FinishedRun {
    pub result: RunResult,
    pub records: Vec<Record>,
    /// Whether its files could be written. An answer that was paid for is printed in any case.
    pub written: Result<(), RunError>,
}

/// The file for a copy of the answer, if one is requested.
#[derive(Debug)]
pub struct AnswerFile(Option<File>);

impl AnswerFile {
    /// Opens the file before anything is spent or started. Its content remains until [`Self::empty`], since the run may be about it.
    ///
    /// Returns [`RunError::Usage`] if the file cannot be written.
    pub fn open(path: Option<&Path>) -> Result<Self, RunError> {
        let Some(path) = path else { return Ok(Self(None)) };
        match File::options().create(true).append(true).open(path) {
            Ok(file) => Ok(Self(Some(file))),
            Err(why) => {
                let why = format!("cannot write the answer to `{}`: {why}", path.display());
                Err(RunError::Usage(why))
            }
        }
    }

    /// Empties the file, so that a run without an answer leaves no older answer to be read. A pipe or a device has nothing to empty.
    pub fn empty(&self) -> Result<(), RunError> {
        let Some(file) = &self.0 else { return Ok(()) };
        let emptied =
            file.metadata().and_then(|about| if about.is_file() { file.set_len(0) } else { Ok(()) });
        emptied.map_err(|source| RunError::Copy { action: "empty the file for", source })
    }

    /// Writes the answer, if there is one.
    pub fn write(&mut self, result: &RunResult) -> Result<(), RunError> {
        match result.readable() {
            Some(text) => self.write_text(text),
            None => Ok(()),
        }
    }

    pub fn write_text(&mut self, text: &str) -> Result<(), RunError> {
        let Some(file) = &mut self.0 else { return Ok(()) };
        writeln!(file, "{text}").map_err(|source| RunError::Copy { action: "write", source })
    }
}

/// Runs an engine to its end, and writes the run's files into its folder.
///
/// Returns [`RunError`] if there is no result; the run can be resumed.
pub async fn drive(
    engine: &mut Engine<'_>,
    stop: watch::Receiver<StopRequest>,
    dir: &Path,
) -> Result<FinishedRun, RunError> {
    engine.run(stop).await?;
    let result = RunResult::new(engine.state(), engine.journal_head());
    let records = read(&dir.join(FILE_NAME))?.records;
    let (outcome, dir) = (result.outcome, dir.to_owned());
    let written = write_run(&dir, &result, &records);
    let written = written.map_err(|source| RunError::Files { dir, outcome, source });
    Ok(FinishedRun { result, records, written })
}

/// Adds the answer with the original text in place of tokens, if it has any, for its reader alone. `table` is the file with the
/// originals.
pub fn restore(mut result: RunResult, state: &RunState, table: &Path, reporter: &dyn Reporter) -> RunResult {
    let Some(text) = &result.text else { return result };
    if !state.opened().redacted {
        return result;
    }
    match Redaction::load(table.to_owned()) {
        Ok(redaction) if state.opened().setup.canonical.kind == CanonicalKind::Json => {
            result.restored_text = Some(redaction.redactions().restore_json(text));
        }
        Ok(redaction) => result.restored_text = Some(redaction.redactions().restore(text)),
        Err(why) => {
            reporter.warn(&format!("the answer still has tokens in place of the original text: {why}"));
        }
    }
    result
}

/// Adds a run to the session that its record names, unless the session has the run already.
pub fn note_in_session(state: &RunState, result: &RunResult, dir: &Path, reporter: &dyn Reporter) {
    let spec = state.opened();
    let Some(place) = &spec.session else { return };
    let added =
        Session::open(&folder_of_runs(dir), &place.name).and_then(|mut session| session.add(spec, result));
    // A run that was paid for keeps its end, even if the next run of its session does not learn of it.
    if let Err(why) = added {
        reporter
            .warn(&format!("the run was not added to its session; add it with `consensus resume`: {why}"));
    }
}
