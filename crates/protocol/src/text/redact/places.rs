//! The places of forms in a folded text, and those where a number may begin and end.
//!
//! A form is a regular expression, with a few characters that every match contains. For a number, the input is a text, the bytes with which
//! a kind of number begins, and a function that measures one. The output is the places of the numbers that are not part of a word or a
//! longer number. A trial hardly ever begins inside a word or a longer number. The time is therefore linear in the text, as long as each
//! measurement examines a bounded stretch.

use std::ops::Range;

use regex::Regex;

use super::folded::GAP_BYTE;

/// Compiles a form that is a constant of this program.
pub(super) fn regex(form: &str) -> Regex {
    Regex::new(form).expect("the forms are constants, and a test uses each")
}

/// Compiles pairs of the characters that each text with a form contains, and the form.
pub(super) fn compile_forms(forms: &[(&'static str, &str)]) -> Vec<(&'static str, Regex)> {
    forms.iter().map(|(hint, form)| (*hint, regex(form))).collect()
}

/// Returns the places of forms. If a form has the group `part`, its place is that group alone.
///
/// A search for a few characters is many times faster than a regular expression, so a form costs hardly anything in a text where it cannot
/// match. Each form is searched for separately. One that fails late is not tried again after each match of another, so the time is linear
/// in the text, whatever its content.
pub(super) fn find_forms(forms: &[(&'static str, Regex)], text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (_, form) in forms.iter().filter(|(hint, _)| text.contains(hint)) {
        if form.captures_len() == 1 {
            found.extend(form.find_iter(text).map(|place| place.range()));
        } else {
            let parts = form.captures_iter(text).filter_map(|captures| captures.name("part"));
            found.extend(parts.map(|part| part.range()));
        }
    }
    found
}

/// Tries each byte with which a kind may begin and that does not continue a word, in order and without overlaps.
pub(super) fn each(
    text: &str,
    is_first: impl Fn(u8) -> bool,
    find_at: impl Fn(usize) -> Option<Range<usize>>,
) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(step) = bytes[at..].iter().position(|byte| is_first(*byte)) {
        let start = at + step;
        let place = if may_begin(text, start) { find_at(start) } else { None };
        at = place.as_ref().map_or(start + 1, |place| place.end);
        found.extend(place);
    }
    found
}

/// Tries each byte that is at most `reach` bytes before a gap, in order and without overlaps.
pub(super) fn near_gaps(
    text: &str,
    reach: usize,
    find_at: impl Fn(usize) -> Option<Range<usize>>,
) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(step) = text.as_bytes()[at..].iter().position(|byte| *byte == GAP_BYTE) {
        let gap = at + step;
        let mut start = at.max(gap.saturating_sub(reach));
        while start < gap {
            let place = find_at(start);
            start = place.as_ref().map_or(start + 1, |place| place.end);
            found.extend(place);
        }
        at = start.max(gap + 1);
    }
    found
}

/// Returns true if a number may begin here, judged by the character before it. `12+34` is a sum, so `+34` is not a
/// phone number there.
pub(super) fn may_begin(text: &str, start: usize) -> bool {
    let bytes = text.as_bytes();
    let Some(&before) = start.checked_sub(1).and_then(|last| bytes.get(last)) else { return true };
    match bytes[start] {
        b'+' | b'(' => !before.is_ascii_digit(),
        _ if before.is_ascii() => !before.is_ascii_alphanumeric(),
        _ => !text[..start].chars().next_back().is_some_and(char::is_alphanumeric),
    }
}

/// Returns the place of a number, unless it is part of a longer word or number.
pub(super) fn stands_alone(text: &str, place: Range<usize>, may_be_range: bool) -> Option<Range<usize>> {
    let mut before = text.as_bytes()[..place.start].iter().rev();
    let mut after = text[place.end..].chars();
    let (last, next) = (before.next(), after.next());
    if next.is_some_and(char::is_alphanumeric) {
        return None;
    }
    // The number is only a part if a date, a decimal number or a range continues beside it.
    let is_part = match last {
        Some(b'-') if may_be_range => false,
        Some(b'.' | b',' | b'-' | b'/' | b':') if before.next().is_some_and(u8::is_ascii_digit) => true,
        _ => matches!(next, Some('.' | ',')) && after.next().is_some_and(|c| c.is_ascii_digit()),
    };
    if is_part { None } else { Some(place) }
}
