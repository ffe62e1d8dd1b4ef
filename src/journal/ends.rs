//! The ends of the runs of a shared journal, found at a glance.
//!
//! The input is the file. The output is the lines that end a run or resume it, and the number of lines that were removed before others.
//! No chain is checked, and only these lines are parsed, so that a journal of any length is read about as fast as its disk. Figures that
//! rest on a journal are derived by [`read_shared`](super::read_shared).

use std::io::BufReader;
use std::path::Path;

use super::gaps::RemovedLines;
use super::reader::take_header;
use super::{Entry, JournalError, Record};
use crate::files::{open_own, read_line};
use crypto::Digest;
use protocol::Outcome;

/// The beginnings of the events that end a run or resume it, as every build writes them.
const MARKS: [&str; 2] = ["\"event\":{\"type\":\"stopped\"", "\"event\":{\"type\":\"resumed\""];

/// Passes the run of each line that ends a run or resumes it to `each`, with the SHA-256 of the line if the run has ended, or `None` if it
/// was interrupted or resumed. Returns the lines that are missing before others.
///
/// Returns [`JournalError::Io`], and [`JournalError::Damaged`] for a line that is too long.
pub fn read_ends(
    path: &Path,
    mut each: impl FnMut(String, Option<Digest>),
) -> Result<RemovedLines, JournalError> {
    let file = open_own(path).map_err(|why| JournalError::reading(path, 1, why))?;
    let mut lines = BufReader::with_capacity(1 << 16, file);
    let (mut line, mut removed) = (Vec::new(), RemovedLines::default());
    let (mut number, mut expected) = (0, 0);
    loop {
        line.clear();
        number += 1;
        read_line(&mut lines, &mut line).map_err(|why| JournalError::reading(path, number, why))?;
        if line.pop_if(|last| *last == b'\n').is_none() {
            return Ok(removed);
        }
        let header = take_header(&line);
        if let Some(seq) = sequence_number(header) {
            removed.add(seq.saturating_sub(expected));
            expected = seq.saturating_add(1);
        }
        let is_marked = MARKS.iter().any(|mark| header.contains(mark));
        if is_marked && let Ok(record) = serde_json::from_slice::<Record>(&line) {
            let has_ended =
                matches!(&record.event, Entry::Stopped { outcome } if *outcome != Outcome::Interrupted);
            each(record.run, if has_ended { Some(Digest::new(&line)) } else { None });
        }
    }
}

/// Returns the number of a line, as its beginning states it.
fn sequence_number(header: &str) -> Option<u64> {
    let (_, after) = header.split_once("\"seq\":")?;
    let end = after.find(|c: char| !c.is_ascii_digit())?;
    after[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Scratch;
    use crate::journal::chain::Chain;

    #[test]
    fn ends_and_missing_lines_are_found() {
        let scratch = Scratch::new(&std::env::temp_dir(), "ends").unwrap();
        let path = scratch.path().join("journal-0.jsonl");
        let ended = |outcome: Outcome| Entry::Stopped { outcome };
        let failed = Outcome::Failed { cause: "the server is gone".to_owned() };
        let (mut chain, mut text) = (Chain::default(), Vec::new());
        for (run, outcome) in [("a", failed.clone()), ("b", Outcome::Interrupted), ("c", failed)] {
            chain.append(run, None, ended(outcome), &mut text).unwrap();
        }
        let text = String::from_utf8(text).unwrap();
        std::fs::write(&path, format!("{text}{{\"torn\":")).unwrap();
        let mut found = Vec::new();
        let removed = read_ends(&path, |run, head| found.push((run, head))).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let end =
            |run: &str, line: Option<&str>| (run.to_owned(), line.map(|line| Digest::new(line.as_bytes())));
        assert_eq!(found, [end("a", Some(lines[0])), end("b", None), end("c", Some(lines[2]))]);
        assert_eq!(removed, RemovedLines::default());
        std::fs::write(&path, format!("{}\n", lines[2])).unwrap();
        let removed = read_ends(&path, |_, _| {}).unwrap();
        assert_eq!((removed.places, removed.lines), (1, 2));
    }
}
