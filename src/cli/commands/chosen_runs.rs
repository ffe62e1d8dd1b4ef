//! The runs of batches that `--only` chooses, and the refusal of a choice that does not suit a command.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::batch::{BatchError, ResultRow, RunFilter, results};
use crate::cli::error::UsageError;
use protocol::text::escape;

/// The most values that are named in place of one that no run has.
const VALUES_MAX: usize = 12;

/// Passes each chosen run of the batch in a folder to `each`.
pub(super) fn for_each_chosen(
    only: &[RunFilter],
    dir: &Path,
    mut each: impl FnMut(ResultRow),
) -> Result<(), BatchError> {
    results(dir, |row| {
        if only.iter().all(|filter| filter.has(&row)) {
            each(row);
        }
    })
}

/// Refuses a choice that no run fits, with the values that runs have.
pub(super) fn require_fitting(only: &[RunFilter], dirs: &[PathBuf]) -> anyhow::Result<()> {
    if only.is_empty() {
        return Ok(());
    }
    let (mut values, mut fits) = (BTreeSet::new(), false);
    for dir in dirs {
        results(dir, |row| {
            let missed = only.iter().filter(|filter| !filter.has(&row));
            let missed: Vec<String> = missed.map(|filter| filter.instead(&row)).collect();
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

/// Refuses several variants, each a roleset, a model and an arm, with the values of --only that choose one.
pub(super) fn require_one_variant(variants: &BTreeSet<[String; 3]>) -> Result<(), UsageError> {
    if variants.len() < 2 {
        return Ok(());
    }
    let mut varies = [false; 3];
    for (one, next) in variants.iter().zip(variants.iter().skip(1)) {
        for (at, varies) in varies.iter_mut().enumerate() {
            *varies |= one[at] != next[at];
        }
    }
    let mut choices = Vec::new();
    for variant in variants {
        let mut flags = Vec::new();
        for (at, name) in ["roleset", "model", "arm"].into_iter().enumerate() {
            if varies[at] {
                flags.push(format!("--only {name}={}", escape::excerpt(&variant[at])));
            }
        }
        choices.push(flags.join(" "));
    }
    Err(UsageError(format!(
        "these are runs of several ways of answering; choose one: {}",
        choices.join("; ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Variants are distinguished by the parts in which they differ.
    #[test]
    fn choices_name_only_differing_parts() {
        let variant = |arm: &str| ["vote".to_owned(), "m".to_owned(), arm.to_owned()];
        assert!(require_one_variant(&BTreeSet::from([variant("")])).is_ok());
        let why = require_one_variant(&BTreeSet::from([variant(""), variant("sc@3")])).unwrap_err();
        assert!(why.to_string().ends_with("choose one: --only arm=; --only arm=sc@3"), "{why}");
    }
}
