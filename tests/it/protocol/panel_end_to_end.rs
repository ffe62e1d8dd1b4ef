//! Panels as people run them: who sits on one, what is left of it in files, and how long it takes.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Act, Finished, Folder, SENSIBLE, Server, completion, consensus, http, mark, model};

#[test]
fn persona_panel_answers_on_command_line() {
    let folder = Folder::new();
    let run =
        ["run", "--mock", "--answer", "4", "--roleset", "panel_personas", "--prompt", "How much is 2+2?"];
    let line = "a contrary physicist who looks at everything sideways";
    let finished = Finished::of(consensus(&folder).args(run).args(["--persona", line])).exits(0);
    assert_eq!(finished.stdout, "4\n");
    let result = folder.result();
    assert_eq!((&result["outcome"], &result["how"]), (&json!("agreed"), &json!("scored")));
    let panel = &result["panel"];
    assert_eq!(panel["responses"].as_array().unwrap().len(), 7);
    assert_eq!((&panel["consensusReached"], &panel["iterations"]), (&json!(true), &json!(1)));
    assert_eq!(panel["responses"][6]["member"], "Contrary_physicist");
    assert!(panel["notes"][0].as_str().unwrap().contains("weak evidence"), "{panel}");
    for check in [&["verify"][..], &["show", "--replay"]] {
        Finished::of(consensus(&folder).args(check).arg("--last")).exits(0);
    }
    // The transcript has the names that no ballot had.
    let shown = Finished::of(consensus(&folder).args(["show", "--full", "--last"])).exits(0).stdout;
    assert!(shown.contains(", by Analyst: **36** (accuracy 9") && shown.contains("## Ranking"), "{shown}");
}

/// A judge that sees the answer B under the label D takes the label for the answer.
#[test]
fn ballot_labels_avoid_the_choices() {
    let folder = Folder::new();
    let run =
        ["run", "--mock", "--answer", "B", "--roleset", "panel_personas", "--choices", "A,B,C,D", "--prompt"];
    Finished::of(consensus(&folder).args(run).arg("Which is even?\nA) 1\nB) 2\nC) 3\nD) 5")).exits(0);
    let result = folder.result();
    let evaluations = result["panel"]["evaluations"].as_array().unwrap();
    let labels: BTreeSet<&str> = evaluations.iter().map(|one| one["label"].as_str().unwrap()).collect();
    assert_eq!(labels.into_iter().collect::<String>(), "PQRST");
}

#[test]
fn flags_choose_panel_members() {
    let seated = |words: &[&str]| {
        let folder = Folder::new();
        let run = ["run", "--mock", "--answer", "4", "--prompt", "2+2?", "--roleset", "panel_personas"];
        Finished::of(consensus(&folder).args(run).args(words)).exits(0);
        let agents = folder.result()["agents"].as_array().unwrap().clone();
        agents.iter().map(|agent| agent["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(seated(&["--members", "Optimist,critical thinker"]), ["Critical_thinker", "Optimist"]);
    assert_eq!(
        seated(&["--self-panel", "3"]),
        ["Critical_thinker_1", "Critical_thinker_2", "Critical_thinker_3"]
    );
    assert_eq!(seated(&["--members", "analyst", "--persona", "Pragmatist"]), ["Analyst", "Pragmatist"]);
    let models =
        ["--models", "vllm:Qwen/Qwen2.5-7B-Instruct,ollama:llama3.1:8b,ollama:llama3.1:8b,lab:a1,mistral:7b"];
    assert_eq!(seated(&models), ["Qwen2_5-7B-Instruct", "Llama3_1", "Llama3_1_2", "A1", "Mistral"]);
    let redacted =
        ["--members", "analyst", "--redact", "--persona", "patient.zero@clinic.example is your patient"];
    assert_eq!(seated(&redacted), ["Analyst", "Persona"]);
    for (words, why) in [
        (["--members", "analyst"], "`panel` has 2 to 16 agents, not 1"),
        (["--members", "analist"], "did you mean `Analyst`?"),
        (["--persona", "42"], "no persona `42`"),
        (["--persona", "Analyst"], "`Analyst` is already a member of this panel"),
        (["--models", "a,"], "a model's name is empty"),
        (["--max-rounds", "21"], "`max_iterations` is 1 to 20"),
        (["--thinking", "field"], "--thinking field goes with rolesets of `pair` only"),
    ] {
        let folder = Folder::new();
        let run = ["run", "--mock", "--answer", "4", "--prompt", "2+2?", "--roleset", "panel_personas"];
        let refused = Finished::of(consensus(&folder).args(run).args(words)).exits(2);
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
    }
    let folder = Folder::new();
    let run = ["run", "--mock", "--answer", "4", "--prompt", "2+2?", "--self-panel", "3"];
    let refused = Finished::of(consensus(&folder).args(run)).exits(2);
    assert!(refused.stderr.contains("goes with rolesets of `panel` only"), "{}", refused.stderr);
}

#[test]
fn personas_are_listed_shown_and_written() {
    let folder = Folder::new();
    let listed = Finished::of(consensus(&folder).args(["persona", "list"])).exits(0);
    assert_eq!(listed.stdout.lines().count(), 6);
    let shown = Finished::of(consensus(&folder).args(["persona", "show", "critical thinker"])).exits(0);
    assert!(shown.stdout.starts_with("# Critical_thinker (flaws"), "{}", shown.stdout);
    let new = ["persona", "new", "Sherlock Holmes, who trusts nothing but what he sees"];
    let written = Finished::of(consensus(&folder).args(new)).exits(0);
    assert_eq!(written.stdout, "rolesets/packs/sherlock_holmes.md\n");
    let pack = std::fs::read_to_string(folder.path().join("rolesets/packs/sherlock_holmes.md")).unwrap();
    assert!(pack.starts_with("You are Sherlock Holmes, who trusts"), "{pack}");
    let again = Finished::of(consensus(&folder).args(new)).exits(2);
    assert!(again.stderr.contains("cannot write"), "{}", again.stderr);
}

#[test]
fn a_roleset_may_ask_one_model_several_times() {
    let folder = Folder::new();
    folder.write("rolesets/packs/me.md", "You answer with care.");
    let roleset = json!({
        "v": 1, "protocol": "panel", "self_panel": 4,
        "agents": [{"name": "Me", "domain": "all", "pack": "me.md"}],
        "params": {"thinking": "none"},
    });
    folder.write("rolesets/mine.json", &roleset.to_string());
    Finished::of(consensus(&folder).args(["roleset", "check", "mine"])).exits(0);
    let server = Server::start(model(SENSIBLE));
    let run = [
        "run",
        "--roleset",
        "mine",
        "--model",
        "tiny-model",
        "--prompt",
        "2+2?",
        "--base-url",
        &server.url(),
    ];
    Finished::of(consensus(&folder).args(run)).exits(0);
    let seeds: BTreeSet<String> = server.chats().iter().map(|chat| chat.json()["seed"].to_string()).collect();
    assert_eq!(seeds.len(), server.chats().len(), "each call has a seed of its own");
    assert_eq!(folder.result()["panel"]["responses"][3]["model"], "tiny-model");
}

/// How long a server waits for the other calls of a phase before it takes them for missing.
const MEETING_MAX: Duration = Duration::from_mins(2);

/// Answers no call until `size` calls are open at once, again and again; returns whether they came.
fn meets(here: &Mutex<usize>, arrivals: &Condvar, size: usize) -> bool {
    let mut here = here.lock().unwrap();
    *here += 1;
    let round = here.div_ceil(size);
    arrivals.notify_all();
    let (here, _) = arrivals.wait_timeout_while(here, MEETING_MAX, |here| *here < round * size).unwrap();
    *here >= round * size
}

/// All eight members are asked for their answers at once, and then all for their ballots at once.
#[test]
fn eight_members_are_asked_at_once() {
    let (here, arrivals) = (Mutex::new(0), Condvar::new());
    let server = Server::start(move |request| {
        if request.path.ends_with("/models") {
            return vec![Act::Send(http("200 OK", "", b"{\"data\":[{\"id\":\"tiny-model\"}]}"))];
        }
        if meets(&here, &arrivals, 8) { model(SENSIBLE)(request) } else { vec![Act::Close] }
    });
    let folder = Folder::new();
    let run = ["run", "--roleset", "panel_personas", "--self-panel", "8", "--thinking", "none"];
    let place = ["--model", "tiny-model", "--base-url", &server.url(), "--prompt", "2+2?"];
    Finished::of(consensus(&folder).args(run).args(place)).exits(0);
    assert_eq!(server.chats().len(), 16);
}

/// A panel and a council state the choices or the JSON form in a request, and print an answer of that form.
#[test]
fn answer_form_is_stated_and_kept() {
    // An agent that answers takes the second of the choices that its form has, or writes a JSON value as it is.
    let server = Server::start(|request| {
        let body = request.json();
        let form = &body["response_format"]["json_schema"];
        let answer = &form["schema"]["properties"]["response"];
        let said = if answer["enum"].is_array() { answer["enum"][1].clone() } else { json!({"a": [1, "b"]}) };
        let reply = match form["name"].as_str() {
            Some("answer") => json!({"response": said}).to_string(),
            Some("response") => {
                json!({"response": said, "citations": [], "reasoning": "r", "confidence": 0.95}).to_string()
            }
            Some(_) | None => SENSIBLE(&body),
        };
        vec![Act::Send(completion(&reply))]
    });
    for roleset in ["panel_personas", "council_tripartite"] {
        for (words, text, statement) in [
            (["--choices", "yes,no"], "no", "exactly one of yes, no"),
            (["--canonical", "json"], "{\"a\":[1,\"b\"]}", "one JSON value"),
        ] {
            let folder = Folder::new();
            let run = [
                "run",
                "--roleset",
                roleset,
                "--prompt",
                "Is it so?",
                "--model",
                "m",
                "--base-url",
                &server.url(),
            ];
            let finished = Finished::of(consensus(&folder).args(run).args(words)).exits(0);
            assert_eq!(finished.stdout, format!("{text}\n"), "{}", finished.stderr);
            assert!(server.chats().last().unwrap().body.contains(statement), "{roleset} reads the form");
        }
    }
}

#[test]
fn calls_at_once_limits_a_panel() {
    // Each phase of six members is two rows of three: no member gets an answer until three have asked.
    let (here, arrivals) = (Mutex::new(0), Condvar::new());
    let open = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let seen = open.clone();
    let server = Server::start(move |request| {
        seen.1.fetch_max(seen.0.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        let met = meets(&here, &arrivals, 3);
        seen.0.fetch_sub(1, Ordering::SeqCst);
        if met { model(SENSIBLE)(request) } else { vec![Act::Close] }
    });
    let folder = Folder::new();
    folder.write("consensus.toml", "calls_at_once = 3\n");
    let run = ["run", "--roleset", "panel_personas", "--thinking", "none", "--prompt", "2+2?"];
    let place = ["--model", "tiny-model", "--base-url", &server.url()];
    Finished::of(consensus(&folder).args(run).args(place)).exits(0);
    assert_eq!((server.chats().len(), open.1.load(Ordering::SeqCst)), (12, 3));
}

#[test]
fn replies_after_the_verdict_are_not_awaited() {
    // Four evaluators of five are enough to decide; the last one takes ten minutes.
    let server = Server::start(|request| {
        let body = request.json();
        let text = body["messages"].to_string();
        let is_slow =
            text.contains("Two chances") && body["response_format"]["json_schema"]["name"] == "ballot";
        let reply = match body["response_format"]["json_schema"]["name"].as_str() {
            Some("answer") if text.contains("what works in practice") => "{\"response\":\"best\"}".to_owned(),
            Some("answer") => json!({"response": if is_first(&text) { "bad" } else { "worse" }}).to_string(),
            Some(_) => {
                let lines: Vec<&str> = text.split("\\n").collect();
                let marks: serde_json::Map<String, Value> = ["P", "Q", "R", "S"]
                    .iter()
                    .map(|label| {
                        let is_best =
                            lines.iter().any(|l| l.starts_with(&format!("{label}: ")) && l.contains("best"));
                        ((*label).to_owned(), mark(if is_best { 10 } else { 1 }))
                    })
                    .collect();
                Value::from(marks).to_string()
            }
            None => String::new(),
        };
        let wait = if is_slow { Duration::from_mins(10) } else { Duration::ZERO };
        vec![Act::Pause(wait), Act::Send(completion(&reply))]
    });
    let folder = Folder::new();
    folder.write("rolesets/packs/p.md", "You answer with care.");
    let agent = |name: &str, domain: &str| json!({"name": name, "domain": domain, "pack": "p.md"});
    let roleset = json!({
        "v": 1, "protocol": "panel", "params": {"thinking": "none"},
        "agents": [agent("Ann", "first things"), agent("Bob", "what works in practice"), agent("Cat", "Two chances"), agent("Dan", "one"), agent("Eve", "two")],
    });
    folder.write("rolesets/mine.json", &roleset.to_string());
    let began = Instant::now();
    let run = [
        "run",
        "--roleset",
        "mine",
        "--model",
        "tiny-model",
        "--prompt",
        "Which?",
        "--base-url",
        &server.url(),
    ];
    let _ = Finished::of(consensus(&folder).args(run));
    let panel = &folder.result()["panel"];
    assert!(began.elapsed() < Duration::from_mins(5), "the slow ballot was awaited");
    assert_eq!(panel["winner"]["content"], "best");
    // The slow one, and the winner's own if it came after the other three.
    let cancelled = panel["cancelledBallots"].as_u64().unwrap();
    assert!((1..=2).contains(&cancelled), "{panel}");
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
}

fn is_first(text: &str) -> bool {
    text.contains("first things")
}
