//! Demands on words: which ones the answer has, how often, and which ones it must not have.
//!
//! The input is a piece of a task. The output is rules with their places. The words are quoted, or follow `keywords`. A word that the task
//! asks about, or that is wanted in a part of the answer, makes no rule.

use std::ops::Range;

use super::number::{Times, read_times};
use super::piece::{Stated, TaskPiece, Voice};
use super::sense::Sense;
use crate::text::constraint::{Bounds, Constraint};

const AT_LEAST_ONCE: Bounds = Bounds { min: Some(1), max: None };
const NEVER: Bounds = Bounds { min: None, max: Some(0) };

/// A demand on some words.
struct WordDemand {
    words: Vec<String>,
    bounds: Bounds,
    items: Range<usize>,
}

/// Some words, and the place behind them.
struct WordList {
    words: Vec<String>,
    end: usize,
    /// Whether they are alternatives.
    has_or: bool,
}

/// Returns the words that a piece demands or forbids.
pub(super) fn find_mentions(piece: &TaskPiece) -> Vec<Stated> {
    let mut found = Vec::new();
    if piece.voice == Voice::Other
        || [Sense::Field, Sense::Each, Sense::Then].into_iter().any(|sense| piece.has(sense))
    {
        return found;
    }
    let (mut at, mut last_end) = (0, None);
    while at < piece.items.len() {
        let Some(WordDemand { words, bounds, items }) = WordDemand::read(piece, at, last_end) else {
            at += 1;
            continue;
        };
        at = items.end;
        last_end = Some(at);
        found.extend(words.into_iter().map(|text| {
            let rule = Constraint::Mentions { text, min: bounds.min, max: bounds.max };
            Stated { rule, items: items.clone() }
        }));
    }
    found
}

impl WordDemand {
    /// Reads a demand on words whose list begins behind this place. Another one may have ended at `last_end`.
    fn read(piece: &TaskPiece, at: usize, last_end: Option<usize>) -> Option<Self> {
        let sense = piece.items[at].sense;
        let is_named = matches!(sense, Sense::TheWord | Sense::TheWords);
        let has_quote =
            matches!(sense, Sense::Use | Sense::Say) && piece.sense(at + 1) == Some(Sense::Quoted);
        if !is_named && !has_quote {
            return None;
        }
        let list = WordList::read(piece, at)?;
        let end = piece.skip(list.end, &[Sense::Sign(')'), Sense::Sign(']')]);
        let verb = if has_quote { Some(at) } else { verb_before(piece, at) };
        let start = verb.unwrap_or_else(|| piece.skip_back(at, &[Sense::Any, Sense::Phrase]));
        // `Do not use the words …`, `without the word …`.
        if piece.before(start) == Some(Sense::Not) {
            let is_said = is_named || is_in_the_answer(piece, end);
            let is_excepted = piece.has_between(end, piece.items.len(), &[Sense::Not]);
            let is_demand = is_said
                && !is_excepted
                && piece.begins_demand(start - 1)
                && piece.is_attached(start - 1)
                && piece.ends_well(end);
            return is_demand.then_some(Self { words: list.words, bounds: NEVER, items: start - 1..end });
        }
        let Some(start) = verb else { return Self::read_stated(piece, at, list, end, last_end) };
        // `make sure not to use the word …`, `ask them not to use the word …`.
        if piece.before(start) == Some(Sense::To) && piece.before(start - 1) == Some(Sense::Not) {
            let is_own = start >= 3 && piece.before(start - 2) == Some(Sense::Sure);
            return (is_own && piece.ends_well(end)).then_some(Self {
                words: list.words,
                bounds: NEVER,
                items: start - 2..end,
            });
        }
        if list.has_or || piece.has_between(piece.head, start, &[Sense::Not]) {
            return None;
        }
        let often = read_times(piece, piece.skip(end, &[Sense::Sign(','), Sense::Only, Sense::For]));
        let counted = often.map(|times| times.end);
        let is_verb = start == piece.head
            || piece.before(start).is_some_and(|before| {
                before.is_reply()
                    || matches!(
                        before,
                        Sense::Sure
                            | Sense::And
                            | Sense::Must
                            | Sense::To
                            | Sense::Polite
                            | Sense::Sign(',')
                            | Sense::CanYou
                            | Sense::It
                    )
            });
        let is_whole = is_named || counted.is_some() || is_in_the_answer(piece, end);
        let (bounds, end) = often.map_or((AT_LEAST_ONCE, end), |Times { bounds, end }| (bounds, end));
        let is_demand = is_verb
            && is_whole
            && piece.begins_demand(start)
            && piece.ends_well(end)
            && !piece.orders_more(end);
        is_demand.then_some(Self { words: list.words, bounds, items: start..end })
    }

    /// Reads `the word … should appear at least twice`, and `…, and the word … at least 10 times` behind another demand.
    fn read_stated(
        piece: &TaskPiece,
        at: usize,
        list: WordList,
        end: usize,
        last_end: Option<usize>,
    ) -> Option<Self> {
        if last_end.is_some_and(|last| piece.skip(last, &[Sense::Sign(','), Sense::And]) == at) {
            let Times { bounds, end } = read_times(piece, end)?;
            return Some(Self { words: list.words, bounds, items: at..end });
        }
        let appears = piece.skip(end, &[Sense::Must]);
        let is_subject = piece.voice == Voice::Answer || piece.has_between(0, at, &[Sense::Sure]);
        let is_free = !piece.items[piece.head.min(at)..at].iter().any(|item| item.sense.begins_clause());
        if piece.sense(appears) != Some(Sense::Appear) || !is_subject || !is_free {
            return None;
        }
        let often = read_times(piece, piece.skip(appears + 1, &[Sense::Only, Sense::For]));
        let (bounds, end) = often.map_or((AT_LEAST_ONCE, appears + 1), |Times { bounds, end }| (bounds, end));
        piece.ends_well(end).then_some(Self { words: list.words, bounds, items: at..end })
    }
}

/// Returns the place of the verb that has `the word` at this place as its object.
fn verb_before(piece: &TaskPiece, at: usize) -> Option<usize> {
    let verb = piece.skip_back(at, &[Sense::Any, Sense::Phrase]).checked_sub(1)?;
    matches!(piece.items[verb].sense, Sense::Use | Sense::Using | Sense::Say).then_some(verb)
}

/// Returns true if `in the response` or the like follows.
fn is_in_the_answer(piece: &TaskPiece, at: usize) -> bool {
    !matches!(piece.sense(at), None | Some(Sense::Sign(_) | Sense::And)) && piece.ends_well(at)
}

impl WordList {
    /// Reads the words behind this place.
    fn read(piece: &TaskPiece, at: usize) -> Option<Self> {
        let from = piece.skip(at + 1, &[Sense::Sign(':'), Sense::Sign('('), Sense::Sign('[')]);
        if piece.sense(from) == Some(Sense::Quoted) {
            return Some(Self::read_quoted(piece, from));
        }
        if piece.items[at].sense == Sense::TheWords {
            return Self::read_bare(piece, from, piece.before(from) == Some(Sense::Sign(':')));
        }
        // `the word story at least twice`, `The word associations should appear`.
        let is_used = read_times(piece, at + 2).is_some()
            || piece.sense(piece.skip(at + 2, &[Sense::Must])) == Some(Sense::Appear);
        let word = piece.items.get(at + 1).filter(|item| is_used && is_word(&item.text))?;
        Some(Self { words: vec![word.text.clone()], end: at + 2, has_or: false })
    }

    fn read_quoted(piece: &TaskPiece, from: usize) -> Self {
        let (mut words, mut end, mut next) = (Vec::new(), from, from);
        while piece.sense(next) == Some(Sense::Quoted) {
            words.push(piece.items[next].text.trim_end_matches([',', '.']).to_owned());
            end = next + 1;
            next = piece.skip(end, &[Sense::Sign(','), Sense::Sign('/'), Sense::And, Sense::Or]);
        }
        Self { words, end, has_or: piece.has_between(from, end, &[Sense::Or]) }
    }

    /// Reads single words without quotation marks. Behind a colon, any word may be one of them, and one is enough.
    fn read_bare(piece: &TaskPiece, from: usize, is_behind_colon: bool) -> Option<Self> {
        let (mut words, mut at) = (Vec::new(), from);
        loop {
            let item = piece.items.get(at)?;
            let is_free =
                is_behind_colon || !words.is_empty() || matches!(item.sense, Sense::Other | Sense::Piece);
            if !is_word(&item.text) || !is_free || !item.sense.may_be_listed() {
                return None;
            }
            words.push(item.text.clone());
            at += 1;
            let next = piece.skip(at, &[Sense::Sign(','), Sense::Sign('/'), Sense::And, Sense::Or]);
            if next == at {
                break;
            }
            at = next;
        }
        let is_end =
            matches!(piece.sense(at), None | Some(Sense::In | Sense::Sign(']' | ')') | Sense::Polite));
        let is_several = words.len() > 1 || is_behind_colon || piece.sense(at) == Some(Sense::In);
        (is_end && is_several).then(|| Self {
            words,
            end: at,
            has_or: piece.has_between(from, at, &[Sense::Or]),
        })
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(char::is_alphanumeric)
}
