//! What earlier versions of the program wrote stays readable, for ever: it verifies, it can be shown and replayed, and a run that is still
//! open goes on by the rules by which it began.
//!
//! `tests/fixtures` holds the records, a folder for each version of the rules; `make.sh` there says how they were made.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use consensus::approval::KeyFolder;
use consensus::approval::node::Node;
use consensus::bft::Membership;
use serde_json::Value;

use crate::support::{Finished, Folder, consensus};

/// Returns a folder of records for each version of the rules.
fn versions() -> [PathBuf; 4] {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    ["v0.1", "rules-2", "rules-3", "rules-4"].map(|name| fixtures.join(name))
}

/// Returns the folders of single runs of every version, and their names.
fn runs() -> Vec<(String, PathBuf)> {
    let mut runs = Vec::new();
    for version in versions() {
        let before = runs.len();
        for entry in std::fs::read_dir(version.join("runs")).unwrap() {
            let path = entry.unwrap().path();
            let parts = [&version, &path].map(|path| path.file_name().unwrap().to_string_lossy());
            runs.push((parts.join("-"), path));
        }
        assert!(runs.len() >= before + 18, "{runs:?}");
    }
    runs.sort();
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

/// Returns how a run ended; one that was ended at once has no result.
fn outcome(run: &Path) -> String {
    if !run.join("result.json").exists() {
        return "interrupted".to_owned();
    }
    result(run)["outcome"].as_str().unwrap().to_owned()
}

/// Calls the program with a run folder as its last word.
#[track_caller]
fn call(folder: &Folder, words: &[&str], run: &Path) -> Finished {
    Finished::of(consensus(folder).args(words).arg(run))
}

#[test]
fn every_run_verifies_is_shown_and_is_replayed() {
    let folder = Folder::new();
    for (name, original) in runs() {
        let run = folder.path().join(&name);
        copy(&original, &run);
        // A replay ends as the run did.
        let replayed = match outcome(&run).as_str() {
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
        let _ = std::fs::remove_file(run.join("result.json"));
        call(&folder, &["verify"], &run).exits(0);
    }
}

#[test]
fn a_run_that_was_cut_anywhere_asks_what_the_earlier_version_would_have_asked() {
    let folder = Folder::new();
    for (name, original) in runs() {
        if !matches!(outcome(&original).as_str(), "agreed" | "no_agreement") {
            continue;
        }
        let before = result(&original);
        let text = std::fs::read_to_string(original.join("journal.jsonl")).unwrap();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
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
    for (name, more) in [("interrupted", &[][..]), ("over-budget", &["--max-tokens-total", "100000"])] {
        for version in versions() {
            let folder = Folder::new();
            let run = folder.path().join(name);
            copy(&version.join("runs").join(name), &run);
            let before = questions(&run);
            call(&folder, &[&["resume", "--quiet"], more].concat(), &run).exits(0);
            assert_eq!(result(&run)["text"], "4", "{name}");
            let now = questions(&run);
            assert!(before.iter().all(|(call, sha256)| now.get(call) == Some(sha256)), "{name}");
            call(&folder, &["verify"], &run).exits(0);
        }
    }
}

#[test]
fn a_batch_verifies_and_goes_on() {
    for version in versions() {
        let folder = Folder::new();
        let batch = folder.path().join("batch");
        copy(&version.join("batch"), &batch);
        std::fs::copy(version.join("tasks.jsonl"), folder.path().join("tasks.jsonl")).unwrap();
        call(&folder, &["verify"], &batch).exits(0);
        let results =
            |shard: u32| std::fs::read_to_string(batch.join(format!("results-{shard}.jsonl"))).unwrap();
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
}

#[test]
fn a_vote_is_played_from_a_bank_of_an_earlier_version() {
    let banks = versions().map(|version| version.join("bank"));
    let banks: Vec<_> = banks.iter().filter(|bank| bank.exists()).collect();
    assert!(!banks.is_empty());
    for bank in banks {
        let version = bank.parent().unwrap().to_string_lossy().rsplit('-').next().unwrap().to_owned();
        let folder = Folder::new();
        copy(bank, &folder.path().join("bank"));
        std::fs::copy(bank.with_file_name("tasks.jsonl"), folder.path().join("tasks.jsonl")).unwrap();
        call(&folder, &["verify"], &folder.path().join("bank")).exits(0);
        let words = ["batch", "tasks.jsonl", "--quiet", "--from-bank", "bank", "--roleset", "vote_number"];
        let played = ["--modes", "words,program", "--samples-max", "4", "--out", "played"];
        Finished::of(consensus(&folder).args(words).args(played)).exits(0);
        call(&folder, &["verify"], &folder.path().join("played")).exits(0);
        let results = std::fs::read_to_string(folder.path().join("played/results-0.jsonl")).unwrap();
        assert_eq!(results.lines().count(), 6, "{results}");
        // A bank that a later version has continued is played as far as it follows one version.
        let tasks = std::fs::read_to_string(folder.path().join("tasks.jsonl")).unwrap();
        folder.write("tasks.jsonl", &format!("{tasks}{}\n", r#"{"id": 7, "prompt": "How much is 7 + 1?"}"#));
        let draw = ["--bank", "bank", "--words", "4", "--programs", "2", "--mock", "--answer", "8"];
        let words = ["batch", "tasks.jsonl", "--quiet", "--roleset", "vote_number"];
        Finished::of(consensus(&folder).args(words).args(draw)).exits(0);
        let played = ["--from-bank", "bank", "--samples-max", "4", "--out", "again"];
        Finished::of(consensus(&folder).args(words).args(played)).exits(2);
        let refused = std::fs::read_to_string(folder.path().join("again/refused-0.jsonl")).unwrap();
        let why = format!("follow version 5 of the rules, and most follow version {version}");
        assert!(refused.contains(&why), "{refused}");
    }
}

#[test]
fn a_decision_verifies_by_public_keys_alone() {
    for version in versions() {
        let folder = Folder::new();
        copy(&version.join("decision"), folder.path());
        let words = ["verify", "decision.json", "--keys", "keys"];
        let said = Finished::of(consensus(&folder).args(words)).exits(0);
        assert!(
            said.stdout.contains("decision 1, approved") || said.stderr.contains("decision 1, approved"),
            "{}{}",
            said.stdout,
            said.stderr
        );
    }
}

#[test]
fn a_session_goes_on() {
    for version in versions() {
        let folder = Folder::new();
        copy(&version.join("session"), &folder.path().join("runs"));
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
        let newest =
            std::fs::read_dir(folder.path().join("runs")).unwrap().map(|entry| entry.unwrap().path());
        let newest = newest.filter(|path| path.join("journal.jsonl").exists()).max().unwrap();
        let seen = records(&newest)[0]["event"]["setup"]["task"]["documents"].to_string();
        assert!(seen.contains("How much is 2+2?") && seen.contains("And twice that?"), "{seen}");
        call(&folder, &["verify"], &newest).exits(0);
    }
}

#[test]
fn the_log_of_a_node_is_read_again() {
    for nodes in versions().map(|version| version.join("nodes")).into_iter().filter(|nodes| nodes.exists()) {
        let folder = Folder::new();
        for name in ["Quality", "Security", "Performance", "Compatibility", "orchestrator"] {
            let own = folder.path().join(name);
            copy(&nodes.join(name), &own);
            // Git does not keep it from other readers.
            let key = own.join(format!("{name}.key"));
            std::fs::set_permissions(key, std::fs::Permissions::from_mode(0o600)).unwrap();
            let keys = KeyFolder::open(&own).unwrap();
            let log = std::fs::read_dir(own.join("decisions")).unwrap().next().unwrap().unwrap().path();
            let log = records(&log.join("peers").join(name));
            let chain = log[0]["run"].as_str().unwrap().parse().unwrap();
            let membership = Arc::new(Membership::new(chain, keys.roster().clone()).unwrap());
            let (_, me, seal, place) = keys.seat(name, &membership).unwrap();
            let node = Node::open(&place, &membership, (me, seal)).unwrap();
            assert_eq!(node.known(), 1, "{name}");
        }
    }
}
