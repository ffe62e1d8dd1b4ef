//! What a task demands of its answer in plain words, found by code: "in exactly three sentences", "do not use any commas".
//!
//! ```text
//!  task ──► tokens ──► items with a sense ──► pieces with a voice ──► counts, forms, mentions ──► demands
//!           token      sense, english         piece
//! ```
//!
//! The input is a task. The output is the rules that it states, each with its words. No model is asked, and a demand that no
//! [`Constraint`] can check is not found. A rule that is missed takes nothing away, and one that was not meant stops a right answer. So only
//! what speaks of the whole answer counts, and if there is doubt, there is no rule. A language is a table of phrases: [`english`].

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a form is found by a few of the many senses, and any other sense makes none"
)]

mod counts;
mod english;
mod forms;
mod mentions;
mod number;
mod piece;
mod sense;
mod token;

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use super::constraint::Constraint;
use piece::{TaskPiece, Voice};
use sense::{Lexicon, Sense, TaskItem};

/// The longest text in which a person would state demands, in bytes. The text behind it is material.
const TASK_BYTES_MAX: usize = 4000;

static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::of(english::ENGLISH));

/// A demand of a task: a rule, and the words that state it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Demand {
    pub rule: Constraint,
    pub words: String,
    /// Whether it speaks of the answer itself, whatever else is asked for.
    is_of_answer: bool,
}

/// Returns what a task demands of its answer, in the order of its words.
pub fn find_demands(task: &str) -> Vec<Demand> {
    let task = &task[..task.floor_char_boundary(TASK_BYTES_MAX)];
    let items = LEXICON.items(&token::split_into_tokens(task));
    let pieces = piece::split_into_pieces(task, &items);
    // The output of code may be meant in place of the answer.
    if items.iter().any(|item| item.sense == Sense::Program) {
        return Vec::new();
    }
    let (mut found, mut is_material) = (Vec::new(), false);
    for (at, piece) in pieces.iter().enumerate() {
        let before = &pieces[..at];
        if takes_back(piece) {
            // `Answer in one word. If you cannot, explain why.` is not about every answer, and it is not known what it takes back.
            found.clear();
        }
        let mut own = Vec::new();
        if !is_material && is_heard(piece, before) {
            let is_first = before.iter().all(|before| before.voice != Voice::Order);
            own = [
                counts::find_counts(piece, is_first),
                forms::find_forms(piece),
                mentions::find_mentions(piece),
            ]
            .concat();
        }
        if own.is_empty() && asks_for_more(piece) {
            // Earlier demands may be about a part of the answer.
            found.retain(|demand: &Demand| demand.is_of_answer || !is_about_extent(&demand.rule));
        }
        for stated in own {
            let words = piece.words(task, &stated.items).to_owned();
            add(Demand { rule: stated.rule, words, is_of_answer: piece.voice == Voice::Answer }, &mut found);
        }
        // `Translate this.` and `Here are the rules of my school.` bring a text that has demands of its own.
        let is_rework = piece.voice == Voice::Order && piece.sense(piece.head) == Some(Sense::Rework);
        let brings_rules = piece.has(Sense::Rules) && piece.items.len() > piece::HEADING_ITEMS_MAX;
        is_material |= is_rework && !piece.has(Sense::Quoted) || brings_rules;
    }
    found
}

/// Returns true if a piece begins with a word that may take back what comes before it.
fn takes_back(piece: &TaskPiece) -> bool {
    let first = piece.items.first().map(|item| item.text.to_lowercase());
    first.is_some_and(|word| english::TAKING_BACK.contains(&word.as_str()))
}

/// Returns false for a statement about another text: `The essay must have three paragraphs. Is mine fine?`
fn is_heard(piece: &TaskPiece, before: &[TaskPiece]) -> bool {
    if piece.voice != Voice::Answer {
        return true;
    }
    let subject = &piece.items[..piece.head];
    let is_answer = |item: &TaskItem| {
        item.sense.is_reply()
            || matches!(item.sense, Sense::There | Sense::TheWord | Sense::TheWords | Sense::QuoteMarks)
    };
    if subject.iter().any(is_answer) {
        return !before.is_empty();
    }
    // `Write a rubric for a paper. The paper must …` is not about the rubric.
    let Some(order) = before.iter().find(|piece| piece.voice == Voice::Order) else { return false };
    let ordered: Vec<&TaskItem> = order.items.iter().filter(|item| item.sense == Sense::Piece).collect();
    let named = subject.iter().find(|item| item.sense == Sense::Piece);
    match (&ordered[..], named) {
        ([ordered], Some(named)) => ordered.text == named.text,
        (_, named) => named.is_none(),
    }
}

/// Adds a demand. Two that exclude each other are not both meant for the whole answer, so neither counts.
fn add(demand: Demand, found: &mut Vec<Demand>) {
    if found.iter().any(|other| other.rule == demand.rule) {
        return;
    }
    let is_one_of_several = matches!(demand.rule, Constraint::Mentions { .. } | Constraint::Excludes { .. });
    let is_same_kind =
        |other: &Demand| std::mem::discriminant(&other.rule) == std::mem::discriminant(&demand.rule);
    if is_one_of_several || !found.iter().any(is_same_kind) {
        found.push(demand);
    } else {
        found.retain(|other| !is_same_kind(other));
    }
}

/// Returns true if a rule bounds the length of the answer from above, or is about its ends.
fn is_about_extent(rule: &Constraint) -> bool {
    match rule {
        Constraint::Sentences(bounds)
        | Constraint::Words(bounds)
        | Constraint::Characters(bounds)
        | Constraint::Lines(bounds) => bounds.max.is_some(),
        Constraint::StartsWith { .. } | Constraint::EndsWith { .. } => true,
        _ => false,
    }
}

/// Returns true if a piece orders something that the answer has as well.
fn asks_for_more(piece: &TaskPiece) -> bool {
    let head = piece.sense(piece.head);
    piece.voice == Voice::Order
        && head.is_some_and(|head| head.orders() || matches!(head, Sense::Reply | Sense::Use | Sense::Using))
}
