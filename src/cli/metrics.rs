//! `--metrics-file`: the figures of all runs of a folder, for Prometheus.

use std::path::Path;

use anyhow::Context;

use super::output::Output;
use crate::files::{LARGE_BYTES_MAX, SMALL_BYTES_MAX, read_text, write_whole};
use crate::report::{DECISION_METRICS_FILE, DecisionMetrics, RESULT_FILE, ResultFields, metrics};
use crate::run::run_folders;

/// The permissions of the file. The exporter, which is another user, may read it too.
const PUBLIC: u32 = 0o644;

/// Writes the figures of this run and of all runs beside it to `path`, if there is one.
///
/// A failure is only a warning: a run that was paid for keeps its outcome, even if its figures cannot be written.
pub(super) fn write(path: Option<&Path>, run: &Path, output: &Output) {
    if let Some(path) = path
        && let Err(why) = try_write(path, run, output)
    {
        output.warn(&format!("{why:#}"));
    }
}

fn try_write(path: &Path, run: &Path, output: &Output) -> anyhow::Result<()> {
    let problem = format!("cannot write the metrics to `{}`", path.display());
    // The folder may have been given as `.`, a path that does not name its parent.
    let run = run.canonicalize().context(problem.clone())?;
    let all = run.parent().unwrap_or(&run);
    let mut runs: Vec<ResultFields> = Vec::new();
    for folder in run_folders(all) {
        // A run without a result is under way, or its process died. It counts once it has been resumed.
        let Ok(text) = read_text(&folder.join(RESULT_FILE), LARGE_BYTES_MAX) else { continue };
        match serde_json::from_str::<ResultFields>(&text) {
            // A copy of a run's folder is the same run.
            Ok(run) if runs.iter().any(|known| known.is_same(&run)) => {}
            Ok(run) => runs.push(run),
            Err(why) => {
                output.status(&format!("not counted: `{}`: {why}", folder.join(RESULT_FILE).display()));
            }
        }
    }
    write_whole(path, &metrics(&runs, &read_decisions(all, output))?, PUBLIC).context(problem)
}

/// Returns the figures of the decisions in a folder.
fn read_decisions(all: &Path, output: &Output) -> Vec<DecisionMetrics> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(all).into_iter().flatten().flatten() {
        let path = entry.path().join(DECISION_METRICS_FILE);
        let Ok(text) = read_text(&path, SMALL_BYTES_MAX) else { continue };
        match serde_json::from_str(&text) {
            Ok(decision) => found.push(decision),
            Err(why) => output.status(&format!("not counted: `{}`: {why}", path.display())),
        }
    }
    found
}
