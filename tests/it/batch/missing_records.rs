//! Records that are missing are reported: rows of results, and runs whose lines were removed from a journal.

use std::time::{Duration, SystemTime};

use consensus::serve::{Pruning, prune};
use crypto::Digest;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::batch::{MOCK, figures, lines, run_of, tasks};
use crate::support::{Finished, Folder, Served, consensus};

fn said(folder: &Folder, words: &[&str], code: i32) -> Finished {
    Finished::of(consensus(folder).args(words)).exits(code)
}

/// A batch of which the rows of two runs are gone.
fn without_two_rows() -> Folder {
    let folder = Folder::new();
    tasks(&folder, 5);
    figures(&folder, &MOCK, 0);
    let results = folder.path().join("out/results-0.jsonl");
    let text = std::fs::read_to_string(&results).unwrap();
    std::fs::write(&results, text.split_inclusive('\n').skip(2).collect::<String>()).unwrap();
    folder
}

#[test]
fn missing_rows_are_reported_in_every_format() {
    let folder = without_two_rows();
    for format in ["text", "json", "jsonl", "csv", "html", "calls", "inspect"] {
        let printed = said(&folder, &["results", "out", "--format", format], 0);
        assert!(
            printed.stderr.contains("2 runs ended without a line of results"),
            "{format}: {}",
            printed.stderr
        );
        let is_data = ["json", "jsonl", "csv", "calls", "inspect"].contains(&format);
        assert!(!is_data || !printed.stdout.contains("ended without"), "{format}: {}", printed.stdout);
    }
    let why = said(&folder, &["verify", "out"], 7).stderr;
    assert!(why.contains("2 runs ended without a line of results"), "{why}");
    // The same command adds them.
    figures(&folder, &MOCK, 0);
    assert!(!said(&folder, &["results", "out"], 0).stderr.contains("ended without"));
    said(&folder, &["verify", "out"], 0);
}

/// A process that has the shard open adds the rows of its runs after their records.
#[test]
fn running_batch_lacks_no_rows() {
    let folder = without_two_rows();
    let journal = std::fs::File::open(folder.path().join("out/journal-0.jsonl")).unwrap();
    journal.lock().unwrap();
    let printed = said(&folder, &["verify", "out"], 0).stdout;
    assert!(printed.contains("2 more ended, and the process that made them has yet to add"), "{printed}");
    assert!(!said(&folder, &["results", "out"], 0).stderr.contains("ended without"));
    // Without that process, the rows of a bundle would be missing for ever. Nothing was changed by anyone.
    let why = said(&folder, &["export", "out", "--bundle", "out.tar.gz"], 2).stderr;
    assert!(why.contains("the batch is running, and 2 runs ended while it was read"), "{why}");
    assert!(!folder.path().join("out.tar.gz").exists());
}

/// Removes the first run from the journal and the results of a batch, and lists the gap. Returns the number of its lines.
fn remove_first_run(folder: &Folder) -> usize {
    let journal = folder.path().join("out/journal-0.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    let all: Vec<&str> = text.lines().collect();
    let records = lines(folder, "journal-0.jsonl");
    let first = run_of(&records[0]);
    let count = records.iter().take_while(|record| run_of(record) == first).count();
    assert!(records[count..].iter().all(|record| run_of(record) != first), "one run after the other");
    std::fs::write(&journal, all[count..].join("\n") + "\n").unwrap();
    let rows = lines(folder, "results-0.jsonl");
    let left: String =
        rows.iter().filter(|row| run_of(row) != first).map(|row| row.to_string() + "\n").collect();
    folder.write("out/results-0.jsonl", &left);
    let prev = Digest::new(all[count - 1].as_bytes());
    let list = json!({"v": 1, "gaps": [{"seq": records[count]["seq"], "prev": prev}]});
    folder.write("out/journal-0.gaps.json", &list.to_string());
    count
}

#[test]
fn gaps_in_a_batch_need_a_flag() {
    let folder = Folder::new();
    tasks(&folder, 3);
    figures(&folder, &[&MOCK[..], &["--runs-at-once", "1"]].concat(), 0);
    let count = remove_first_run(&folder);
    let why = said(&folder, &["verify", "out"], 7).stderr;
    assert!(why.contains("does not say that a server removes old runs"), "{why}");
    assert!(why.contains("--with-gaps"), "{why}");
    let words = format!("runs were removed from the journal: {count} lines in 1 place");
    let printed = said(&folder, &["verify", "out", "--with-gaps"], 0).stdout;
    assert!(printed.starts_with("verified: all 2 results") && printed.contains(&words), "{printed}");
    let printed = said(&folder, &["verify", "out", "--with-gaps", "--format", "json"], 0).stdout;
    let printed: Value = serde_json::from_str(&printed).unwrap();
    let removed = (&printed["batch"]["removed_places"], &printed["batch"]["removed_lines"]);
    assert_eq!(removed, (&json!(1), &json!(count)), "{printed}");
    let damage = format!("the record is damaged: {count} lines of a journal are missing");
    assert!(said(&folder, &["results", "out"], 0).stderr.contains(&damage));
    // A batch does not say of itself that a server removes its runs.
    let manifest = folder.path().join("out/batch.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replacen('{', "{\"removes_runs\": true,", 1)).unwrap();
    said(&folder, &["verify", "out"], 7);
    let why = said(&folder, &["verify", "--with-gaps", "."], 2).stderr;
    assert!(why.contains("--with-gaps is for the folder of a batch or a server"), "{why}");
}

#[test]
fn bundle_of_pruned_server_verifies() {
    let folder = Folder::new();
    let served = Served::start(&folder, &["--mock", "--answer", "4"]);
    for sum in ["2+2", "3+1"] {
        let messages = json!([{"role": "user", "content": format!("How much is {sum}?")}]);
        let said = served.chat(&[], &json!({"model": "consensus/solver_checker", "messages": messages}));
        assert_eq!(said.status, 200, "{said:?}");
    }
    assert_eq!(served.end(Signal::SIGTERM), Some(0));
    let pruned = prune(&folder.path().join("served"), SystemTime::now(), Duration::ZERO).unwrap();
    assert!(matches!(pruned, Pruning::Done(pruned) if pruned.runs == 1), "{pruned:?}");
    said(&folder, &["export", "served", "--bundle", "served.tar.gz"], 0);
    std::fs::create_dir(folder.path().join("there")).unwrap();
    let mut unpack = std::process::Command::new("tar");
    unpack.args(["xzf", "../served.tar.gz"]).current_dir(folder.path().join("there"));
    assert!(unpack.status().unwrap().success());
    let printed = said(&folder, &["verify", "there/served"], 0).stdout;
    assert!(printed.contains("runs were removed from the journal"), "{printed}");
    assert!(said(&folder, &["results", "served"], 0).stderr.contains("runs were removed from the journal"));
    // A gap that the list does not name is damage here too.
    std::fs::remove_file(folder.path().join("there/served/journal-0.gaps.json")).unwrap();
    said(&folder, &["verify", "there/served"], 7);
}
