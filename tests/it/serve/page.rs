//! The page of a server: the runs as they go, and those that have ended.

use std::io::{BufRead as _, BufReader};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::body;
use crate::support::{Act, Finished, Folder, Served, Server, consensus, http};

/// Returns a chunk of a stream with this text.
fn chunk(text: &str) -> String {
    format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"content": text}}]}))
}

/// A model that writes a word now and then, for longer than any test waits.
fn slow_model() -> Server {
    Server::start(|_| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        let first = Act::Send([head, &chunk("It is <b>big</b> because ")].concat().into_bytes());
        let more = (0..2_000).flat_map(|word| {
            [Act::Pause(Duration::from_millis(20)), Act::Send(chunk(&format!("word{word} ")).into_bytes())]
        });
        [first].into_iter().chain(more).collect()
    })
}

/// Returns the id of the first run of a server, once it is known.
fn first_run(served: &Served, headers: &[&str]) -> String {
    let found = (0..1_000).find_map(|_| {
        let list = served.ask("GET /v1/runs", headers, "").json();
        list["data"][0]["run"].as_str().map(str::to_owned)
    });
    found.expect("the run is in the list")
}

/// Returns the events of a run's news, each with its type, until the stream ends.
fn news(served: &Served, run: &str) -> impl Iterator<Item = (String, String)> + use<> {
    let stream = BufReader::new(served.send(&format!("GET /page/runs/{run}/news"), &[], ""));
    let mut kind = String::new();
    stream.lines().map_while(Result::ok).filter_map(move |line| {
        if let Some(named) = line.strip_prefix("event: ") {
            named.clone_into(&mut kind);
        }
        line.strip_prefix("data: ").map(|data| (kind.clone(), data.to_owned()))
    })
}

/// Returns the parts of the page that say who is at work, as they come.
fn parts_at_work(served: &Served, run: &str) -> impl Iterator<Item = String> + use<> {
    news(served, run)
        .filter(|(kind, _)| kind == "at_work")
        .map(|(_, data)| serde_json::from_str::<Value>(&data).unwrap().as_str().unwrap().to_owned())
}

/// The page shows which agents are at work, and their words as they come.
#[test]
fn page_shows_agents_and_words_live() {
    let (folder, llm) = (Folder::new(), slow_model());
    let served = Served::start(&folder, &["--base-url", &llm.url(), "--model", "m"]);
    let _asked = served.send_chat(&[], &body("writer_physicist", "How much is 2+2?"));
    let run = first_run(&served, &[]);
    let mut parts = parts_at_work(&served, &run);
    let part = parts.find(|part| part.contains("word")).expect("the words come");
    assert!(part.contains("<h3>Writer</h3>") && part.contains("<h3>Physicist</h3>"), "{part}");
    assert!(part.contains("&lt;b&gt;big") && !part.contains("<b>"), "{part}");
    served.ask(&format!("DELETE /v1/runs/{run}"), &[], "");
    // The model goes on for hundreds of parts.
    assert!(parts.count() < 50, "the stream ends with its run");
}

#[test]
fn page_reports_repeated_model_call() {
    let folder = Folder::new();
    let llm =
        Server::start(|_| vec![Act::Send(http("503 Service Unavailable", "retry-after: 1\r\n", b"{}"))]);
    let served = Served::start(&folder, &["--base-url", &llm.url(), "--model", "m"]);
    let _asked = served.send_chat(&[], &body("writer_physicist", "How much is 2+2?"));
    let run = first_run(&served, &[]);
    let mut parts = parts_at_work(&served, &run);
    assert!(parts.any(|part| part.contains("is asked again after a fault")));
    served.ask(&format!("DELETE /v1/runs/{run}"), &[], "");
}

/// The next server has the page too.
#[test]
fn stopped_run_keeps_its_page() {
    let (folder, llm) = (Folder::new(), slow_model());
    let words = ["--base-url", &llm.url(), "--model", "m", "--runs-at-once", "1"];
    let served = Served::start(&folder, &words);
    let _asked = served.send_chat(&[], &body("writer_physicist", "How much is 2+2?"));
    let run = first_run(&served, &[]);
    let mut parts = parts_at_work(&served, &run);
    assert!(parts.any(|part| part.contains("word")));
    served.ask(&format!("DELETE /v1/runs/{run}"), &[], "");
    assert!(parts.count() < 50);
    let page = served.ask(&format!("GET /page/runs/{run}"), &[], "");
    assert_eq!(page.status, 200);
    assert!(page.body.contains(">stopped</span>") && page.body.contains("How much is 2+2?"), "{}", page.body);
    assert_eq!(served.ask(&format!("GET /page/runs/{run}/news"), &[], "").status, 204);
    drop(served);
    let served = Served::start(&folder, &words);
    let page = served.ask(&format!("GET /page/runs/{run}"), &[], "");
    assert_eq!(page.status, 200);
    assert!(page.body.contains("How much is 2+2?"), "{}", page.body);
}

/// A browser takes no file of the page for something that it is not.
#[test]
fn page_files_have_fixed_types() {
    let folder = Folder::new();
    let served = Served::start(&folder, &["--mock", "--answer", "4"]);
    for path in ["/", "/page.js", "/page.css"] {
        let head = served.ask(&format!("GET {path}"), &[], "").head.to_ascii_lowercase();
        assert!(head.contains("x-content-type-options: nosniff"), "{path}: {head}");
    }
}

#[test]
fn run_stopped_while_waiting_has_no_page() {
    let (folder, llm) = (Folder::new(), slow_model());
    let words = ["--base-url", &llm.url(), "--model", "m", "--runs-at-once", "1"];
    let served = Served::start(&folder, &words);
    let _first = served.send_chat(&[], &body("writer_physicist", "How much is 2+2?"));
    let first = first_run(&served, &[]);
    assert!(parts_at_work(&served, &first).any(|part| part.contains("word")), "it is under way");
    let _second = served.send_chat(&[], &body("writer_physicist", "How much is 3+3?"));
    let second = (0..1_000).find_map(|_| {
        let list = served.ask("GET /v1/runs", &[], "").json();
        let runs = list["data"].as_array().unwrap().clone();
        runs.into_iter().map(|row| row["run"].as_str().unwrap().to_owned()).find(|run| *run != first)
    });
    let second = second.expect("the second run waits");
    assert!(served.ask(&format!("GET /page/runs/{second}"), &[], "").body.contains("A run that waits"));
    served.ask(&format!("DELETE /v1/runs/{second}"), &[], "");
    assert_eq!(served.ask(&format!("GET /page/runs/{second}"), &[], "").status, 410);
}

#[test]
fn other_callers_receive_no_news() {
    let (folder, llm) = (Folder::new(), slow_model());
    folder.write("tokens", "the-token-of-alice\nthe-token-of-bob\n");
    let words = ["--token-file", "tokens", "--base-url", &llm.url(), "--model", "m"];
    let served = Served::start(&folder, &words);
    let [alice, bob] = ["alice", "bob"].map(|name| format!("Authorization: Bearer the-token-of-{name}"));
    let _asked = served.send_chat(&[&alice], &body("writer_physicist", "How much is 2+2?"));
    let run = first_run(&served, &[&alice]);
    let path = format!("GET /page/runs/{run}/news");
    assert_eq!(served.ask(&path, &[&bob], "").status, 404);
    assert_eq!(served.ask(&path, &[], "").status, 401);
}

#[test]
fn a_run_that_has_ended_has_no_news() {
    let folder = Folder::new();
    let served = Served::start(&folder, &["--mock", "--answer", "4"]);
    let said = served.chat(&[], &body("solver_checker", "How much is 2+2?")).json();
    let run = said["consensus"]["run"].as_str().unwrap();
    assert_eq!(served.ask(&format!("GET /page/runs/{run}/news"), &[], "").status, 204);
    assert_eq!(served.ask("GET /page/runs/7262cc5d-eca1-8f99-b7db-67a31687b80d/news", &[], "").status, 404);
}

#[test]
fn page_filters_served_batch_by_correctness() {
    let folder = Folder::new();
    let task = |id: u32, answer: u32| {
        json!({"id": id, "prompt": format!("How much is {id}?"), "answer": answer, "canonical": "number"})
            .to_string()
    };
    folder.write("tasks.jsonl", &[task(1, 4), task(2, 5)].join("\n"));
    let words =
        ["batch", "tasks.jsonl", "--grader", "number", "--output", "served", "--mock", "--answer", "4"];
    Finished::of(consensus(&folder).args(words)).exits(0);
    let progress = std::fs::read_to_string(folder.path().join("served/progress.json")).unwrap();
    let served = Served::start(&folder, &["--mock", "--answer", "4"]);
    let list = served.ask("GET /page/runs", &[], "").body;
    let flags = |task: &str| {
        let row = list.lines().find(|line| line.contains(task)).unwrap_or_else(|| panic!("{list}"));
        row.split("data-flags=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap().trim().to_owned()
    };
    assert_eq!(flags("How much is 1?"), "right agreed");
    assert_eq!(flags("How much is 2?"), "wrong agreed");
    assert!(list.contains("data-filter=\"to_wrong\""), "{list}");
    assert_eq!(served.end(Signal::SIGTERM), Some(0));
    assert_eq!(
        std::fs::read_to_string(folder.path().join("served/progress.json")).unwrap(),
        progress,
        "a batch that was looked at is as it was"
    );
}
