//! The runs of batches that `--only` chooses.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::batch::{BatchError, Only, Told, results};
use crate::cli::error::UsageError;
use protocol::text::escape;

/// The most values that are named in place of one that no run has.
const VALUES_MAX: usize = 12;

/// Passes each chosen run of the batch in a folder to `each`.
pub(super) fn chosen_runs(only: &[Only], dir: &Path, mut each: impl FnMut(Told)) -> Result<(), BatchError> {
    results(dir, |told| {
        if only.iter().all(|only| only.has(&told)) {
            each(told);
        }
    })
}

/// Refuses a choice that no run fits, with the values that runs have.
pub(super) fn require_fitting(only: &[Only], dirs: &[PathBuf]) -> anyhow::Result<()> {
    if only.is_empty() {
        return Ok(());
    }
    let (mut values, mut fits) = (BTreeSet::new(), false);
    for dir in dirs {
        results(dir, |told| {
            let missed = only.iter().filter(|only| !only.has(&told));
            let missed: Vec<String> = missed.map(|only| only.instead(&told)).collect();
            fits |= missed.is_empty();
            if values.len() < VALUES_MAX {
                values.extend(missed);
            }
        })?;
    }
    if fits || values.is_empty() {
        return Ok(());
    }
    let values = values.into_iter().collect::<Vec<_>>().join(", ");
    Err(UsageError(format!("no run fits --only; there are runs with {}", escape::excerpt(&values))).into())
}
