//! What the runs inside a `map_reduce` are asked: the task for readers of pieces, for those who merge, and for those
//! who answer. Documents and facts stand beside it as data, as in every run.

use std::fmt::Write as _;

use super::claims::{BETWEEN, NOT_FOUND, NOTHING, without_numbers};

/// What readers of a piece are asked.
pub(super) fn read(question: &str, number: usize, count: usize) -> String {
    format!(
        "The document is part {number} of {count} of a longer text, from all parts of which somebody will answer this: \
         {question}\n\nCollect what this part says about it. Write one line for each fact: the fact in your own words, then \
         `{BETWEEN}`, then the words of the document that say so, copied exactly, a few words up to one sentence. Write no \
         line for what this part does not say. If it says nothing about it, write only {NOTHING}"
    )
}

/// What those are asked who make fewer facts of many.
pub(super) fn merge(question: &str) -> String {
    format!(
        "The document lists facts, each with its number in brackets, from which somebody will answer this: {question}\n\nMake a \
         shorter list of them, one line for each fact: what is said twice stands once, and what does not help is left out. \
         Each line ends with the numbers of the facts that it was made of, such as [2] or [1][4]."
    )
}

/// What those are asked who answer.
pub(super) fn answer(question: &str) -> String {
    format!(
        "{question}\n\nThe document lists the facts that were found in a longer text, each with its number in brackets. Answer \
         from these facts alone. Behind each sentence write the numbers of the facts that it rests on, such as [2] or [1][4]. \
         The last line begins with `{NOT_FOUND}` and names what is asked for and stands in no fact, or says \
         `{NOT_FOUND} nothing`."
    )
}

/// Lists points with their numbers, from 1, as one document.
pub(super) fn list<'a>(points: impl IntoIterator<Item = &'a str>) -> String {
    let mut list = String::new();
    for (index, point) in points.into_iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(list, "[{}] {}", index + 1, without_numbers(point));
    }
    list
}
