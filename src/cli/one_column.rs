//! The choice of one column where a command wants the runs of one way of answering.

use std::collections::BTreeSet;

use super::error::UsageError;
use protocol::text::escape;

/// Refuses several columns, each a roleset, a model and an arm, with the values of --only that choose one.
pub(super) fn require_one_column(columns: &BTreeSet<[String; 3]>) -> Result<(), UsageError> {
    if columns.len() < 2 {
        return Ok(());
    }
    let names = ["roleset", "model", "arm"];
    let varies = |at: usize| columns.iter().map(|column| &column[at]).collect::<BTreeSet<_>>().len() > 1;
    let varying: Vec<usize> = (0..names.len()).filter(|at| varies(*at)).collect();
    let choice = |column: &[String; 3]| {
        let only = |at: &usize| format!("--only {}={}", names[*at], escape::excerpt(&column[*at]));
        varying.iter().map(only).collect::<Vec<_>>().join(" ")
    };
    let choices: Vec<String> = columns.iter().map(choice).collect();
    Err(UsageError(format!(
        "these are runs of several ways of answering; choose one: {}",
        choices.join("; ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns are distinguished by the parts in which they differ.
    #[test]
    fn choices_name_only_differing_parts() {
        let column = |arm: &str| ["vote".to_owned(), "m".to_owned(), arm.to_owned()];
        assert!(require_one_column(&BTreeSet::from([column("")])).is_ok());
        let why = require_one_column(&BTreeSet::from([column(""), column("sc@3")])).unwrap_err();
        assert!(why.to_string().ends_with("choose one: --only arm=; --only arm=sc@3"), "{why}");
    }
}
