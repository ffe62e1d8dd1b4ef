//! Runs as a table for a person at a terminal.
//!
//! In: what there is to say of each run, the newest first, the time, and the width of the terminal. Out: lines that fit. Nothing
//! is read and nothing is printed here.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use console::{Alignment, pad_str};

/// The fewest characters of a short id.
const SHORT_MIN: usize = 6;

/// The widths of the first columns but for the id, and of the space behind each.
const AGE: usize = 4;
const OUTCOME: usize = 12;
const SPACE: usize = 2;

/// The narrowest question, and the narrowest answer.
const TEXT_MIN: usize = 8;

/// A run.
#[derive(Clone, Debug)]
pub(super) struct RunRow {
    pub(super) id: String,
    pub(super) started: Option<SystemTime>,
    pub(super) outcome: String,
    pub(super) question: String,
    pub(super) answer: String,
}

/// Returns how many of the last characters of an id tell it from all others: ids begin with the time, and runs of one minute
/// begin alike.
pub(super) fn short_length(ids: &[String]) -> usize {
    let longest = ids.iter().map(|id| id.chars().count()).max().unwrap_or(SHORT_MIN);
    let is_unique = |length: &usize| {
        let ends: BTreeSet<&str> = ids.iter().map(|id| end(id, *length)).collect();
        ends.len() == ids.len()
    };
    (SHORT_MIN..longest).find(is_unique).unwrap_or(longest)
}

/// Returns a heading and a line for each run.
pub(super) fn table(rows: &[RunRow], short: usize, now: SystemTime, width: usize) -> Vec<String> {
    let taken = short + AGE + OUTCOME + 4 * SPACE;
    let texts = width.saturating_sub(taken).max(2 * TEXT_MIN);
    let question = texts * 3 / 5;
    let widths = [short, AGE, OUTCOME, question, texts - question];
    let heading = line(["ID", "AGE", "OUTCOME", "QUESTION", "ANSWER"], widths);
    let row = |row: &RunRow| {
        let age =
            row.started.and_then(|started| now.duration_since(started).ok()).map(age).unwrap_or_default();
        line([end(&row.id, short), &age, &row.outcome, &row.question, &row.answer], widths)
    };
    std::iter::once(heading).chain(rows.iter().map(row)).collect()
}

fn line(cells: [&str; 5], widths: [usize; 5]) -> String {
    let cells = cells.iter().zip(widths);
    let cells: Vec<_> = cells.map(|(cell, width)| pad_str(cell, width, Alignment::Left, Some("…"))).collect();
    cells.join(&" ".repeat(SPACE)).trim_end().to_owned()
}

fn end(id: &str, length: usize) -> &str {
    let skipped = id.chars().count().saturating_sub(length);
    id.char_indices().nth(skipped).map_or("", |(at, _)| &id[at..])
}

/// Returns a time that has passed in its largest unit.
fn age(passed: Duration) -> String {
    match passed.as_secs() {
        seconds @ ..60 => format!("{seconds}s"),
        seconds @ ..3_600 => format!("{}m", seconds / 60),
        seconds @ ..86_400 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_into_any_terminal_and_ids_are_as_short_as_they_can_be() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_hours(500_000);
        let row = |id: &str, seconds: u64| RunRow {
            id: id.to_owned(),
            started: Some(now - Duration::from_secs(seconds)),
            outcome: "no_agreement".to_owned(),
            question: "How many of the 漢字 in this rather long question are wide?".to_owned(),
            answer: "Two of them, and neither of the two is needed here.".to_owned(),
        };
        let rows = [
            row("01a2126f-c6c7-76aa-82c2-c991f7d2228a", 7),
            row("01a2126f-c6c7-76aa-82c2-c991e7d2228a", 7_200),
        ];
        let ids: Vec<String> = rows.iter().map(|row| row.id.clone()).collect();
        let short = short_length(&ids);
        assert_eq!(short, 8, "the eighth character from the end is the first that differs");
        for width in [60, 80, 100, 200] {
            let lines = table(&rows, short, now, width);
            assert!(
                lines.iter().all(|line| console::measure_text_width(line) <= width),
                "{width}: {lines:?}"
            );
            assert!(lines[0].starts_with("ID        AGE   OUTCOME       QUESTION"), "{}", lines[0]);
            assert!(lines[1].starts_with("f7d2228a  7s    no_agreement  How many"), "{}", lines[1]);
            assert!(lines[2].starts_with("e7d2228a  2h"), "{}", lines[2]);
        }
        assert_eq!(short_length(&[]), SHORT_MIN);
    }
}
