//! A run in a folder of its own that is derived again from its journal, and compared with its result.
//!
//! The program, its checks and its session are not asked here.

use std::io::ErrorKind;
use std::path::Path;

use serde_json::Value;

use crate::cli::error::IntegrityError;
use crate::engine::RunState;
use crate::files::{LARGE_BYTES_MAX, read_own};
use crate::journal::{FILE_NAME, Journal, read};
use crate::report::{RESULT_FILE, RunResult};
use crypto::Digest;

/// A run whose journal holds together, and whose result is the one that its journal leads to.
pub(super) struct VerifiedResult {
    pub(super) journal: Journal,
    pub(super) state: RunState,
    pub(super) result: RunResult,
    pub(super) has_result_file: bool,
}

pub(super) fn verified_run(dir: &Path) -> anyhow::Result<VerifiedResult> {
    let journal = read(&dir.join(FILE_NAME))?;
    let state = RunState::replay(&journal.records)?;
    require_output_digests(&state)?;
    let stored = match read_own(&dir.join(RESULT_FILE), LARGE_BYTES_MAX) {
        Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        Err(why) if why.kind() == ErrorKind::NotFound => None,
        Err(why) => return Err(IntegrityError(format!("result.json cannot be read: {why}")).into()),
    };
    if stored.as_ref().is_some_and(|text| !is_result_of(text, &journal)) {
        let why = "result.json does not match the journal; `consensus show --format json` prints the result that does";
        return Err(IntegrityError(why.to_owned()).into());
    }
    let result = RunResult::new(&state, journal.head);
    Ok(VerifiedResult { journal, state, result, has_result_file: stored.is_some() })
}

/// Compares the digest of each output with the output, where the record holds all of it as it was printed.
pub(super) fn require_output_digests(state: &RunState) -> Result<(), IntegrityError> {
    // The digests of a redacted run are salted.
    if state.opened().redacted {
        return Ok(());
    }
    for (_, executed) in state.executions_made() {
        let result = &executed.result;
        // Bytes that are no text were replaced.
        let is_whole = result.tail.is_empty() && !result.output.contains(char::REPLACEMENT_CHARACTER);
        if is_whole && Digest::new(result.output.as_bytes()) != result.output_sha256 {
            let why = format!(
                "the run {} has an output whose `output_sha256` is that of another output",
                state.run()
            );
            return Err(IntegrityError(why));
        }
    }
    Ok(())
}

/// Returns true if `stored` is the result of this run's end, or of an earlier stop after which the run was resumed. It must be the
/// result that the journal led to when its last line had the head that `stored` names.
fn is_result_of(stored: &str, journal: &Journal) -> bool {
    let value: Value = serde_json::from_str(stored).unwrap_or_default();
    let head: Option<Digest> = value["journal_head"].as_str().and_then(|text| text.parse().ok());
    let Some(head) = head else { return false };
    // A record names the head of all records before it.
    let later = journal.records.iter().skip(1);
    let mut heads = later.map(|record| record.run_prev.unwrap_or(record.prev)).chain([journal.head]);
    let Some(index) = heads.position(|known| known == head) else { return false };
    let earlier = RunState::replay(&journal.records[..=index]);
    earlier.is_ok_and(|state| state.outcome().is_some() && stored == RunResult::new(&state, head).to_json())
}
