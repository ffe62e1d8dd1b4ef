//! Single runs of every kind are killed, and resumed until they are done; some are killed again while they are resumed.
//!
//! In: the words of a run and its undisturbed result. Out: what `kills` promises, and besides: a session has one line of its run, and
//! what is redacted is in no journal.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{CountingServer, ProcessLife, Started, asked, is_emptied, killed, records, temp};
use crate::honest::{QUESTION, honest, write_change};
use crate::support::{Finished, Folder, READER, SENSIBLE, consensus, mask};
use crate::sweep::{KILLED_RUNS, sweep};

const SECRET: &str = "ann@example.org";

/// A kind of run.
struct Kind {
    name: &'static str,
    say: fn(&Value) -> String,
    words: &'static [&'static str],
}

const PANEL: &str = "analyst,optimist,pragmatist";

const KINDS: [Kind; 9] = [
    Kind { name: "pair", say: SENSIBLE, words: &["--roleset", "writer_physicist", "-p", QUESTION] },
    Kind {
        name: "session",
        say: honest,
        words: &["--roleset", "solver_checker", "--session", "sums", "-p", QUESTION],
    },
    Kind {
        name: "redact",
        say: honest,
        words: &["--roleset", "solver_checker", "--redact", "-p", "How much is 2+2? Tell ann@example.org."],
    },
    Kind { name: "council", say: SENSIBLE, words: &["--roleset", "council_tripartite", "-p", QUESTION] },
    Kind {
        name: "documents",
        say: SENSIBLE,
        words: &["--roleset", "council_tripartite", "--docs", "book.txt", "-p", QUESTION],
    },
    Kind {
        name: "panel",
        say: SENSIBLE,
        words: &["--roleset", "panel_personas", "--members", PANEL, "-p", QUESTION],
    },
    Kind {
        name: "vote",
        say: SENSIBLE,
        words: &["--roleset", "vote_number", "--modes", "words,program", "--stop", "sure", "-p", QUESTION],
    },
    Kind {
        name: "map-reduce",
        say: READER,
        words: &[
            "--roleset",
            "panel_personas",
            "--members",
            "analyst,pragmatist",
            "--thinking",
            "none",
            "-f",
            "book.txt",
            "--map-reduce",
            "--piece-tokens",
            "200",
            "--pieces-at-once",
            "2",
            "-p",
            QUESTION,
        ],
    },
    Kind {
        name: "reviewers",
        say: honest,
        words: &["--roleset", "reviewers_f1", "-f", "change.diff", "-p", "May it be applied?"],
    },
];

/// One run, its folder and its server.
struct RunCase {
    folder: Folder,
    server: CountingServer,
}

impl RunCase {
    fn new(kind: &Kind) -> Self {
        let case = Self { folder: Folder::new(), server: CountingServer::new(kind.say) };
        write_change(&case.folder);
        let paragraph = "The harbour lies in the north, and there is ice in winter. ".repeat(8);
        let facts = ["was lit in 1877", "was kept by Ottilie Brandt", "burned rape oil until 1902"];
        let book = facts.map(|fact| format!("{paragraph}\n\nFACT The lighthouse {fact}.\n"));
        case.folder.write("book.txt", &book.join("\n"));
        case
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = consensus(&self.folder);
        command.args(words).env("TMPDIR", temp(&self.folder)).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn start(&self, kind: &Kind) -> Command {
        let run = ["run", "--model", "tiny-model", "--seed", "1", "--base-url", &self.server.server.url()];
        self.command(&[&run[..], kind.words].concat())
    }

    /// Returns the run's folder, if it has one.
    fn dir(&self) -> Option<PathBuf> {
        let entries = std::fs::read_dir(self.folder.path().join("runs")).ok()?;
        let mut dirs = entries.map(|entry| entry.unwrap().path()).filter(|path| !path.ends_with("sessions"));
        let dir = dirs.next()?;
        assert_eq!(dirs.next(), None, "a second run");
        Some(dir)
    }

    fn records(&self) -> Vec<Value> {
        self.dir().map(|dir| records(&dir.join("journal.jsonl"))).unwrap_or_default()
    }

    /// Returns how the run ended, without what differs between two runs of one kind.
    fn result(&self) -> Value {
        let text = std::fs::read_to_string(self.dir().expect("it has a folder").join("result.json")).unwrap();
        mask(&self.server.mask(&text))
    }
}

/// How a run of a kind ends when nothing disturbs it.
struct Reference {
    life: ProcessLife,
    result: Value,
}

impl Reference {
    fn of(kind: &Kind) -> Self {
        let case = RunCase::new(kind);
        let mut child = Started::by(&mut case.start(kind));
        let life = ProcessLife::of(&mut child, &case.server);
        let code = child.code();
        assert_eq!(code, Some(0), "{} does not agree undisturbed", kind.name);
        assert!(life.chats.len() >= 4, "{} is worth killing: {life:?}", kind.name);
        Self { life, result: case.result() }
    }
}

#[test]
fn killed_run_resumes_to_same_result() {
    let references: Vec<Reference> = KINDS.iter().map(Reference::of).collect();
    let ends = sweep("kills, runs", KILLED_RUNS.of(usize::MAX), 2, |index, draw| {
        let (kind, reference) = (&KINDS[index % KINDS.len()], &references[index % KINDS.len()]);
        let case = RunCase::new(kind);
        let moment = reference.life.moment(draw);
        let label = format!("{} killed at {moment:?}", kind.name);
        let mut child = Started::by(&mut case.start(kind));
        if !killed(&mut child, &case.server, moment) {
            assert_eq!(case.result(), reference.result, "{label}");
            return "had ended";
        }
        if case.records().is_empty() {
            // Nothing was recorded, so nothing was asked.
            assert_eq!(case.server.chats(), 0, "{label}");
            is_emptied(&case.folder);
            return "died before they were recorded";
        }
        let id = case.dir().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        let mut end = "went on";
        if draw.u8(..3) == 0 {
            let mut child = Started::by(&mut case.command(&["resume", &id]));
            if killed(&mut child, &case.server, reference.life.moment(draw)) {
                end = "went on after a second kill";
            }
        }
        Finished::of(case.command(&["resume", &id]).stdout(Stdio::piped()).stderr(Stdio::piped())).exits(0);
        came_to_the_same(&case, reference, &label);
        end
    });
    assert!(ends.contains_key("went on"), "{ends:?}");
}

fn came_to_the_same(case: &RunCase, reference: &Reference, label: &str) {
    assert_eq!(case.result(), reference.result, "{label}");
    let records = case.records();
    let (asked, chats) = (asked(&records), case.server.chats());
    assert!(chats <= asked, "{label}: {chats} requests, and {asked} on record");
    Finished::of(consensus(&case.folder).args(["verify", "--last"])).exits(0);
    Finished::of(consensus(&case.folder).arg("runs")).exits(0);
    let is_secret = |record: &Value| record.to_string().contains(SECRET);
    assert!(!records.iter().any(is_secret), "{label}: what is redacted is in the journal");
    let session = case.folder.path().join("runs/sessions/sums.jsonl");
    if records[0]["event"]["session"].is_object() {
        let lines = std::fs::read_to_string(session).unwrap();
        assert_eq!(lines.lines().count(), 1, "{label}: {lines}");
    }
    is_emptied(&case.folder);
}
