//! Numbers with the words that bound them: `at least 3`, `between 2 and 4`, `3+`, `twice`.
//!
//! The input is a piece of a task and a place in it. The output is bounds, and the place behind them. Nothing is known here of the things
//! that are counted.

use super::piece::TaskPiece;
use super::sense::Sense;
use crate::text::constraint::Bounds;

/// A number with the words around it.
#[derive(Clone, Copy, Debug)]
pub(super) struct BoundedNumber {
    pub(super) bounds: Bounds,
    /// The place behind it.
    pub(super) end: usize,
    /// Whether it is a range, or words make it the least or the most.
    pub(super) is_bounded: bool,
    /// Whether a word says that it is meant exactly.
    pub(super) is_exact: bool,
}

/// How often something is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) bounds: Bounds,
    /// The place behind it.
    pub(super) end: usize,
}

/// Reads a number with its bounds.
pub(super) fn read_number(piece: &TaskPiece, start: usize) -> Option<BoundedNumber> {
    let first = piece.sense(start)?;
    let range =
        |min, max, end| BoundedNumber { bounds: Bounds { min, max }, end, is_bounded: true, is_exact: false };
    if first == Sense::Between {
        let (least, most) = (number_at(piece, start + 1)?, number_at(piece, start + 3)?);
        let is_range = matches!(piece.sense(start + 2), Some(Sense::And | Sense::To)) && least <= most;
        return is_range.then(|| range(Some(least), Some(most), start + 4));
    }
    if let Some(bounds) = bounds_of(first, || number_at(piece, start + 1)) {
        return Some(BoundedNumber { bounds, end: start + 2, is_bounded: true, is_exact: false });
    }
    let is_exact = first == Sense::Exactly;
    let at = start + usize::from(is_exact);
    let count = number_at(piece, at)?;
    let end = at + 1;
    let found = match (piece.sense(end), number_at(piece, end + 1)) {
        (Some(Sense::To | Sense::Or | Sense::Sign('-' | '–')), Some(most)) if count < most => {
            range(Some(count), Some(most), end + 2)
        }
        (Some(Sense::Sign('+') | Sense::OrMore), _) => range(Some(count), None, end + 1),
        (Some(Sense::OrLess), _) => range(None, Some(count), end + 1),
        (next, _) => BoundedNumber {
            bounds: Bounds { min: Some(count), max: Some(count) },
            // A hyphen before the unit.
            end: end + usize::from(next == Some(Sense::Sign('-'))),
            is_bounded: false,
            is_exact,
        },
    };
    Some(found)
}

/// Reads how often something is: `at least 3 times`, `twice`, `3 to 5 times`.
pub(super) fn read_times(piece: &TaskPiece, start: usize) -> Option<Times> {
    let often = |at: usize| match piece.sense(at) {
        Some(Sense::Often(count)) => Some(count),
        _ => None,
    };
    if let Some(count) = often(start) {
        let is_most = piece.sense(start + 1) == Some(Sense::OrLess);
        let is_least = piece.sense(start + 1) == Some(Sense::OrMore);
        let bounds = if is_most {
            Bounds { min: None, max: Some(count) }
        } else {
            Bounds { min: Some(count), max: None }
        };
        return Some(Times { bounds, end: start + 1 + usize::from(is_most || is_least) });
    }
    if let Some(count) = often(start + 1) {
        let first = piece.sense(start)?;
        let exact = Bounds { min: Some(count), max: Some(count) };
        let bounds = if matches!(first, Sense::Exactly | Sense::Only) {
            exact
        } else {
            bounds_of(first, || Some(count))?
        };
        return Some(Times { bounds, end: start + 2 });
    }
    let mut number = read_number(piece, start)?;
    if piece.sense(number.end) != Some(Sense::Times) {
        return None;
    }
    let mut end = number.end + 1;
    match piece.sense(end) {
        Some(Sense::OrMore) if !number.is_bounded => (number.bounds.max, end) = (None, end + 1),
        Some(Sense::OrLess) if !number.is_bounded => (number.bounds.min, end) = (None, end + 1),
        // Often enough is meant, and once more is no fault.
        _ if !number.is_bounded && !number.is_exact => number.bounds.max = None,
        _ => {}
    }
    Some(Times { bounds: number.bounds, end })
}

/// Returns a number that is not zero.
fn number_at(piece: &TaskPiece, at: usize) -> Option<usize> {
    match piece.sense(at) {
        Some(Sense::Number(count)) if count > 0 => Some(count),
        _ => None,
    }
}

/// Returns the bounds that a relation makes of a number: `more than` and 3.
fn bounds_of(relation: Sense, count: impl FnOnce() -> Option<usize>) -> Option<Bounds> {
    match relation {
        Sense::AtLeast => Some(Bounds { min: Some(count()?), max: None }),
        Sense::AtMost => Some(Bounds { min: None, max: Some(count()?) }),
        Sense::Above => Some(Bounds { min: Some(count()? + 1), max: None }),
        Sense::Below => Some(Bounds { min: None, max: Some(count()? - 1) }),
        _ => None,
    }
}
