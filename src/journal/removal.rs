//! The removal of old runs from a journal that many runs share.
//!
//! ```text
//!  journal, runs to remove ──► the other lines, byte for byte ──► journal
//!                          └─► the lines behind what was removed ──► list of gaps
//! ```
//!
//! A line that stays keeps its bytes. The chain of its own run is therefore whole, and a digest that a caller has kept is still that of a
//! line. The chain of the file has a gap where lines were removed.
//!
//! The new list is durable before the new journal takes the place of the old one, and names the gaps of both. A process that dies in
//! between leaves a journal that is whole.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use serde::de::IgnoredAny;

use super::chain::Links;
use super::gaps::{GapRule, Gaps};
use super::reader::walk;
use super::{JournalError, Record};
use crate::files::Replacement;
use crypto::Digest;

/// Removes all lines of these runs from a journal that is locked. Returns the number of bytes that are gone. The lock is that of the old
/// file, and ends with it.
///
/// Returns [`JournalError`]; the journal is then as it was.
pub(super) fn remove(mut file: File, path: &Path, runs: &HashSet<String>) -> Result<u64, JournalError> {
    file.rewind().map_err(|source| unwritable(path, source))?;
    let mut new = Replacement::of(path).map_err(|source| unwritable(path, source))?;
    let (mut gaps, mut copied, mut removed) = (Gaps::default(), Ok(()), 0);
    // The number and the digest that the next line has without a gap: in the old file, and in the new one.
    let mut expected = [(0, Digest::ZERO); 2];
    let known = Gaps::of(path, GapRule::OfServer)?;
    walk(&file, path, Links::OfFile, &known, |record: Record<IgnoredAny>, line| {
        let mut bytes = vec![0; line.bytes + 1];
        let (is_removed, follows) = (runs.contains(&record.run), (record.seq, record.prev));
        let files = if is_removed { &mut expected[..1] } else { &mut expected[..] };
        for expected in files {
            if *expected != follows {
                gaps.add(record.seq, record.prev);
            }
            *expected = (record.seq + 1, line.sha256);
        }
        if is_removed {
            removed += bytes.len() as u64;
        } else if copied.is_ok() {
            copied = file.read_exact_at(&mut bytes, line.offset).and_then(|()| new.write_all(&bytes));
        }
        Ok(())
    })?;
    let written = copied.and_then(|()| gaps.write(path)).and_then(|()| new.commit());
    written.map_err(|source| unwritable(path, source))?;
    Ok(removed)
}

fn unwritable(path: &Path, source: std::io::Error) -> JournalError {
    JournalError::io("write beside", path, source)
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::path::PathBuf;

    use proptest::prelude::*;

    use super::*;
    use crate::files::Scratch;
    use crate::journal::chain::Chain;
    use crate::journal::gaps::list_of;
    use crate::journal::{BATCH_FILE, LockedJournal, SharedJournal, read_shared, read_with_gaps};

    /// Makes an empty journal in the folder of a server that removes old runs.
    fn journal_of_server(folder: &Path) -> PathBuf {
        std::fs::write(folder.join(BATCH_FILE), "{\"removes_runs\":true}").unwrap();
        let path = folder.join("journal-0.jsonl");
        File::create(&path).unwrap();
        path
    }

    fn append(path: &Path, runs: &[u8]) {
        drop(SharedJournal::open(path, |_: Record<u8>, _| Ok(())).unwrap());
        let mut chain = Chain::default();
        read_shared(path, |record: Record<u8>, line| {
            chain = Chain { lines: record.seq + 1, head: line.sha256 };
            Ok(())
        })
        .unwrap();
        let mut lines = Vec::new();
        for run in runs {
            chain.append(&run.to_string(), None, *run, &mut lines).unwrap();
        }
        OpenOptions::new().append(true).open(path).unwrap().write_all(&lines).unwrap();
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Lines are removed twice, and others come in between and afterwards.
        #[test]
        fn kept_lines_keep_bytes_and_journal_continues(
            parts in proptest::collection::vec(proptest::collection::vec(0_u8..5, 0..12), 3),
            removed in proptest::collection::vec(proptest::collection::hash_set(0_u8..5, 0..4), 2),
        ) {
            let scratch = Scratch::new(&std::env::temp_dir(), "gaps").unwrap();
            let path = journal_of_server(scratch.path());
            append(&path, &parts[0]);
            for (runs, part) in removed.iter().zip(&parts[1..]) {
                let before = std::fs::read_to_string(&path).unwrap();
                let runs: HashSet<String> = runs.iter().map(u8::to_string).collect();
                let gone = LockedJournal::take(&path).unwrap().remove(&runs).unwrap();
                let after = std::fs::read_to_string(&path).unwrap();
                let stays = |line: &&str| {
                    let record: Record<u8> = serde_json::from_str(line).unwrap();
                    !runs.contains(&record.run)
                };
                let kept: String = before.split_inclusive('\n').filter(stays).collect();
                prop_assert_eq!(&after, &kept);
                prop_assert_eq!(gone, (before.len() - after.len()) as u64);
                append(&path, part);
                read_shared(&path, |_: Record<u8>, _| Ok(())).unwrap();
            }
            let names = std::fs::read_dir(scratch.path()).unwrap().count();
            prop_assert!(names == 3, "the manifest, the journal and its list");
        }
    }

    /// A missing line counts as removed only with a gap in the list.
    #[test]
    fn missing_line_without_gap_is_damage() {
        let scratch = Scratch::new(&std::env::temp_dir(), "gaps").unwrap();
        let path = journal_of_server(scratch.path());
        append(&path, &[1, 2, 1, 3, 1]);
        let whole = std::fs::read_to_string(&path).unwrap();
        LockedJournal::take(&path).unwrap().remove(&["2".to_owned()].into()).unwrap();
        let read = || read_shared(&path, |_: Record<u8>, _| Ok(()));
        read().unwrap();
        // The process died before the journal was replaced.
        std::fs::write(&path, &whole).unwrap();
        read().unwrap();
        let without = |cut: usize| {
            let lines = whole.split_inclusive('\n').enumerate().filter(|(at, _)| *at != cut);
            std::fs::write(&path, lines.map(|(_, line)| line).collect::<String>()).unwrap();
        };
        without(3);
        assert!(matches!(read(), Err(JournalError::Damaged { line: 4, .. })), "{:?}", read());
        // A line in the place of one that is gone is no gap.
        let other = whole.split_inclusive('\n').nth(1).unwrap().replace("\"run\":\"2\"", "\"run\":\"4\"");
        let forged =
            whole.split_inclusive('\n').enumerate().map(|(at, line)| if at == 1 { &other } else { line });
        std::fs::write(&path, forged.collect::<String>()).unwrap();
        assert!(matches!(read(), Err(JournalError::Damaged { line: 3, .. })), "{:?}", read());
        std::fs::remove_file(list_of(&path)).unwrap();
        without(1);
        assert!(matches!(read(), Err(JournalError::Damaged { line: 2, .. })), "{:?}", read());
    }

    /// A list cuts lines out of no other journal than that of a server that removes old runs, unless a person asks for it.
    #[test]
    fn gaps_of_no_server_are_damage() {
        let scratch = Scratch::new(&std::env::temp_dir(), "gaps").unwrap();
        let path = journal_of_server(scratch.path());
        append(&path, &[1, 2, 2, 3, 2, 1]);
        LockedJournal::take(&path).unwrap().remove(&["2".to_owned()].into()).unwrap();
        let read = |rule: GapRule| read_with_gaps(&path, rule, |_: Record<u8>, _| Ok(()));
        let removed = read(GapRule::OfServer).unwrap();
        assert_eq!((removed.places, removed.lines), (2, 3));
        for manifest in ["{}", "{\"removes_runs\":false}", "{"] {
            std::fs::write(scratch.path().join(BATCH_FILE), manifest).unwrap();
            let refused = read(GapRule::OfServer);
            assert!(
                matches!(&refused, Err(JournalError::Damaged { path, .. }) if path.ends_with("journal-0.gaps.json")),
                "{refused:?}"
            );
            assert_eq!(read(GapRule::Any).unwrap(), removed);
        }
    }
}
