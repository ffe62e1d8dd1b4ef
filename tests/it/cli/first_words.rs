//! The first words that a user types: a question by itself is answered, and what is missing is said before anything is sent.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Act, Finished, Folder, SENSIBLE, Server, consensus, http, model};

fn typed(words: &[&str], code: i32) -> Finished {
    let folder = Folder::new();
    folder.write("notes.txt", "It was built in 1960.\n");
    let mut command = consensus(&folder);
    Finished::of(command.env_remove("OPENAI_API_KEY").args(words)).exits(code)
}

#[test]
fn a_question_without_a_command_is_run() {
    for words in [
        &["How much is 2+2?", "--mock", "--answer", "4"][..],
        &["--mock", "--answer", "4", "How much is 2+2?"],
        &["--format", "text", "-f", "notes.txt", "--mock", "--answer", "4", "How much is 2+2?"],
        &["run", "--mock", "--answer", "4", "How", "much", "is", "2+2?"],
    ] {
        assert_eq!(typed(words, 0).stdout, "4\n", "{words:?}");
    }
}

#[test]
fn unreadable_command_error_follows_requested_format() {
    let folder = Folder::new();
    let unquoted = Finished::of(consensus(&folder).args(["How", "much", "is", "2+2?"])).exits(2);
    assert!(unquoted.stderr.contains("put it in quotes: consensus \"How much"), "{}", unquoted.stderr);
    let words = ["run", "--no-such-flag"];
    let logged = Finished::of(consensus(&folder).args(words).args(["--log-format", "json"])).exits(2);
    let line: Value = serde_json::from_str(&logged.stderr).unwrap();
    assert!(line["message"].as_str().unwrap().contains("--no-such-flag"), "{line}");
    assert_eq!(logged.stdout, "", "the log's form is not the answer's");
    let finished = Finished::of(consensus(&folder).args(words).args(["--format", "jsonl"])).exits(2);
    assert!(
        finished.stdout.contains("no-such-flag") && finished.stderr.starts_with("error: "),
        "{}",
        finished.stdout
    );
}

/// A lone word is taken for a mistyped command, and a file among the words of a question is refused.
#[test]
fn mistyped_command_is_no_question() {
    let mistyped = typed(&["veriffy"], 2).stderr;
    assert!(mistyped.contains("a similar subcommand exists: 'verify'"), "{mistyped}");
    let flag = typed(&["verify", "--nonsense", "a b"], 2).stderr;
    assert!(flag.contains("unexpected argument '--nonsense'"), "{flag}");
    let files = typed(&["run", "--mock", "When", "was", "it", "built?", "notes.txt"], 2).stderr;
    assert!(files.contains("`notes.txt` is a file; give each file with its own -f"), "{files}");
}

#[test]
fn missing_key_is_refused_at_once() {
    for (model, variable) in
        [("openai:gpt-4o-mini", "OPENAI_API_KEY"), ("openrouter:x/y", "OPENROUTER_API_KEY")]
    {
        let refused = typed(&["How much is 2+2?", "--model", model], 2).stderr;
        assert!(refused.contains(&format!("needs a key, and `{variable}` is not set")), "{refused}");
        assert_eq!(refused.lines().count(), 2, "what is run, and why it is not: {refused}");
    }
    let folder = Folder::new();
    let mut command = consensus(&folder);
    command.env("OPENAI_API_KEY", " ").args(["How much is 2+2?", "--model", "openai:gpt-4o-mini"]);
    let empty = Finished::of(&mut command).exits(2).stderr;
    assert!(empty.contains("needs a key"), "{empty}");
}

/// A refused connection to this machine is reported once and not retried, unless the configuration sets retries.
#[test]
fn absent_local_server_fails_at_once() {
    let folder = Folder::new();
    // No process listens on this port any more.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/v1");
    let attempts_with = |config: &str| {
        folder.write("consensus.toml", config);
        let words = ["How much is 2+2?", "--model", "tiny-model", "--base-url", &url];
        let story = Finished::of(consensus(&folder).args(words)).exits(6).stderr;
        (story.matches("Connection refused").count(), story.contains("; trying again"))
    };
    assert_eq!(attempts_with(""), (1, false), "at once");
    assert_eq!(attempts_with("retries = 1\n"), (2, true), "as often as was said, in one line and at the end");
}

/// With `--quiet` one line still says that there is no agreement.
#[test]
fn no_agreement_shows_each_answer() {
    let folder = Folder::new();
    let agent = |name: &str, answer| {
        format!("{{\"agent\":\"{name}\",\"policy\":\"stubborn\",\"answer\":\"{answer}\"}}\n")
    };
    folder.write("script.jsonl", &(agent("Writer", 4) + &agent("Physicist", 5)));
    let run = |words: &[&str]| {
        let given =
            ["run", "--roleset", "writer_physicist", "--mock-script", "script.jsonl", "--prompt", "2+2?"];
        Finished::of(consensus(&folder).args(given).args(words)).exits(3).stderr
    };
    let stderr = run(&[]);
    assert!(stderr.contains("\nWriter answered: 4\nPhysicist answered: 5\n"), "{stderr}");
    let quiet = run(&["--quiet"]);
    assert!(quiet.starts_with("no agreement: ") && quiet.lines().count() == 1, "{quiet}");

    // The newest alone is listed, and the end of its id names it.
    let listed = Finished::of(consensus(&folder).args(["runs", "--limit", "1"])).exits(0).stdout;
    assert_eq!(listed.lines().count(), 1, "{listed}");
    let id = listed.split(' ').next().unwrap();
    let shown =
        Finished::of(consensus(&folder).args(["show", "--full", &id[id.len() - 8..]])).exits(0).stdout;
    assert!(shown.starts_with(&format!("# Run {id}")), "{shown}");
}

#[test]
fn duration_without_unit_is_refused_with_examples() {
    let refused = typed(&["run", "--mock", "--answer", "4", "--deadline", "10", "2 + 2?"], 2).stderr;
    assert!(refused.contains("give a number with a unit, such as 90s, 10m or 2h"), "{refused}");
}

/// A server that lists two models, and says whose they are.
fn listing(owner: &'static str) -> Server {
    Server::start(move |request| {
        if request.path.ends_with("/models") {
            let model = |id: &str| json!({"id": id, "owned_by": owner, "max_model_len": 8192});
            let list = json!({"data": [model("qwen2.5:7b"), model("tiny-model:latest")]});
            return vec![Act::Send(http("200 OK", "", list.to_string().as_bytes()))];
        }
        model(SENSIBLE)(request)
    })
}

/// The error suggests the nearest model of those that the server lists.
#[test]
fn unlisted_model_is_refused_before_call() {
    let ask = |server: &Server, words: &[&str], code| {
        let folder = Folder::new();
        let mut command = consensus(&folder);
        command.env_remove("CONSENSUS_NO_MODEL_CHECK");
        command.args(["How much is 2+2?", "--base-url", &server.url()]).args(words);
        Finished::of(&mut command).exits(code)
    };
    let server = listing("vllm");
    let refused = ask(&server, &["--model", "qwen2.5:8b"], 2).stderr;
    assert!(
        refused.contains("has no model `qwen2.5:8b`; it lists `qwen2.5:7b`, `tiny-model:latest`;"),
        "{refused}"
    );
    assert!(refused.contains("; did you mean `qwen2.5:7b`?"), "{refused}");
    assert!(server.chats().is_empty(), "no model was called");
    let batch = ["--model", "qwen2.5:8b", "--no-model-check"];
    ask(&server, &batch, 0);
    // The tag that Ollama implies need not be typed, and llama.cpp answers to any name.
    ask(&listing("library"), &["--model", "tiny-model"], 0);
    ask(&listing("llamacpp"), &["--model", "whatever"], 0);
}

#[test]
fn wait_server_flag_awaits_late_server() {
    let folder = Folder::new();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/v1");
    let words = ["How much is 2+2?", "--model", "tiny-model", "--base-url", &url, "--wait-server"];
    let late = Finished::of(consensus(&folder).args(words).arg("1s")).exits(6);
    assert!(late.stderr.contains("the server did not come"), "{}", late.stderr);
    let mut waiting = consensus(&folder);
    waiting.args(words).arg("60s").stderr(Stdio::piped()).stdout(Stdio::piped());
    let mut waiting = waiting.spawn().unwrap();
    let mut story = BufReader::new(waiting.stderr.take().unwrap()).lines();
    let first = story.next().unwrap().unwrap();
    assert!(first.contains("waiting for the server"), "{first}");
    let server = Server::on_port(port, model(SENSIBLE));
    let rest: Vec<String> = story.map(Result::unwrap).collect();
    assert!(waiting.wait().unwrap().success(), "{rest:?}");
    assert!(rest.iter().any(|line| line == "the server is up"), "{rest:?}");
    assert!(!server.chats().is_empty());
}

/// With `--log-format json` every line of the log is an object.
#[test]
fn verbose_run_logs_model_calls() {
    let folder = Folder::new();
    let server = Server::start(model(SENSIBLE));
    let url = server.url();
    let words = ["How much is 2+2?", "--model", "tiny-model", "--base-url", &url, "-v"];
    let stderr = Finished::of(consensus(&folder).args(words)).exits(0).stderr;
    let call = stderr.lines().find(|line| line.contains("a model answered")).unwrap();
    for part in ["agent=", "call=r1.a", "server=", "milliseconds=", "requests=1", "prompt=", "completion="] {
        assert!(call.contains(part), "{part}: {call}");
    }
    assert!(stderr.contains("a request was made") && stderr.contains("status=200"), "{stderr}");
    let stderr = Finished::of(consensus(&folder).args(words).args(["--log-format", "json"])).exits(0).stderr;
    let lines: Vec<Value> = stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(
        lines.iter().all(|line| line["timestamp"].is_string() && line["message"].is_string()),
        "{stderr}"
    );
    assert!(
        lines.iter().any(|line| line["message"] == "a model answered" && line["requests"] == 1),
        "{stderr}"
    );
}

/// A folder that already has runs keeps the new ones too, and another folder of that name is left alone.
#[test]
fn runs_default_to_user_state_folder() {
    let folder = Folder::new();
    let run = |words: &[&str]| {
        let mut command = consensus(&folder);
        command.env_remove("CONSENSUS_RUNS_DIR").env("XDG_STATE_HOME", folder.path().join("state"));
        Finished::of(command.args(["How much is 2+2?", "--mock", "--answer", "4"]).args(words)).exits(0)
    };
    let count = |place: &str| std::fs::read_dir(folder.path().join(place)).map_or(0, Iterator::count);
    run(&[]);
    assert_eq!((count("runs"), count("state/consensus/runs")), (0, 1), "nothing is left in a project");
    // A folder of that name that is something else stays what it is.
    folder.write("runs/marathon.txt", "42.195");
    run(&[]);
    assert_eq!((count("runs"), count("state/consensus/runs")), (1, 2));
    run(&["--runs-dir", "runs"]);
    run(&[]);
    assert_eq!((count("runs"), count("state/consensus/runs")), (3, 2), "where runs are, they go on");
    let mut listed = consensus(&folder);
    listed.env_remove("CONSENSUS_RUNS_DIR").env("XDG_STATE_HOME", folder.path().join("state")).arg("runs");
    assert_eq!(Finished::of(&mut listed).exits(0).stdout.lines().count(), 2);
}

/// A length that the task says in plain words is checked, unless a flag turns this off or gives another.
#[test]
fn length_in_task_becomes_constraint() {
    let run = |words: &[&str], code| {
        let folder = Folder::new();
        let answer = ["--mock", "--answer", "Water boils at less heat where the air is thin."];
        let finished = Finished::of(consensus(&folder).arg("run").args(words).args(answer)).exits(code);
        let opened = std::fs::read_to_string(folder.run().join("journal.jsonl")).unwrap();
        let opened: Value = serde_json::from_str(opened.lines().next().unwrap()).unwrap();
        (finished.stderr, opened["event"]["setup"]["params"]["constraints"].clone())
    };
    let three = "Explain in exactly three sentences why eggs take longer in the mountains.";
    let (stderr, rules) = run(&[three], 3);
    assert!(
        stderr.contains("checked for “in exactly three sentences” (exactly 3 sentences), as the task says"),
        "{stderr}"
    );
    assert_eq!(rules, json!([{"kind": "sentences", "min": 3, "max": 3}]), "it is on record");
    assert_eq!(run(&[three, "--no-inferred-constraints"], 0).1, json!([]));
    let one = "Explain in one sentence why eggs take longer in the mountains.";
    assert_eq!(run(&[one], 0).1, json!([{"kind": "sentences", "min": 1, "max": 1}]));
    // What is given with a flag is what is meant.
    let (_, rules) = run(&[three, "--constraint", "sentences=1"], 0);
    assert_eq!(rules, json!([{"kind": "sentences", "min": 1, "max": 1}]));
}

/// Line breaks are no part of the form in which texts are compared, and paragraphs are counted all the same.
#[test]
fn paragraphs_are_those_of_the_author() {
    for (rule, code) in [("paragraphs=2", 0), ("paragraphs=3", 3)] {
        let folder = Folder::new();
        let run =
            ["run", "--mock", "--answer", "One.\n\nTwo.", "--constraint", rule, "--prompt", "Explain rain."];
        Finished::of(consensus(&folder).args(run)).exits(code);
    }
}
