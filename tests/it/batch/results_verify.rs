//! What the proof of a batch covers: every label of every line of results, every line, and every shard.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crypto::Digest;
use serde_json::{Value, json};

use crate::batch::{MOCK, figures, lines, run_of, tasks};
use crate::support::{Finished, Folder, SENSIBLE, Server, consensus, model};

const RESULTS: &str = "out/results-0.jsonl";

/// Verifies the batch, and returns what was printed.
#[track_caller]
fn verify(folder: &Folder, code: i32) -> Finished {
    Finished::of(consensus(folder).args(["verify", "out"])).exits(code)
}

/// Refuses this file in place of the one that is there, and returns why; what was there is put back.
#[track_caller]
fn refuses(folder: &Folder, name: &str, bytes: &[u8]) -> String {
    let path = folder.path().join(name);
    let whole = std::fs::read(&path).unwrap();
    assert_ne!(whole, bytes, "the test changes nothing");
    std::fs::write(&path, bytes).unwrap();
    let refused = verify(folder, 7).stderr;
    std::fs::write(&path, whole).unwrap();
    refused
}

fn written(rows: &[Value]) -> String {
    rows.iter().map(|row| row.to_string() + "\n").collect()
}

/// A batch with results of two models' names.
fn done() -> Folder {
    let folder = Folder::new();
    tasks(&folder, 3);
    let words = ["--mock", "--answer", "4", "--roleset", "solver_checker", "--seeds", "2", "--model", "a,b"];
    figures(&folder, &words, 0);
    folder
}

#[test]
fn no_label_of_a_result_can_be_changed() {
    let folder = done();
    verify(&folder, 0);
    let rows = lines(&folder, "results-0.jsonl");
    assert_eq!(rows.len(), 12);
    let bends = [
        ("task", json!("4")),
        ("model", json!("other")),
        ("seed", json!(7)),
        ("roleset", json!("writer_physicist")),
        ("protocol", json!("panel")),
        ("made_of", json!("0".repeat(64))),
        ("text", json!("5")),
        ("rounds", json!(9)),
        ("right", json!("yes")),
        ("note", json!("an unknown field")),
    ];
    for (name, value) in bends {
        let mut bent = rows.clone();
        bent[5][name] = value;
        let why = refuses(&folder, RESULTS, written(&bent).as_bytes());
        assert!(
            why.contains("line 6 ") && (why.contains(&format!("`{name}`")) || name == "right"),
            "{name}: {why}"
        );
    }
    // The names of the two models, swapped on all lines.
    let mut swapped = rows.clone();
    for row in &mut swapped {
        row["model"] = json!(if row["model"] == "a" { "b" } else { "a" });
    }
    refuses(&folder, RESULTS, written(&swapped).as_bytes());
    // A label that is gone is no label.
    let mut bare = rows.clone();
    bare[0].as_object_mut().unwrap().remove("made_of");
    refuses(&folder, RESULTS, written(&bare).as_bytes());
}

#[test]
fn repeated_line_agrees_or_is_refused() {
    let folder = done();
    let rows = lines(&folder, "results-0.jsonl");
    let with = |first: Value, second: Value| {
        let mut all = vec![first];
        all.extend(rows[1..].iter().cloned());
        all.push(second);
        written(&all)
    };
    // The answer of a task can change, and change back: then there are lines that differ in nothing else.
    let mut wrong = rows[0].clone();
    wrong["right"] = json!(false);
    for double in [rows[0].clone(), wrong] {
        folder.write(RESULTS, &with(rows[0].clone(), double));
        verify(&folder, 0);
    }
    folder.write(RESULTS, &written(&rows));
    let mut bent = rows[0].clone();
    bent["text"] = json!("5");
    // The line that does not count is compared as well.
    for (first, second) in [(rows[0].clone(), bent.clone()), (bent, rows[0].clone())] {
        let why = refuses(&folder, RESULTS, with(first, second).as_bytes());
        assert!(why.contains("`text` is not what the journal gives"), "{why}");
    }
    // A run that came to no text cannot be right.
    let mut voteless = rows[0].clone();
    voteless["blind_vote"]["sha256"] = Value::Null;
    refuses(&folder, RESULTS, with(rows[0].clone(), voteless).as_bytes());
}

#[test]
fn lines_of_run_follow_its_ends() {
    let folder = Folder::new();
    tasks(&folder, 2);
    folder.write(
        "broken.jsonl",
        "{\"agent\": \"Checker\", \"status\": 401}\n{\"policy\": \"honest\", \"answer\": \"4\"}\n",
    );
    figures(&folder, &["--mock-script", "broken.jsonl", "--roleset", "solver_checker"], 6);
    figures(&folder, &[&MOCK[..], &["--retry", "failed"]].concat(), 0);
    verify(&folder, 0);
    let rows = lines(&folder, "results-0.jsonl");
    let outcomes: Vec<&Value> = rows.iter().map(|row| &row["outcome"]).collect();
    assert_eq!(outcomes, ["failed", "failed", "agreed", "agreed"]);
    // The failure in place of the agreement: an older line must not count again.
    let turned: Vec<Value> = rows.iter().rev().cloned().collect();
    let why = refuses(&folder, RESULTS, written(&turned).as_bytes());
    assert!(why.contains("it follows a line about a later end of the run"), "{why}");
    let mut again = rows.clone();
    again.push(rows[0].clone());
    let why = refuses(&folder, RESULTS, written(&again).as_bytes());
    assert!(why.contains("line 5 is not a result: it follows"), "{why}");
    // Nor can a failure be right.
    let mut right = rows.clone();
    right[0]["right"] = json!(true);
    refuses(&folder, RESULTS, written(&right).as_bytes());
    // Lines of different runs may stand in any order.
    folder.write(RESULTS, &written(&[rows[1].clone(), rows[0].clone(), rows[3].clone(), rows[2].clone()]));
    verify(&folder, 0);
}

#[test]
fn uncounted_shards_are_reported() {
    let folder = Folder::new();
    tasks(&folder, 6);
    for shard in ["0/2", "1/2"] {
        figures(&folder, &[&MOCK[..], &["--shard", shard]].concat(), 0);
    }
    let manifest = folder.path().join("out/batch.json");
    let whole = std::fs::read_to_string(&manifest).unwrap();
    let shrunk = whole.replace("\"shards\": 2", "\"shards\": 1");
    let why = refuses(&folder, "out/batch.json", shrunk.as_bytes());
    assert!(why.contains("-1.jsonl` contradicts the batch: it belongs to shard 1"), "{why}");
    std::fs::write(&manifest, &shrunk).unwrap();
    for format in ["text", "json", "csv", "jsonl"] {
        let said = Finished::of(consensus(&folder).args(["results", "out", "--format", format])).exits(0);
        assert!(said.stderr.contains("it belongs to shard 1"), "{format}: {}", said.stderr);
    }
    std::fs::write(&manifest, &whole).unwrap();
    let said = Finished::of(consensus(&folder).args(["results", "out"])).exits(0);
    assert!(!said.stderr.contains("contradicts"), "{}", said.stderr);
    // More shards than there are: those of the first two are not shared out so.
    let grown = whole.replace("\"shards\": 2", "\"shards\": 3");
    assert!(refuses(&folder, "out/batch.json", grown.as_bytes()).contains("does not belong to shard"));
    // A shard that has not begun is reported; one whose journal alone is gone is refused.
    let out = folder.path().join("out");
    for name in ["journal-1.jsonl", "results-1.jsonl"] {
        std::fs::rename(out.join(name), folder.path().join(name)).unwrap();
    }
    let why = verify(&folder, 7).stderr;
    assert!(why.contains("to shard 1, whose journal is missing"), "{why}");
    for name in ["refused-1.jsonl", "progress-1.json"] {
        std::fs::remove_file(out.join(name)).unwrap();
    }
    let said = verify(&folder, 0).stdout;
    assert!(said.contains("1 shards have not begun, or are missing here"), "{said}");
    // The runs of one shard under the name of the other would count twice.
    std::fs::copy(out.join("journal-0.jsonl"), out.join("journal-1.jsonl")).unwrap();
    assert!(verify(&folder, 7).stderr.contains("does not belong to shard 1/2"));
}

#[test]
fn damaged_batch_files_do_not_verify() {
    let folder = done();
    for (name, bytes) in [
        ("out/batch.json", &b"{\"v\":1,\"sha\xffrds\":1}"[..]),
        ("out/batch.json", b"{\"v\":1,"),
        ("out/batch.json", b"{\"v\":2,\"shards\":1}"),
        ("out/batch.json", b"{\"v\":1,\"shards\":0}"),
        ("out/batch.json", b"{\"v\":1,\"shards\":18446744073709551615}"),
        (RESULTS, b"{\"task\":\"\xff\"}\n"),
        (RESULTS, b"\xff\n"),
        (RESULTS, b"[]\n"),
        ("out/journal-0.jsonl", b"\xff\n"),
        ("out/journal-0.jsonl", b"{}\n"),
    ] {
        refuses(&folder, name, bytes);
    }
    verify(&folder, 0);
}

/// The digest of a column follows from the runs that were begun with it.
#[test]
fn changed_column_digest_is_found() {
    let folder = done();
    let text = std::fs::read_to_string(folder.path().join("out/batch.json")).unwrap();
    let manifest: Value = serde_json::from_str(&text).unwrap();
    for column in [0, 1] {
        let mut changed = manifest.clone();
        changed["columns"][column]["sha256"][0] = json!(Digest::ZERO);
        let why = refuses(&folder, "out/batch.json", changed.to_string().as_bytes());
        assert!(why.contains("was begun with the digest that it notes"), "{why}");
    }
    for at in ["", "/columns/0", "/commands/0", "/data/0"] {
        let mut changed = manifest.clone();
        changed.pointer_mut(at).unwrap()["more"] = json!(true);
        refuses(&folder, "out/batch.json", changed.to_string().as_bytes());
    }
    verify(&folder, 0);
}

#[test]
fn verify_lists_what_is_not_covered() {
    let folder = done();
    let said = verify(&folder, 0).stdout;
    assert!(said.contains("not covered  endpoints, model names, token counts, costs and times"), "{said}");
    assert!(
        said.contains("refused-N.jsonl, progress-N.json and, of batch.json, all but the number"),
        "{said}"
    );
    let said = Finished::of(consensus(&folder).args(["verify", "out", "--format", "json"])).exits(0).stdout;
    let said: Value = serde_json::from_str(&said).unwrap();
    let named = said["not_covered"].as_array().unwrap();
    for name in ["endpoint", "times", "receipts", "labels", "refused", "progress", "batch_notes", "right"] {
        assert!(named.contains(&json!(name)), "{name}: {said}");
    }
    assert_eq!(said["batch"]["ended"], json!(12), "{said}");
}

#[test]
fn rewritten_journal_cannot_name_another_task() {
    let folder = done();
    let mut heads: BTreeMap<String, Digest> = BTreeMap::new();
    let mut prev = Digest::ZERO;
    let mut journal = String::new();
    for mut record in lines(&folder, "journal-0.jsonl") {
        if record["event"]["type"] == "opened" {
            record["event"]["cell"]["task"] = json!("forged");
        }
        record["prev"] = json!(prev);
        record["run_prev"] = json!(heads.get(&run_of(&record)).copied().unwrap_or(Digest::ZERO));
        let line = record.to_string();
        prev = Digest::new(line.as_bytes());
        heads.insert(run_of(&record), prev);
        journal.extend([&line, "\n"]);
    }
    let mut rows = lines(&folder, "results-0.jsonl");
    for row in &mut rows {
        row["task"] = json!("forged");
        row["journal_head"] = json!(heads[&run_of(row)]);
    }
    folder.write("out/journal-0.jsonl", &journal);
    folder.write(RESULTS, &written(&rows));
    let why = verify(&folder, 7).stderr;
    assert!(why.contains("its run has the id of another task, model, arm or seed"), "{why}");
}

#[test]
fn each_call_is_journaled_before_its_request() {
    let folder = Folder::new();
    tasks(&folder, 40);
    let journal = folder.path().join("out/journal-0.jsonl");
    // How many calls the journal knew of when so many requests had come.
    let seen: Arc<Mutex<Vec<(usize, usize)>>> = Arc::default();
    let (say, log) = (model(SENSIBLE), Arc::clone(&seen));
    let server = Server::start(move |request| {
        if request.path.ends_with("/chat/completions") {
            let mut log = log.lock().unwrap();
            let written = std::fs::read_to_string(&journal).unwrap_or_default();
            let asked = written.lines().filter(|line| line.contains("\"type\":\"asked\"")).count();
            let requests = log.len() + 1;
            log.push((requests, asked));
        }
        say(request)
    });
    let url = server.url();
    let words =
        ["--roleset", "writer_physicist", "--model", "tiny-model", "--base-url", &url, "--runs-at-once", "8"];
    figures(&folder, &words, 0);
    let seen = seen.lock().unwrap();
    let late: Vec<&(usize, usize)> = seen.iter().filter(|(requests, asked)| asked < requests).collect();
    assert!(seen.len() > 100 && late.is_empty(), "{} of {} are late: {late:?}", late.len(), seen.len());
    verify(&folder, 0);
}
