//! Records that were changed afterwards: the file of a run or of a batch is bent, and `verify` is asked.
//!
//! In: finished runs of each protocol and a batch, and a bend that is drawn. Out: exit code 7, or 2 for the record of another build,
//! unless README excepts the bend: bytes behind the last line break are a torn line, and lines of results may come twice or in another
//! order. A case that could go either way is counted as such and decides nothing.

mod bend;
mod rechained;

use std::path::Path;
use std::sync::LazyLock;

use fastrand::Rng;
use serde_json::{Value, json};

use crate::honest::{QUESTION, write_change};
use crate::support::{Finished, Folder, batch, consensus, lines, tasks};
use crate::sweep::{TAMPERED_BATCHES, TAMPERED_RUNS, one_of, sweep};

const JOURNAL: &str = "journal.jsonl";
const RESULT: &str = "result.json";

/// What `verify` has to say of a bent record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Expected {
    Refused,
    Accepted(&'static str),
    Either,
}

/// Two agents who differ at first, so that there are prompts that quote.
const TALK: &str = "{\"agent\":\"Writer\",\"policy\":\"stubborn\",\"answer\":\"four\"}
{\"agent\":\"Physicist\",\"policy\":\"sycophant\",\"answer\":\"five\"}
";

/// A finished run, by its folder below `runs` and its two files.
struct Run {
    id: String,
    journal: Vec<u8>,
    result: Vec<u8>,
}

/// One finished run of each protocol.
static RUNS: LazyLock<Vec<Run>> = LazyLock::new(|| {
    let mock = ["--mock", "--answer", "4", "--prompt", QUESTION, "--roleset"];
    let review = ["--mock", "--answer", "approve", "--file", "change.diff", "--prompt", "May it be applied?"];
    let talk = ["--mock-script", "talk.jsonl", "--prompt", QUESTION, "--roleset", "writer_physicist"];
    let run = |words: &[&str]| {
        let folder = Folder::new();
        write_change(&folder);
        folder.write("talk.jsonl", TALK);
        Finished::of(consensus(&folder).args(["run", "--quiet", "--seed", "1"]).args(words)).exits(0);
        let read = |name: &str| std::fs::read(folder.run().join(name)).unwrap();
        let id = folder.run().file_name().unwrap().to_str().unwrap().to_owned();
        Run { id, journal: read(JOURNAL), result: read(RESULT) }
    };
    vec![
        run(&talk),
        run(&[&mock[..], &["council_tripartite"]].concat()),
        run(&[&mock[..], &["panel_personas", "--members", "analyst,optimist,pragmatist"]].concat()),
        run(&[&review[..], &["--roleset", "reviewers_f1"]].concat()),
        run(&[&mock[..], &["vote_number", "--modes", "words,program"]].concat()),
    ]
});

/// Returns what is kept of a journal when its torn last line is cut off.
fn whole_lines(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)]
}

/// A journal is refused if any of its lines is another, or one is gone.
fn of_journal(whole: &[u8], bent: &[u8]) -> Expected {
    if whole_lines(bent) == whole { Expected::Accepted("torn line") } else { Expected::Refused }
}

/// Asks `verify` about a folder, and compares its answer.
#[track_caller]
fn verify(folder: &Folder, which: &str, bend: &str, expected: Expected) -> &'static str {
    let said = Finished::of(consensus(folder).args(["verify", which]));
    let ending = format!("{bend}: exit code {}\n{}{}", said.code, said.stdout, said.stderr);
    match (expected, said.code) {
        (Expected::Refused, 7) => "refused",
        // The name of the program makes it the record of another build, which no build reads.
        (Expected::Refused, 2) if said.stderr.contains("does not read it: use the program") => "refused",
        (Expected::Accepted(why), 0) => why,
        (Expected::Either, 0 | 7) => "could go either way",
        (Expected::Refused | Expected::Accepted(_) | Expected::Either, _) => {
            panic!("{expected:?} by {ending}")
        }
    }
}

/// A chain that was computed anew is refused too, while a torn last line is accepted.
#[test]
fn changed_run_record_fails_verification() {
    let ends = sweep("tampering, runs", TAMPERED_RUNS.of(usize::MAX), 2, |_, draw| {
        let run = one_of(draw, &RUNS);
        let folder = Folder::new();
        let write = |name: &str, bytes: &[u8]| {
            let dir = folder.path().join("runs").join(&run.id);
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(dir.join(name), bytes).unwrap();
        };
        if draw.u8(..4) == 0 {
            // No result names the head of a new chain, so it is left out.
            let (bent, place) = rechained::run(&run.journal, draw);
            write(JOURNAL, &bent);
            verify(&folder, &run.id, &place, Expected::Refused);
            return "refused with a chain computed anew";
        }
        let (mut journal, mut result) = (run.journal.clone(), run.result.clone());
        let (name, expected) = if draw.u8(..3) == 0 {
            (bend::differently(&mut result, draw), Expected::Refused)
        } else {
            let name = bend::differently(&mut journal, draw);
            (name, of_journal(&run.journal, &journal))
        };
        write(JOURNAL, &journal);
        write(RESULT, &result);
        verify(&folder, &run.id, name, expected)
    });
    assert!(ends["refused"] > 0 && ends["refused with a chain computed anew"] > 0, "{ends:?}");
}

/// Returns the files of a finished batch of two models' names, by their paths.
fn finished_batch() -> [(&'static str, Vec<u8>); 3] {
    let folder = Folder::new();
    tasks(&folder, 3);
    let words = ["--mock", "--answer", "4", "--roleset", "solver_checker", "--model", "a,b"];
    Finished::of(&mut batch(&folder, &words)).exits(0);
    ["out/journal-0.jsonl", "out/results-0.jsonl", "out/batch.json"]
        .map(|name| (name, std::fs::read(folder.path().join(name)).unwrap()))
}

/// Lines of results are compared one by one; each must be there, and it may be there twice and anywhere.
fn of_results(whole: &[u8], bent: &[u8]) -> Expected {
    let lines = |bytes: &[u8]| {
        whole_lines(bytes).split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>()
    };
    let read = |line: &Vec<u8>| serde_json::from_slice::<Value>(line).ok().map(but_for_right);
    let (known, found) = (lines(whole), lines(bent));
    let values: Vec<Option<Value>> = known.iter().map(read).collect();
    let found_values: Vec<Option<Value>> = found.iter().map(read).collect();
    let is_whole = values.iter().all(|value| found_values.contains(value));
    if !is_whole || !found_values.iter().all(|value| values.contains(value)) {
        return Expected::Refused;
    }
    if found.iter().all(|line| known.contains(line)) {
        return Expected::Accepted("lines of results doubled or moved");
    }
    // The same in other bytes, and whether the answer is right, which is no matter of the journals.
    Expected::Either
}

fn but_for_right(mut line: Value) -> Value {
    for name in ["right", "blind_right"] {
        if line[name].is_boolean() {
            line[name] = json!(null);
        }
    }
    line
}

/// A manifest says the number of shards, in whatever bytes; what it notes of commands and columns is no matter of the journals.
fn of_manifest(whole: &[u8], bent: &[u8]) -> Expected {
    let read = |bytes: &[u8]| {
        let manifest = serde_json::from_slice::<Value>(bytes).ok()?;
        Some((manifest["v"].clone(), manifest["shards"].clone()))
    };
    if read(whole) == read(bent) { Expected::Either } else { Expected::Refused }
}

/// How a bent file of a batch is judged.
type Judge = fn(&[u8], &[u8]) -> Expected;

/// A new chain is refused too, while lines of results may be doubled or moved.
#[test]
fn changed_batch_record_fails_verification() {
    const JUDGES: [Judge; 3] = [of_journal, of_results, of_manifest];
    let files = finished_batch();
    let ends = sweep("tampering, batches", TAMPERED_BATCHES.of(usize::MAX), 2, |_, draw| {
        let folder = Folder::new();
        std::fs::create_dir(folder.path().join("out")).unwrap();
        for (name, bytes) in &files {
            std::fs::write(folder.path().join(name), bytes).unwrap();
        }
        if draw.u8(..5) == 0 {
            let place = rechained_batch(&folder, draw);
            verify(&folder, "out", &place, Expected::Refused);
            return "refused with a chain computed anew";
        }
        let at = *one_of(draw, &[0, 0, 1, 2]);
        let (name, whole) = &files[at];
        let mut bent = whole.clone();
        let how = bend::differently(&mut bent, draw);
        std::fs::write(folder.path().join(name), &bent).unwrap();
        verify(&folder, "out", &format!("{how} of {name}"), JUDGES[at](whole, &bent))
    });
    assert!(ends["refused"] > 0 && ends["refused with a chain computed anew"] > 0, "{ends:?}");
}

/// Changes a place of the journal, computes its chain anew, and has each result name the new head of its run.
fn rechained_batch(folder: &Folder, draw: &mut Rng) -> String {
    let out: &Path = &folder.path().join("out");
    let (journal, place) = rechained::run(&std::fs::read(out.join("journal-0.jsonl")).unwrap(), draw);
    let heads = rechained::heads(&journal);
    let mut rows = lines(folder, "results-0.jsonl");
    for row in &mut rows {
        row["journal_head"] = json!(heads[row["run"].as_str().unwrap()]);
    }
    std::fs::write(out.join("journal-0.jsonl"), journal).unwrap();
    let rows: String = rows.iter().map(|row| row.to_string() + "\n").collect();
    std::fs::write(out.join("results-0.jsonl"), rows).unwrap();
    place
}
