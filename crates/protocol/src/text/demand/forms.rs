//! Demands on the form of the whole answer: letter case, no commas, quotation marks, beginning and end, JSON, a language.
//!
//! The input is a piece of a task. The output is rules with their places. A form of a part of the answer, such as its title, is no demand.

use super::piece::{Stated, TaskPiece, Voice};
use super::sense::{Sense, Unit};
use crate::text::constraint::{Bounds, Constraint};
use crate::text::measure::{LetterCase, TextLanguage};

/// Returns the forms that a piece demands of the whole answer.
pub(super) fn find_forms(piece: &TaskPiece) -> Vec<Stated> {
    if piece.voice == Voice::Other || piece.has(Sense::Field) {
        return Vec::new();
    }
    let form = |at: usize| match piece.items[at].sense {
        Sense::Comma => read_no_commas(piece, at),
        Sense::LowerLetters | Sense::UpperLetters => read_letter_case(piece, at),
        Sense::Wrap => read_quoted(piece, at).or_else(|| read_json_around(piece, at)),
        Sense::QuoteMarks => read_marks_around(piece, at),
        Sense::Json => read_json(piece, at),
        Sense::Begin | Sense::End => read_ending(piece, at),
        Sense::LanguageName(code) => read_language(piece, at, TextLanguage::from_code(code)?),
        Sense::OnlyTheLetter | Sense::JsonList => read_answer_alone(piece, at),
        _ => None,
    };
    (0..piece.items.len()).filter_map(form).collect()
}

/// `Do not use any commas.`
fn read_no_commas(piece: &TaskPiece, at: usize) -> Option<Stated> {
    let behind = piece.skip_back(at, &[Sense::Any, Sense::Use, Sense::Using, Sense::All, Sense::Be]);
    let start = behind.checked_sub(1).filter(|start| piece.items[*start].sense == Sense::Not)?;
    let is_demand = piece.begins_demand(start)
        && piece.is_attached(start)
        && piece.ends_well(at + 1)
        && !is_exempt(piece, at + 1);
    is_demand.then(|| Stated { rule: Constraint::Excludes { text: ",".to_owned() }, items: start..at + 1 })
}

/// Returns true if an exception, a condition or something further is in the piece.
fn is_exempt(piece: &TaskPiece, end: usize) -> bool {
    piece.has(Sense::Then) || piece.has(Sense::Like) || piece.orders_more(end)
}

/// `in all lowercase letters`, `no capital letters`.
fn read_letter_case(piece: &TaskPiece, at: usize) -> Option<Stated> {
    let start = piece.skip_back(
        at,
        &[Sense::All, Sense::Only, Sense::In, Sense::Any, Sense::Use, Sense::Using, Sense::Be],
    );
    let has = |sense: Sense| piece.has_between(start, at, &[sense]);
    let is_negative = piece.before(start) == Some(Sense::Not);
    let end = if piece.sense(at + 1) == Some(Sense::Only) { at + 2 } else { at + 1 };
    let is_whole = has(Sense::All) || has(Sense::Only) || has(Sense::In) || end > at + 1;
    // `all of the letters are lowercase`.
    let are_all = has(Sense::Be) && piece.has_between(piece.head, start, &[Sense::All]);
    let from = if is_negative { start - 1 } else { start };
    let near = &piece.items[from.saturating_sub(3).max(piece.head.min(from))..from];
    let is_part = near.iter().any(|item| {
        matches!(
            item.sense,
            Sense::Unit(_)
                | Sense::Number(_)
                | Sense::TheWord
                | Sense::TheWords
                | Sense::Like
                | Sense::Pointing
        )
    }) || piece.has_between(piece.head, from, &[Sense::Part]);
    let is_counted = piece.has(Sense::Each)
        || piece.has(Sense::Times)
        || matches!(piece.sense(end), Some(Sense::Must | Sense::Appear | Sense::AtLeast | Sense::About));
    // `Do not use all capital letters` allows some of them.
    let is_denied =
        is_negative && has(Sense::All) || !is_negative && piece.has_between(piece.head, from, &[Sense::Not]);
    let is_stated = is_negative || is_whole || are_all;
    let is_demand = piece.begins_demand(from)
        && piece.is_attached(from)
        && piece.ends_well(end)
        && !is_exempt(piece, end);
    if !is_stated || is_denied || is_part || is_counted || !is_demand {
        return None;
    }
    let is_lower = piece.items[at].sense == Sense::LowerLetters;
    let case = if is_lower == is_negative { LetterCase::Upper } else { LetterCase::Lower };
    Some(Stated { rule: Constraint::Letters { case }, items: from..end })
}

/// `Wrap your entire response with double quotation marks.`
fn read_quoted(piece: &TaskPiece, at: usize) -> Option<Stated> {
    // `Make sure your entire response is wrapped in double quotation marks.`
    let is_passive =
        piece.before(at) == Some(Sense::Be) && at >= 2 && piece.before(at - 1).is_some_and(Sense::is_reply);
    let behind = if is_passive { at + 1 } else { end_of_answer(piece, at + 1)? };
    let marks = piece.skip(behind, &[Sense::In, Sense::With, Sense::Any]);
    let is_demand = piece.sense(marks) == Some(Sense::QuoteMarks)
        && piece.is_of_the_whole(at)
        && piece.ends_well(marks + 1);
    is_demand.then(|| Stated { rule: Constraint::Quoted, items: at..marks + 1 })
}

/// `Put double quotes around your entire response.`
fn read_marks_around(piece: &TaskPiece, at: usize) -> Option<Stated> {
    let around =
        (at + 1..piece.items.len().min(at + 5)).find(|at| piece.items[*at].sense == Sense::Around)?;
    let noun = piece.skip(around + 1, &[Sense::Whole]);
    let is_answer = piece.sense(noun).is_some_and(Sense::is_reply);
    let is_placed =
        piece.has_between(piece.head, around, &[Sense::Wrap]) || piece.has_between(0, around, &[Sense::Must]);
    let is_demand = is_answer && is_placed && piece.is_of_the_whole(at.max(piece.head));
    is_demand.then(|| Stated { rule: Constraint::Quoted, items: at..noun + 1 })
}

/// `Wrap the entire output in JSON format.`
fn read_json_around(piece: &TaskPiece, at: usize) -> Option<Stated> {
    let behind = end_of_answer(piece, at + 1).unwrap_or(at + 1);
    let json = piece.skip(behind, &[Sense::In, Sense::With, Sense::Any]);
    let names_answer = behind > at + 1 || piece.items[..at].iter().any(|item| item.sense.is_reply());
    let is_demand = piece.sense(json) == Some(Sense::Json) && names_answer && piece.is_of_the_whole(at);
    is_demand.then(|| Stated { rule: Constraint::Json, items: at..json + 1 })
}

/// `Give the result in JSON format.`
fn read_json(piece: &TaskPiece, at: usize) -> Option<Stated> {
    let is_format = piece.before(at) == Some(Sense::In) && piece.items[at].text.contains(' ');
    let is_reply = piece.orders_an_answer();
    let is_near = at <= piece.head + 4;
    let is_demand = is_near
        && !piece.orders_more(at + 1)
        && is_format
        && is_reply
        && piece.is_of_the_whole(at)
        && !piece.has(Sense::Part)
        && piece.ends_well(at + 1);
    is_demand.then(|| Stated { rule: Constraint::Json, items: at - 1..at + 1 })
}

/// `End your response with the exact phrase "…".`
fn read_ending(piece: &TaskPiece, at: usize) -> Option<Stated> {
    let is_led = at == piece.head
        || matches!(
            piece.before(at),
            Some(Sense::And | Sense::Sure | Sense::Must | Sense::To | Sense::Polite | Sense::Sign(','))
        );
    if !is_led
        || !piece.is_of_the_whole(at)
        || piece.has_between(0, at, &[Sense::Part, Sense::Unit(Unit::Paragraphs)])
    {
        return None;
    }
    let object = piece.skip(
        at + 1,
        &[
            Sense::Your,
            Sense::Whole,
            Sense::Reply,
            Sense::ReplyNoun,
            Sense::Piece,
            Sense::It,
            Sense::With,
            Sense::To,
        ],
    );
    let quote = piece.skip(
        object,
        &[
            Sense::Phrase,
            Sense::Exactly,
            Sense::With,
            Sense::Of,
            Sense::TheWord,
            Sense::TheWords,
            Sense::Sign(':'),
        ],
    );
    let is_led_to = piece.before(object) == Some(Sense::With) || piece.before(quote) == Some(Sense::Exactly);
    if piece.sense(quote) != Some(Sense::Quoted) || !is_led_to || !piece.ends_well(quote + 1) {
        return None;
    }
    let text = piece.items[quote].text.trim().to_owned();
    let is_end = piece.items[at].sense == Sense::End;
    let rule = if is_end { Constraint::EndsWith { text } } else { Constraint::StartsWith { text } };
    Some(Stated { rule, items: at..quote + 1 })
}

/// `Answer in Finnish.`, `using only the Hindi language`.
fn read_language(piece: &TaskPiece, at: usize, code: TextLanguage) -> Option<Stated> {
    let named = piece.skip_back(at, &[Sense::Your]);
    let is_in = piece.before(named) == Some(Sense::In);
    let start = named - usize::from(is_in);
    let end = piece.skip(at + 1, &[Sense::LanguageWord]);
    let is_other = !piece.ends_well(end);
    let is_one_of_several = piece.sense(end) == Some(Sense::And)
        && matches!(piece.sense(end + 1), Some(Sense::LanguageName(_) | Sense::In));
    let is_another = is_one_of_several
        && !matches!(piece.sense(end + 2), Some(Sense::All | Sense::LowerLetters | Sense::UpperLetters));
    if is_other
        || is_another
        || piece.has(Sense::Then)
        || piece.has(Sense::Each)
        || piece.voice == Voice::Other
    {
        return None;
    }
    let no_other = [Sense::Not, Sense::OtherOne, Sense::LanguageWord];
    let is_only_one =
        piece.items[end..].windows(3).any(|three| three.iter().map(|item| item.sense).eq(no_other));
    let is_demand = is_only_one && (is_in || piece.before(named) == Some(Sense::Only))
        || piece.is_free(start) && is_asked(piece, start, is_in);
    is_demand.then(|| Stated { rule: Constraint::Language { code }, items: start..end })
}

/// Returns true if a language that begins here is that of the answer: `only in`, `Answer in`, `Your answer must be in`.
fn is_asked(piece: &TaskPiece, start: usize, is_in: bool) -> bool {
    let only = start - usize::from(piece.before(start) == Some(Sense::Only));
    let is_only = only < start
        && (is_in
            || only == piece.head
            || matches!(piece.before(only), Some(Sense::Use | Sense::Using | Sense::In)));
    let is_reply = piece.orders_an_answer() && start == piece.head + 1;
    let is_stated = piece.voice == Voice::Answer
        && piece.skip(piece.head, &[Sense::Be, Sense::Polite, Sense::Only, Sense::Saying]) == start;
    // `Make sure your entire response is in Hindi.`
    let is_sure = start >= 2
        && piece.before(start) == Some(Sense::Be)
        && piece.before(start - 1).is_some_and(|subject| subject.is_reply() || subject == Sense::It)
        && piece.has_between(0, start, &[Sense::Sure]);
    is_only || is_in && (is_reply || is_stated || is_sure)
}

/// `only the letter`, `a JSON array`.
fn read_answer_alone(piece: &TaskPiece, at: usize) -> Option<Stated> {
    let rule = match piece.items[at].sense {
        Sense::OnlyTheLetter => Constraint::Characters(Bounds { min: Some(1), max: Some(1) }),
        _ => Constraint::StartsWith { text: "[".to_owned() },
    };
    let start = piece.skip_back(
        at,
        &[
            Sense::With,
            Sense::In,
            Sense::Your,
            Sense::Whole,
            Sense::Any,
            Sense::Be,
            Sense::Use,
            Sense::Polite,
        ],
    );
    let is_reply = piece.orders_an_answer() && start == piece.head + 1;
    let is_whole =
        matches!(piece.sense(at + 1), None | Some(Sense::With | Sense::For | Sense::Sign('.' | ',')));
    (is_reply && is_whole && !piece.has(Sense::Each)).then_some(Stated { rule, items: start..at + 1 })
}

/// Returns the place behind `your entire response` from here on.
fn end_of_answer(piece: &TaskPiece, at: usize) -> Option<usize> {
    let noun = piece.skip(at, &[Sense::Your, Sense::Whole, Sense::All]);
    piece.sense(noun).is_some_and(Sense::is_answer).then_some(noun + 1)
}
