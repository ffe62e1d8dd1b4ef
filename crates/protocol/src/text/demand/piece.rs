//! The pieces of a task, and to whom each of them speaks.
//!
//! A piece is a sentence, a line, or the words before a colon. Text behind a colon is material, unless the words before it announce a
//! list, a form or demands. What a piece demands is not decided here.

use std::ops::Range;

use super::sense::{Sense, TaskItem};
use crate::text::constraint::Constraint;
use crate::text::measure::SHORTENED;

/// To whom a piece speaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Voice {
    /// It orders something: `Write a poem in three lines.`
    Order,
    /// It states what the answer must be: `Your answer should have three lines.`
    Answer,
    Other,
}

/// A rule that a piece states, and the items that state it.
#[derive(Clone, Debug)]
pub(super) struct Stated {
    pub(super) rule: Constraint,
    pub(super) items: Range<usize>,
}

/// A sentence or a part of one.
#[derive(Debug)]
pub(super) struct TaskPiece {
    pub(super) items: Vec<TaskItem>,
    pub(super) voice: Voice,
    /// The place of the order, or of what is behind `must`.
    pub(super) head: usize,
}

/// The most items of a heading such as `Requirements:`.
pub(super) const HEADING_ITEMS_MAX: usize = 3;

/// Returns the pieces of a task, without its material.
pub(super) fn split_into_pieces(task: &str, items: &[TaskItem]) -> Vec<TaskPiece> {
    let mut found = Vec::new();
    let (mut begin, mut at) = (0, 0);
    while at < items.len() {
        if items[at].sense == Sense::Sign(':') && is_followed_by_space(task, items, at) {
            let before = &items[begin..at];
            let announces = |sense: Sense| before.iter().any(|item| item.sense == sense);
            let next = next_in_line(items, at + 1);
            let is_quoted = items[at + 1..]
                .iter()
                .find(|item| item.sense != Sense::LineEnd)
                .is_some_and(|item| item.sense == Sense::Quoted);
            if is_quoted || announces(Sense::TheWords) && next.is_some() {
                at += 1;
                continue;
            }
            let is_heading = before.len() <= HEADING_ITEMS_MAX && announces(Sense::Rules);
            found.push(TaskPiece::new(before.to_vec()));
            if is_heading {
                at += 1;
            } else if announces(Sense::Like) || announces(Sense::TheWords) {
                at = end_of_example(task, items, at + 1);
            } else {
                return found;
            }
            begin = at;
            continue;
        }
        if is_end(task, items, at) {
            found.push(TaskPiece::new(items[begin..at].to_vec()));
            begin = at + 1;
        } else if is_closed_sentence(task, items, at) {
            found.push(TaskPiece::new(items[begin..=at].to_vec()));
            begin = at + 1;
        }
        at += 1;
    }
    found.push(TaskPiece::new(items[begin..].to_vec()));
    found.retain(|piece| !piece.items.is_empty());
    found
}

/// Returns true if a piece ends before this item.
fn is_end(task: &str, items: &[TaskItem], at: usize) -> bool {
    match items[at].sense {
        Sense::LineEnd | Sense::Block | Sense::Sign(';') => true,
        // A dash between words.
        Sense::Sign('-' | '–' | '—') => {
            at > 0 && items[at - 1].span.end < items[at].span.start && is_followed_by_space(task, items, at)
        }
        Sense::Sign('!' | '?') => is_followed_by_space(task, items, at),
        Sense::Sign('.') => {
            let is_shortened = at > 0 && SHORTENED.contains(&items[at - 1].text.as_str());
            let is_continued = items
                .get(at + 1)
                .is_some_and(|next| !task[next.span.start..].starts_with(char::is_uppercase));
            is_followed_by_space(task, items, at) && !(is_shortened && is_continued)
        }
        _ => false,
    }
}

/// Returns true if this item is a quoted sentence at the end of a sentence.
fn is_closed_sentence(task: &str, items: &[TaskItem], at: usize) -> bool {
    items[at].sense == Sense::Quoted
        && items[at].text.ends_with(['.', '!', '?'])
        && items.get(at + 1).is_some_and(|next| task[next.span.start..].starts_with(char::is_uppercase))
}

fn is_followed_by_space(task: &str, items: &[TaskItem], at: usize) -> bool {
    task[items[at].span.end..]
        .chars()
        .next()
        .is_none_or(|next| next.is_whitespace() || matches!(next, ')' | '"' | '\'' | '”'))
}

fn next_in_line(items: &[TaskItem], at: usize) -> Option<&TaskItem> {
    items.get(at).filter(|item| item.sense != Sense::LineEnd)
}

/// Returns the place behind an example: the rest of its sentence, and lines that begin with a sign or a number if its line has no rest.
fn end_of_example(task: &str, items: &[TaskItem], from: usize) -> usize {
    let mut at = from;
    if next_in_line(items, at).is_some() {
        while at < items.len() && !is_end(task, items, at) {
            at += 1;
        }
        return at;
    }
    loop {
        let next = items.get(at + 1).map(|item| item.sense);
        if !matches!(next, Some(Sense::Sign(_) | Sense::Number(_) | Sense::LineEnd | Sense::Block)) {
            return at;
        }
        at += 1;
        while items.get(at).is_some_and(|item| item.sense != Sense::LineEnd) {
            at += 1;
        }
    }
}

impl TaskPiece {
    fn new(items: Vec<TaskItem>) -> Self {
        let (voice, head) = find_voice(&items);
        Self { items, voice, head }
    }

    pub(super) fn sense(&self, at: usize) -> Option<Sense> {
        self.items.get(at).map(|item| item.sense)
    }

    /// Returns the sense right before a place.
    pub(super) fn before(&self, at: usize) -> Option<Sense> {
        at.checked_sub(1).and_then(|at| self.sense(at))
    }

    pub(super) fn has(&self, sense: Sense) -> bool {
        self.items.iter().any(|item| item.sense == sense)
    }

    /// Returns true if an item between these places has one of these senses.
    pub(super) fn has_between(&self, from: usize, to: usize, senses: &[Sense]) -> bool {
        self.items[from.min(to)..to].iter().any(|item| senses.contains(&item.sense))
    }

    /// Returns the first place from here on that has none of these senses.
    pub(super) fn skip(&self, from: usize, senses: &[Sense]) -> usize {
        let skipped = self.items[from.min(self.items.len())..]
            .iter()
            .take_while(|item| senses.contains(&item.sense))
            .count();
        from + skipped
    }

    /// Returns the first place of the items before `to` that all have these senses.
    pub(super) fn skip_back(&self, to: usize, senses: &[Sense]) -> usize {
        let skipped = self.items[..to].iter().rev().take_while(|item| senses.contains(&item.sense)).count();
        to - skipped
    }

    /// Returns true if this place belongs to the order or the statement itself, and not to a clause about its subject.
    pub(super) fn is_free(&self, at: usize) -> bool {
        if self.voice == Voice::Other || at < self.head {
            return false;
        }
        let last = (self.head..at).rev().find(|at| self.items[*at].sense.begins_clause());
        last.is_none_or(|clause| self.has_between(clause, at, &[Sense::Sign(',')]))
    }

    /// Returns true if a demand that ends before this place is about the whole answer: nothing follows, or the answer itself.
    pub(super) fn ends_well(&self, at: usize) -> bool {
        let at = self.skip(at, &[Sense::Polite]);
        if self.sense(at) == Some(Sense::In) {
            let noun = self.skip(at + 1, &[Sense::Your, Sense::Whole, Sense::Any]);
            if self.sense(noun).is_some_and(|sense| sense.is_answer() || sense == Sense::Markdown) {
                return true;
            }
        }
        let noun = self.skip(at, &[Sense::Your, Sense::Whole]);
        let is_noun = noun > at && self.sense(noun).is_some_and(Sense::is_reply);
        is_noun
            || matches!(
                self.sense(at),
                None | Some(Sense::Sign(_) | Sense::And | Sense::Sure | Sense::Not | Sense::Allowed)
            )
    }

    /// Returns true if a demand may begin here: it belongs to the order or the statement itself, or a comma separates it from what is before.
    pub(super) fn begins_demand(&self, at: usize) -> bool {
        self.is_free(at) || at > self.head && self.before(at) == Some(Sense::Sign(','))
    }

    /// Returns true if this place is about the whole answer, as far as the words before it say: nothing denies it, and it is neither
    /// about each of several things nor an example.
    pub(super) fn is_of_the_whole(&self, at: usize) -> bool {
        self.is_free(at)
            && !self.has(Sense::Each)
            && !self.has(Sense::Then)
            && !self.has_between(self.head, at, &[Sense::Not, Sense::Like])
    }

    /// Returns true if the words before this place are an order alone or name the answer, so that this place cannot be about anything
    /// else: `Write a poem in …`, `Your answer must be in …`, `…, in …`.
    pub(super) fn is_attached(&self, at: usize) -> bool {
        let before = self.skip_back(
            at,
            &[
                Sense::Polite,
                Sense::Any,
                Sense::Be,
                Sense::Use,
                Sense::Only,
                Sense::Small,
                Sense::LanguageWord,
            ],
        );
        before <= self.head
            || self.before(before).is_some_and(|before| {
                before.is_answer()
                    || matches!(
                        before,
                        Sense::And
                            | Sense::Sign(',')
                            | Sense::Must
                            | Sense::Sure
                            | Sense::LanguageName(_)
                            | Sense::There
                            | Sense::Not
                    )
            })
            || before == self.head + 1 && self.items[self.head].sense.orders()
    }

    /// Returns true for an order whose object is the answer: `Give the result in …`, `Answer in …`.
    pub(super) fn orders_an_answer(&self) -> bool {
        let head = self.sense(self.head);
        self.voice == Voice::Order && head.is_some_and(|head| head.is_reply() || head == Sense::ReplyVerb)
    }

    /// Returns true if something further is ordered behind this place: `… and a summary`, `…, then explain it`.
    pub(super) fn orders_more(&self, at: usize) -> bool {
        (at.max(1)..self.items.len()).any(|at| {
            matches!(self.before(at), Some(Sense::And | Sense::Sign(',')))
                && self.sense(at).is_some_and(|sense| {
                    sense.orders() || matches!(sense, Sense::Any | Sense::Number(_) | Sense::LanguageName(_))
                })
        })
    }

    /// Returns the words of the task that these items are.
    pub(super) fn words<'a>(&self, task: &'a str, items: &Range<usize>) -> &'a str {
        &task[self.items[items.start].span.start..self.items[items.end - 1].span.end]
    }
}

/// Returns to whom these items speak, and the place of what they say.
fn find_voice(items: &[TaskItem]) -> (Voice, usize) {
    let sense = |at: usize| items.get(at).map(|item| item.sense);
    let mut at = 0;
    while matches!(
        sense(at),
        Some(Sense::Polite | Sense::Sign(_) | Sense::Quoted | Sense::Then | Sense::Only)
    ) {
        at += 1;
    }
    // A number at the beginning of a line.
    if matches!(sense(at), Some(Sense::Number(_))) && matches!(sense(at + 1), Some(Sense::Sign('.' | ')'))) {
        at += 2;
    }
    if let Some(end) = end_of_opening(items, at) {
        at = end;
    }
    if sense(at) == Some(Sense::CanYou) {
        at += 1;
        while sense(at) == Some(Sense::Polite) {
            at += 1;
        }
        return (Voice::Order, at);
    }
    let must = items.iter().position(|item| item.sense == Sense::Must);
    match sense(at) {
        Some(
            Sense::Order
            | Sense::Rework
            | Sense::ReplyVerb
            | Sense::Say
            | Sense::Use
            | Sense::Using
            | Sense::Wrap
            | Sense::Begin
            | Sense::End
            | Sense::Sure
            | Sense::Not
            | Sense::OnlyTheLetter,
        ) => return (Voice::Order, at),
        Some(Sense::Reply) if must.is_none() => return (Voice::Order, at),
        _ => {}
    }
    let Some(must) = must else { return (Voice::Other, 0) };
    let subject = &items[at.min(must)..must];
    let is_about_answer = subject.iter().any(|item| {
        item.sense.is_answer()
            || matches!(item.sense, Sense::There | Sense::TheWord | Sense::TheWords | Sense::QuoteMarks)
    });
    let begins = subject.first().is_some_and(|first| {
        first.sense.is_answer()
            || matches!(
                first.sense,
                Sense::Your
                    | Sense::Whole
                    | Sense::All
                    | Sense::Any
                    | Sense::There
                    | Sense::TheWord
                    | Sense::TheWords
                    | Sense::QuoteMarks
                    | Sense::In
            )
    });
    let is_about_part = !begins
        || subject.iter().any(|item| {
            item.sense.begins_clause()
                || matches!(
                    item.sense,
                    Sense::Each | Sense::Part | Sense::Pointing | Sense::Unit(_) | Sense::Program
                )
        });
    if is_about_answer && !is_about_part && subject.len() <= 10 {
        return (Voice::Answer, must + 1);
    }
    // `… and the entire response should have at least 100 sentences`.
    let named = subject.len().checked_sub(2).map(|from| &subject[from..]);
    match named {
        Some([first, last]) if matches!(first.sense, Sense::Whole | Sense::Your) && last.sense.is_reply() => {
            (Voice::Answer, must + 1)
        }
        _ => (Voice::Other, 0),
    }
}

/// Returns the place behind an opening such as `In your answer,`.
fn end_of_opening(items: &[TaskItem], at: usize) -> Option<usize> {
    let sense = |at: usize| items.get(at).map(|item| item.sense);
    if sense(at) != Some(Sense::In) {
        return None;
    }
    let mut end = at + 1;
    while matches!(sense(end), Some(Sense::Your | Sense::Whole)) {
        end += 1;
    }
    let is_answer = sense(end).is_some_and(Sense::is_answer);
    (is_answer && sense(end + 1) == Some(Sense::Sign(','))).then_some(end + 2)
}
