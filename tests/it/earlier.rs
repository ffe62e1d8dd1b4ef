//! What earlier versions of the program wrote stays readable, for ever: it verifies, it can be shown and replayed, and a run that is still
//! open goes on by the rules by which it began.
//!
//! `tests/fixtures/v0.1` holds the records; `tests/fixtures/make.sh` says how they were made.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Finished, Folder, consensus};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v0.1")
}

/// Returns the folders of single runs, by name.
fn runs() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(fixtures().join("runs")).unwrap();
    let mut runs: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    runs.sort();
    assert!(runs.len() >= 18, "{runs:?}");
    runs
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

fn records(run: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(run.join("journal.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the digest of the question of each call.
fn questions(run: &Path) -> BTreeMap<String, String> {
    let asked = records(run).into_iter().map(|record| record["event"].clone());
    let asked = asked.filter(|event| event["type"] == "asked");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    asked.map(|event| (text(&event["call"]), text(&event["sha256"]))).collect()
}

fn result(run: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(run.join("result.json")).unwrap()).unwrap()
}

/// Calls the program with a run folder as its last word.
#[track_caller]
fn call(folder: &Folder, words: &[&str], run: &Path) -> Finished {
    Finished::of(consensus(folder).args(words).arg(run))
}

#[test]
fn every_run_verifies_is_shown_and_is_replayed() {
    let folder = Folder::new();
    for original in runs() {
        let run = folder.path().join(original.file_name().unwrap());
        copy(&original, &run);
        let name = run.display().to_string();
        let outcome = result(&run)["outcome"].as_str().unwrap().to_owned();
        // A replay ends as the run did.
        let replayed = match outcome.as_str() {
            "agreed" => 0,
            "no_agreement" => 3,
            "budget" => 5,
            "interrupted" => 130,
            other => panic!("{name} ended as {other}"),
        };
        for (word, code) in [("verify", 0), ("show", 0), ("replay", replayed)] {
            let finished = call(&folder, &[word], &run);
            assert_eq!(finished.code, code, "{word} {name}: {}{}", finished.stdout, finished.stderr);
        }
        // Without the result, the journal alone is enough.
        std::fs::remove_file(run.join("result.json")).unwrap();
        call(&folder, &["verify"], &run).exits(0);
    }
}

#[test]
fn a_run_that_was_cut_anywhere_asks_what_the_earlier_version_would_have_asked() {
    let folder = Folder::new();
    for original in runs() {
        let before = result(&original);
        if !matches!(before["outcome"].as_str(), Some("agreed" | "no_agreement")) {
            continue;
        }
        let text = std::fs::read_to_string(original.join("journal.jsonl")).unwrap();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let name = original.file_name().unwrap().to_string_lossy().into_owned();
        // Every place of a short run, and a dozen of a long one.
        for cut in (1..lines.len() - 1).step_by(lines.len().div_ceil(12)) {
            let run = folder.path().join(format!("{name}-{cut}"));
            std::fs::create_dir_all(&run).unwrap();
            std::fs::write(run.join("journal.jsonl"), lines[..cut].concat()).unwrap();
            let table = original.join("redactions.json");
            if table.exists() {
                std::fs::copy(table, run.join("redactions.json")).unwrap();
            }
            let code = if before["outcome"] == "agreed" { 0 } else { 3 };
            call(&folder, &["resume", "--quiet"], &run).exits(code);
            let (now, then) = (questions(&run), questions(&original));
            // Members of a panel whose ballots can change nothing any more are not asked, and which these are is a matter of time.
            let is_panel = before["protocol"] == "panel";
            assert!(is_panel || now.keys().eq(then.keys()), "{name} cut after {cut} records");
            for (call, sha256) in now.iter().filter(|(call, _)| then.contains_key(*call)) {
                assert_eq!(Some(sha256), then.get(call), "{name} cut after {cut} records: {call}");
            }
            for key in ["outcome", "how", "text", "sha256", "rounds", "blind_vote"] {
                assert_eq!(result(&run)[key], before[key], "{name} cut after {cut} records: {key}");
            }
            call(&folder, &["verify"], &run).exits(0);
        }
    }
}

#[test]
fn runs_that_were_put_down_are_taken_up() {
    let folder = Folder::new();
    for (name, more) in [("interrupted", &[][..]), ("over-budget", &["--max-tokens-total", "100000"])] {
        let run = folder.path().join(name);
        copy(&fixtures().join("runs").join(name), &run);
        let before = questions(&run);
        call(&folder, &[&["resume", "--quiet"], more].concat(), &run).exits(0);
        assert_eq!(result(&run)["text"], "4", "{name}");
        let now = questions(&run);
        assert!(before.iter().all(|(call, sha256)| now.get(call) == Some(sha256)), "{name}");
        call(&folder, &["verify"], &run).exits(0);
    }
}

#[test]
fn a_batch_verifies_and_goes_on() {
    let folder = Folder::new();
    let batch = folder.path().join("batch");
    copy(&fixtures().join("batch"), &batch);
    std::fs::copy(fixtures().join("tasks.jsonl"), folder.path().join("tasks.jsonl")).unwrap();
    call(&folder, &["verify"], &batch).exits(0);
    let results = |shard: u32| std::fs::read_to_string(batch.join(format!("results-{shard}.jsonl"))).unwrap();
    let (whole, cut) = (results(0), results(1));
    for shard in ["0/2", "1/2"] {
        let words =
            ["batch", "tasks.jsonl", "--quiet", "--roleset", "solver_checker", "--mock", "--answer", "4"];
        Finished::of(consensus(&folder).args(words).args(["--shard", shard, "--out", "batch"])).exits(0);
    }
    assert_eq!(results(0), whole, "what is finished stays as it is");
    assert!(results(1).starts_with(&cut) && results(1).lines().count() == cut.lines().count() + 1);
    call(&folder, &["verify"], &batch).exits(0);
    call(&folder, &["results"], &batch).exits(0);
}

#[test]
fn a_decision_verifies_by_public_keys_alone() {
    let folder = Folder::new();
    copy(&fixtures().join("decision"), folder.path());
    let words = ["verify", "decision.json", "--keys", "keys"];
    let said = Finished::of(consensus(&folder).args(words)).exits(0);
    assert!(
        said.stdout.contains("decision 1, approved") || said.stderr.contains("decision 1, approved"),
        "{}{}",
        said.stdout,
        said.stderr
    );
}

#[test]
fn a_session_goes_on() {
    let folder = Folder::new();
    copy(&fixtures().join("session"), &folder.path().join("runs"));
    let words = [
        "run",
        "--mock",
        "--answer",
        "16",
        "--roleset",
        "solver_checker",
        "--session",
        "sums",
        "--prompt",
        "And twice that?",
    ];
    Finished::of(consensus(&folder).args(words)).exits(0);
    let session = std::fs::read_to_string(folder.path().join("runs/sessions/sums.jsonl")).unwrap();
    assert_eq!(session.lines().count(), 3, "{session}");
    let newest = std::fs::read_dir(folder.path().join("runs")).unwrap().map(|entry| entry.unwrap().path());
    let newest = newest.filter(|path| path.join("journal.jsonl").exists()).max().unwrap();
    let seen = records(&newest)[0]["event"]["setup"]["task"]["documents"].to_string();
    assert!(seen.contains("How much is 2+2?") && seen.contains("And twice that?"), "{seen}");
    call(&folder, &["verify"], &newest).exits(0);
}
