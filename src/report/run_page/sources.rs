//! The sources that an answer quotes, and the quotes in them.
//!
//! The input is the state of a run and the section of its protocol. The output is the quotes of the answer, and each quoted source with its
//! quotes marked, so that a quote on the page leads to its place. Of a long source only the surroundings of its quotes are shown.

use std::borrow::Cow;
use std::ops::Range;

use serde::Serialize;

use crate::engine::RunState;
use crate::journal::{Entry, Record};
use protocol::map_reduce::Fact;
use protocol::text::escape;
use protocol::{Passage, Section};

/// The title of the task as a source.
const TASK: &str = "the task";

/// The longest source that is shown whole, in bytes.
const WHOLE_BYTES_MAX: usize = 4_000;

/// The bytes that are shown before and after a quote of a longer source.
const AROUND: usize = 400;

/// A quote of the answer.
#[derive(Serialize)]
pub(super) struct ShownQuote {
    number: usize,
    source: String,
    quote: String,
    /// The number of the mark that is its place; `None` if the place is not on the page.
    place: Option<usize>,
}

/// A source with the quotes in it.
#[derive(Serialize)]
pub(super) struct ShownSource {
    name: String,
    parts: Vec<SourcePart>,
}

/// A part of a source: a quote, if it has the number of one.
#[derive(Debug, Eq, PartialEq, Serialize)]
struct SourcePart {
    quote: Option<usize>,
    text: String,
}

/// A text that may be quoted.
struct SourceText<'a> {
    name: &'a str,
    /// The offset of the text in its document.
    start: usize,
    text: Cow<'a, str>,
}

/// Returns the quotes of the answer, and the sources with these quotes.
pub(super) fn sources(
    state: &RunState,
    records: &[Record],
    section: &Section,
) -> (Vec<ShownQuote>, Vec<ShownSource>) {
    let quotes = quotes(section);
    let texts = texts(state, records);
    let mut places: Vec<Vec<(usize, Range<usize>)>> = vec![Vec::new(); texts.len()];
    let mut citations = Vec::new();
    for (index, fact) in quotes.iter().enumerate() {
        let number = index + 1;
        citations.push(ShownQuote {
            number,
            source: escape::terminal(&fact.document),
            quote: escape::terminal(&fact.quote),
            place: None,
        });
        if let Some((at, range)) = find_place(&texts, fact) {
            places[at].push((number, range));
        }
    }
    let with_quotes = texts.iter().zip(places).filter(|(_, places)| !places.is_empty());
    let mut shown = Vec::new();
    for (text, places) in with_quotes {
        let (parts, marks) = divide(&text.text, places);
        for (number, mark) in marks {
            citations[number - 1].place = Some(mark);
        }
        shown.push(ShownSource { name: escape::terminal(text.name), parts });
    }
    (citations, shown)
}

/// Returns the quotes of the answer, each with its source.
fn quotes(section: &Section) -> Vec<Fact> {
    match section {
        Section::Council(council) => {
            let quotes = council.citations.iter().map(|evidence| Fact {
                document: evidence.title.clone(),
                start: evidence.span.start,
                end: evidence.span.end,
                quote: evidence.quote.clone(),
            });
            quotes.collect()
        }
        Section::MapReduce(section) => section.findings.clone(),
        Section::Pair(_) | Section::Panel(_) | Section::Approval(_) | Section::Vote(_) => Vec::new(),
    }
}

/// Returns the texts that may be quoted: the documents of the task, and the passages that were found.
fn texts<'a>(state: &'a RunState, records: &'a [Record]) -> Vec<SourceText<'a>> {
    let task = &state.opened().setup.task;
    // The task is quoted as the agents saw it.
    let mut texts = vec![SourceText { name: TASK, start: 0, text: escape::plain(task.prompt.trim()).into() }];
    texts.extend(task.documents.iter().map(|document| SourceText {
        name: &document.name,
        start: 0,
        text: Cow::from(&*document.text),
    }));
    for record in records {
        let Entry::Found(found) = &record.event else { continue };
        for Passage { document, start, text, .. } in &found.passages {
            texts.push(SourceText { name: document, start: *start, text: text.into() });
        }
    }
    texts
}

/// Returns the place of a quote: the number of its text, and the bytes in it.
fn find_place(texts: &[SourceText<'_>], fact: &Fact) -> Option<(usize, Range<usize>)> {
    texts.iter().enumerate().find_map(|(at, text)| {
        let start = fact.start.checked_sub(text.start)?;
        let range = start..start.checked_add((fact.start..fact.end).len())?;
        let is_it = text.name == fact.document && text.text.get(range.clone()) == Some(fact.quote.as_str());
        is_it.then_some((at, range))
    })
}

/// Divides a text at its quotes, and returns the number of the mark for each quote. Where two overlap, the first one is the mark of both.
fn divide(text: &str, mut places: Vec<(usize, Range<usize>)>) -> (Vec<SourcePart>, Vec<(usize, usize)>) {
    places.sort_by_key(|(_, range)| range.start);
    let is_whole = text.len() <= WHOLE_BYTES_MAX;
    let (mut parts, mut marks, mut at) = (Vec::new(), Vec::new(), 0);
    for (number, range) in places {
        if let Some((_, last)) = marks.last().copied()
            && range.start < at
        {
            marks.push((number, last));
            continue;
        }
        marks.push((number, number));
        let from = if is_whole { at } else { floor(text, range.start.saturating_sub(AROUND)).max(at) };
        if from > at {
            // The text behind the quote before is shown too.
            let to = floor(text, at + if at == 0 { 0 } else { AROUND }).min(from);
            push_plain(&mut parts, &text[at..to]);
            if to < from {
                parts.push(SourcePart::gap());
            }
        }
        push_plain(&mut parts, &text[from..range.start]);
        parts.push(SourcePart { quote: Some(number), text: escape::terminal(&text[range.clone()]) });
        at = range.end;
    }
    let end = if is_whole { text.len() } else { floor(text, at + AROUND) };
    push_plain(&mut parts, &text[at..end]);
    if end < text.len() {
        parts.push(SourcePart::gap());
    }
    (parts, marks)
}

fn push_plain(parts: &mut Vec<SourcePart>, text: &str) {
    if !text.is_empty() {
        parts.push(SourcePart { quote: None, text: escape::terminal(text) });
    }
}

impl SourcePart {
    /// Returns the part in place of text that is left out.
    fn gap() -> Self {
        Self { quote: None, text: " … ".to_owned() }
    }
}

/// Returns the last beginning of a character at or before this byte.
fn floor(text: &str, byte: usize) -> usize {
    text.floor_char_boundary(byte.min(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown_parts(text: &str, places: Vec<(usize, Range<usize>)>) -> Vec<(Option<usize>, String)> {
        divide(text, places).0.into_iter().map(|part| (part.quote, part.text)).collect()
    }

    /// Its quotes are marked.
    #[test]
    fn short_source_is_shown_whole() {
        let shown = shown_parts("one two three", vec![(2, 8..13), (1, 4..7)]);
        let part = |quote, text: &str| (quote, text.to_owned());
        assert_eq!(
            shown,
            [part(None, "one "), part(Some(1), "two"), part(None, " "), part(Some(2), "three")]
        );
        assert_eq!(shown_parts("one two", vec![(1, 0..7), (2, 4..7)]), [part(Some(1), "one two")]);
        assert_eq!(
            divide("one two", vec![(1, 0..7), (2, 4..7)]).1,
            [(1, 1), (2, 1)],
            "both lead to one mark"
        );
    }

    #[test]
    fn long_source_shows_surroundings_of_quotes() {
        let text = format!("{}QUOTE{}", "ä".repeat(3_000), "z".repeat(3_000));
        let shown = shown_parts(&text, vec![(1, 6_000..6_005)]);
        let lengths: Vec<usize> = shown.iter().map(|(_, text)| text.len()).collect();
        assert_eq!((shown[2].0, shown[2].1.as_str()), (Some(1), "QUOTE"));
        assert_eq!(lengths, [" … ".len(), AROUND, 5, AROUND, " … ".len()]);
    }
}
