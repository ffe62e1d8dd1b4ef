//! Demands that count something: `in exactly three sentences`, `at least 400 words`, `4 bullet points`.
//!
//! The input is a piece of a task. The output is bounds with the unit that they count, wherever the piece is about the whole answer. A count
//! of something inside a story, of a part of the answer or of another text is no demand.

use super::number::{BoundedNumber, read_number};
use super::piece::{Stated, TaskPiece, Voice};
use super::sense::{Sense, TaskItem, Unit};
use crate::text::constraint::{Bounds, Constraint};

/// The largest bare number of words or characters that is exact.
const EXACT_MAX: usize = 10;

/// The fewest characters that a rule can count. Fewer are people in a story, or the characters of a password.
const CHARACTERS_MIN: usize = 20;

/// A number with its unit, by its first item and the one behind it.
#[derive(Clone, Copy, Debug)]
struct Count {
    start: usize,
    end: usize,
    bounds: Bounds,
    unit: Unit,
    /// Whether words beside the number bound it.
    is_bounded: bool,
    /// Whether a hyphen joins the number and its unit.
    is_joined: bool,
}

/// Returns the counts that a piece demands of the whole answer.
///
/// `is_first` says that no order came before this piece. A later order may be about a part of the answer.
pub(super) fn find_counts(piece: &TaskPiece, is_first: bool) -> Vec<Stated> {
    let (mut read, mut at) = (Vec::new(), 0);
    while at < piece.items.len() {
        let count = Count::read(piece, at);
        at = count.map_or(at + 1, |count| count.end);
        read.extend(count);
    }
    // Two counts of one unit are about two things.
    let is_single = |count: &&Count| read.iter().filter(|other| other.unit == count.unit).count() == 1;
    let counted = read.iter().filter(is_single).filter(|count| count.is_of_the_answer(piece, is_first));
    counted.map(|count| Stated { rule: count.rule(), items: count.words_start(piece)..count.end }).collect()
}

impl Count {
    /// Reads a number with its unit from this place on.
    fn read(piece: &TaskPiece, start: usize) -> Option<Self> {
        let BoundedNumber { mut bounds, end, is_bounded: is_led, is_exact } = read_number(piece, start)?;
        let unit_at = piece.skip(end, &[Sense::Adjective]);
        let is_language = matches!(piece.sense(unit_at), Some(Sense::LanguageName(_)));
        let unit_at = unit_at + usize::from(is_language);
        let Some(Sense::Unit(unit)) = piece.sense(unit_at) else { return None };
        // `a two-sentence summary` has two, but `a 500-word essay` has about as many.
        let is_joined = piece.before(unit_at) == Some(Sense::Sign('-'));
        if is_joined && unit != Unit::Sentences || piece.before(start) == Some(Sense::About) {
            return None;
        }
        let mut end = unit_at + 1;
        let mut is_bounded = is_led || is_exact;
        if !is_led {
            match piece.sense(end) {
                Some(Sense::OrMore) => (bounds.max, end, is_bounded) = (None, end + 1, true),
                Some(Sense::OrLess) => (bounds.min, end, is_bounded) = (None, end + 1, true),
                _ => {
                    let is_loose = matches!(unit, Unit::Words | Unit::Characters);
                    if is_loose && !is_exact && bounds.max.is_some_and(|max| max > EXACT_MAX) {
                        bounds.min = None;
                    }
                }
            }
        }
        let is_few = bounds.max.or(bounds.min).is_some_and(|count| count < CHARACTERS_MIN);
        let is_person = unit == Unit::Characters && is_few;
        (!is_person).then_some(Self { start, end, bounds, unit, is_bounded, is_joined })
    }

    /// Returns the place of its first word, such as `in`.
    fn words_start(&self, piece: &TaskPiece) -> usize {
        self.start - usize::from(piece.before(self.start) == Some(Sense::In))
    }

    fn rule(&self) -> Constraint {
        match self.unit {
            Unit::Words => Constraint::Words(self.bounds),
            Unit::Sentences => Constraint::Sentences(self.bounds),
            Unit::Characters => Constraint::Characters(self.bounds),
            Unit::Lines => Constraint::Lines(self.bounds),
            Unit::Paragraphs => Constraint::Paragraphs(self.bounds),
            Unit::Bullets => Constraint::Bullets(self.bounds),
        }
    }

    /// Returns true if it is about the whole answer, and not about the subject of the answer.
    fn is_of_the_answer(&self, piece: &TaskPiece, is_first: bool) -> bool {
        let is_shared = [Sense::Each, Sense::Field, Sense::Then].into_iter().any(|sense| piece.has(sense));
        let is_pointed = matches!(
            piece.before(self.start),
            Some(Sense::Pointing | Sense::OtherOne | Sense::Your | Sense::TheWord | Sense::TheWords)
        );
        let is_elsewhere = is_pointed || !self.may_end(piece);
        if is_shared || is_elsewhere {
            return false;
        }
        self.is_opening(piece)
            || match piece.voice {
                Voice::Answer => self.is_stated(piece),
                Voice::Order => self.is_ordered(piece, is_first) && !self.asks_for_more(piece),
                Voice::Other => false,
            }
    }

    /// Returns true if what follows it does not make it a count of something else: `two sentences on methods`.
    fn may_end(&self, piece: &TaskPiece) -> bool {
        let is_of_a_piece = self.is_least() || piece.before(self.start) == Some(Sense::Of);
        match piece.sense(self.end) {
            None
            | Some(
                Sense::Sign(_)
                | Sense::And
                | Sense::Or
                | Sense::Clause
                | Sense::HowTo
                | Sense::Sure
                | Sense::Piece,
            ) => true,
            Some(Sense::About | Sense::For) => is_of_a_piece,
            Some(_) => piece.ends_well(self.end) || self.is_joined,
        }
    }

    /// Returns true if it bounds the answer from below alone.
    fn is_least(&self) -> bool {
        self.bounds.max.is_none()
    }

    /// Returns true for `In one sentence, what is entropy?`.
    fn is_opening(&self, piece: &TaskPiece) -> bool {
        let first = piece.skip(0, &[Sense::Polite]);
        let is_first = piece.sense(first) == Some(Sense::In) && self.start == first + 1;
        let asks = piece.sense(self.end + 1).is_some_and(|next| {
            next.begins_clause()
                || matches!(
                    next,
                    Sense::Be
                        | Sense::Order
                        | Sense::ReplyVerb
                        | Sense::Say
                        | Sense::CanYou
                        | Sense::Polite
                        | Sense::Reply
                )
        });
        is_first && piece.sense(self.end) == Some(Sense::Sign(',')) && asks
    }

    /// Returns true if a statement about the answer leads here: `Your answer must have three sentences and at most 50 words.`
    fn is_stated(&self, piece: &TaskPiece) -> bool {
        let leads = |sense: Sense| {
            matches!(
                sense,
                Sense::Be
                    | Sense::Use
                    | Sense::In
                    | Sense::With
                    | Sense::Of
                    | Sense::And
                    | Sense::All
                    | Sense::Only
                    | Sense::Polite
                    | Sense::Sign(',')
                    | Sense::Number(_)
                    | Sense::Unit(_)
                    | Sense::AtLeast
                    | Sense::AtMost
                    | Sense::Below
                    | Sense::Above
                    | Sense::Exactly
                    | Sense::LowerLetters
                    | Sense::UpperLetters
            )
        };
        self.start >= piece.head && piece.items[piece.head..self.start].iter().all(|item| leads(item.sense))
    }

    /// Returns true if an order is about this count.
    fn is_ordered(&self, piece: &TaskPiece, is_first: bool) -> bool {
        if self.start <= piece.head {
            return false;
        }
        if let Some(sure) = (piece.head..self.start).rev().find(|at| piece.items[*at].sense == Sense::Sure) {
            return self.is_made_sure(piece, sure);
        }
        let between = &piece.items[piece.head + 1..self.start];
        let head = piece.items[piece.head].sense;
        let is_last = piece.sense(self.end).is_none_or(|sense| matches!(sense, Sense::Sign(_)));
        let names_the_answer = between.iter().all(|item| {
            item.sense.is_reply()
                || matches!(
                    item.sense,
                    Sense::In
                        | Sense::With
                        | Sense::Using
                        | Sense::Your
                        | Sense::Whole
                        | Sense::It
                        | Sense::To
                        | Sense::Only
                        | Sense::Polite
                        | Sense::Use
                )
        });
        if names_the_answer && (head.is_reply() || matches!(head, Sense::ReplyVerb | Sense::Use | Sense::Say))
        {
            let is_prose = !matches!(self.unit, Unit::Lines | Unit::Characters) || is_last;
            let is_led = !between.is_empty() || self.is_bounded;
            let ends = is_last
                || head == Sense::Reply
                || piece.ends_well(self.end)
                || piece.sense(self.end) == Some(Sense::About);
            return is_led && is_prose && ends;
        }
        let is_doubtful = !is_first || self.is_doubtful(piece);
        let clause =
            between.iter().rposition(|item| item.sense.begins_clause()).map(|at| piece.head + 1 + at);
        if let Some(clause) = clause {
            // A count at the very end applies to the whole sentence: `Explain why the sky is blue in two sentences.`
            let is_how_to = piece.items[clause].sense == Sense::HowTo;
            return is_last && piece.before(self.start) == Some(Sense::In) && !is_how_to && !is_doubtful;
        }
        !is_doubtful && self.is_led(piece, is_last)
    }

    /// Returns true for `Make sure your answer has three sentences.`
    fn is_made_sure(&self, piece: &TaskPiece, sure: usize) -> bool {
        let subject = piece.skip(sure + 1, &[Sense::Your, Sense::Whole]);
        let has_subject = piece.sense(subject).is_some_and(Sense::is_answer);
        let verb = if has_subject { subject + 1 } else { sure + 1 };
        let from = piece.skip(verb, &[Sense::Be, Sense::Use, Sense::In, Sense::With, Sense::Must]);
        from == self.start && from > verb
    }

    /// Returns true if the words right before it apply it to the text that is ordered.
    fn is_led(&self, piece: &TaskPiece, is_last: bool) -> bool {
        match piece.before(self.start) {
            Some(Sense::In) => true,
            Some(Sense::Using) => self.is_bounded,
            // `Write a blog post with at least 400 words.`
            Some(Sense::Of) => {
                piece.before(self.start - 1) == Some(Sense::Piece) && orders_a_text(piece, self.start - 1)
            }
            Some(Sense::With | Sense::Use) => self.is_bounded && orders_a_text(piece, self.start - 1),
            Some(Sense::Any) if self.is_joined => true,
            Some(Sense::Sign(',')) if self.is_bounded && is_last => true,
            // `a 200+ word poem`.
            Some(Sense::Sign(',') | Sense::Any | Sense::Other) => {
                self.is_bounded && piece.sense(self.end) == Some(Sense::Piece)
            }
            _ => false,
        }
    }

    /// Returns true if words before it turn it around, or make it a part of something else.
    fn is_doubtful(&self, piece: &TaskPiece) -> bool {
        let near = self.start.saturating_sub(4).max(piece.head);
        let between = &piece.items[piece.head + 1..self.start];
        let has_clause = between.iter().any(|item| item.sense.begins_clause());
        let is_said = between.iter().any(|item| {
            item.sense == Sense::Saying
                || has_clause
                    && (item.sense.is_reply()
                        || matches!(item.sense, Sense::Order | Sense::ReplyVerb | Sense::Say | Sense::Wrap))
        });
        is_said
            || piece.has_between(near, self.start, &[Sense::Not, Sense::Like])
            || piece.has_between(
                piece.head,
                self.start,
                &[Sense::Part, Sense::Pointing, Sense::Unit(Unit::Lines)],
            )
            || between.iter().any(|item| matches!(item.sense, Sense::Number(number) if number > 1))
            || between.iter().filter(|item| item.sense == Sense::Piece).count() > 1
            || names_a_text_behind_a_preposition(between)
    }

    /// Returns true if the piece asks for something beside what is counted, so that the count may not be that of the whole answer.
    fn asks_for_more(&self, piece: &TaskPiece) -> bool {
        let is_order = |at: usize| piece.sense(at).is_some_and(Sense::orders);
        let before =
            (piece.head + 1..self.start).any(|at| piece.before(at) == Some(Sense::And) && is_order(at));
        let is_weakened = matches!(piece.sense(self.end), Some(Sense::And | Sense::Or | Sense::Sign('(')));
        before
            || piece.orders_more(self.end)
            || is_weakened && !self.is_least() && !is_strengthened(piece, self.end)
    }
}

/// Returns true for `and nothing else`, and for a further demand.
fn is_strengthened(piece: &TaskPiece, at: usize) -> bool {
    piece.sense(at) == Some(Sense::And)
        && matches!(
            piece.sense(at + 1),
            Some(Sense::Not | Sense::Nothing | Sense::Use | Sense::Using | Sense::Wrap)
        )
}

/// Returns true if the words before this place order one text: `Write a short funny poem about the sea`.
fn orders_a_text(piece: &TaskPiece, end: usize) -> bool {
    let kinds: Vec<usize> = (piece.head..end).filter(|at| piece.items[*at].sense == Sense::Piece).collect();
    let [kind] = kinds[..] else { return false };
    let is_written = matches!(piece.items[piece.head].sense, Sense::Order | Sense::ReplyVerb);
    is_written && !piece.has_between(piece.head, kind, &[Sense::Small, Sense::For, Sense::About])
}

/// Returns true for `tips for an essay`: a count behind it may be that of the essay.
fn names_a_text_behind_a_preposition(items: &[TaskItem]) -> bool {
    let preposition = items.iter().position(|item| matches!(item.sense, Sense::For | Sense::Small));
    preposition.is_some_and(|at| items[at..].iter().any(|item| item.sense == Sense::Piece))
}
