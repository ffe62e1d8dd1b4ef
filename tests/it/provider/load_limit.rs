//! Many requests at once: no server gets more than it can do, and of several each gets its part.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Act, Finished, Folder, Request, SENSIBLE, Server, consensus, http, model, stream};

fn batch(folder: &Folder, tasks: usize, words: &[&str], code: i32) -> Value {
    let line = |id| json!({"id": id, "prompt": format!("How much is {id} + 1?")}).to_string() + "\n";
    folder.write("tasks.jsonl", &(1..=tasks).map(line).collect::<String>());
    let mut command = consensus(folder);
    command.args(["batch", "tasks.jsonl", "--output", "out", "--format", "json", "--quiet"]);
    command.args(["--roleset", "writer_physicist"]).args(words);
    if !words.contains(&"--model") {
        command.args(["--model", "tiny-model"]);
    }
    serde_json::from_str::<Value>(&Finished::of(&mut command).exits(code).stdout).unwrap()["figures"].take()
}

/// A server that answers 429 beyond its capacity refuses fewer than half of the requests, and no run fails.
#[test]
fn load_adapts_to_a_refusing_server() {
    const MOST: usize = 8;
    let (busy, refused) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let say = model(SENSIBLE);
    let server = {
        let refused = Arc::clone(&refused);
        Server::start(move |request: &Request| {
            let now = busy.fetch_add(1, Ordering::SeqCst) + 1;
            let acts = if now > MOST {
                refused.fetch_add(1, Ordering::SeqCst);
                vec![Act::Send(http("429 Too Many Requests", "", b"{\"error\":{\"message\":\"too many\"}}"))]
            } else {
                // What it takes to answer.
                std::thread::sleep(Duration::from_millis(5));
                say(request)
            };
            busy.fetch_sub(1, Ordering::SeqCst);
            acts
        })
    };
    let folder = Folder::new();
    let done = batch(&folder, 40, &["--base-url", &server.url(), "--runs-at-once", "40"], 0);
    assert_eq!((&done["ended"]["agreed"], &done["ended"]["failed"]), (&json!(40), &json!(0)), "{done}");
    let (asked, refused) = (server.chats().len(), refused.load(Ordering::SeqCst));
    assert!(refused > 0 && refused < asked / 2, "{refused} of {asked} refused");
}

/// A server that takes a while, and the most requests that it has had at once.
fn counting() -> (Server, Arc<AtomicUsize>) {
    let (busy, most) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let (say, highest) = (model(SENSIBLE), Arc::clone(&most));
    let server = Server::start(move |request: &Request| {
        highest.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(2));
        busy.fetch_sub(1, Ordering::SeqCst);
        say(request)
    });
    (server, most)
}

#[test]
fn request_limit_holds_across_threads() {
    let (server, most) = counting();
    let words =
        ["--base-url", &server.url(), "--runs-at-once", "30", "--calls-at-once", "3", "--threads", "4"];
    let done = batch(&Folder::new(), 30, &words, 0);
    assert_eq!(done["ended"]["agreed"], 30, "{done}");
    assert!(most.load(Ordering::SeqCst) <= 3, "{most:?}");
}

#[test]
fn request_limit_holds_across_runs() {
    let (server, most) = counting();
    let words = ["--base-url", &server.url(), "--runs-at-once", "30", "--calls-at-once", "3"];
    let done = batch(&Folder::new(), 30, &words, 0);
    assert_eq!(done["ended"]["agreed"], 30, "{done}");
    assert!(most.load(Ordering::SeqCst) <= 3, "{most:?}");
    assert!(server.connections.load(Ordering::SeqCst) <= 3 + 2, "no more connections than requests");
}

#[test]
fn request_limit_holds_across_models() {
    let (server, most) = counting();
    let words = ["--base-url", &server.url(), "--runs-at-once", "30", "--calls-at-once", "2"];
    let words = [&words[..], &["--model", "one,two,three"]].concat();
    let done = batch(&Folder::new(), 10, &words, 0);
    assert_eq!(done["ended"]["agreed"], 30, "{done}");
    assert!(most.load(Ordering::SeqCst) <= 2, "{most:?}");
}

/// Which servers each conversation was on.
fn places(servers: &[&Server]) -> BTreeMap<String, BTreeSet<usize>> {
    let mut places: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for (at, server) in servers.iter().enumerate() {
        for request in server.chats() {
            let messages = request.json()["messages"].clone();
            places.entry(format!("{} {}", messages[0], messages[1])).or_default().insert(at);
        }
    }
    places
}

/// Two servers get about as many requests each, and every conversation stays on one of them.
#[test]
fn servers_share_work_by_conversation() {
    let servers = [Server::start(model(SENSIBLE)), Server::start(model(SENSIBLE))];
    let urls = format!("{},{}/", servers[0].url(), servers[1].url());
    let done = batch(&Folder::new(), 40, &["--base-url", &urls, "--runs-at-once", "8"], 0);
    assert_eq!(done["ended"]["agreed"], 40, "{done}");
    let counts = servers.each_ref().map(|server| server.chats().len());
    assert!(counts[0].abs_diff(counts[1]) < (counts[0] + counts[1]) / 4, "{counts:?}");
    let places = places(&servers.each_ref());
    assert!(places.values().all(|at| at.len() == 1), "{places:?}");
}

/// A server that dies is asked less, its conversations continue on another, and no run fails.
#[test]
fn work_moves_off_a_dead_server() {
    let well = Server::start(model(SENSIBLE));
    let broken = Server::start(
        |request: &Request| {
            if request.index < 30 { model(SENSIBLE)(request) } else { vec![Act::Close] }
        },
    );
    let urls = format!("{},{}", broken.url(), well.url());
    let done = batch(&Folder::new(), 60, &["--base-url", &urls, "--runs-at-once", "12"], 0);
    assert_eq!((&done["ended"]["agreed"], &done["ended"]["failed"]), (&json!(60), &json!(0)), "{done}");
    // It is tried again now and then, and not asked for everything.
    assert!(
        broken.chats().len() < well.chats().len() / 2,
        "{} and {}",
        broken.chats().len(),
        well.chats().len()
    );
}

#[test]
fn each_of_several_urls_must_be_safe() {
    let words = ["--base-url", "http://127.0.0.1:1/v1,http://192.0.2.1/v1"];
    let folder = Folder::new();
    folder.write("tasks.jsonl", "{\"id\": 1, \"prompt\": \"x\"}\n");
    let mut command = consensus(&folder);
    command.args(["batch", "tasks.jsonl", "--output", "out", "--model", "m"]).args(words);
    let refused = Finished::of(&mut command).exits(2);
    assert!(refused.stderr.contains("`http://192.0.2.1/v1`: plain http"), "{}", refused.stderr);
}

/// Where one of two servers refuses the key, at most eight of thirty tasks fail.
#[test]
fn key_refusing_server_spares_most_tasks() {
    let (well, list) = (Server::start(model(SENSIBLE)), model(SENSIBLE));
    let strict = Server::start(move |request: &Request| {
        if request.path.ends_with("/models") {
            return list(request);
        }
        vec![Act::Send(http("401 Unauthorized", "", b"{\"error\":{\"message\":\"no key\"}}"))]
    });
    let urls = format!("{},{}", well.url(), strict.url());
    let done = batch(&Folder::new(), 30, &["--base-url", &urls, "--runs-at-once", "4"], 6);
    let failed = done["ended"]["failed"].as_u64().unwrap();
    assert!((1..=8).contains(&failed), "{done}");
    assert_eq!(done["ended"]["agreed"].as_u64().unwrap() + failed, 30, "{done}");
}

/// The connections of streamed answers are used again even if the end of a body arrives separately.
#[test]
fn streamed_answers_free_their_connections() {
    const RUNS: usize = 4;
    let list = model(SENSIBLE);
    let server = Server::start(move |request: &Request| {
        if !request.path.ends_with("/chat/completions") {
            return list(request);
        }
        let bytes = stream(&SENSIBLE(&request.json()), 40);
        // As servers do that write the end of a body by itself.
        let (content, end) = bytes.split_at(bytes.len() - 5);
        vec![Act::Send(content.to_owned()), Act::Pause(Duration::from_millis(3)), Act::Send(end.to_owned())]
    });
    let at_once = RUNS.to_string();
    let folder = Folder::new();
    let done = batch(&folder, 30, &["--base-url", &server.url(), "--runs-at-once", &at_once], 0);
    assert_eq!(done["ended"]["agreed"], 30, "{done}");
    let (asked, connections) = (server.chats().len(), server.connections.load(Ordering::SeqCst));
    // A run has two drafts in the air at once.
    assert!(asked > 200 && connections <= 2 * RUNS + 2, "{connections} connections for {asked} requests");
}
