//! A server that dies, and one that is asked to stop.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::time::SystemTime;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::{after, body, removed_before};
use crate::support::{Act, Finished, Folder, Request, SENSIBLE, Served, Server, consensus, http, model};

/// A model server that sends a signal to a process before it answers the request with this number, from 0.
fn signalling(signal: Signal, at: usize) -> (Server, Arc<AtomicI32>) {
    let (pid, count) = (Arc::new(AtomicI32::new(0)), AtomicUsize::new(0));
    let llm = Server::start({
        let pid = Arc::clone(&pid);
        move |request: &Request| {
            let is_chat = request.path.ends_with("/chat/completions");
            if is_chat && count.fetch_add(1, Ordering::SeqCst) == at {
                let _ = kill(Pid::from_raw(pid.load(Ordering::SeqCst)), signal);
            }
            model(SENSIBLE)(request)
        }
    });
    (llm, pid)
}

/// A key finds the same run after its end and after the death of its server.
#[test]
fn key_names_one_run_across_restarts() {
    let folder = Folder::new();
    let words = ["--mock", "--answer", "4"];
    let ask = body("solver_checker", "How much is 2+2?");
    let served = Served::start(&folder, &words);
    let first = served.chat(&["Idempotency-Key: one"], &ask).json();
    let again = served.chat(&["Idempotency-Key: one"], &ask).json();
    assert_eq!((&first["id"], &first["consensus"]), (&again["id"], &again["consensus"]));
    let other = served.chat(&["Idempotency-Key: one"], &body("solver_checker", "How much is 3+3?"));
    assert_eq!((other.status, &other.json()["error"]["code"]), (422, &json!("idempotency_key_reused")));
    served.end(Signal::SIGKILL);
    let served = Served::start(&folder, &words);
    let later = served.chat(&["Idempotency-Key: one"], &ask).json();
    assert_eq!((&first["id"], &first["consensus"]), (&later["id"], &later["consensus"]));
    let other = served.chat(&["Idempotency-Key: two"], &ask).json();
    assert_ne!(first["id"], other["id"]);
}

/// The server is killed at each of five replies in turn, and the next one asks only for the missing replies.
#[test]
fn killed_server_repeats_no_durable_reply() {
    for at in 0..5 {
        let folder = Folder::new();
        let (llm, pid) = signalling(Signal::SIGKILL, at);
        let words = ["--base-url", &llm.url(), "--model", "m"];
        let ask = body("writer_physicist", "How much is 2+2?");
        let served = Served::start(&folder, &words);
        pid.store(served.pid().as_raw(), Ordering::SeqCst);
        let cut = served.chat(&["Idempotency-Key: k"], &ask);
        assert_eq!(cut.status, 0, "killed at {at}: {cut:?}");
        let durable = journal(&folder);
        // A request of the dead server may still arrive, so the next one has a model server of its own.
        let llm = Server::start(model(SENSIBLE));
        let served = Served::start(&folder, &["--base-url", &llm.url(), "--model", "m"]);
        let said = served.chat(&["Idempotency-Key: k"], &ask);
        assert_eq!(said.status, 200, "killed at {at}: {said:?}");
        assert_eq!(said.json()["consensus"]["outcome"], "agreed");
        let replies = journal(&folder);
        assert!(replies.values().all(|times| *times == 1), "killed at {at}: {replies:?}");
        assert_eq!(
            llm.chats().len(),
            replies.len() - durable.len(),
            "killed at {at}: each missing reply is asked for once"
        );
        served.end(Signal::SIGTERM);
        Finished::of(consensus(&folder).args(["verify", "served"])).exits(0);
    }
}

/// The limit of the dead server no longer applies to the run.
#[test]
fn continued_run_keeps_its_request_budget() {
    for (budget, outcome) in [(json!({}), "agreed"), (json!({"tokens": 3_000}), "budget")] {
        let folder = Folder::new();
        let (llm, pid) = signalling(Signal::SIGKILL, 1);
        let mut ask = body("writer_physicist", "How much is 2+2?");
        ask["consensus"] = json!({"budget": budget});
        let words = ["--base-url", &llm.url(), "--model", "m", "--max-tokens-total"];
        let served = Served::start(&folder, &[&words[..], &["3500"]].concat());
        pid.store(served.pid().as_raw(), Ordering::SeqCst);
        assert_eq!(served.chat(&["Idempotency-Key: k"], &ask).status, 0);
        let served = Served::start(&folder, &[&words[..], &["1000000"]].concat());
        let said = served.chat(&["Idempotency-Key: k"], &ask).json();
        assert_eq!(said["consensus"]["outcome"], outcome, "{budget}: {said}");
        served.end(Signal::SIGTERM);
        Finished::of(consensus(&folder).args(["verify", "served"])).exits(0);
    }
}

/// A label that looks like the label of a request changes nothing.
#[test]
fn server_leaves_batch_run_alone() {
    let folder = Folder::new();
    let (llm, pid) = signalling(Signal::SIGKILL, 1);
    let label = "ab".repeat(32);
    let task = json!({"id": 1, "prompt": "How much is 2+2?", "meta": {"request_sha256": label}});
    folder.write("tasks.jsonl", &task.to_string());
    let on = ["--base-url", &llm.url(), "--model", "m"];
    let mut batch = consensus(&folder);
    batch.args(["batch", "tasks.jsonl", "--output", "served", "--quiet", "--roleset", "writer_physicist"]);
    let mut batch = batch.args(on).spawn().unwrap();
    pid.store(i32::try_from(batch.id()).unwrap(), Ordering::SeqCst);
    assert!(!batch.wait().unwrap().success(), "it was killed");
    // Calls that had left the killed process may still arrive.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let asked = llm.chats().len();
    let served = Served::start(&folder, &on);
    // A run is found, or not, once those that were left are known.
    let unknown = served.ask("GET /v1/runs/7262cc5d-eca1-8f99-b7db-67a31687b80d", &[], "");
    assert_eq!(unknown.status, 404);
    assert_eq!(served.ask("GET /v1/runs", &[], "").json()["data"], json!([]));
    assert_eq!(served.end(Signal::SIGTERM), Some(0));
    assert_eq!(llm.chats().len(), asked, "no call was made for the batch");
}

#[test]
fn continued_run_calls_current_model_server() {
    let folder = Folder::new();
    let (old, pid) = signalling(Signal::SIGKILL, 2);
    let ask = body("writer_physicist", "How much is 2+2?");
    let keyed = ["Idempotency-Key: k"];
    let served = Served::start(&folder, &["--base-url", &old.url(), "--model", "m"]);
    pid.store(served.pid().as_raw(), Ordering::SeqCst);
    assert_eq!(served.chat(&keyed, &ask).status, 0);
    let (asked, new) = (old.chats().len(), Server::start(model(SENSIBLE)));
    let served = Served::start(&folder, &["--base-url", &new.url(), "--model", "m"]);
    assert_eq!(served.chat(&keyed, &ask).json()["consensus"]["outcome"], "agreed");
    assert_eq!(old.chats().len(), asked, "the old server is not asked");
    assert!(!new.chats().is_empty());
}

/// The next server answers a run that ends before its line of results is written.
#[test]
fn run_without_result_line_is_answered() {
    let folder = Folder::new();
    let words = ["--mock", "--answer", "4"];
    let ask = body("solver_checker", "How much is 2+2?");
    let keyed = ["Idempotency-Key: k"];
    let served = Served::start(&folder, &words);
    let first = served.chat(&keyed, &ask).json();
    served.end(Signal::SIGKILL);
    // The journal is written first, so a server may die between the two.
    let results = folder.path().join("served/results-0.jsonl");
    let line = std::fs::read(&results).unwrap();
    std::fs::write(&results, &line[..line.len() - 10]).unwrap();
    let served = Served::start(&folder, &words);
    let other = served.chat(&keyed, &body("solver_checker", "How much is 3+3?"));
    assert_eq!(other.status, 422, "{other:?}");
    let again = served.chat(&keyed, &ask).json();
    assert_eq!((&first["id"], &first["consensus"]), (&again["id"], &again["consensus"]));
    served.end(Signal::SIGTERM);
    Finished::of(consensus(&folder).args(["verify", "served"])).exits(0);
}

/// The client receives status 503 with the code `stopped`.
#[test]
fn full_journal_ends_server_with_error() {
    let folder = Folder::new();
    // Room for a few runs, in blocks of 1024 bytes.
    let command = after(&folder, "trap '' XFSZ; ulimit -f 24");
    let served = Served::of(command, &["--mock", "--answer", "4"]);
    let ask = body("solver_checker", "How much is 2+2?");
    let refused = (0..100).map(|_| served.chat(&[], &ask)).find(|said| said.status != 200);
    let refused = refused.expect("the disk is full at some time");
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (503, &json!("stopped")), "{refused:?}");
    assert_ne!(served.ended(), Some(0));
    Finished::of(consensus(&folder).args(["verify", "served"])).exits(0);
}

/// A cancelled key that is cut off does not swallow the next one.
#[test]
fn torn_cancelled_key_is_removed() {
    let folder = Folder::new();
    let words = ["--mock", "--answer", "4"];
    drop(Served::start(&folder, &words));
    let path = folder.path().join("served/cancelled.txt");
    std::fs::write(&path, "key-whole\nkey-0123").unwrap();
    let served = Served::start(&folder, &words);
    assert_eq!(served.ask("GET /health", &[], "").status, 200);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "key-whole\n");
}

/// The key of a run whose models cannot be called begins a new attempt.
#[test]
fn failed_run_ends_no_other_run() {
    let folder = Folder::new();
    let is_back = Arc::new(AtomicBool::new(false));
    let llm = Server::start({
        let is_back = Arc::clone(&is_back);
        move |request: &Request| {
            let is_refused = request.body.contains("refused") && !is_back.load(Ordering::SeqCst);
            if request.path.ends_with("/chat/completions") && is_refused {
                let why = b"{\"error\":{\"message\":\"bad key\"}}";
                return vec![Act::Send(http("401 Unauthorized", "", why))];
            }
            model(SENSIBLE)(request)
        }
    });
    let served = Served::start(&folder, &["--base-url", &llm.url(), "--model", "m"]);
    let ask = body("writer_physicist", "How much is 2+2, refused?");
    // A client may ask again by itself, since nothing was paid for.
    assert_eq!(served.chat(&[], &ask).status, 502);
    let keyed = ["Idempotency-Key: k"];
    for _ in 0..2 {
        let failed = served.chat(&keyed, &ask);
        assert_eq!((failed.status, &failed.json()["error"]["code"]), (502, &json!("provider_failed")));
    }
    assert_eq!(served.chat(&[], &body("writer_physicist", "How much is 2+2?")).status, 200);
    is_back.store(true, Ordering::SeqCst);
    let said = served.chat(&keyed, &ask);
    assert_eq!(said.status, 200, "{said:?}");
    let asked = llm.chats().len();
    assert_eq!(served.chat(&keyed, &ask).json()["id"], said.json()["id"]);
    assert_eq!(llm.chats().len(), asked, "an answer is paid for once");
    assert_eq!(served.chat(&keyed, &body("writer_physicist", "How much is 3+3?")).status, 422);
    drop(served);
    Finished::of(consensus(&folder).args(["verify", "served"])).exits(0);
}

/// The refusal says when to come back, and a request that reaches the model server again is answered.
#[test]
fn requests_fail_fast_without_model_server() {
    let (folder, is_back) = (Folder::new(), Arc::new(AtomicBool::new(false)));
    let llm = Server::start({
        let is_back = Arc::clone(&is_back);
        move |request: &Request| {
            if request.path.ends_with("/chat/completions") && !is_back.load(Ordering::SeqCst) {
                return vec![Act::Close];
            }
            model(SENSIBLE)(request)
        }
    });
    folder.write("consensus.toml", "retries = 1\n");
    let served = Served::start(&folder, &["--base-url", &llm.url(), "--model", "m", "--allow-model", "*"]);
    let ask = |roleset: &str| body(roleset, "How much is 2+2?");
    assert_eq!(served.chat(&[], &ask("writer_physicist")).status, 502);
    // A server that is gone is so for all of its models. Two calls of a run can fail at the same time, which is one sign and not two.
    let unsent = (0..3).find_map(|n| {
        let other = format!("writer_physicist@other{n}");
        let (asked, failed) = (llm.chats().len(), served.chat(&[], &ask(&other)));
        assert_eq!((failed.status, &failed.json()["error"]["code"]), (502, &json!("provider_failed")));
        (llm.chats().len() == asked).then_some(failed)
    });
    let refused = unsent.expect("a request of which nothing was sent");
    assert!(refused.head.to_ascii_lowercase().contains("retry-after:"), "{}", refused.head);
    let asked = llm.chats().len();
    is_back.store(true, Ordering::SeqCst);
    while served.chat(&[], &ask("writer_physicist")).status == 502 {
        assert_eq!(llm.chats().len(), asked, "a request that reaches the server has its answer");
    }
    assert!(llm.chats().len() > asked);
    drop(served);
    Finished::of(consensus(&folder).args(["verify", "served"])).exits(0);
}

/// A client may ask again with the same key for a run that cannot begin.
#[test]
fn key_is_free_after_failed_start() {
    let folder = Folder::new();
    let served = Served::start(&folder, &["--model", "openrouter:x"]);
    for _ in 0..2 {
        let failed = served.chat(&["Idempotency-Key: k"], &body("solver_checker", "How much is 2+2?"));
        assert_eq!((failed.status, &failed.json()["error"]["code"]), (502, &json!("provider_failed")));
    }
}

/// The first attempt of the key fails, and the second one has the answer.
#[test]
fn pruning_keeps_answer_of_retried_key() {
    let folder = Folder::new();
    let is_back = Arc::new(AtomicBool::new(false));
    let llm = Server::start({
        let is_back = Arc::clone(&is_back);
        move |request: &Request| {
            if request.path.ends_with("/chat/completions") && !is_back.load(Ordering::SeqCst) {
                return vec![Act::Send(http("401 Unauthorized", "", b"{}"))];
            }
            model(SENSIBLE)(request)
        }
    });
    let words = ["--base-url", &llm.url(), "--model", "m"];
    let (key, ask) = (["Idempotency-Key: k"], body("writer_physicist", "How much is 2+2?"));
    let served = Served::start(&folder, &words);
    assert_eq!(served.chat(&key, &ask).status, 502);
    let then = SystemTime::now();
    is_back.store(true, Ordering::SeqCst);
    let said = served.chat(&key, &ask);
    assert_eq!((said.status, served.end(Signal::SIGTERM)), (200, Some(0)));
    assert_eq!(removed_before(&folder.path().join("served"), then), 0);
    let (served, asked) = (Served::start(&folder, &words), llm.chats().len());
    assert_eq!(served.chat(&key, &ask).json()["id"], said.json()["id"]);
    assert_eq!(llm.chats().len(), asked, "an answer is paid for once");
}

#[test]
fn key_cancelled_after_run_keeps_answer() {
    let folder = Folder::new();
    let (words, key) = (["--mock", "--answer", "4"], ["Idempotency-Key: k"]);
    let served = Served::start(&folder, &words);
    let ask = body("solver_checker", "How much is 2+2?");
    let said = served.chat(&key, &ask).json();
    drop(served);
    let rows = std::fs::read_to_string(folder.path().join("served/results-0.jsonl")).unwrap();
    let row: Value = serde_json::from_str(rows.lines().next().unwrap()).unwrap();
    folder.write("served/cancelled.txt", &format!("{}\n", row["task"].as_str().unwrap()));
    let served = Served::start(&folder, &words);
    assert_eq!(served.chat(&key, &ask).json()["id"], said["id"]);
}

/// How often the journal has a reply to each call.
fn journal(folder: &Folder) -> BTreeMap<String, usize> {
    let text = std::fs::read_to_string(folder.path().join("served/journal-0.jsonl")).unwrap();
    let mut replies = BTreeMap::new();
    for line in text.lines() {
        // The last line of a server that was killed may be torn.
        let Ok(record) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        if record["event"]["type"] == "replied" {
            *replies.entry(record["event"]["call"].to_string()).or_default() += 1;
        }
    }
    replies
}

/// A server that is asked to stop waits for its calls in flight.
#[test]
fn next_server_continues_stopped_run() {
    let folder = Folder::new();
    let (llm, pid) = signalling(Signal::SIGTERM, 0);
    let words = ["--base-url", &llm.url(), "--model", "m"];
    let served = Served::start(&folder, &words);
    pid.store(served.pid().as_raw(), Ordering::SeqCst);
    let ask = body("writer_physicist", "How much is 2+2?");
    let said = served.chat(&["Idempotency-Key: k"], &ask);
    assert_eq!((said.status, &said.json()["error"]["code"]), (503, &json!("stopped")), "{said:?}");
    let asked = llm.chats().len();
    drop(served);
    assert!(!journal(&folder).is_empty(), "the calls in flight were awaited");
    // No client asks again: the run continues by itself.
    let served = Served::start(&folder, &words);
    let said = loop {
        let said = served.chat(&["Idempotency-Key: k"], &ask);
        if said.status == 200 {
            break said.json();
        }
    };
    assert_eq!(said["consensus"]["outcome"], "agreed");
    assert_eq!(llm.chats().len() - asked, journal(&folder).len() - asked);
}

#[test]
fn key_keeps_answer_under_new_model() {
    let folder = Folder::new();
    let (keyed, ask) = (["Idempotency-Key: k"], body("solver_checker", "How much is 2+2?"));
    let served = Served::start(&folder, &["--mock", "--answer", "4"]);
    let first = served.chat(&keyed, &ask).json();
    assert_eq!(served.end(Signal::SIGTERM), Some(0));
    let served = Served::start(&folder, &["--mock", "--answer", "5"]);
    let again = served.chat(&keyed, &ask).json();
    assert_eq!((&again["id"], &again["choices"][0]["message"]["content"]), (&first["id"], &json!("4")));
    assert_eq!(served.chat(&[], &ask).json()["choices"][0]["message"]["content"], "5");
}

/// The first signal waits for a model that never answers, and the second one does not.
#[test]
fn second_signal_ends_server_at_once() {
    let folder = Folder::new();
    let llm = Server::start(|request: &Request| {
        let is_chat = request.path.ends_with("/chat/completions");
        if is_chat { vec![Act::Pause(std::time::Duration::from_mins(10))] } else { model(SENSIBLE)(request) }
    });
    let served = Served::start(&folder, &["--base-url", &llm.url(), "--model", "m"]);
    let stream = served.send_chat(&["Idempotency-Key: k"], &body("writer_physicist", "How much is 2+2?"));
    while llm.chats().len() < 2 {
        std::thread::yield_now();
    }
    // The first signal waits for the open calls, and the second one does not.
    kill(served.pid(), Signal::SIGTERM).unwrap();
    while std::net::TcpStream::connect(&served.place).is_ok() {
        std::thread::yield_now();
    }
    assert_eq!(served.end(Signal::SIGTERM), Some(130), "a second signal does not wait");
    drop(stream);
    Finished::of(consensus(&folder).args(["verify", "served"])).exits(0);
}
