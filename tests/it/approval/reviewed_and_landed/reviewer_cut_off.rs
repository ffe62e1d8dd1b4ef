//! What a reviewer in a process of its own does when something stands in its way.

use std::process::Stdio;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::{Finished, House, NAMES, Serving, consensus};

#[test]
fn reviewer_ends_well_at_its_deadline() {
    let mut quality = House::new().serve("Quality", &["--mock", "--deadline", "1s"]);
    assert_eq!(quality.child.wait().unwrap().code(), Some(0));
}

/// A review that a signal cuts off is no opinion, and the reply of its open call is awaited.
#[test]
fn interrupted_review_resumes_and_votes() {
    let house = House::new();
    let slow = "{\"delay_ms\": 400, \"policy\": \"honest\", \"answer\": \"approve\"}\n";
    house.project.folder.write("slow.jsonl", slow);
    let words = ["--mock-script", "slow.jsonl"];
    let mut quality = house.serve("Quality", &words);
    let _others: Vec<Serving> = ["Security", "Performance"].map(|name| house.serve(name, &words)).into();
    let mut propose = house.propose(&["--change", "fix", "--deadline", "60s"]);
    let mut proposer = propose.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    quality.wait_for("Quality: thinks");
    quality.signal(Signal::SIGTERM);
    assert_eq!(quality.child.wait().unwrap().code(), Some(130), "all it knows is kept");
    // The reply of the open call was awaited, since it is paid for.
    let run = std::fs::read_dir(house.path("of/Quality/runs")).unwrap().next().unwrap().unwrap().path();
    let verified = ["verify", run.to_str().unwrap()];
    let verified = Finished::of(consensus(&house.project.folder).args(verified)).exits(0).stdout;
    assert!(!verified.contains("lost calls"), "{verified}");
    // All three are needed: nothing is decided without it.
    assert!(proposer.try_wait().unwrap().is_none());
    let mut quality = house.serve("Quality", &words);
    quality.wait_for("decision 1: this reviewer voted approve");
    let said = proposer.wait_with_output().unwrap().stdout;
    let said: Value = serde_json::from_slice(&said).unwrap();
    assert_eq!((&said["outcome"], &said["silent"]), (&json!("landed"), &json!(["Compatibility"])), "{said}");
    let votes = said["votes"].as_array().unwrap();
    assert!(votes.iter().all(|vote| vote["opinion"]["approve"].is_object()), "{said}");
}

/// A reviewer that cannot fetch says so and reviews with what it has.
#[test]
fn failed_fetch_stops_no_review() {
    let house = House::new();
    let mut serving: Vec<Serving> =
        NAMES.iter().map(|name| house.serve(name, &["--mock", "--fetch", "nowhere"])).collect();
    let said = house.said(&["--change", "fix"], 0);
    assert_eq!(said["outcome"], json!("landed"), "{said}");
    serving[0].wait_for("cannot fetch from nowhere: ");
}
