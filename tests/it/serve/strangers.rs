//! Requests of strangers, and requests that make no sense.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crypto::Digest;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::{after, body, listed};
use crate::support::{Finished, Folder, SENSIBLE, Served, Server, answer, consensus, model};

/// A server answers only to its own names, and a form of another site cannot begin a run.
#[test]
fn foreign_host_or_origin_is_refused() {
    let folder = Folder::new();
    let served = Served::start(&folder, &["--mock", "--answer", "4", "--allow-host", "gpu7.cluster"]);
    for (host, status) in [("evil.example", 403), ("gpu7.cluster:8700", 200), ("localhost", 200)] {
        let said = served.ask("GET /v1/models", &[&format!("Host: {host}")], "");
        assert_eq!(said.status, status, "{host}: {said:?}");
    }
    // A page of another site may not even begin a run, and a form of it cannot say that it sends JSON.
    let ask = body("solver_checker", "How much is 2+2?");
    let crossed = served.chat(&["Origin: https://evil.example"], &ask);
    assert_eq!((crossed.status, &crossed.json()["error"]["code"]), (403, &json!("origin_not_allowed")));
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
        let form =
            served.ask("POST /v1/chat/completions", &[&format!("Content-Type: {kind}")], &ask.to_string());
        assert_eq!(form.status, 415, "{kind}: {form:?}");
    }
    // Another port is another server, also on the same machine.
    let other_port = served.chat(&["Origin: http://localhost:8700"], &ask);
    assert_eq!((other_port.status, &other_port.json()["error"]["code"]), (403, &json!("origin_not_allowed")));
    let (_, port) = served.place.rsplit_once(':').unwrap();
    assert_eq!(served.chat(&[&format!("Origin: http://localhost:{port}")], &ask).status, 200);
    assert!(!served.chat(&[], &ask).head.to_ascii_lowercase().contains("access-control"));
}

#[test]
fn reachable_server_needs_token() {
    let folder = Folder::new();
    let refused =
        Finished::of(consensus(&folder).args(["serve", "--mock", "--listen", "0.0.0.0:0", "-o", "served"]));
    assert!(refused.exits(2).stderr.contains("--token-file"));
    folder.write("tokens", "# the lab's\na-token-of-sixteen\n");
    let served = Served::start(&folder, &["--mock", "--answer", "4", "--token-file", "tokens"]);
    let chat = |headers: &[&str]| served.chat(headers, &body("solver_checker", "How much is 2+2?")).status;
    assert_eq!(chat(&[]), 401);
    assert_eq!(chat(&["Authorization: Bearer a-token-of-sixteem"]), 401);
    assert_eq!(chat(&["Authorization: Bearer a-token-of-sixteen"]), 200);
    for path in ["/v1/models", "/v1/runs/00000000-0000-0000-0000-000000000000"] {
        assert_eq!(served.ask(&format!("GET {path}"), &[], "").status, 401, "{path}");
    }
    assert_eq!(served.ask("GET /health", &[], "").status, 200);
    folder.write("short", "secret\n");
    let short =
        Finished::of(consensus(&folder).args(["serve", "--mock", "--token-file", "short", "-o", "other"]));
    let short = short.exits(2);
    assert!(short.stderr.contains("line 1") && !short.stderr.contains("secret"), "{}", short.stderr);
}

/// Only a server that wants no token says that everyone on the machine can use it.
#[test]
fn open_server_warns_at_start() {
    let folder = Folder::new();
    folder.write("tokens", "a-token-of-sixteen\n");
    let warnings = |words: &[&str]| {
        let mut command = consensus(&folder);
        let serve =
            ["serve", "--mock", "--answer", "4", "--quiet", "--listen", "127.0.0.1:0", "-o", "served"];
        command.args(serve).args(words);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGTERM).unwrap();
        let stderr = Finished::with(child.wait_with_output().unwrap()).exits(0).stderr;
        stderr.lines().filter(|line| line.contains("every user of this machine")).count()
    };
    assert_eq!([warnings(&[]), warnings(&["--token-file", "tokens"])], [1, 0]);
}

/// When all places are taken, the oldest connection that has sent no head makes room.
#[test]
fn silent_connections_make_room() {
    let folder = Folder::new();
    // Half of the files are for connections.
    let served = Served::of(after(&folder, "ulimit -n 128"), &["--mock", "--answer", "4"]);
    let mut silent: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(&served.place).unwrap()).collect();
    let began = Instant::now();
    assert_eq!(served.ask("GET /health", &[], "").status, 200);
    // A head may take 15 seconds.
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let mut oldest = &silent[0];
    oldest.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    assert_eq!(oldest.read(&mut [0]).ok(), Some(0), "it is closed");
    let mut youngest = silent.pop().unwrap();
    youngest.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    assert_eq!(answer(youngest).status, 200);
}

/// The label of a caller depends on the key of the folder, so that no one can try tokens on a journal.
#[test]
fn records_do_not_reveal_tokens() {
    let token = "a-token-of-sixteen";
    let of_folder = |folder: &Folder| {
        folder.write("tokens", &format!("{token}\n"));
        let words = ["--mock", "--answer", "4", "--token-file", "tokens"];
        let key = format!("Authorization: Bearer {token}");
        let served = Served::start(folder, &words);
        let asked = served.chat(&[&key, "Idempotency-Key: k"], &body("solver_checker", "How much is 2+2?"));
        assert_eq!(asked.status, 200);
        assert_eq!(served.end(Signal::SIGTERM), Some(0));
        let served = Served::start(folder, &words);
        assert_eq!(listed(&served, &[&key]).len(), 1, "the next server knows the caller");
        let about = std::fs::metadata(folder.path().join("served/caller.key")).unwrap();
        assert_eq!(about.permissions().mode() & 0o777, 0o600);
        let read = |name: &str| std::fs::read_to_string(folder.path().join("served").join(name)).unwrap();
        let journal = read("journal-0.jsonl");
        assert!(!journal.contains(&Digest::new(token.as_bytes()).to_string()), "{journal}");
        let row: Value = serde_json::from_str(read("results-0.jsonl").lines().next().unwrap()).unwrap();
        [row["meta"]["caller"].clone(), row["task"].clone()]
    };
    let [one, other] = [Folder::new(), Folder::new()].map(|folder| of_folder(&folder));
    assert!(one[0].is_string() && one[0] != other[0] && one[1] != other[1], "{one:?} {other:?}");
}

#[test]
fn callers_do_not_share_keys() {
    let folder = Folder::new();
    folder.write("tokens", "a-token-of-sixteen\nb-token-of-sixteen\n");
    let served = Served::start(&folder, &["--mock", "--answer", "4", "--token-file", "tokens"]);
    let id = |token: &str| {
        let headers = ["Idempotency-Key: k", &format!("Authorization: Bearer {token}")];
        served.chat(&headers, &body("solver_checker", "How much is 2+2?")).json()["id"].clone()
    };
    assert_ne!(id("a-token-of-sixteen"), id("b-token-of-sixteen"));
    // Nor is its run.
    let run = id("a-token-of-sixteen");
    let of = |line: &str, token: &str| {
        served.ask(
            &format!("{line} /v1/runs/{}", run.as_str().unwrap()),
            &[&format!("Authorization: Bearer {token}")],
            "",
        )
    };
    assert_eq!(of("GET", "a-token-of-sixteen").status, 200);
    assert_eq!(
        (of("GET", "b-token-of-sixteen").status, of("DELETE", "b-token-of-sixteen").status),
        (404, 404)
    );
    assert_eq!(of("DELETE", "a-token-of-sixteen").json()["error"]["code"], "run_ended");
}

#[test]
fn caller_cannot_choose_forbidden_model() {
    let folder = Folder::new();
    let llm = Server::start(model(SENSIBLE));
    let words = ["--base-url", &llm.url(), "--model", "m", "--allow-model", "tiny-model"];
    let served = Served::start(&folder, &words);
    let status = |name: &str| served.chat(&[], &body(name, "How much is 2+2?")).status;
    assert_eq!(status("writer_physicist@tiny-model"), 200);
    assert_eq!(llm.chats()[0].json()["model"], "tiny-model");
    let asked = llm.chats().len();
    for other in ["openai:gpt-5", "bedrock:x", "m2", "", "tiny-model2"] {
        assert_eq!(status(&format!("writer_physicist@{other}")), 400, "{other}");
    }
    assert_eq!(status(&"x".repeat(10_000)), 400);
    assert_eq!(llm.chats().len(), asked);
}

#[test]
fn unusable_rolesets_are_not_served() {
    let folder = Folder::new();
    folder.write("rolesets/packs/p.md", "You count.");
    let agent = |name: &str| json!({"name": name, "domain": "d", "pack": "p.md"});
    let private = json!({"v": 1, "protocol": "pair", "redact": true, "agents": [agent("Ann"), agent("Bob")]});
    folder.write("rolesets/private.json", &private.to_string());
    let served = Served::start(&folder, &["--mock", "--answer", "4", "--rolesets-dir", "rolesets"]);
    let models = served.ask("GET /v1/models", &[], "").body;
    assert!(!models.contains("reviewers") && !models.contains("private"), "{models}");
    for name in ["private", "reviewers_f1"] {
        assert_eq!(served.chat(&[], &body(name, "How much is 2+2?")).status, 404, "{name}");
    }
    let named = Finished::of(consensus(&folder).args([
        "serve",
        "--mock",
        "--roleset",
        "private",
        "--rolesets-dir",
        "rolesets",
        "-o",
        "other",
    ]));
    assert!(named.exits(2).stderr.contains("it redacts"));
    drop(served);
    // A caller learns nothing of files: this one was changed after the start.
    folder.write(
        "rolesets/open.json",
        &json!({"v": 1, "protocol": "pair", "agents": [agent("Ann"), agent("Bob")]}).to_string(),
    );
    let served = Served::start(&folder, &["--mock", "--answer", "4", "--rolesets-dir", "rolesets"]);
    folder.write("rolesets/open.json", "{");
    let broken = served.chat(&[], &body("open", "How much is 2+2?"));
    assert_eq!((broken.status, &broken.json()["error"]["param"]), (400, &json!("model")));
    assert!(broken.body.contains("its log says why") && !broken.body.contains("open.json"), "{broken:?}");
    // A calibration holds for one roleset, and no other could ever answer.
    for rolesets in ["", "--roleset=vote_number,solver_checker"] {
        let words = ["serve", "--mock", "-o", "other", "--calibration", "c.json"];
        let words = words.into_iter().chain(Some(rolesets).filter(|words| !words.is_empty()));
        let refused = Finished::of(consensus(&folder).args(words)).exits(2).stderr;
        assert!(refused.contains("--roleset, and no other"), "{refused}");
    }
    // A file that cannot be used is named, and the others are served.
    folder.write("rolesets/torn.json", "{");
    let words = ["mcp", "--mock", "--answer", "4", "--rolesets-dir", "rolesets", "-o", "more"];
    let torn = Finished::of(consensus(&folder).args(words)).exits(0).stderr;
    assert!(torn.contains("not served: ") && torn.contains("torn.json"), "{torn}");
}

#[test]
fn agent_cannot_ask_its_own_server() {
    let folder = Folder::new();
    let llm = Server::start(model(SENSIBLE));
    let served = Served::start(&folder, &["--base-url", &llm.url(), "--model", "m"]);
    served.chat(&[], &body("solver_checker", "How much is 2+2?"));
    let depth = llm.chats()[0].header("x-consensus-depth").expect("agents say that they are agents");
    let said =
        served.chat(&[&format!("X-Consensus-Depth: {depth}")], &body("solver_checker", "How much is 2+2?"));
    assert_eq!((said.status, &said.json()["error"]["code"]), (400, &json!("recursion")));
}

/// Malformed, oversized and unsupported requests are refused, and a later request is still answered.
#[test]
fn senseless_request_harms_no_other() {
    let folder = Folder::new();
    let served = Served::start(&folder, &["--mock", "--answer", "4"]);
    let json = ["Content-Type: application/json"];
    let raw = |text: &str| served.ask("POST /v1/chat/completions", &json, text);
    for text in ["", "{", "[]", "{\"model\": 1}", "\u{0}", "{\"model\":\"solver_checker\"}"] {
        assert_eq!(raw(text).status, 400, "{text:?}");
    }
    for (text, part) in [
        ("[]", "expected an object"),
        (
            r#"{"model":"solver_checker","messages":[{"role":"user","content":"x"}],"consensus":{"choices":[]}}"#,
            "name the choices",
        ),
        (
            r#"{"model":"solver_checker","messages":[{"role":"user","content":5}]}"#,
            "a text or a list of parts",
        ),
    ] {
        let message = raw(text).json()["error"]["message"].to_string();
        assert!(message.contains(part) && !message.contains("struct"), "{message}");
    }
    assert_eq!(raw(&"x".repeat(9 << 20)).status, 413);
    let mut tools = body("solver_checker", "2+2?");
    tools["tools"] = json!([{"type": "function", "function": {"name": "f"}}]);
    let said = served.chat(&[], &tools);
    assert_eq!((said.status, &said.json()["error"]["param"]), (400, &json!("tools")));
    let key = format!("Idempotency-Key: {}", "k".repeat(300));
    assert_eq!(served.chat(&[&key], &body("solver_checker", "2+2?")).status, 400);
    for path in
        ["/v1/runs/..%2f..%2fetc%2fpasswd", "/v1/runs/x", "/v1/models/../../etc/passwd", "/etc/passwd"]
    {
        assert_eq!(served.ask(&format!("GET {path}"), &[], "").status, 404, "{path}");
    }
    for path in ["/v1/runs/%ff", "/v1/runs/%ff/events", "/v1/models/%ff", "/page/runs/%ff"] {
        let said = served.ask(&format!("GET {path}"), &[], "");
        assert_eq!(
            (said.status, &said.json()["error"]["type"]),
            (404, &json!("invalid_request_error")),
            "{path}"
        );
    }
    assert_eq!(served.ask("GET /v1/chat/completions", &[], "").status, 405);
    assert_eq!(served.chat(&[], &body("solver_checker", "How much is 2+2?")).status, 200);
}

/// A server with tokens does not start where its check could read the folder of its runs.
#[test]
fn check_cannot_read_callers_questions() {
    let folder = Folder::new();
    folder.write("tokens", "a-token-of-sixteen\n");
    let roleset = json!({"v": 1, "protocol": "pair", "check": "cat served/*", "agents": [
        {"name": "Solver", "domain": "sums", "pack": "p.md"}, {"name": "Checker", "domain": "doubt", "pack": "p.md"},
    ]});
    folder.write("rolesets/packs/p.md", "You count.");
    folder.write("rolesets/checked.json", &roleset.to_string());
    Finished::of(consensus(&folder).arg("trust")).exits(0);
    let refused = Finished::of(consensus(&folder).args([
        "serve",
        "--mock",
        "--rolesets-dir",
        "rolesets",
        "--roleset",
        "checked",
        "--token-file",
        "tokens",
        "-o",
        "served",
    ]));
    let refused = refused.exits(2);
    assert!(refused.stderr.contains("start the server in another folder"), "{}", refused.stderr);

    // The same holds for the check of the user's own configuration, and for a place that every check may read.
    let own = |place: &str| {
        let folder = Folder::new();
        let config = folder.path().join("home/.config/consensus");
        std::fs::create_dir_all(&config).unwrap();
        std::fs::write(config.join("config.toml"), "check = \"true\"\n").unwrap();
        std::fs::create_dir_all(folder.path().join("work")).unwrap();
        std::fs::create_dir_all(folder.path().join("data")).unwrap();
        folder.write("data/tokens", "a-token-of-sixteen\n");
        let mut command = consensus(&folder);
        command
            .current_dir(folder.path().join("work"))
            .env("XDG_CONFIG_HOME", folder.path().join("home/.config"));
        command.args(["serve", "--mock", "--listen", "127.0.0.1:0", "--token-file", "../data/tokens"]);
        command.args(["--sandbox-read", place, "-o", "../data/served"]);
        Finished::of(&mut command)
    };
    let refused = own("../data").exits(2);
    assert!(refused.stderr.contains("which the check of the roleset"), "{}", refused.stderr);
}

/// Returns the schema of a text, inside of so many others with this keyword.
fn wrapped(keyword: &str, times: usize) -> Value {
    let mut schema = json!({"type": "string"});
    for _ in 0..times {
        schema = json!({keyword: if keyword == "anyOf" { json!([schema]) } else { schema }});
    }
    schema
}

/// Returns a schema with so many definitions, each of which refers to the next one.
fn chained(times: usize) -> Value {
    let mut all = serde_json::Map::new();
    for at in 0..times {
        all.insert(format!("d{at}"), json!({"not": {"$ref": format!("#/$defs/d{}", at + 1)}}));
    }
    all.insert(format!("d{times}"), json!({"type": "string"}));
    json!({"type": "object", "$defs": all, "properties": {"a": {"$ref": "#/$defs/d0"}}})
}

/// A hostile schema is refused, and the journal still verifies.
#[test]
fn hostile_schema_harms_no_run() {
    let folder = Folder::new();
    let served = Served::start(&folder, &["--mock", "--answer", "4"]);
    let of = |a: Value| json!({"type": "object", "properties": {"a": a}});
    for schema in [
        of(wrapped("not", 30)),
        of(wrapped("anyOf", 30)),
        of(wrapped("unevaluatedProperties", 2)),
        chained(450),
        of(json!({"const": (0..60).fold(json!(1), |inner, _| json!([inner]))})),
        of(json!({"allOf": vec![json!({"pattern": "\\p{L}{20}"}); 60]})),
    ] {
        let mut ask = body("solver_checker", "How much is 2+2?");
        ask["response_format"] =
            json!({"type": "json_schema", "json_schema": {"name": "a", "schema": schema}});
        let refused = served.chat(&[], &ask);
        assert_eq!(
            (refused.status, &refused.json()["error"]["param"]),
            (400, &json!("response_format")),
            "{refused:?}"
        );
    }
    assert_eq!(served.chat(&[], &body("solver_checker", "How much is 2+2?")).status, 200);
    assert_eq!(served.end(nix::sys::signal::Signal::SIGTERM), Some(0));
    Finished::of(consensus(&folder).args(["verify", "served"])).exits(0);
}
