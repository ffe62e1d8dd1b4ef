//! The same command again: what is known of a run is what its journal says, whatever its line of results said before.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::batch::{MOCK, batch, figures, lines, replies, run_of, tasks};
use crate::support::{Act, Finished, Folder, SENSIBLE, Server, consensus, model, trust};

/// A batch of six runs whose provider has failed.
fn failed() -> Folder {
    let folder = Folder::new();
    tasks(&folder, 6);
    folder.write(
        "broken.jsonl",
        "{\"agent\": \"Checker\", \"status\": 401}\n{\"policy\": \"honest\", \"answer\": \"4\"}\n",
    );
    let broken = ["--mock-script", "broken.jsonl", "--roleset", "solver_checker"];
    assert_eq!(figures(&folder, &broken, 6)["ended"]["failed"], 6);
    folder
}

fn retry() -> Vec<&'static str> {
    [&MOCK[..], &["--retry", "failed"]].concat()
}

fn verified(folder: &Folder) -> String {
    Finished::of(consensus(folder).args(["verify", "out"])).exits(0).stdout
}

/// The end of a run holds even if its line of results was not written, and no call is made for it again.
#[test]
fn journal_decides_how_retried_run_ended() {
    let folder = failed();
    let results = folder.path().join("out/results-0.jsonl");
    let before = std::fs::read_to_string(&results).unwrap();
    figures(&folder, &retry(), 0);
    // As if the process had died between the journal and the results.
    std::fs::write(&results, &before).unwrap();
    let why = Finished::of(consensus(&folder).args(["verify", "out"])).exits(7).stderr;
    assert!(why.contains("6 runs ended without a line of results"), "{why}");
    let done = figures(&folder, &MOCK, 0);
    assert_eq!((&done["ended"]["agreed"], &done["calls"]), (&json!(6), &json!(0)), "{done}");
    assert!(verified(&folder).starts_with("verified: all 6 results"));
    // The same where it has failed again.
    let folder = failed();
    let results = folder.path().join("out/results-0.jsonl");
    std::fs::remove_file(&results).unwrap();
    let again = figures(&folder, &MOCK, 6);
    assert_eq!((&again["ended"]["failed"], &again["calls"]), (&json!(6), &json!(0)), "{again}");
    assert_eq!(lines(&folder, "results-0.jsonl").len(), 6);
}

/// A retry that a deadline cuts off gets no new line of results, and verify finds no fault in the record.
#[test]
fn interrupted_retry_continues_and_verifies() {
    let folder = failed();
    folder.write("slow.jsonl", "{\"delay_ms\": 2000, \"policy\": \"honest\", \"answer\": \"4\"}\n");
    let slow = ["--mock-script", "slow.jsonl", "--roleset", "solver_checker", "--retry", "failed"];
    figures(&folder, &[&slow[..], &["--deadline", "300ms"]].concat(), 5);
    assert_eq!(lines(&folder, "results-0.jsonl").len(), 6, "they are under way, and have no new line");
    assert!(verified(&folder).contains("6 more under way or cut off"));
    let done = figures(&folder, &MOCK, 0);
    assert_eq!((&done["ended"]["agreed"], &done["ended"]["failed"]), (&json!(6), &json!(0)), "{done}");
    replies(&folder, "journal-0.jsonl");
    verified(&folder);
}

#[test]
fn a_second_process_on_a_shard_touches_nothing() {
    let folder = Folder::new();
    tasks(&folder, 2);
    figures(&folder, &MOCK, 0);
    let held = std::fs::File::open(folder.path().join("out/journal-0.jsonl")).unwrap();
    held.lock().unwrap();
    // The first one is in the middle of a line.
    let results = folder.path().join("out/results-0.jsonl");
    let torn = std::fs::read_to_string(&results).unwrap() + "{\"task\":";
    std::fs::write(&results, &torn).unwrap();
    let second = Finished::of(&mut batch(&folder, &MOCK)).exits(2);
    assert!(second.stderr.contains("in use by another process"), "{}", second.stderr);
    assert_eq!(std::fs::read_to_string(&results).unwrap(), torn);
}

/// Each later command counts a run that continued although its task had changed, until the task is as before.
#[test]
fn changed_task_is_counted_each_time() {
    let folder = failed();
    let text = std::fs::read_to_string(folder.path().join("tasks.jsonl")).unwrap();
    folder.write("tasks.jsonl", &text.replace("How much is 3 ", "What is 3 "));
    for words in [retry(), MOCK.to_vec(), MOCK.to_vec()] {
        let done = figures(&folder, &words, 0);
        assert_eq!((&done["ended"]["agreed"], &done["changed"]), (&json!(6), &json!(1)), "{done}");
    }
    // They were begun as what the tasks were before.
    folder.write("tasks.jsonl", &text);
    assert_eq!(figures(&folder, &MOCK, 0)["changed"], 0);
}

#[test]
fn results_without_journal_are_refused() {
    let folder = Folder::new();
    tasks(&folder, 6);
    figures(&folder, &MOCK, 0);
    let journal = folder.path().join("out/journal-0.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    let cut: String = text.split_inclusive('\n').take(text.lines().count() / 2).collect();
    for left in [cut, String::new()] {
        std::fs::write(&journal, left).unwrap();
        for mut command in [batch(&folder, &MOCK), {
            let mut command = consensus(&folder);
            command.args(["verify", "out"]);
            command
        }] {
            let refused = Finished::of(&mut command).exits(7);
            assert!(refused.stderr.contains("does not confirm"), "{}", refused.stderr);
        }
    }
    std::fs::write(&journal, text).unwrap();
    assert_eq!(figures(&folder, &MOCK, 0)["calls"], 0);
}

#[test]
fn a_command_that_began_nothing_settles_nothing() {
    let folder = Folder::new();
    tasks(&folder, 4);
    let wrong = ["--mock", "--answer", "4", "--roleset", "nobody"];
    Finished::of(&mut batch(&folder, &wrong)).exits(2);
    figures(&folder, &[&MOCK[..], &["--shard", "0/2"]].concat(), 0);
    let other = Finished::of(&mut batch(&folder, &MOCK)).exits(2);
    assert!(other.stderr.contains("was begun in 2 shards"), "{}", other.stderr);
}

#[test]
fn deadline_ends_batch_on_silent_server() {
    let folder = Folder::new();
    tasks(&folder, 4);
    let server = Server::start(|_| vec![Act::Pause(Duration::from_mins(1))]);
    let url = server.url();
    let words = ["--roleset", "solver_checker", "--model", "m", "--base-url", &url, "--deadline", "500ms"];
    let began = Instant::now();
    let stopped = figures(&folder, &words, 5);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!((&stopped["ended"]["failed"], &stopped["calls"]), (&json!(0), &json!(0)), "{stopped}");
}

/// The runs of the served model all agree, and those of the absent model agree on a retry once its server is there.
#[test]
fn unreachable_model_blocks_no_other_model() {
    // Without repetitions calls fail; with them they wait for the server.
    for retries in ["retries = 0", "retries = 4"] {
        keeps_no_other_from_its_runs(retries);
    }
}

fn keeps_no_other_from_its_runs(retries: &str) {
    let folder = Folder::new();
    tasks(&folder, 40);
    let server = Server::start(model(SENSIBLE));
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = format!(
        "{retries}\n[providers.here]\nbase_url = \"{}\"\n[providers.gone]\nbase_url = \"http://{gone}/v1\"\n",
        server.url()
    );
    folder.write("consensus.toml", &config);
    trust(&folder);
    let words = [
        "--roleset",
        "writer_physicist",
        "--model",
        "gone:tiny-model,here:tiny-model",
        "--runs-at-once",
        "4",
    ];
    let ended = Finished::of(&mut batch(&folder, &words)).exits(6);
    assert!(ended.stderr.contains("further calls would fail"), "{}", ended.stderr);
    let rows = lines(&folder, "results-0.jsonl");
    let on = |model: &str, outcome: &str| {
        rows.iter().filter(|row| row["model"] == model && row["outcome"] == outcome).count()
    };
    assert_eq!(on("here:tiny-model", "agreed"), 40, "all of the other's runs");
    let failed = on("gone:tiny-model", "failed");
    assert!((0..=8).contains(&failed), "{failed} runs have failed; the others are left for another time");
    // They are begun once it is there.
    let server = Server::on_port(gone.port(), model(SENSIBLE));
    let done = figures(&folder, &[&words[..], &["--retry", "failed"]].concat(), 0);
    assert_eq!(done["ended"]["agreed"], 80, "{done}");
    let runs: std::collections::BTreeSet<String> =
        lines(&folder, "results-0.jsonl").iter().map(run_of).collect();
    assert_eq!(runs.len(), 80);
    drop(server);
    let refused =
        Finished::of(&mut batch(&folder, &["--roleset", "writer_physicist", "--model", ","])).exits(2);
    assert!(refused.stderr.contains("--model names no model"), "{}", refused.stderr);
}

/// A command with another number of shards is refused while the first shard has no run yet.
#[test]
fn shard_count_is_settled_before_first_run() {
    let folder = Folder::new();
    // A line that never comes keeps the first shard from its first run.
    let mut first = consensus(&folder);
    first.args(["batch", "-", "--output", "out", "--shard", "0/2"]).args(MOCK).stdin(Stdio::piped());
    let mut first = first.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let claimed = folder.path().join("out/batch.json");
    while !std::fs::read_to_string(&claimed).is_ok_and(|text| text.contains("commands")) {
        assert!(first.try_wait().unwrap().is_none());
        std::thread::yield_now();
    }
    tasks(&folder, 1);
    let other = [&MOCK[..], &["--shard", "1/3"]].concat();
    let refused = Finished::of(&mut batch(&folder, &other)).exits(2).stderr;
    assert!(refused.contains("shard"), "{refused}");
    drop(first.stdin.take());
    assert!(first.wait().unwrap().success());
    assert!(std::fs::read_to_string(&claimed).unwrap().contains("\"shards\": 2"));
}
