//! A change, and the reports of other tools on it: diffs, lock files, SARIF logs and LCOV tracefiles.
//!
//! In: bytes of such files. Out: whether something was found in them. Each finding lies within the change, and a reader
//! names no more of them than it promises. No changed line is hidden from the reviewers. No git repository is read.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use consensus::approval::facts::{Coverage, FileLine, Lockfile, ToolFindings};
use protocol::review::added_lines;
use protocol::text::escape;
use protocol::{Action, Document, Event, Protocol as _, ReplyShape};

use super::replies::{Scene, said};

/// A reader names so many places at most.
const NAMED_MAX: usize = 50;

/// The review of every part, after which the next part is shown.
const READ: &str = r#"{"findings":[],"summary":"It was read.","verdict":"abstain","confidence":50}"#;

/// Reads a diff.
pub(crate) fn diff(bytes: &[u8]) -> bool {
    let text = &*String::from_utf8_lossy(bytes);
    let added = added_lines(text);
    let signed = text.split('\n').filter(|line| line.starts_with('+')).count();
    assert!(added.len() <= signed, "{} lines are added by {signed}", added.len());
    let Some(prompts) = prompts(text) else { return false };
    let is_plain = |line: &&str| line.len() < 300 && line.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    let is_change = |line: &&str| line.starts_with(['+', '-']);
    // Encoded bytes are not shown.
    if !text.contains("GIT binary patch") {
        for line in text.split('\n').filter(is_plain).filter(is_change) {
            assert!(prompts.contains(&escape::visible(line)), "`{line}` is hidden from the reviewers");
        }
    }
    !added.is_empty()
}

/// Returns the prompts of one reviewer of a change, if the change can be reviewed.
fn prompts(diff: &str) -> Option<String> {
    static SCENE: LazyLock<Scene> = LazyLock::new(|| Scene::new(include_str!("../scenes/review.jsonl")));
    let mut setup = SCENE.setup.clone();
    setup.agents.truncate(1);
    setup.task.documents =
        vec![Document { name: "change.diff".to_owned(), text: diff.into(), redacted: false }];
    setup.check().ok()?;
    let (mut machine, mut event, mut shown) = (setup.machine(), Event::Started, String::new());
    loop {
        let actions = machine.step(&event).expect("it was asked for");
        let Some(Action::Ask(ask)) = actions.into_iter().next() else { return Some(shown) };
        let last = ask.messages.iter().rev().take(2).map(|message| message.content.as_str());
        shown.extend(last);
        let reply = if ask.shape == ReplyShape::Free { said("Verdict: approve") } else { said(READ) };
        event = Event::Replied { call: ask.call, reply };
    }
}

/// Reads a lock file before a change and after it. Its name stands first, and a line `===` before each side.
pub(crate) fn lockfile(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let mut parts = text.split("===\n");
    let mut part = || parts.next().unwrap_or_default();
    let (name, before, after) = (part().trim(), part(), part());
    let Some(kind) = Lockfile::from_path(name) else { return false };
    assert!(kind.changes(name, before, before).is_empty(), "equal sides have no change");
    let (there, mut back) = (kind.changes(name, before, after), kind.changes(name, after, before));
    for change in &mut back {
        std::mem::swap(&mut change.before, &mut change.after);
    }
    assert_eq!(there, back, "the way back is the same way");
    let names: BTreeSet<&str> = there.iter().map(|change| change.name.as_str()).collect();
    assert!(names.len() == there.len() && there.iter().all(|change| change.before != change.after));
    !there.is_empty()
}

/// Returns the new lines of the change that the reports are on.
fn added() -> Vec<(String, u64)> {
    (1..=3).map(|line| ("src/a.rs".to_owned(), line)).chain([("b.rs".to_owned(), u64::MAX)]).collect()
}

fn is_added(place: &FileLine) -> bool {
    added().contains(&(place.path.clone(), place.line))
}

/// Reads a SARIF log.
pub(crate) fn sarif(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Ok(found) = ToolFindings::from_sarif(&text, &added()) else { return false };
    let on_new_lines = found.errors + found.warnings + found.notes;
    assert!(on_new_lines <= found.total, "{found:?}");
    assert_eq!(found.listed.len() as u64, on_new_lines.min(NAMED_MAX as u64), "{found:?}");
    assert!(found.listed.iter().all(|(place, said)| is_added(place) && is_short(said)), "{found:?}");
    assert!(found.tools.iter().all(|tool| is_short(tool)), "{found:?}");
    true
}

/// Whether words of strangers are cut, and cannot act on a terminal.
fn is_short(words: &str) -> bool {
    words.chars().count() <= 100 && !words.chars().any(escape::is_invisible)
}

/// Reads an LCOV tracefile.
pub(crate) fn lcov(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Ok(found) = Coverage::from_lcov(&text, &added()) else { return false };
    assert!(found.covered <= found.lines && found.lines <= added().len() as u64, "{found:?}");
    let named = (found.lines - found.covered).min(NAMED_MAX as u64);
    assert_eq!(found.uncovered.len() as u64, named, "{found:?}");
    assert!(found.uncovered.iter().all(is_added), "{found:?}");
    true
}
