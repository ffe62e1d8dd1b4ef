//! What a server says of its runs: the list, the lines of their journal, and the lines as they come.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use consensus::serve::{Pruning, prune};
use crypto::Digest;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::{ReplyDoor, behind, body, listed, removed_before};
use crate::support::{Answer, Finished, Folder, Served, answer, consensus};

/// An event of a stream of records.
#[derive(Debug, PartialEq)]
struct Recorded {
    id: usize,
    kind: String,
    record: Value,
}

/// Returns the events of a stream of records.
#[track_caller]
fn recorded(said: &Answer) -> Vec<Recorded> {
    let field = |event: &str, name: &str| {
        let value = event.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")).map(str::to_owned));
        value.unwrap_or_else(|| panic!("no {name}: {event}"))
    };
    let whole = said.body.split("\n\n").filter(|event| !event.is_empty() && !event.starts_with(':'));
    whole
        .map(|event| Recorded {
            id: field(event, "id").parse().unwrap(),
            kind: field(event, "event"),
            record: serde_json::from_str(&field(event, "data")).unwrap(),
        })
        .collect()
}

#[test]
fn client_can_verify_journal_of_run() {
    let folder = Folder::new();
    let served = Served::start(&folder, &["--mock", "--answer", "4"]);
    // The lines of three runs are mixed in the file of the server.
    let ask = body("solver_checker", "How much is 2+2?");
    let said: Vec<Answer> = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..3).map(|_| scope.spawn(|| served.chat(&[], &ask))).collect();
        asked.into_iter().map(|asked| asked.join().unwrap()).collect()
    });
    for said in said {
        let said = said.json();
        let journal = served.ask(&format!("GET /v1/runs/{}/journal", said["id"].as_str().unwrap()), &[], "");
        assert!(journal.head.contains("application/x-ndjson"), "{}", journal.head);
        folder.write("mine/journal.jsonl", &journal.body);
        let verified = Finished::of(consensus(&folder).args(["verify", "mine"])).exits(0);
        let head = said["consensus"]["journal_head"].as_str().unwrap();
        assert!(verified.stdout.contains(head), "the answer names the head of what was verified");
        Finished::of(consensus(&folder).args(["show", "mine"])).exits(0);
        // The run goes on at the server alone.
        let resumed = Finished::of(consensus(&folder).args(["resume", "mine"])).exits(2);
        assert!(resumed.stderr.contains("the run goes on only there"), "{}", resumed.stderr);

        // A line that is changed, or left out, is seen.
        let lines: Vec<&str> = journal.body.lines().collect();
        folder.write("mine/journal.jsonl", &journal.body.replacen("2+2", "2+3", 1));
        Finished::of(consensus(&folder).args(["verify", "mine"])).exits(7);
        folder.write("mine/journal.jsonl", &[&lines[..1], &lines[2..], &[""]].concat().join("\n"));
        Finished::of(consensus(&folder).args(["verify", "mine"])).exits(7);
    }
    assert_eq!(served.end(Signal::SIGTERM), Some(0));
    Finished::of(consensus(&folder).args(["verify", "served"])).exits(0);
}

/// The records of a run come as they are written.
#[test]
fn record_stream_resumes_where_client_left() {
    let (folder, door) = (Folder::new(), Arc::new(ReplyDoor::default()));
    let llm = behind(&door);
    let served = Served::start(&folder, &["--base-url", &llm.url(), "--model", "m"]);
    let asked = served.send_chat(&[], &body("writer_physicist", "How much is 2+2?"));
    // The list names the run while its first calls are in the air.
    let run = loop {
        let list = served.ask("GET /v1/runs", &[], "").json();
        if let Some(run) = list["data"][0]["run"].as_str() {
            assert_eq!(list["data"][0]["status"], "running");
            break run.to_owned();
        }
    };
    while llm.chats().len() < 2 {
        std::thread::yield_now();
    }
    let early = served.send(&format!("GET /v1/runs/{run}/events"), &[], "");
    let mut seen = vec![0; 1 << 16];
    let mut has_come = || {
        let count = early.peek(&mut seen).unwrap();
        String::from_utf8_lossy(&seen[..count]).contains("event: asked")
    };
    while !has_come() {
        std::thread::yield_now();
    }
    door.open();
    assert_eq!(answer(asked).status, 200);
    let all = recorded(&answer(early));
    assert_eq!(all.iter().map(|event| event.id).collect::<Vec<_>>(), (0..all.len()).collect::<Vec<_>>());
    assert_eq!((all[0].kind.as_str(), all[all.len() - 1].kind.as_str()), ("opened", "stopped"));
    let journal = served.ask(&format!("GET /v1/runs/{run}/journal"), &[], "").body;
    let lines: Vec<Value> = journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(all.iter().map(|event| event.record.clone()).collect::<Vec<_>>(), lines);

    // A client that comes again gets the rest, and the answer to one that has all asks it not to come again.
    let from = |last: usize| {
        served.ask(&format!("GET /v1/runs/{run}/events"), &[&format!("Last-Event-ID: {last}")], "")
    };
    assert_eq!(recorded(&from(1)), all[2..]);
    assert_eq!(from(all.len() - 1).status, 204);
    assert_eq!(served.ask(&format!("GET /v1/runs/{run}/events"), &["Last-Event-ID: x"], "").status, 400);
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}-token-of-sixteen")
}

/// Returns the runs on a page of the list.
fn runs_of(page: &Value) -> Vec<Value> {
    page["data"].as_array().unwrap().iter().map(|row| row["run"].clone()).collect()
}

/// The list of runs has pages.
#[test]
fn run_list_shows_only_own_runs() {
    let folder = Folder::new();
    folder.write("tokens", "a-token-of-sixteen\nb-token-of-sixteen\nc-token-of-sixteen\n");
    let served = Served::start(&folder, &["--mock", "--answer", "4", "--token-file", "tokens"]);
    let asked: Vec<Value> = ["a", "a", "b", "a"]
        .iter()
        .map(|token| served.chat(&[&bearer(token)], &body("solver_checker", "How much is 2+2?")).json())
        .collect();
    let run = |at: usize| asked[at]["consensus"]["run"].clone();
    let page =
        |token: &str, query: &str| served.ask(&format!("GET /v1/runs{query}"), &[&bearer(token)], "").json();
    let first = page("a", "?limit=2");
    assert_eq!(runs_of(&first), [run(3), run(1)]);
    assert_eq!(
        (&first["data"][0]["status"], &first["data"][0]["outcome"]),
        (&json!("ended"), &json!("agreed"))
    );
    let second = page("a", &format!("?limit=2&after={}", first["next"].as_str().unwrap()));
    assert_eq!((runs_of(&second), &second["next"]), (vec![run(0)], &Value::Null));
    assert_eq!(runs_of(&page("b", "")), [run(2)]);
    // A page says nothing of the runs of others, and no page begins at one.
    assert_eq!(page("b", "?limit=1")["next"], Value::Null);
    assert_eq!(page("c", "")["next"], Value::Null);
    assert_eq!(runs_of(&page("b", &format!("?after={}", run(3).as_str().unwrap()))), [json!(null); 0]);
    for path in ["/journal", "/events"] {
        let other = format!("GET /v1/runs/{}{path}", run(2).as_str().unwrap());
        assert_eq!(served.ask(&other, &[&bearer("a")], "").status, 404);
    }
    for query in ["?limit=0", "?limit=101", "?limit=x"] {
        assert_eq!(served.ask(&format!("GET /v1/runs{query}"), &[&bearer("a")], "").status, 400, "{query}");
    }
    // The next server on the folder knows the same runs.
    drop(served);
    let served = Served::start(&folder, &["--mock", "--answer", "4", "--token-file", "tokens"]);
    let list = served.ask("GET /v1/runs", &[&bearer("a")], "").json();
    assert_eq!(runs_of(&list), [run(3), run(1), run(0)]);
}

/// Returns the journal and the results in the folder of a server.
fn files_of(served: &Path) -> [Vec<u8>; 2] {
    ["journal-0.jsonl", "results-0.jsonl"].map(|name| std::fs::read(served.join(name)).unwrap())
}

/// Old runs are removed only on request, and a folder in use or of a batch is refused.
#[test]
fn pruning_leaves_newer_runs_unchanged() {
    let folder = Folder::new();
    let words = ["--mock", "--answer", "4"];
    let ask = |served: &Served, key: &str| {
        let key = format!("Idempotency-Key: {key}");
        served.chat(&[&key], &body("solver_checker", "How much is 2+2?")).json()
    };
    let served = Served::start(&folder, &words);
    let old = ask(&served, "old");
    served.chat(&[], &body("solver_checker", "How much is 3+3?"));
    assert_eq!(served.end(Signal::SIGTERM), Some(0));
    let then = SystemTime::now();
    let served = Served::start(&folder, &words);
    let new = ask(&served, "new");
    assert_eq!(ask(&served, "old")["id"], old["id"]);
    let in_use = prune(&folder.path().join("served"), then, Duration::ZERO);
    assert!(in_use.is_err(), "a server has the folder open");
    assert_eq!(served.end(Signal::SIGTERM), Some(0));

    assert_eq!(removed_before(&folder.path().join("served"), then), 2);
    let verified = Finished::of(consensus(&folder).args(["verify", "served"])).exits(0);
    assert!(verified.stdout.contains("runs were removed"), "{}", verified.stdout);
    let served = Served::start(&folder, &[&words[..], &["--keep", "30d"]].concat());
    let again = ask(&served, "new");
    assert_eq!((&again["id"], &again["consensus"]), (&new["id"], &new["consensus"]));
    let journal = served.ask(&format!("GET /v1/runs/{}/journal", new["id"].as_str().unwrap()), &[], "");
    folder.write("mine/journal.jsonl", &journal.body);
    let verified = Finished::of(consensus(&folder).args(["verify", "mine"])).exits(0);
    assert!(verified.stdout.contains(new["consensus"]["journal_head"].as_str().unwrap()));
    let later = ask(&served, "old");
    let heads = [&later, &old].map(|said| &said["consensus"]["journal_head"]);
    assert_ne!(heads[0], heads[1], "the key begins another run");
    assert_eq!(served.end(Signal::SIGTERM), Some(0));
    Finished::of(consensus(&folder).args(["verify", "served"])).exits(0);

    // A batch makes its runs again, so that of a batch is left as it is.
    folder.write("tasks.jsonl", "{\"id\": \"a\", \"prompt\": \"How much is 2+2?\"}\n");
    let batch = ["batch", "tasks.jsonl", "-o", "batch", "--mock", "--answer", "4"];
    Finished::of(consensus(&folder).args(batch)).exits(0);
    assert!(prune(&folder.path().join("batch"), SystemTime::now(), Duration::ZERO).is_err());
    let words = ["serve", "-o", "batch", "--keep", "30d", "--mock", "--answer", "4"];
    let kept = Finished::of(consensus(&folder).args(words)).exits(2).stderr;
    assert!(kept.contains("the folder of a batch"), "{kept}");
    let served = folder.path().join("served");
    let (whole, manifest) = (files_of(&served), std::fs::read(served.join("batch.json")).unwrap());
    folder.write("served/batch.json", "{\"v\":1,\"shards\":2}");
    let refused = prune(&served, SystemTime::now(), Duration::ZERO);
    assert!(refused.is_err(), "a folder that would be refused");
    assert_eq!(files_of(&served), whole);
    std::fs::write(served.join("batch.json"), manifest).unwrap();
    assert_eq!(removed_before(&served, SystemTime::now()), 1, "the newest run stays");
    Finished::of(consensus(&folder).args(["verify", "served"])).exits(0);
    let day = Finished::of(consensus(&folder).args(["serve", "-o", "served", "--keep", "1h"])).exits(2);
    assert!(day.stderr.contains("at least a day"), "{}", day.stderr);
}

/// A clock that is ahead makes no run old. One that is far ahead is not believed at all.
#[test]
fn clock_ahead_removes_no_run() {
    let folder = Folder::new();
    let served = Served::start(&folder, &["--mock", "--answer", "4"]);
    for sum in ["2+2", "3+3"] {
        served.chat(&[], &body("solver_checker", &format!("How much is {sum}?")));
    }
    assert_eq!(served.end(Signal::SIGTERM), Some(0));
    let served = folder.path().join("served");
    let (whole, day) = (files_of(&served), Duration::from_hours(24));
    for (days, is_believed) in [(300, true), (400, false)] {
        match prune(&served, SystemTime::now() + day * days, day).unwrap() {
            Pruning::Done(pruned) => assert_eq!((is_believed, pruned.runs), (true, 0), "{days} days"),
            Pruning::ClockAhead { newest } => {
                assert!(!is_believed && newest <= SystemTime::now(), "{days} days: {newest:?}");
            }
        }
        assert_eq!(files_of(&served), whole, "{days} days");
    }
}

/// A run whose client has gone is in the list with the tokens that it has used, also at the next server.
#[test]
fn abandoned_run_is_listed_with_tokens() {
    let (folder, door) = (Folder::new(), Arc::new(ReplyDoor::default()));
    let llm = behind(&door);
    let url = llm.url();
    let words = ["--base-url", &url, "--model", "m"];
    let served = Served::start(&folder, &words);
    let stream = served.send_chat(&[], &body("writer_physicist", "How much is 2+2?"));
    while llm.chats().len() < 2 {
        std::thread::yield_now();
    }
    let first = |served: &Served| listed(served, &[])[0].clone();
    drop(stream);
    while first(&served)["status"] != "stopping" {
        std::thread::yield_now();
    }
    door.open();
    while first(&served)["status"] != "ended" {
        std::thread::yield_now();
    }
    let run = first(&served);
    assert_eq!((&run["outcome"], &run["usage"]["calls"]), (&json!("interrupted"), &json!(2)), "{run}");
    assert!(run["usage"]["prompt"].as_u64() > Some(0) && run["journal_head"].is_string(), "{run}");
    let path = format!("GET /v1/runs/{}", run["run"].as_str().unwrap());
    let row = served.ask(&path, &[], "").json();
    assert_eq!((&row["status"], &row["usage"]), (&json!("ended"), &run["usage"]));
    let journal = served.ask(&format!("{path}/journal"), &[], "");
    let last = journal.body.lines().last().unwrap();
    assert_eq!(run["journal_head"], Digest::new(last.as_bytes()).to_string(), "{last}");
    assert!(served.ask("GET /page/runs", &[], "").body.contains("interrupted"));

    // A run that ends later is before it in the list, there and at the next server.
    served.chat(&[], &body("writer_physicist", "How much is 3+3?"));
    drop(served);
    let served = Served::start(&folder, &words);
    assert_eq!(listed(&served, &[])[1], run);
    assert_eq!(listed(&served, &[]).len(), 2);
}

/// A run that is cancelled is gone for its client and for later requests.
#[test]
fn batch_commands_read_running_server_folder() {
    let (folder, door) = (Folder::new(), Arc::new(ReplyDoor::default()));
    let llm = behind(&door);
    let served = Served::start(&folder, &["--base-url", &llm.url(), "--model", "m"]);
    let stream = served.send_chat(&[], &body("writer_physicist", "How much is 2+2?"));
    while llm.chats().len() < 2 {
        std::thread::yield_now();
    }
    let run = served.ask("GET /v1/runs", &[], "").json()["data"][0]["run"].as_str().unwrap().to_owned();
    Finished::of(consensus(&folder).args(["runs", "served"])).exits(0);
    Finished::of(consensus(&folder).args(["show", "served", &run])).exits(0);
    assert_eq!(served.ask(&format!("DELETE /v1/runs/{run}"), &[], "").status, 202);
    door.open();
    assert_eq!(answer(stream).status, 410);
    for line in ["GET", "DELETE"] {
        assert_eq!(served.ask(&format!("{line} /v1/runs/{run}"), &[], "").status, 410);
    }
}
