//! Files that the program wrote once and reads again: the journal of a run, and the shards of a batch.
//!
//! In: bytes of such files. Out: whether all their claims can be derived again. A changed line breaks the chain of its
//! journal, so each input is read a second time with a chain that fits, as a forger would write it. Each call has a folder
//! of its own, which is gone when the call ends.

use std::collections::BTreeMap;
use std::path::Path;

use consensus::batch::{self, Shard, ShardOf};
use consensus::engine::RunState;
use consensus::files::Scratch;
use consensus::journal::{self, Entry, FILE_NAME, Journal, Record};
use consensus::program::PROGRAM;
use consensus::report::{RunResult, transcript};
use crypto::Digest;

/// The names of the files of a batch. One stands in the line before each file.
const FILES: [&str; 3] = ["batch.json", "journal-0.jsonl", "results-0.jsonl"];

/// Reads the journal of one run.
pub(crate) fn journal(bytes: &[u8]) -> bool {
    let folder = Scratch::new(&std::env::temp_dir(), "fuzz").expect("there is room for a folder");
    let path = folder.path().join(FILE_NAME);
    let as_it_is = holds(&path, bytes);
    holds(&path, &chained(bytes).0) | as_it_is
}

/// Whether a journal is read and leads to its end.
fn holds(path: &Path, bytes: &[u8]) -> bool {
    std::fs::write(path, bytes).expect("there is room for a file");
    let Ok(journal) = journal::read::<Entry>(path) else { return false };
    let Journal { records, head, whole_bytes, torn_bytes, is_excerpt, .. } = journal;
    assert_eq!(whole_bytes + torn_bytes, bytes.len() as u64, "each byte counts, or is told as torn");
    let mut shared = Vec::new();
    let walked = journal::read_shared(path, |record: Record, line| {
        let is_last = line.number == records.len() as u64;
        assert!(is_excerpt || (record.seq + 1, line.sha256 == head) == (line.number, is_last));
        shared.push(record);
        Ok(())
    });
    // The lines of one run are no whole chain of a shared journal.
    assert!(is_excerpt || walked.is_ok() && shared == records, "both readers read the same");
    for record in &records {
        let written = serde_json::to_string(record).expect("a record has a JSON form");
        let again: Record = serde_json::from_str(&written).expect("a written record is read");
        assert_eq!(again, *record);
    }
    let Ok(state) = RunState::replay(&records) else { return false };
    let result = RunResult::new(&state, head).to_json();
    assert!(serde_json::from_str::<serde_json::Value>(&result).is_ok(), "a result is JSON");
    assert!(transcript(&records).is_ok(), "a journal that verifies can be shown");
    true
}

/// Returns the same lines with numbers, chains and a program that fit, and the head of each run.
fn chained(bytes: &[u8]) -> (Vec<u8>, BTreeMap<String, Digest>) {
    let (mut out, mut head, mut heads) = (Vec::new(), Digest::ZERO, BTreeMap::new());
    for (number, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let line = String::from_utf8_lossy(line);
        // The seeds were written by an earlier build.
        let own = between(&line, "\"program\":\"", |c| c != '"', PROGRAM);
        let numbered = between(&own, "\"seq\":", |c| c.is_ascii_digit(), &number.to_string());
        let line = between(&numbered, "\"prev\":\"", |c| c.is_ascii_hexdigit(), &head.to_string());
        let line = with_head(&line, "\"run_prev\":\"", &heads);
        head = Digest::new(line.trim_end_matches('\n').as_bytes());
        heads.insert(run_of(&line).to_owned(), head);
        out.extend(line.bytes());
    }
    (out, heads)
}

/// Returns the run that a line names.
fn run_of(line: &str) -> &str {
    let after = line.split_once("\"run\":\"").map_or("", |(_, after)| after);
    after.split('"').next().unwrap_or_default()
}

/// Puts the head of the line's run after a mark.
fn with_head(line: &str, mark: &str, heads: &BTreeMap<String, Digest>) -> String {
    let head = heads.get(run_of(line)).copied().unwrap_or(Digest::ZERO);
    between(line, mark, |c| c.is_ascii_hexdigit(), &head.to_string())
}

/// Puts a text in place of the signs after a mark, where the mark stands first.
fn between(line: &str, mark: &str, belongs: fn(char) -> bool, text: &str) -> String {
    let Some((before, after)) = line.split_once(mark) else { return line.to_owned() };
    format!("{before}{mark}{text}{}", after.trim_start_matches(belongs))
}

/// Reads the folder of a batch. Each of its files stands after a line with its name.
pub(crate) fn batch(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let parts = text.split("=== ").filter_map(|part| part.split_once('\n'));
    let parts: Vec<(&str, &str)> = parts.filter(|(name, _)| FILES.contains(name)).collect();
    let scratch = Scratch::new(&std::env::temp_dir(), "fuzz").expect("there is room for a folder");
    // The scratch folder itself is locked, and a shard waits until its own folder is not.
    let folder = scratch.path().join("batch");
    std::fs::create_dir(&folder).expect("there is room for a folder");
    let of_name = |name: &str| parts.iter().rev().find(|(of, _)| *of == name).map(|(_, content)| *content);
    let mut heads = BTreeMap::new();
    for name in FILES {
        let Some(content) = of_name(name) else { continue };
        let content = if name == FILES[1] {
            let (journal, found) = chained(content.as_bytes());
            heads = found;
            journal
        } else {
            let lines =
                content.split_inclusive('\n').map(|line| with_head(line, "\"journal_head\":\"", &heads));
            lines.collect::<String>().into_bytes()
        };
        std::fs::write(folder.join(name), content).expect("there is room for a file");
    }
    let verified = batch::verify(&folder, &mut |_| Ok(()));
    let mut rows = 0;
    let read = batch::results(&folder, |row| {
        assert!(serde_json::to_value(row.flat()).is_ok(), "a row has a JSON form");
        rows += 1;
    });
    let Ok(verified) = verified else { return false };
    assert!(read.is_ok() && rows >= verified.ended, "each run that has ended has its row");
    if verified.absent_shards == 0 {
        let opened = Shard::open(&folder, ShardOf { index: 0, count: 1 });
        assert!(opened.is_ok(), "a batch that verifies can go on: {:?}", opened.err());
        drop(opened);
        let again = batch::verify(&folder, &mut |_| Ok(()));
        assert_eq!(again.ok(), Some(verified), "an opened batch makes the same claims");
    }
    true
}
