//! Tables for a person at a terminal, fitted to its width.
//!
//! The input is a heading, rows of cells, some of which may be cut, and the width of the terminal. The output is lines that fit. Nothing
//! is read or printed here.

use std::collections::BTreeSet;
use std::time::Duration;

use console::{Alignment, measure_text_width, pad_str};
use serde_json::Value;

use protocol::text::escape;

/// The smallest length of a short id, in characters.
const SHORT_MIN: usize = 6;

/// The number of spaces after each column.
const SPACE: usize = 2;

/// The smallest width of a column that is cut.
const CUT_MIN: usize = 8;

#[derive(Clone, Debug)]
pub(super) struct Table<const N: usize> {
    pub(super) heading: [&'static str; N],
    pub(super) rows: Vec<[String; N]>,
    /// The share of the remaining width that each column gets if it may be cut; 0 for a column that is shown whole.
    pub(super) shares: [usize; N],
}

impl<const N: usize> Table<N> {
    /// Returns the heading and a line for each row.
    pub(super) fn lines(&self, width: usize) -> Vec<String> {
        let widths = self.widths(width);
        let heading = self.heading.map(str::to_owned);
        std::iter::once(&heading).chain(&self.rows).map(|cells| line(cells, widths)).collect()
    }

    fn widths(&self, width: usize) -> [usize; N] {
        let natural: [usize; N] = std::array::from_fn(|column| {
            let cells = self.rows.iter().map(|row| measure_text_width(&row[column]));
            cells.chain([self.heading[column].len()]).max().unwrap_or_default()
        });
        let whole: usize =
            (0..N).filter(|column| self.shares[*column] == 0).map(|column| natural[column]).sum();
        let mut room = width.saturating_sub(whole + (N - 1) * SPACE);
        let mut shares: usize = self.shares.iter().sum();
        let mut widths = natural;
        // The narrowest columns come first, so that the others get the width that those do not need.
        let mut cut: Vec<usize> = (0..N).filter(|column| self.shares[*column] > 0).collect();
        cut.sort_by_key(|column| natural[*column] / self.shares[*column]);
        for column in cut {
            let fair = room * self.shares[column] / shares.max(1);
            widths[column] = natural[column].min(fair.max(CUT_MIN));
            room = room.saturating_sub(widths[column]);
            shares -= self.shares[column];
        }
        widths
    }
}

/// Returns the number of last characters that tell each id from all others. Ids begin with the time, and those of runs in the same
/// minute begin alike.
pub(super) fn short_length(ids: &[String]) -> usize {
    let longest = ids.iter().map(|id| id.chars().count()).max().unwrap_or(SHORT_MIN);
    for length in SHORT_MIN..longest {
        let ends: BTreeSet<&str> = ids.iter().map(|id| end(id, length)).collect();
        if ends.len() == ids.len() {
            return length;
        }
    }
    longest
}

/// Returns the text of a row's field, harmless to a terminal.
pub(super) fn cell(row: &Value, name: &str) -> String {
    escape::terminal(row[name].as_str().unwrap_or_default())
}

/// Returns a text in one line, harmless to a terminal.
pub(super) fn one_line(text: Option<&str>) -> String {
    escape::terminal(&escape::one_line(text.unwrap_or_default()))
}

/// Returns the last characters of an id.
pub(super) fn end(id: &str, length: usize) -> &str {
    let skipped = id.chars().count().saturating_sub(length);
    id.char_indices().nth(skipped).map_or("", |(at, _)| &id[at..])
}

/// Returns an elapsed time in its largest unit.
pub(super) fn age(passed: Duration) -> String {
    match passed.as_secs() {
        seconds @ ..60 => format!("{seconds}s"),
        seconds @ ..3_600 => format!("{}m", seconds / 60),
        seconds @ ..86_400 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

fn line<const N: usize>(cells: &[String; N], widths: [usize; N]) -> String {
    let cells = cells.iter().zip(widths);
    let cells: Vec<_> = cells.map(|(cell, width)| pad_str(cell, width, Alignment::Left, Some("…"))).collect();
    cells.join(&" ".repeat(SPACE)).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids are as short as they can be while they differ.
    #[test]
    fn table_lines_fit_the_terminal() {
        let ids = ["01a2126f-c6c7-76aa-82c2-c991f7d2228a", "01a2126f-c6c7-76aa-82c2-c991e7d2228a"];
        let short = short_length(&ids.map(str::to_owned));
        assert_eq!(short, 8, "the eighth character from the end is the first that differs");
        let row = |id: &str, seconds| {
            let question = "How many of the 漢字 in this rather long question are wide?";
            let answer = "Two of them, and neither of the two is needed here.";
            [
                end(id, short).to_owned(),
                age(Duration::from_secs(seconds)),
                question.to_owned(),
                answer.to_owned(),
            ]
        };
        let table = Table {
            heading: ["ID", "AGE", "QUESTION", "ANSWER"],
            rows: vec![row(ids[0], 7), row(ids[1], 7_200)],
            shares: [0, 0, 3, 2],
        };
        for width in [60, 80, 100, 200] {
            let lines = table.lines(width);
            assert!(lines.iter().all(|line| measure_text_width(line) <= width), "{width}: {lines:?}");
            assert!(lines[0].starts_with("ID        AGE  QUESTION"), "{}", lines[0]);
            assert!(lines[1].starts_with("f7d2228a  7s   How many"), "{}", lines[1]);
            assert!(lines[2].starts_with("e7d2228a  2h"), "{}", lines[2]);
        }
        assert!(table.lines(200)[1].contains("needed here."), "nothing is cut where there is room");
        assert_eq!(short_length(&[]), SHORT_MIN);
    }
}
