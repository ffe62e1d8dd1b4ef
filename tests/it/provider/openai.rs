//! The `openai` provider against a loopback server: what is sent, what is understood, what is
//! negotiated.

use std::sync::{Condvar, Mutex};

use serde_json::{Value, json};

use crate::support::http;
use crate::support::{
    Act, Finished, Folder, Request, SENSIBLE, Server, completion, consensus, model, stream, trust,
};

/// Starts a run against this server that agrees if the server is sensible.
fn run(folder: &Folder, server: &Server, more: &[&str]) -> Finished {
    let base = ["run", "--roleset", "writer_physicist", "--seed", "1", "--prompt", "2+2?", "--base-url"];
    Finished::of(consensus(folder).args(base).arg(server.url()).args(more))
}

/// Two agents agree over HTTP with a model that the program finds by asking the server.
#[test]
fn agents_agree_over_http() {
    let folder = Folder::new();
    let server = Server::start(model(SENSIBLE));
    let finished = run(&folder, &server, &[]).exits(0);
    assert_eq!(finished.stdout.lines().count(), 1);
    let result = folder.result();
    assert_eq!(result["how"], "endorsed");
    assert_eq!(result["degraded"], json!([]));
    assert_eq!(result["usage"]["cached"], 60 * result["usage"]["calls"].as_u64().unwrap());
    let first = server.chats()[0].json();
    assert_eq!(first["model"], "tiny-model");
    assert_eq!(first["stream"], true);
    assert!(first["seed"].as_u64().unwrap() < 1 << 31);
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
}

#[test]
fn call_seeds_are_distinct_and_repeatable() {
    let seeds = |_| {
        let (folder, server) = (Folder::new(), Server::start(model(SENSIBLE)));
        run(&folder, &server, &[]).exits(0);
        let mut seeds: Vec<u64> = server.chats().iter().map(|r| r.json()["seed"].as_u64().unwrap()).collect();
        seeds.sort_unstable();
        seeds
    };
    let (first, second) = (seeds(0), seeds(1));
    assert_eq!(first, second);
    let mut distinct = first.clone();
    distinct.dedup();
    assert_eq!(distinct.len(), first.len());
}

#[test]
fn streams_are_read_however_they_are_cut() {
    for size in [1, 3, 1000] {
        let folder = Folder::new();
        let server = Server::start(move |request| match request.path.as_str() {
            "/v1/models" => model(SENSIBLE)(request),
            _ => {
                vec![Act::Send(stream(
                    &SENSIBLE(&request.json()).replace("that is the sum", "fertig – 完了 🙂"),
                    size,
                ))]
            }
        });
        run(&folder, &server, &[]).exits(0);
        let result = folder.result();
        assert_eq!(result["outcome"], "agreed", "{result}");
        let journal = std::fs::read_to_string(folder.run().join("journal.jsonl")).unwrap();
        assert!(journal.contains("fertig – 完了 🙂"));
    }
}

#[test]
fn a_connection_is_used_again() {
    let (folder, server) = (Folder::new(), Server::start(model(SENSIBLE)));
    run(&folder, &server, &["--no-stream"]).exits(0);
    let connections = server.connections.load(std::sync::atomic::Ordering::SeqCst);
    // Two blind drafts are in the air at once; the list of models may have had one of its own.
    assert!(connections <= 4, "{connections} connections for {} requests", server.requests().len());
    let head = server.chats()[0].head.clone();
    assert!(head.len() <= 250, "{} bytes of headers: {head}", head.len());
}

/// llama.cpp's server closes a connection behind a streamed reply and does not say so.
#[test]
fn closed_connection_is_retried_at_once() {
    let (folder, sensible) = (Folder::new(), model(SENSIBLE));
    let server = Server::start(move |request| match request.earlier {
        0 => sensible(request),
        _ => vec![Act::Close],
    });
    let finished = run(&folder, &server, &[]).exits(0);
    assert!(!finished.stderr.contains("trying again"), "{}", finished.stderr);
    let journal = std::fs::read_to_string(folder.run().join("journal.jsonl")).unwrap();
    assert!(journal.contains(r#""attempts":2}"#), "each request is on record: {journal}");
}

/// Refuses requests by their response format. The second agent thinks until the first one knows what is refused.
fn refusing(refused: &'static [&'static str]) -> impl Fn(&Request) -> Vec<Act> {
    let (is_known, known) = (Mutex::new(false), Condvar::new());
    move |request| {
        let body = request.json();
        let format = body["response_format"]["type"].as_str().unwrap_or("");
        if refused.contains(&format) {
            let error = json!({"error": {"message": format!("response_format {format} is not supported")}});
            return vec![Act::Send(http("400 Bad Request", "", error.to_string().as_bytes()))];
        }
        if request.path.ends_with("/models") || body["response_format"]["json_schema"].is_object() {
            return model(SENSIBLE)(request);
        }
        // Without a schema the model still knows what it has to write.
        let asks =
            body["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
        let system = body["messages"][0]["content"].as_str().unwrap();
        let role = if system.contains("You are Writer") { "Writer" } else { "Physicist" };
        let is_envelope = asks.contains("on one line");
        if is_envelope {
            *is_known.lock().unwrap() = true;
            known.notify_all();
        } else if role == "Physicist" {
            drop(known.wait_while(is_known.lock().unwrap(), |is_known| !*is_known).unwrap());
        }
        let envelope = json!({"role": role, "domain": "d", "task_understanding": "t", "public_message": "[SOLVED] x",
            "artifact": {"type": "results", "content": {}}, "needs_from_peer": [], "handoff_to": "",
            "status": "SOLVED", "final_solution": {"canonical_text": "4"}});
        let text = if is_envelope { envelope.to_string() } else { "hm".to_owned() };
        vec![Act::Send(completion(&text))]
    }
}

/// A refused response format is not tried again, and the result names the weaker one in use.
#[test]
fn refused_schema_is_given_up_stepwise() {
    for (refused, word) in
        [(&["json_schema"][..], "json_object"), (&["json_schema", "json_object"][..], "the prompt alone")]
    {
        let (folder, server) = (Folder::new(), Server::start(refusing(refused)));
        run(&folder, &server, &[]).exits(0);
        let result = folder.result();
        assert_eq!(result["degraded"][0]["kind"], "structured_output");
        let detail = result["degraded"][0]["detail"].as_str().unwrap();
        assert!(detail.contains(word), "{detail}");
        let formats: Vec<Value> =
            server.chats().iter().map(|r| r.json()["response_format"]["type"].clone()).collect();
        // What is refused once is not tried again, by neither agent.
        for form in refused {
            assert_eq!(formats.iter().filter(|format| *format == form).count(), 1, "{formats:?}");
        }
        let (folder, server) = (Folder::new(), Server::start(refusing(refused)));
        run(&folder, &server, &["--fail-on-degraded"]).exits(8);
    }
}

#[test]
fn validation_catches_an_ignored_schema() {
    let folder = Folder::new();
    let server = Server::start(|request: &Request| {
        let body = request.json();
        if body["response_format"].is_object() {
            return vec![Act::Send(completion("{\"status\":\"SOLVED\",\"answer\":\"4\"}"))];
        }
        model(SENSIBLE)(request)
    });
    let finished = run(&folder, &server, &[]).exits(3);
    assert_eq!(finished.stdout, "");
    let result = folder.result();
    assert_eq!(result["reason"], "no agent wrote a valid blind draft");
    let kinds: Vec<&Value> = result["degraded"].as_array().unwrap().iter().map(|d| &d["kind"]).collect();
    assert!(kinds.contains(&&json!("schema_ignored")), "{kinds:?}");
    assert!(finished.stderr.contains("does not hold its replies to it"), "{}", finished.stderr);
}

#[test]
fn ignored_schema_degrades_valid_replies() {
    let fenced: fn(&Value) -> String = |request| format!("```json\n{}\n```", SENSIBLE(request));
    let short: fn(&Value) -> String = |request| SENSIBLE(request).replace("that is the sum", "ok");
    for say in [fenced, short] {
        let (folder, server) = (Folder::new(), Server::start(model(say)));
        run(&folder, &server, &["--fail-on-degraded"]).exits(8);
        assert_eq!(folder.result()["degraded"][0]["kind"], "schema_ignored");
    }
    let (folder, server) = (Folder::new(), Server::start(model(SENSIBLE)));
    run(&folder, &server, &["--fail-on-degraded"]).exits(0);
}

#[test]
fn unusable_usage_is_estimated() {
    for usage in
        [json!({"prompt_tokens": -5}), json!("many"), json!({"prompt_tokens": 0, "completion_tokens": 0})]
    {
        let folder = Folder::new();
        let server = Server::start(move |request: &Request| {
            let message = json!({"content": SENSIBLE(&request.json())});
            let body = json!({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage});
            vec![Act::Send(http("200 OK", "", body.to_string().as_bytes()))]
        });
        run(&folder, &server, &["--model", "tiny-model"]).exits(0);
        assert_eq!(folder.result()["degraded"][0]["kind"], "usage_estimated");
    }
}

#[test]
fn server_without_streams_is_recognised() {
    let server = Server::start(|_: &Request| {
        let error = json!({"error": {"message": "stream is not supported"}});
        vec![Act::Send(http("400 Bad Request", "", error.to_string().as_bytes()))]
    });
    let finished = run(&Folder::new(), &server, &["--model", "tiny-model"]).exits(6);
    assert!(finished.stderr.contains("use --no-stream"), "{}", finished.stderr);
}

#[test]
fn newer_token_limit_name_is_learnt() {
    let folder = Folder::new();
    let server = Server::start(|request: &Request| {
        if request.body.contains("\"max_tokens\"") {
            let error =
                json!({"error": {"message": "Unsupported parameter: use 'max_completion_tokens' instead"}});
            return vec![Act::Send(http("400 Bad Request", "", error.to_string().as_bytes()))];
        }
        model(SENSIBLE)(request)
    });
    run(&folder, &server, &["--model", "tiny-model"]).exits(0);
    assert_eq!(folder.result()["degraded"], json!([]));
}

#[test]
fn separate_reasoning_is_recorded_not_sent() {
    let folder = Folder::new();
    let server = Server::start(|request: &Request| {
        if request.path.ends_with("/models") {
            return model(SENSIBLE)(request);
        }
        let body = json!({"choices": [{"message": {"content": SENSIBLE(&request.json()), "reasoning_content": "secret musings"}, "finish_reason": "stop"}]});
        vec![Act::Send(http("200 OK", "", body.to_string().as_bytes()))]
    });
    run(&folder, &server, &[]).exits(0);
    let journal = std::fs::read_to_string(folder.run().join("journal.jsonl")).unwrap();
    assert!(journal.contains("secret musings"));
    assert!(server.chats().iter().all(|r| !r.body.contains("secret musings")));
    assert_eq!(folder.result()["degraded"][0]["kind"], "usage_estimated");
}

#[test]
fn a_key_is_sent_and_found_nowhere_else() {
    let (folder, server) = (Folder::new(), Server::start(model(SENSIBLE)));
    let key = "sk-test-0123456789abcdef";
    let args = ["run", "--roleset", "writer_physicist", "--prompt", "2+2?", "-vv", "--base-url"];
    let finished =
        Finished::of(consensus(&folder).env("OPENAI_API_KEY", key).args(args).arg(server.url())).exits(0);
    assert_eq!(server.chats()[0].header("authorization").as_deref(), Some("Bearer sk-test-0123456789abcdef"));
    assert!(!finished.stderr.contains(key) && !finished.stdout.contains(key));
    for entry in std::fs::read_dir(folder.run()).unwrap() {
        assert!(!std::fs::read_to_string(entry.unwrap().path()).unwrap().contains(key));
    }
}

/// A resume with a key refuses an address that only the journal names.
#[test]
fn journal_address_gets_no_key() {
    let (folder, server) = (Folder::new(), Server::start(model(SENSIBLE)));
    run(&folder, &server, &["--max-tokens-total", "2500"]).exits(5);
    let before = server.chats().len();
    let resume = ["resume", "--last", "--max-tokens-total", "90000"];
    let refused = Finished::of(consensus(&folder).env("OPENAI_API_KEY", "sk-secret").args(resume)).exits(2);
    assert!(refused.stderr.contains("allow it with --base-url"), "{}", refused.stderr);
    assert_eq!(server.chats().len(), before);
    let mut allowed = consensus(&folder);
    allowed.env("OPENAI_API_KEY", "sk-secret").args(resume).arg("--base-url").arg(server.url());
    Finished::of(&mut allowed).exits(0);
}

#[test]
fn local_preset_gets_no_openai_key() {
    let (folder, server) = (Folder::new(), Server::start(model(SENSIBLE)));
    folder.write("consensus.toml", &format!("[providers.lab]\nbase_url = \"{}\"\n", server.url()));
    trust(&folder);
    let run = ["run", "--model", "lab:tiny-model", "--prompt", "2+2?"];
    Finished::of(consensus(&folder).env("OPENAI_API_KEY", "sk-secret").args(run)).exits(0);
    assert!(server.chats().iter().all(|request| request.header("authorization").is_none()));
}

#[test]
fn echoed_key_stays_out_of_journal() {
    let folder = Folder::new();
    let server = Server::start(|_: &Request| {
        vec![Act::Send(http("403 Forbidden", "", b"{\"error\":{\"message\":\"bad key sk-secret\"}}"))]
    });
    let run = ["run", "--model", "m", "--prompt", "x", "--base-url"];
    let finished =
        Finished::of(consensus(&folder).env("OPENAI_API_KEY", "sk-secret").args(run).arg(server.url()))
            .exits(6);
    assert!(finished.stderr.contains("bad key [key removed]"), "{}", finished.stderr);
    assert!(!std::fs::read_to_string(folder.run().join("journal.jsonl")).unwrap().contains("sk-secret"));
}

#[test]
fn the_base_url_of_the_environment_is_honoured() {
    let (folder, server) = (Folder::new(), Server::start(model(SENSIBLE)));
    let run = ["run", "--prompt", "2+2?"];
    Finished::of(consensus(&folder).env("OPENAI_BASE_URL", server.url()).args(run)).exits(0);
    assert!(!server.chats().is_empty());
}

#[test]
fn doctor_tells_enforced_from_ignored() {
    let enforcing = Server::start(|request: &Request| {
        let word = request.json()["response_format"]["json_schema"]["schema"]["properties"]["word"]["enum"]
            [0]
        .clone();
        match word.as_str() {
            Some(word) => vec![Act::Send(completion(&json!({"word": word}).to_string()))],
            None => model(SENSIBLE)(request),
        }
    });
    let ignoring = Server::start(model(|_| "{\"capital\": \"Paris\"}".to_owned()));
    for (server, schema, advised) in [(&enforcing, "enforced", false), (&ignoring, "ignored", true)] {
        let folder = Folder::new();
        let doctor = ["doctor", "--format", "json", "--base-url"];
        let finished = Finished::of(consensus(&folder).args(doctor).arg(server.url())).exits(0);
        let report: Value = serde_json::from_str(&finished.stdout).unwrap();
        assert_eq!(report[0]["schema"], schema);
        assert_eq!(report[0]["context_tokens"], 8192);
        assert_eq!(report[0]["cached_tokens_reported"], true);
        assert_eq!(report[0]["advice"].as_array().unwrap().is_empty(), !advised);
    }
}

/// Doctor says for which tasks a vote did better than the roleset on a small model.
#[test]
fn doctor_names_the_better_vote() {
    let server = Server::start(model(SENSIBLE));
    for (roleset, better) in [
        ("solver_checker", None),
        ("council_tripartite", Some(("numbers without documents", "vote_number"))),
        ("panel_personas", Some(("choices and numbers", "vote"))),
        ("mcq_reasoner_auditor", None),
        ("vote_number", None),
    ] {
        let doctor = ["doctor", "--roleset", roleset, "--format", "json", "--base-url"];
        let finished = Finished::of(consensus(&Folder::new()).args(doctor).arg(server.url())).exits(0);
        let report: Value = serde_json::from_str(&finished.stdout).unwrap();
        let advice = report[0]["advice"].to_string();
        assert_eq!(advice.contains("right less often"), better.is_some(), "{roleset}: {report}");
        if let Some((tasks, vote)) = better {
            let measured = format!(
                "on {tasks}, a model of 1.5B was right less often with `{roleset}` than with `{vote}` and `--on-disagreement leader`"
            );
            assert!(advice.contains(&measured), "{report}");
        }
    }
}

/// Each kind of server gets its own fields and headers, and a configured field that the program sets is refused.
#[test]
fn provider_specific_fields_are_sent() {
    let server = Server::start(model(SENSIBLE));
    let place = format!("base_url = \"{}\"\n", server.url());
    let body = "body = { chat_template_kwargs = { enable_thinking = false } }\n";
    let folder = Folder::new();
    folder.write(
        "consensus.toml",
        &format!("[providers.openai]\n{place}[providers.openrouter]\n{place}[providers.lab]\n{place}{body}"),
    );
    trust(&folder);
    let first_chat = |name: &str| {
        let before = server.chats().len();
        let model = format!("{name}:tiny-model");
        let run = [
            "run",
            "--seed",
            "1",
            "--roleset",
            "writer_physicist",
            "--thinking",
            "none",
            "--prompt",
            "2+2?",
            "--model",
            &model,
        ];
        Finished::of(consensus(&folder).args(run)).exits(0);
        server.chats()[before].clone()
    };
    assert_eq!(first_chat("openai").json()["response_format"]["json_schema"]["strict"], false);
    let openrouter = first_chat("openrouter");
    assert_eq!(openrouter.json()["provider"]["require_parameters"], true);
    assert_eq!(openrouter.header("x-title").as_deref(), Some("consensus"));
    let lab = first_chat("lab").json();
    assert_eq!(lab["chat_template_kwargs"]["enable_thinking"], false);
    assert_eq!(lab["response_format"]["json_schema"]["strict"], true);
    folder.write("consensus.toml", &format!("[providers.lab]\n{place}body = {{ seed = 1 }}\n"));
    let run = ["run", "--model", "lab:tiny-model", "--prompt", "2+2?"];
    let refused = Finished::of(consensus(&folder).args(run)).exits(2);
    assert!(
        refused.stderr.contains("providers.lab.body: `seed` is set by the program"),
        "{}",
        refused.stderr
    );
}

/// The costs that a server reports are added up, and a configured price serves where it reports none.
#[test]
fn cost_comes_from_server_or_price() {
    let with_cost = |cost: Value| {
        move |request: &crate::support::Request| {
            if request.path.ends_with("/models") {
                return model(SENSIBLE)(request);
            }
            let mut usage = json!({"prompt_tokens": 100, "completion_tokens": 20});
            usage["cost"] = cost.clone();
            let message = json!({"role": "assistant", "content": SENSIBLE(&request.json())});
            let body = json!({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage});
            vec![Act::Send(http("200 OK", "", body.to_string().as_bytes()))]
        }
    };
    let costs = |server: &Server, prices: &str| {
        let folder = Folder::new();
        folder.write("consensus.toml", prices);
        let run =
            ["run", "--seed", "1", "--model", "tiny-model", "--prompt", "2+2?", "--base-url", &server.url()];
        Finished::of(consensus(&folder).args(run)).exits(0);
        Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
        let usage = &folder.result()["usage"];
        (usage["cost_micro_usd"].as_u64(), usage["calls"].as_u64().unwrap())
    };
    let (cost, calls) = costs(&Server::start(with_cost(json!(0.000_120_5))), "");
    assert_eq!(cost, Some(121 * calls));
    // A value that is no sum of money is left out.
    for none in [json!(null), json!(-1), json!("much"), json!(1e9)] {
        assert_eq!(costs(&Server::start(with_cost(none.clone())), "").0, None, "{none}");
    }
    let prices = "[prices.\"tiny-model\"]\nprompt = 1.0\ncached = 1.0\ncompletion = 1.0\n";
    let (cost, calls) = costs(&Server::start(with_cost(json!(null))), prices);
    assert_eq!(cost, Some(120 * calls));
}
