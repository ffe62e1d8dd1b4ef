//! The tasks of the runs inside a `map_reduce`: for readers of pieces, for runs that choose among facts, and for the run that answers.
//! Documents and facts are beside the task as data, as in every run. The rules of a task state and enforce the form of its answer.

use std::fmt::Write as _;

/// Returns the task for readers of a piece.
pub(super) fn read(question: &str, number: usize, count: usize) -> String {
    format!(
        "The document is part {number} of {count} of a longer text. Somebody asks about the whole text: {question}\n\nList the \
         sentences of this part that answer some of this. If none does, which is often so, the list is empty."
    )
}

/// Returns the task for runs that choose among facts.
pub(super) fn merge(question: &str) -> String {
    format!(
        "The document lists sentences of a longer text. Somebody asks about the whole text: {question}\n\nList those of the \
         sentences that answer some of this. If none does, the list is empty."
    )
}

/// Returns the task for the run that answers.
pub(super) fn answer(question: &str) -> String {
    format!(
        "{question}\n\nThe document lists the facts that were found in a longer text, each with its number in brackets. Answer \
         from these facts alone."
    )
}

/// Returns facts with their numbers, as one document.
pub(super) fn list<'a>(facts: impl IntoIterator<Item = (usize, &'a str)>) -> String {
    let mut list = String::new();
    for (number, fact) in facts {
        // Writing to a string cannot fail.
        let _ = writeln!(list, "[{number}] {fact}");
    }
    list
}
