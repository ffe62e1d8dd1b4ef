//! A change, and what other tools report of it: diffs, lock files, SARIF logs and LCOV tracefiles.
//!
//! In: bytes of such files. Out: whether something was found in them. What is found lies within the change, and there is
//! never more of it than the reader promises; no line that a change brings is hidden from its reviewers.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use consensus::approval::facts::{Coverage, Located, Lockfile, ToolFindings};
use consensus::protocol::review::added_lines;
use consensus::protocol::{Action, Document, Event, Protocol as _, ReplyShape};
use consensus::text::escape;

use super::replies::{Scene, said};

/// Lists of what was found are never longer.
const NAMED_MAX: usize = 50;

/// What a reviewer says to every part, so that it is shown the next one.
const READ: &str = r#"{"findings":[],"summary":"It was read.","verdict":"abstain","confidence":50}"#;

/// A diff.
pub(crate) fn diff(bytes: &[u8]) -> bool {
    let text = &*String::from_utf8_lossy(bytes);
    let added = added_lines(text);
    let signed = text.split('\n').filter(|line| line.starts_with('+')).count();
    assert!(added.len() <= signed, "{} lines are added by {signed}", added.len());
    let Some(prompts) = prompts(text) else { return false };
    let is_plain = |line: &&str| line.len() < 300 && line.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    let is_change = |line: &&str| line.starts_with(['+', '-']);
    // What stands for bytes is not shown.
    if !text.contains("GIT binary patch") {
        for line in text.split('\n').filter(is_plain).filter(is_change) {
            assert!(prompts.contains(&escape::visible(line)), "`{line}` is hidden from the reviewers");
        }
    }
    !added.is_empty()
}

/// Returns all that one reviewer is shown of a change, if it can be reviewed.
fn prompts(diff: &str) -> Option<String> {
    static SCENE: LazyLock<Scene> =
        LazyLock::new(|| Scene::new(include_str!("../../fixtures/rules-2/runs/review/journal.jsonl")));
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

/// A lock file before a change and after it: its name, and each side after a line of its own.
pub(crate) fn lockfile(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let mut parts = text.split("===\n");
    let mut part = || parts.next().unwrap_or_default();
    let (name, before, after) = (part().trim(), part(), part());
    let Some(kind) = Lockfile::from_path(name) else { return false };
    assert!(kind.changes(name, before, before).is_empty(), "what stays the same is no change");
    let (there, mut back) = (kind.changes(name, before, after), kind.changes(name, after, before));
    for change in &mut back {
        std::mem::swap(&mut change.before, &mut change.after);
    }
    assert_eq!(there, back, "the way back is the same way");
    let names: BTreeSet<&str> = there.iter().map(|change| change.name.as_str()).collect();
    assert!(names.len() == there.len() && there.iter().all(|change| change.before != change.after));
    !there.is_empty()
}

/// The lines that the change brings on which there are reports.
fn added() -> Vec<(String, u64)> {
    (1..=3).map(|line| ("src/a.rs".to_owned(), line)).chain([("b.rs".to_owned(), u64::MAX)]).collect()
}

fn is_added(place: &Located) -> bool {
    added().contains(&(place.path.clone(), place.line))
}

/// A SARIF log.
pub(crate) fn sarif(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Ok(found) = ToolFindings::from_sarif(&text, &added()) else { return false };
    let on_new_lines = found.errors + found.warnings + found.notes;
    assert!(on_new_lines <= found.total, "{found:?}");
    assert_eq!(found.told.len() as u64, on_new_lines.min(NAMED_MAX as u64), "{found:?}");
    assert!(found.told.iter().all(|(place, said)| is_added(place) && is_short(said)), "{found:?}");
    assert!(found.tools.iter().all(|tool| is_short(tool)), "{found:?}");
    true
}

/// Whether words of strangers are cut, and cannot act on a terminal.
fn is_short(words: &str) -> bool {
    words.chars().count() <= 100 && !words.chars().any(escape::is_invisible)
}

/// An LCOV tracefile.
pub(crate) fn lcov(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Ok(found) = Coverage::from_lcov(&text, &added()) else { return false };
    assert!(found.covered <= found.lines && found.lines <= added().len() as u64, "{found:?}");
    let named = (found.lines - found.covered).min(NAMED_MAX as u64);
    assert_eq!(found.uncovered.len() as u64, named, "{found:?}");
    assert!(found.uncovered.iter().all(is_added), "{found:?}");
    true
}
