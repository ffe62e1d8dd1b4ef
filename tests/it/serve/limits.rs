//! What a server counts: the figures for Prometheus, and what each token may use in a day.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use nix::sys::signal::Signal;
use serde_json::json;

use super::{Door, behind, body};
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
    let door = Arc::new(Door::default());
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
