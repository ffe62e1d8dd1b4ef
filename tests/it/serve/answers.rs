//! The answers that a client gets.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::{ReplyDoor, behind, body};
use crate::support::{
    Act, Finished, Folder, Request, SENSIBLE, Served, Server, answer, completion, consensus, model,
};

/// The usage in the answer is the usage of the whole run.
#[test]
fn answer_has_agreed_text_and_usage() {
    let folder = Folder::new();
    let served = Served::start(&folder, &["--mock", "--answer", "4"]);
    let said = served.chat(&[], &body("consensus/solver_checker", "How much is 2+2?"));
    assert_eq!(said.status, 200, "{said:?}");
    let said = said.json();
    assert_eq!(said["object"], "chat.completion");
    assert_eq!(said["model"], "consensus/solver_checker");
    assert_eq!(said["choices"][0]["message"], json!({"role": "assistant", "content": "4", "refusal": null}));
    assert_eq!(said["choices"][0]["finish_reason"], "stop");
    assert_eq!(
        (&said["consensus"]["outcome"], &said["consensus"]["how"]),
        (&json!("agreed"), &json!("independent"))
    );

    // The run can be read under its id, and the folder is a batch.
    let run = said["consensus"]["run"].as_str().unwrap();
    let row = served.ask(&format!("GET /v1/runs/{run}"), &[], "").json();
    assert_eq!((&row["status"], &row["text"]), (&json!("ended"), &json!("4")));
    assert_eq!(row["usage"]["prompt"], said["usage"]["prompt_tokens"]);
    assert_eq!(row["journal_head"], said["consensus"]["journal_head"]);
    assert_eq!(served.end(Signal::SIGTERM), Some(0), "a signal is the way to end a server");
    Finished::of(consensus(&folder).args(["verify", "served"])).exits(0);
    let results = Finished::of(consensus(&folder).args(["results", "served"])).exits(0);
    assert!(
        results.stdout.contains("solver_checker") && !results.stderr.contains("incomplete"),
        "{}",
        results.stderr
    );
}

/// The stream begins before any model answers.
#[test]
fn stream_sends_answer_only_at_end() {
    let (folder, door) = (Folder::new(), Arc::new(ReplyDoor::default()));
    let llm = behind(&door);
    let served = Served::start(&folder, &["--base-url", &llm.url(), "--model", "m"]);
    let mut ask = body("writer_physicist", "How much is 2+2?");
    ask["stream"] = true.into();
    ask["stream_options"] = json!({"include_usage": true});
    let stream = served.send_chat(&[], &ask);
    // The head comes while no model has said anything.
    let mut head = [0; 4096];
    let count = stream.peek(&mut head).unwrap();
    assert!(String::from_utf8_lossy(&head[..count]).starts_with("HTTP/1.1 200"));
    door.open();
    let events = answer(stream).events();
    assert_eq!(events[0]["choices"][0]["delta"]["role"], "assistant");
    let story: Vec<&str> =
        events.iter().filter_map(|event| event["choices"][0]["delta"]["reasoning"].as_str()).collect();
    assert!(story.iter().any(|line| line.starts_with("Writer wrote a draft")), "{story:?}");
    let is_content = |event: &&Value| {
        event["choices"][0]["delta"]["content"].as_str().is_some_and(|text| !text.is_empty())
    };
    assert_eq!(events.iter().filter(is_content).count(), 1, "the answer is sent once it is final");
    let [.., answer, end, usage] = events.as_slice() else { panic!("{events:?}") };
    assert!(answer["choices"][0]["delta"]["content"].is_string());
    assert_eq!(end["consensus"]["outcome"], "agreed", "{end}");
    assert_eq!(end["choices"][0]["finish_reason"], "stop");
    assert_eq!(usage["choices"], json!([]));
    assert!(usage["usage"]["total_tokens"].as_u64() > Some(0));
}

#[test]
fn a_supervisor_asks_whether_a_server_is_there() {
    let folder = Folder::new();
    let served = Served::start(&folder, &["--mock", "--answer", "4"]);
    let there = Finished::of(consensus(&folder).args(["health", &served.place])).exits(0);
    assert!(there.stdout.contains(&served.place), "{}", there.stdout);
    let place = served.place.clone();
    assert_eq!(served.end(Signal::SIGTERM), Some(0));
    let gone = Finished::of(consensus(&folder).args(["health", &place])).exits(6);
    assert!(gone.stderr.contains("there is no server at"), "{}", gone.stderr);
}

/// A run without agreement is answered with status 200 and a refusal.
#[test]
fn missing_agreement_is_no_error() {
    let folder = Folder::new();
    let insists = |agent: &str, answer: &str| {
        json!({"agent": agent, "policy": "stubborn", "answer": answer}).to_string()
    };
    let rule = [insists("Solver", "4"), insists("Checker", "5")].join("\n");
    folder.write("script.jsonl", &rule);
    let served = Served::start(&folder, &["--roleset", "solver_checker", "--mock-script", "script.jsonl"]);
    let said = served.chat(&[], &body("solver_checker", "How much is 2+2?"));
    assert_eq!(said.status, 200, "{said:?}");
    let said = said.json();
    assert_eq!(said["consensus"]["outcome"], "no_agreement", "{said}");
    assert!(said["choices"][0]["message"]["refusal"].is_string(), "{said}");
}

#[test]
fn the_wishes_of_a_request_reach_its_run() {
    let folder = Folder::new();
    let llm = Server::start(model(SENSIBLE));
    let served = Served::start(&folder, &["--base-url", &llm.url(), "--model", "m"]);
    let mut ask = body("writer_physicist", "How much is 2+2?");
    ask["messages"] = json!([
        {"role": "system", "content": "Say so briefly."},
        {"role": "user", "content": "How much is 2+2?"},
    ]);
    (ask["seed"], ask["max_completion_tokens"]) = (7.into(), 321.into());
    let first = served.chat(&[], &ask);
    assert_eq!(first.status, 200, "{first:?}");
    let sent = llm.chats()[0].json();
    assert_eq!(sent["max_tokens"], 321);
    assert!(sent["messages"].to_string().contains("Say so briefly."), "{sent}");
    // Two calls at once come in any order.
    let seeds = |from: usize| {
        llm.chats()[from..].iter().map(|chat| chat.json()["seed"].as_u64()).collect::<BTreeSet<_>>()
    };
    let (before, count) = (seeds(0), llm.chats().len());
    served.chat(&[], &ask);
    assert_eq!(seeds(count), before, "the same seed asks for the same samples");
}

/// A caller can only lower the limit of the roleset.
#[test]
fn request_cannot_raise_reply_limit() {
    let (folder, llm) = (Folder::new(), Server::start(model(SENSIBLE)));
    let served = Served::start(&folder, &["--base-url", &llm.url(), "--model", "m"]);
    let mut ask = body("writer_physicist", "How much is 2+2?");
    let mut limits = |max: u32| {
        ask["max_completion_tokens"] = max.into();
        let asked = llm.chats().len();
        assert_eq!(served.chat(&[], &ask).status, 200);
        let chats = llm.chats();
        chats[asked..].iter().map(|chat| chat.json()["max_tokens"].as_u64()).collect::<BTreeSet<_>>()
    };
    assert_eq!(limits(1_000_000), BTreeSet::from([Some(700)]));
    assert_eq!(limits(321), BTreeSet::from([Some(321)]));
}

/// A request for an unknown model fails with `model_not_found`.
#[test]
fn rolesets_are_listed_as_models() {
    let folder = Folder::new();
    let served =
        Served::start(&folder, &["--mock", "--answer", "4", "--roleset", "solver_checker,vote_number"]);
    let models = served.ask("GET /v1/models", &[], "").json();
    let names: Vec<&str> =
        models["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(names, ["consensus/solver_checker", "consensus/vote_number"]);
    assert_eq!(models["data"][0]["description"], "Exact numeric answers, each worked out by two routes.");
    assert_eq!(served.ask("GET /v1/models/consensus/vote_number", &[], "").json()["object"], "model");
    let unknown = served.chat(&[], &body("gpt-5", "How much is 2+2?"));
    assert_eq!((unknown.status, &unknown.json()["error"]["code"]), (404, &json!("model_not_found")));
}

/// The run of a request with a key continues to its end.
#[test]
fn dropped_request_stops_run_without_key() {
    for (headers, outcome) in [(vec![], "interrupted"), (vec!["Idempotency-Key: k"], "agreed")] {
        let (folder, door) = (Folder::new(), Arc::new(ReplyDoor::default()));
        let llm = behind(&door);
        let served = Served::start(&folder, &["--base-url", &llm.url(), "--model", "m"]);
        let stream = served.send_chat(&headers, &body("writer_physicist", "How much is 2+2?"));
        // The run is on record once its first calls have come.
        while llm.chats().len() < 2 {
            std::thread::yield_now();
        }
        let records = || -> Vec<Value> {
            let text = std::fs::read_to_string(folder.path().join("served/journal-0.jsonl")).unwrap();
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
        };
        let run = records()[0]["run"].as_str().unwrap().to_owned();
        drop(stream);
        let status = || served.ask(&format!("GET /v1/runs/{run}"), &[], "").json()["status"].clone();
        while outcome == "interrupted" && status() != "stopping" {
            std::thread::yield_now();
        }
        door.open();
        let ended = loop {
            if let Some(last) =
                records().into_iter().rev().find(|record| record["event"]["type"] == "stopped")
            {
                break last["event"]["outcome"].to_string();
            }
            std::thread::yield_now();
        };
        assert!(ended.contains(outcome), "{outcome}: {ended}");
        if outcome == "interrupted" {
            assert_eq!(llm.chats().len(), 2, "no further call is made");
        }
    }
}

/// The refusal says when to come back, and a request that goes frees its place.
#[test]
fn full_queue_refuses_requests() {
    let (folder, door) = (Folder::new(), Arc::new(ReplyDoor::default()));
    let llm = behind(&door);
    let words = ["--base-url", &llm.url(), "--model", "m", "--runs-at-once", "1", "--queue", "1"];
    let served = Served::start(&folder, &words);
    let ask = body("writer_physicist", "How much is 2+2?");
    let wait_for = |count: usize| {
        let runs = || served.ask("GET /v1/runs", &[], "").json()["data"].as_array().unwrap().len();
        while runs() != count {
            std::thread::yield_now();
        }
    };
    let first = served.send_chat(&[], &ask);
    wait_for(1);
    let second = served.send_chat(&[], &ask);
    wait_for(2);
    let refused = served.chat(&[], &ask);
    assert_eq!(refused.status, 429, "{refused:?}");
    assert!(refused.head.to_ascii_lowercase().contains("retry-after:"), "{refused:?}");
    // A request that goes before its run has begun gives its place to another.
    drop(second);
    wait_for(1);
    let third = served.send_chat(&[], &ask);
    wait_for(2);
    door.open();
    for stream in [first, third] {
        assert_eq!(answer(stream).status, 200);
    }
}

#[test]
fn slow_model_list_delays_no_other_request() {
    let (folder, door, is_slow) =
        (Folder::new(), Arc::new(ReplyDoor::default()), Arc::new(AtomicBool::new(false)));
    let llm = Server::start({
        let (door, is_slow) = (Arc::clone(&door), Arc::clone(&is_slow));
        move |request: &Request| {
            if request.path.ends_with("/models") && is_slow.load(Ordering::SeqCst) {
                door.pass();
            }
            model(SENSIBLE)(request)
        }
    });
    let served = Served::start(&folder, &["--base-url", &llm.url()]);
    let ask = |roleset: &str| body(roleset, "How much is 2+2?");
    assert_eq!(served.chat(&[], &ask("writer_physicist")).status, 200);
    is_slow.store(true, Ordering::SeqCst);
    let known = llm.requests().len();
    let slow = ["generalist_critic", "generalist_critic"].map(|roleset| served.send_chat(&[], &ask(roleset)));
    while llm.requests().len() == known {
        std::thread::yield_now();
    }
    // The list is being waited for, and a roleset that is known needs none.
    assert_eq!(served.chat(&[], &ask("writer_physicist")).status, 200);
    door.open();
    for slow in slow {
        assert_eq!(answer(slow).status, 200);
    }
    drop(llm);
    let gone = served.chat(&[], &ask("translator_reviewer"));
    assert_eq!((gone.status, &gone.json()["error"]["code"]), (502, &json!("provider_failed")));
}

#[test]
fn a_run_that_is_cancelled_has_no_answer() {
    let (folder, door) = (Folder::new(), Arc::new(ReplyDoor::default()));
    let llm = Server::start({
        let door = Arc::clone(&door);
        move |request: &Request| {
            if request.path.ends_with("/chat/completions") {
                door.pass();
            }
            vec![Act::Close]
        }
    });
    let served = Served::start(&folder, &["--base-url", &llm.url(), "--model", "m"]);
    let mut ask = body("writer_physicist", "How much is 2+2?");
    ask["stream"] = true.into();
    let stream = served.send_chat(&[], &ask);
    let mut seen = [0; 4096];
    let id = loop {
        let count = stream.peek(&mut seen).unwrap();
        let text = String::from_utf8_lossy(&seen[..count]).into_owned();
        if let Some((id, _)) = text.split_once("chatcmpl-").and_then(|(_, rest)| rest.split_once('"')) {
            break id.to_owned();
        }
    };
    let said = served.ask(&format!("DELETE /v1/runs/chatcmpl-{id}"), &[], "");
    assert_eq!(said.status, 202, "{said:?}");
    let events = answer(stream).events();
    assert_eq!(events.last().unwrap()["error"]["code"], "cancelled");

    // A run with a key stays cancelled, for this server and for the next.
    let keyed = ["Idempotency-Key: k"];
    let before = llm.chats().len();
    let ask = body("writer_physicist", "How much is 3+3?");
    let stream = served.send_chat(&keyed, &ask);
    while llm.chats().len() == before {
        std::thread::yield_now();
    }
    let journal = std::fs::read_to_string(folder.path().join("served/journal-0.jsonl")).unwrap();
    let opened = journal.lines().rev().find(|line| line.contains("\"opened\"")).unwrap();
    let run = serde_json::from_str::<Value>(opened).unwrap()["run"].as_str().unwrap().to_owned();
    assert_eq!(served.ask(&format!("DELETE /v1/runs/{run}"), &[], "").status, 202);
    assert_eq!(answer(stream).status, 410);
    assert_eq!(served.chat(&keyed, &ask).status, 410);
    door.open();
    drop(served);
    let asked = llm.chats().len();
    let served = Served::start(&folder, &["--base-url", &llm.url(), "--model", "m"]);
    assert_eq!(served.chat(&keyed, &ask).status, 410);
    assert_eq!(served.end(Signal::SIGTERM), Some(0));
    assert_eq!(llm.chats().len(), asked, "nothing is asked for a cancelled run");
}

#[test]
fn answer_follows_schema_of_caller() {
    let folder = Folder::new();
    let says = |answer: &str| {
        folder.write("script.jsonl", &json!({"policy": "honest", "answer": answer}).to_string());
        Served::start(&folder, &["--mock-script", "script.jsonl"])
    };
    let schema = json!({"type": "object", "required": ["sum"], "properties": {"sum": {"$ref": "#/$defs/Sum"}},
        "additionalProperties": false, "$defs": {"Sum": {"type": "integer", "minimum": 0}}});
    let mut ask = body("solver_checker", "How much is 2+2?");
    ask["response_format"] = json!({"type": "json_schema", "json_schema": {"name": "sum", "schema": schema}});
    let served = says(r#"{"sum": 4}"#);
    let said = served.chat(&[], &ask).json();
    assert_eq!(said["consensus"]["outcome"], "agreed", "{said}");
    let content: Value =
        serde_json::from_str(said["choices"][0]["message"]["content"].as_str().unwrap()).unwrap();
    assert_eq!(content, json!({"sum": 4}));

    // Another schema is another request, also for a key.
    let key = ["Idempotency-Key: k"];
    assert_eq!(served.chat(&key, &ask).status, 200);
    let mut other = ask.clone();
    other["response_format"]["json_schema"]["schema"]["properties"]["sum"] = json!({"type": "integer"});
    assert_eq!(served.chat(&key, &other).status, 422);
    for (wrong, why) in [
        (json!({"type": "string"}), "`object` or `array`"),
        (json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}}), "points to nothing"),
    ] {
        let mut refused = ask.clone();
        refused["response_format"]["json_schema"]["schema"] = wrong;
        let refused = served.chat(&[], &refused);
        assert_eq!((refused.status, &refused.json()["error"]["param"]), (400, &json!("response_format")));
        assert!(refused.body.contains(why), "{refused:?}");
    }
    drop(served);
    // Agents that write something else do not agree on it.
    let said = says(r#"{"sum": -4}"#).chat(&[], &ask).json();
    assert_ne!(said["consensus"]["outcome"], "agreed", "{said}");
    Finished::of(consensus(&folder).args(["verify", "served"])).exits(0);
}

#[test]
fn a_request_bounds_what_its_run_may_use() {
    let (folder, llm) = (Folder::new(), Server::start(model(SENSIBLE)));
    let served = Served::start(&folder, &["--base-url", &llm.url(), "--model", "m"]);
    let asked = |budget: Value| {
        let mut ask = body("writer_physicist", "How much is 2+2?");
        ask["consensus"] = json!({"budget": budget});
        served.chat(&[], &ask)
    };
    let refused = asked(json!({"tokens": 10}));
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!("budget")), "{refused:?}");
    let cut = asked(json!({"tokens": 3_000})).json();
    assert_eq!(cut["consensus"]["outcome"], "budget", "{cut}");
    assert!(cut["usage"]["total_tokens"].as_u64().unwrap() <= 3_000, "{cut}");
    let enough = asked(json!({"tokens": 1_000_000}));
    assert_eq!((enough.status, &enough.json()["consensus"]["outcome"]), (200, &json!("agreed")));
    for (budget, field) in
        [(json!({"usd": 0.1}), "consensus.budget.usd"), (json!({"usd": -1}), "consensus.budget.usd")]
    {
        let refused = asked(budget);
        assert_eq!((refused.status, &refused.json()["error"]["param"]), (400, &json!(field)), "{refused:?}");
    }
    drop(served);
    Finished::of(consensus(&folder).args(["verify", "served"])).exits(0);
}

#[test]
fn a_server_without_a_calibration_promises_no_confidence() {
    let folder = Folder::new();
    let served = Served::start(&folder, &["--mock", "--answer", "4"]);
    let mut ask = body("vote_number", "How much is 2+2?");
    for confidence in [0.9, 1.5] {
        ask["consensus"] = json!({"min_confidence": confidence});
        let refused = served.chat(&[], &ask);
        let param = json!("consensus.min_confidence");
        assert_eq!((refused.status, &refused.json()["error"]["param"]), (400, &param), "{refused:?}");
    }
}

/// A request decides whether an unsettled vote answers with its leader.
#[test]
fn request_can_ask_for_vote_leader() {
    // Each sample finds another number.
    let count = std::sync::atomic::AtomicUsize::new(0);
    let llm = Server::start(move |request: &Request| {
        if request.path.ends_with("/chat/completions") {
            let number = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            return vec![Act::Send(completion(&format!("It follows.\nAnswer: {number}")))];
        }
        model(SENSIBLE)(request)
    });
    let folder = Folder::new();
    let served = Served::start(&folder, &["--base-url", &llm.url(), "--model", "m"]);
    let mut ask = body("vote_short", "How much is 2+2?");
    let said = served.chat(&[], &ask).json();
    assert_eq!(said["consensus"]["outcome"], "no_agreement", "{said}");
    ask["consensus"] = json!({"on_disagreement": "leader"});
    let said = served.chat(&[], &ask).json();
    assert_eq!(said["consensus"]["outcome"], "agreed", "{said}");
    assert_eq!(said["consensus"]["degraded"][0]["kind"], "unsettled", "{said}");
    let mut pair = body("writer_physicist", "How much is 2+2?");
    pair["consensus"] = json!({"on_disagreement": "leader"});
    let refused = served.chat(&[], &pair);
    assert_eq!(
        (refused.status, &refused.json()["error"]["param"]),
        (400, &json!("consensus.on_disagreement"))
    );
}

/// A request can leave out the rules that its task states in plain words.
#[test]
fn inferred_rules_are_left_out_by_a_request() {
    let llm = Server::start(|request: &Request| {
        if request.path.ends_with("/chat/completions") {
            return vec![Act::Send(completion("The sky is blue. It is day."))];
        }
        model(SENSIBLE)(request)
    });
    let folder = Folder::new();
    let served = Served::start(&folder, &["--base-url", &llm.url(), "--model", "m"]);
    let mut ask = body("question", "What colour is the sky? Answer in exactly one sentence.");
    let said = served.chat(&[], &ask).json();
    assert_eq!(said["consensus"]["outcome"], "no_agreement", "{said}");
    ask["consensus"] = json!({"inferred_constraints": false});
    let said = served.chat(&[], &ask).json();
    assert_eq!(said["consensus"]["outcome"], "agreed", "{said}");
}
