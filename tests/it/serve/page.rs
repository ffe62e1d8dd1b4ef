//! The page of a server: the runs as they go, and those that have ended.

use std::io::{BufRead as _, BufReader};
use std::time::Duration;

use serde_json::{Value, json};

use super::body;
use crate::support::{Act, Finished, Folder, Served, Server, consensus};

/// Returns a chunk of a stream with this text.
fn chunk(text: &str) -> String {
    format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"content": text}}]}))
}

#[test]
fn the_page_shows_who_is_at_work_and_its_words_as_they_come() {
    // A model that writes a word now and then, and never ends.
    let llm = Server::start(|_| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        let first = Act::Send([head, &chunk("It is <b>big</b> because ")].concat().into_bytes());
        let more = (0..2_000).flat_map(|word| {
            [Act::Pause(Duration::from_millis(20)), Act::Send(chunk(&format!("word{word} ")).into_bytes())]
        });
        [first].into_iter().chain(more).collect()
    });
    let folder = Folder::new();
    let served = Served::start(&folder, &["--base-url", &llm.url(), "--model", "m"]);
    let _asked = served.send_chat(&[], &body("writer_physicist", "How much is 2+2?"));
    let run = loop {
        let list = served.ask("GET /v1/runs", &[], "").json();
        if let Some(run) = list["data"][0]["run"].as_str() {
            break run.to_owned();
        }
    };
    let now = BufReader::new(served.send(&format!("GET /page/runs/{run}/now"), &[], ""));
    let parts = now.lines().map_while(Result::ok).filter_map(|line| {
        let data = line.strip_prefix("data: ")?.to_owned();
        serde_json::from_str::<Value>(&data).ok()?.as_str().map(str::to_owned)
    });
    let part = parts.into_iter().find(|part| part.contains("word")).expect("the words come");
    assert!(part.contains("<h3>Writer</h3>") && part.contains("<h3>Physicist</h3>"), "{part}");
    assert!(part.contains("&lt;b&gt;big") && !part.contains("<b>"), "{part}");
    served.ask(&format!("DELETE /v1/runs/{run}"), &[], "");
}

#[test]
fn a_run_that_has_ended_has_nobody_at_work() {
    let folder = Folder::new();
    let served = Served::start(&folder, &["--mock", "--answer", "4"]);
    let said = served.chat(&[], &body("solver_checker", "How much is 2+2?")).json();
    let run = said["consensus"]["run"].as_str().unwrap();
    assert_eq!(served.ask(&format!("GET /page/runs/{run}/now"), &[], "").status, 204);
    assert_eq!(served.ask("GET /page/runs/7262cc5d-eca1-8f99-b7db-67a31687b80d/now", &[], "").status, 404);
}

#[test]
fn a_batch_whose_folder_is_served_can_be_sifted_by_what_was_right() {
    let folder = Folder::new();
    let task = |id: u32, answer: u32| {
        json!({"id": id, "prompt": format!("How much is {id}?"), "answer": answer, "canonical": "number"})
            .to_string()
    };
    folder.write("tasks.jsonl", &[task(1, 4), task(2, 5)].join("\n"));
    let words =
        ["batch", "tasks.jsonl", "--grader", "number", "--output", "served", "--mock", "--answer", "4"];
    Finished::of(consensus(&folder).args(words)).exits(0);
    let served = Served::start(&folder, &["--mock", "--answer", "4"]);
    let list = served.ask("GET /page/runs", &[], "").body;
    let flags = |task: &str| {
        let row = list.lines().find(|line| line.contains(task)).unwrap_or_else(|| panic!("{list}"));
        row.split("data-flags=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap().trim().to_owned()
    };
    assert_eq!(flags("How much is 1?"), "right agreed");
    assert_eq!(flags("How much is 2?"), "wrong agreed");
    assert!(list.contains("data-filter=\"to_wrong\""), "{list}");
}
