//! A run continues without a member whose server fails, says so, and verifies; with too few members left it fails and can be resumed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::support::{Act, Finished, Folder, Request, SENSIBLE, Server, completion, consensus, http, trust};

/// The words of a panel of three members, each on a server of its own.
const PANEL: [&str; 4] = ["--roleset", "panel_models", "--models", "a:one,b:two,c:three"];

/// The words of a vote of three voters, each on a server of its own.
const VOTE: [&str; 8] =
    ["--roleset", "vote_number", "--models", "a:one,b:two,c:three", "--stop", "none", "--samples-max", "6"];

/// A model that always finds 4.
fn honest(request: &Request) -> Vec<Act> {
    let body = request.json();
    let text = match body["response_format"]["json_schema"]["name"].as_str() {
        Some("ballot") => SENSIBLE(&body),
        Some(_) => json!({"response": "4"}).to_string(),
        None => "I count.\nAnswer: 4".to_owned(),
    };
    vec![Act::Send(completion(&text))]
}

fn refuses(status: &str) -> Vec<Act> {
    vec![Act::Send(http(status, "", b"{\"error\":{\"message\":\"not you\"}}"))]
}

/// A server that refuses every key while `is_broken` says so.
fn breakable(is_broken: &Arc<AtomicBool>) -> Server {
    let is_broken = is_broken.clone();
    Server::start(move |request| {
        if is_broken.load(Ordering::SeqCst) { refuses("401 Unauthorized") } else { honest(request) }
    })
}

/// A folder whose providers `a`, `b` and `c` are at these places.
fn folder_with(places: [&str; 3]) -> Folder {
    let folder = Folder::new();
    let mut config = "retries = 0\n".to_owned();
    for (name, place) in ["a", "b", "c"].into_iter().zip(places) {
        config.extend(["[providers.", name, "]\nbase_url = \"", place, "\"\n"]);
    }
    folder.write("consensus.toml", &config);
    trust(&folder);
    folder
}

fn run(folder: &Folder, words: &[&str], code: i32) -> Finished {
    let question = ["run", "--canonical", "number", "--prompt", "How much is 2+2?"];
    Finished::of(consensus(folder).args(question).args(words)).exits(code)
}

fn of_last(folder: &Folder, words: &[&str], code: i32) -> Finished {
    Finished::of(consensus(folder).args(words).arg("--last")).exits(code)
}

fn journal_of(folder: &Folder) -> String {
    std::fs::read_to_string(folder.run().join("journal.jsonl")).unwrap()
}

/// Returns the losses on record.
fn losses(folder: &Folder) -> Vec<Value> {
    let journal = journal_of(folder);
    let events = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].clone());
    events.filter(|event| event["type"] == "lost").collect()
}

/// Returns the details of the lost members in a result.
fn lost_members(result: &Value) -> Vec<&str> {
    let degraded = result["degraded"].as_array().unwrap().iter();
    degraded
        .filter(|loss| loss["kind"] == "member_lost")
        .map(|loss| loss["detail"].as_str().unwrap())
        .collect()
}

/// A key that is refused, a model that is not there, a server that is gone and one that fails all lose their member.
#[test]
fn panel_continues_without_a_lost_member() {
    let good = Server::start(honest);
    let other = Server::start(honest);
    let unauthorized = Server::start(|_: &Request| refuses("401 Unauthorized"));
    let absent = Server::start(|_: &Request| refuses("404 Not Found"));
    let failing = Server::start(|_: &Request| refuses("500 Internal Server Error"));
    for (place, cause) in [
        (unauthorized.url(), "answered 401"),
        (absent.url(), "answered 404"),
        (failing.url(), "answered 500"),
        ("http://127.0.0.1:1/v1".to_owned(), "the connection to"),
    ] {
        for talk in ["always", "differing"] {
            let folder = folder_with([&good.url(), &other.url(), &place]);
            let finished = run(&folder, &[&PANEL[..], &["--talk", talk]].concat(), 0);
            assert_eq!(finished.stdout, "4\n");
            let said = "its server failed, and the run continues without it: ";
            assert!(finished.stderr.contains(said), "{}", finished.stderr);
            let result = folder.result();
            let name = result["agents"][2]["name"].as_str().unwrap().to_owned();
            let lost = lost_members(&result);
            assert_eq!(lost.len(), 1, "{result}");
            assert!(lost[0].starts_with(&format!("{name}'s server failed in 1 call: ")), "{lost:?}");
            assert!(lost[0].contains(cause), "{lost:?}");
            assert_eq!(losses(&folder).len(), 1);
            // The record leads to the same end again, and nothing is added to it.
            let before = journal_of(&folder);
            for words in [&["verify"][..], &["resume"], &["show", "--replay"]] {
                of_last(&folder, words, 0);
            }
            assert_eq!((journal_of(&folder), folder.result()), (before, result));
            let transcript = std::fs::read_to_string(folder.run().join("transcript.md")).unwrap();
            assert!(transcript.contains(&format!("the run continued without {name}")), "{transcript}");
        }
    }
}

/// The samples of a lost voter keep their places and are not asked for.
#[test]
fn vote_continues_without_a_lost_voter() {
    let (good, other) = (Server::start(honest), Server::start(honest));
    let broken = Server::start(|_: &Request| refuses("401 Unauthorized"));
    let folder = folder_with([&broken.url(), &good.url(), &other.url()]);
    run(&folder, &VOTE, 0);
    let result = folder.result();
    assert_eq!(lost_members(&result).len(), 1, "{result}");
    let samples = result["vote"]["samples"].as_array().unwrap();
    let first = samples[0]["no_vote"].as_str().unwrap();
    assert!(first.starts_with("its server failed: ") && first.contains("401"), "{first}");
    assert_eq!(samples[3]["no_vote"], "its server failed before");
    assert_eq!((&result["vote"]["lead"]["leader"], broken.chats().len()), (&json!(4), 1), "{result}");
    of_last(&folder, &["verify"], 0);
}

/// With one of three members left, the run fails as it would without the rule, and continues once a server is back.
#[test]
fn two_lost_of_three_fail_the_run() {
    let is_broken = Arc::new(AtomicBool::new(true));
    let (one, two, good) = (breakable(&is_broken), breakable(&is_broken), Server::start(honest));
    let folder = folder_with([&one.url(), &two.url(), &good.url()]);
    let failed = run(&folder, &PANEL, 6);
    assert!(failed.stderr.contains("answered 401"), "{}", failed.stderr);
    assert_eq!((folder.result()["outcome"].as_str(), losses(&folder).len()), (Some("failed"), 1));
    of_last(&folder, &["verify"], 0);
    of_last(&folder, &["resume"], 6);
    is_broken.store(false, Ordering::SeqCst);
    of_last(&folder, &["resume"], 0);
    let result = folder.result();
    assert_eq!((lost_members(&result).len(), losses(&folder).len()), (1, 1), "{result}");
    of_last(&folder, &["verify"], 0);
}

/// Members on one server are lost together, so none of them is lost for good, and a resumed run has them all.
#[test]
fn members_of_one_server_fail_together() {
    let is_broken = Arc::new(AtomicBool::new(true));
    let server = breakable(&is_broken);
    let folder = Folder::new();
    folder.write("consensus.toml", "retries = 0\n");
    let place = ["--roleset", "panel_personas", "--model", "tiny-model", "--base-url", &server.url()];
    run(&folder, &place, 6);
    assert!(losses(&folder).is_empty());
    is_broken.store(false, Ordering::SeqCst);
    of_last(&folder, &["resume"], 0);
    assert!(lost_members(&folder.result()).is_empty());
}

#[test]
fn min_members_decides_how_many_remain() {
    let (good, other) = (Server::start(honest), Server::start(honest));
    let broken = Server::start(|_: &Request| refuses("401 Unauthorized"));
    let urls = [good.url(), other.url(), broken.url()];
    let places = urls.each_ref().map(String::as_str);
    run(&folder_with(places), &[&PANEL[..], &["--set", "params.min_members=3"]].concat(), 6);
    run(&folder_with(places), &[&VOTE[..], &["--set", "params.min_members=3"]].concat(), 6);
    for words in [&PANEL[..], &VOTE] {
        let refused = run(&folder_with(places), &[words, &["--set", "params.min_members=17"]].concat(), 2);
        assert!(refused.stderr.contains("min_members"), "{}", refused.stderr);
    }
    let refused = run(&folder_with(places), &[&PANEL[..], &["--set", "params.min_members=4"]].concat(), 2);
    assert!(refused.stderr.contains("it is 4, and the run has 3 members"), "{}", refused.stderr);
}

/// A reply cannot be replaced by a loss where the protocol needs the agent.
#[test]
fn forged_loss_does_not_verify() {
    let folder = Folder::new();
    let words = ["run", "-q", "--mock", "--answer", "4", "--prompt", "How much is 2+2?"];
    Finished::of(consensus(&folder).args(words)).exits(0);
    let (mut forged, mut head) = (String::new(), crypto::Digest::ZERO);
    for line in journal_of(&folder).lines() {
        let mut record: Value = serde_json::from_str(line).unwrap();
        let is_reply = record["event"]["type"] == "replied";
        if is_reply {
            record["event"] = json!({"type": "lost", "call": record["event"]["call"], "cause": "it is gone"});
        }
        record["prev"] = json!(head);
        let line = record.to_string();
        head = crypto::Digest::new(line.as_bytes());
        forged.extend([&line, "\n"]);
        if is_reply {
            break;
        }
    }
    std::fs::write(folder.run().join("journal.jsonl"), forged).unwrap();
    std::fs::remove_file(folder.run().join("result.json")).unwrap();
    let refused = of_last(&folder, &["verify"], 7).stderr;
    assert!(refused.contains("the protocol does not continue without its agent"), "{refused}");
}
