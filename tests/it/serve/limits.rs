//! What a server counts: the figures for Prometheus, and what each token may use in a day.

use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::{ReplyDoor, behind, body, listed};
use crate::support::{Finished, Folder, Request, SENSIBLE, Served, Server, answer, consensus, model};

/// Runs and calls are counted for the whole folder, and requests for this server alone.
#[test]
fn metrics_cover_folder_and_server() {
    let folder = Folder::new();
    let words = ["--mock", "--answer", "4"];
    let served = Served::start(&folder, &words);
    let ask = body("solver_checker", "How much is 2+2?");
    served.chat(&[], &ask);
    drop(served);
    let served = Served::start(&folder, &words);
    served.chat(&[], &ask);
    served.ask("GET /nowhere/of/a/stranger", &[], "");
    let figures = served.ask("GET /metrics", &[], "").body;
    for line in [
        r#"consensus_runs{outcome="agreed",protocol="pair",roleset="solver_checker"} 2"#,
        r#"consensus_calls{protocol="pair",roleset="solver_checker"} 8"#,
        r#"consensus_server_requests{path="/v1/chat/completions",status="200"} 1"#,
        r#"consensus_server_requests{path="other",status="404"} 1"#,
        r#"consensus_server_runs{state="under_way"} 0"#,
    ] {
        assert!(figures.lines().any(|found| found == line), "{line}\n{figures}");
    }
}

/// The allowance limits the runs or the model tokens of a day, and a restart does not reset it.
#[test]
fn token_stays_within_daily_allowance() {
    let folder = Folder::new();
    folder.write(
        "tokens",
        "a-token-of-sixteen runs-a-day=2\nb-token-of-sixteen tokens-a-day=10\nc-token-of-sixteen\n",
    );
    let words = ["--mock", "--answer", "4", "--token-file", "tokens"];
    let mut served = Served::start(&folder, &words);
    let ask = body("solver_checker", "How much is 2+2?");
    let key = |token: &str| format!("Authorization: Bearer {token}-token-of-sixteen");
    let status = |served: &Served, token: &str, headers: &[&str]| {
        let of = key(token);
        let headers = [headers, &[of.as_str()]].concat();
        served.chat(&headers, &ask).status
    };
    assert_eq!(status(&served, "a", &["Idempotency-Key: k"]), 200);
    assert_eq!(status(&served, "a", &["Idempotency-Key: k"]), 200, "the same run is no second one");
    assert_eq!(status(&served, "b", &[]), 200);
    for _ in 0..2 {
        let refused = served.chat(&[&key("b")], &ask);
        assert_eq!((refused.status, &refused.json()["error"]["code"]), (429, &json!("allowance_used_up")));
        assert!(refused.head.to_ascii_lowercase().contains("retry-after:"), "{}", refused.head);
        // A server that begins anew remembers the day.
        drop(served);
        served = Served::start(&folder, &words);
    }
    assert_eq!(status(&served, "a", &[]), 200);
    assert_eq!(status(&served, "a", &[]), 429);
    assert_eq!(status(&served, "c", &[]), 200, "a token without a limit has none");
    folder.write("wrong", "a-token-of-sixteen tokens=10\n");
    let wrong =
        Finished::of(consensus(&folder).args(["serve", "--mock", "--token-file", "wrong", "-o", "other"]));
    let wrong = wrong.exits(2);
    assert!(wrong.stderr.contains("line 1") && wrong.stderr.contains("tokens-a-day=N"), "{}", wrong.stderr);
}

#[test]
fn unbegun_run_counts_for_no_token() {
    let folder = Folder::new();
    folder.write("tokens", "a-token-of-sixteen runs-a-day=2\n");
    let door = Arc::new(ReplyDoor::default());
    let llm = behind(&door);
    let words = ["--base-url", &llm.url(), "--model", "m", "--token-file", "tokens", "--runs-at-once", "1"];
    let served = Served::start(&folder, &words);
    let (key, ask) =
        ("Authorization: Bearer a-token-of-sixteen", body("writer_physicist", "How much is 2+2?"));
    let runs = || served.ask("GET /v1/runs", &[key], "").json()["data"].as_array().unwrap().len();
    let first = served.send_chat(&[key], &ask);
    while llm.chats().is_empty() {
        std::thread::yield_now();
    }
    let waiting = served.send_chat(&[key], &ask);
    while runs() < 2 {
        std::thread::yield_now();
    }
    assert_eq!(served.chat(&[key], &ask).status, 429, "two runs are counted");
    drop(waiting);
    while runs() > 1 {
        std::thread::yield_now();
    }
    let second = served.send_chat(&[key], &ask);
    while runs() < 2 {
        std::thread::yield_now();
    }
    let figures = served.ask("GET /metrics", &[key], "").body;
    for line in ["{state=\"under_way\"} 1", "{state=\"waiting\"} 1"] {
        assert!(figures.contains(&format!("consensus_server_runs{line}")), "{figures}");
    }
    door.open();
    assert_eq!((answer(first).status, answer(second).status), (200, 200));
    assert_eq!(served.chat(&[key], &ask).status, 429);
}

/// A row that a wrong clock has dated ahead uses up no day.
#[test]
fn row_of_later_day_is_not_charged() {
    let folder = Folder::new();
    folder.write("tokens", "a-token-of-sixteen tokens-a-day=10\n");
    let words = ["--mock", "--answer", "4", "--token-file", "tokens"];
    let (key, ask) = ("Authorization: Bearer a-token-of-sixteen", body("solver_checker", "How much is 2+2?"));
    let served = Served::start(&folder, &words);
    assert_eq!((served.chat(&[key], &ask).status, served.chat(&[key], &ask).status), (200, 429));
    assert_eq!(served.end(Signal::SIGTERM), Some(0));
    let path = folder.path().join("served/results-0.jsonl");
    let mut row: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    for time in ["started_at", "ended_at"] {
        row["timing"][time] = "2099-01-01T00:00:00.000000Z".into();
    }
    std::fs::write(&path, format!("{row}\n")).unwrap();
    let served = Served::start(&folder, &words);
    assert_eq!((served.chat(&[key], &ask).status, served.chat(&[key], &ask).status), (200, 429));
}

/// A token that floods the server gets half of the places, and another one gets a place at once.
#[test]
fn flood_of_token_leaves_places() {
    let folder = Folder::new();
    folder.write("tokens", "a-token-of-sixteen\nb-token-of-sixteen\n");
    let door = Arc::new(ReplyDoor::default());
    let llm = behind(&door);
    let url = llm.url();
    let words = ["--base-url", &url, "--model", "m", "--token-file", "tokens"];
    let served = Served::start(&folder, &[&words[..], &["--runs-at-once", "1", "--queue", "7"]].concat());
    let [greedy, other] = ["a", "b"].map(|token| format!("Authorization: Bearer {token}-token-of-sixteen"));
    let ask = body("writer_physicist", "How much is 2+2?");
    let flood: Vec<TcpStream> = (0..12).map(|_| served.send_chat(&[&greedy], &ask)).collect();
    while listed(&served, &[&greedy]).len() < 4 {
        std::thread::yield_now();
    }
    let refused = served.chat(&[&greedy], &ask);
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (429, &json!("queue_full")));
    let waiting = served.send_chat(&[&other], &ask);
    while listed(&served, &[&other]).is_empty() {
        std::thread::yield_now();
    }
    door.open();
    assert_eq!(answer(waiting).status, 200);
    let mut statuses: Vec<u16> = flood.into_iter().map(|stream| answer(stream).status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [[200; 4].as_slice(), &[429; 8]].concat());
}

/// A request for which there is no memory is refused after a short while. A small one fits beside large ones.
#[test]
fn large_requests_share_bounded_memory() {
    let (folder, door) = (Folder::new(), Arc::new(ReplyDoor::default()));
    let llm = behind(&door);
    let words = ["--base-url", &llm.url(), "--model", "m", "--runs-at-once", "1"];
    let served = Served::start(&folder, &words);
    let small = body("writer_physicist", "How much is 2+2?");
    let wait_for = |count: usize| {
        while listed(&served, &[]).len() != count {
            std::thread::yield_now();
        }
    };
    let _under_way = served.send_chat(&[], &small);
    while llm.chats().is_empty() {
        std::thread::yield_now();
    }
    // 16 MB of each are kept, and 48 MB are needed for a moment, of 256 MiB.
    let large = body("writer_physicist", &"x".repeat(8_000_000)).to_string();
    let json = ["Content-Type: application/json"];
    let send = || served.send("POST /v1/chat/completions", &json, &large);
    let mut waiting = Vec::new();
    for count in 2..=15 {
        waiting.push(send());
        wait_for(count);
    }
    let refused = answer(send());
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (429, &json!("no_memory")));
    assert!(refused.head.to_ascii_lowercase().contains("retry-after:"), "{}", refused.head);
    let _small = served.send_chat(&[], &small);
    wait_for(16);
    // A request that goes gives its memory to another.
    drop(waiting.pop());
    wait_for(15);
    let _large = send();
    wait_for(16);
}

/// A body whose values would take more memory than all requests may have is not parsed.
#[test]
fn dense_body_is_refused_unparsed() {
    let folder = Folder::new();
    let served = Served::start(&folder, &["--mock", "--answer", "4"]);
    let lists = "[[0]],".repeat(1_000_000);
    let ask = format!(
        r#"{{"model":"solver_checker","messages":[{{"role":"user","content":"2+2?"}}],"response_format":{{"type":"json_schema","schema":[{lists}0]}}}}"#
    );
    let headers = ["Content-Type: application/json", "Accept: application/json, text/event-stream"];
    for path in ["/v1/chat/completions", "/v1/responses", "/mcp"] {
        let refused = served.ask(&format!("POST {path}"), &headers, &ask);
        assert_eq!(
            (refused.status, &refused.json()["error"]["code"]),
            (413, &json!("body_too_long")),
            "{path}"
        );
    }
    // Parsed, it would take about 700 MB.
    if let Ok(about) = std::fs::read_to_string(format!("/proc/{}/status", served.pid())) {
        let peak = about.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(peak < 300_000, "{peak} kB");
    }
    assert_eq!(served.chat(&[], &body("solver_checker", "How much is 2+2?")).status, 200);
}

/// The replies that the caller causes count for its token, also after a restart.
#[test]
fn caller_that_hangs_up_still_pays() {
    let folder = Folder::new();
    folder.write("tokens", "a-token-of-sixteen tokens-a-day=10\n");
    // The third call of a run waits until its client has gone.
    let (door, count) = (Arc::new(Mutex::new(())), Arc::new(AtomicUsize::new(0)));
    let closed = door.lock().unwrap();
    let llm = Server::start({
        let (door, count) = (Arc::clone(&door), Arc::clone(&count));
        move |request: &Request| {
            if request.path.ends_with("/chat/completions") && count.fetch_add(1, Ordering::SeqCst) >= 2 {
                drop(door.lock());
            }
            model(SENSIBLE)(request)
        }
    });
    let url = llm.url();
    let words = ["--base-url", &url, "--model", "m", "--token-file", "tokens"];
    let served = Served::start(&folder, &words);
    let (key, ask) =
        ("Authorization: Bearer a-token-of-sixteen", body("writer_physicist", "How much is 2+2?"));
    let stream = served.send_chat(&[key], &ask);
    while count.load(Ordering::SeqCst) < 3 {
        std::thread::yield_now();
    }
    let status = || served.ask("GET /v1/runs", &[key], "").json()["data"][0]["status"].clone();
    drop(stream);
    while status() != "stopping" {
        std::thread::yield_now();
    }
    drop(closed);
    while status() == "stopping" {
        std::thread::yield_now();
    }
    assert_eq!(served.chat(&[key], &ask).status, 429);
    assert_eq!(served.end(Signal::SIGTERM), Some(0));
    let served = Served::start(&folder, &words);
    assert_eq!(served.chat(&[key], &ask).status, 429, "the next server remembers it");
}
