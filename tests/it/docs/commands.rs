//! Every command of the README and of the guides is run, so that it cannot rot.
//!
//! Lines that begin with `$ ` in `console` blocks run in one folder a page, one after another, against a loopback server in place of the
//! model servers that are named. Lines below a command are the output that it must have. The two commands in the `sh` blocks of the README
//! are those that `.ci/run` runs.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{pages, text_of};

use crate::support::{Act, Finished, Folder, Request, SENSIBLE, Server, completion, consensus, model, trust};

/// Returns the lines of every code block in this language.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<Vec<&'a str>> {
    let mut found = Vec::new();
    let mut open: Option<Vec<&str>> = None;
    for line in text.lines() {
        match (&mut open, line) {
            (None, line) if line == format!("```{language}") => open = Some(Vec::new()),
            (Some(_), "```") => found.extend(open.take()),
            (Some(lines), line) => lines.push(line),
            (None, _) => {}
        }
    }
    found
}

/// Answers like `SENSIBLE`, but a voter is right whatever the seed of its request is.
fn sure(request: &Value) -> String {
    let mut request = request.clone();
    request.as_object_mut().expect("a request is an object").remove("seed");
    SENSIBLE(&request)
}

/// Agrees at once with a text that fits whatever is asked for.
fn agreeable(request: &Request) -> Vec<Act> {
    let body = request.json();
    let fields = &body["response_format"]["json_schema"]["schema"];
    if let Some(word) = fields["properties"]["word"]["enum"][0].as_str() {
        return vec![Act::Send(completion(&json!({"word": word}).to_string()))];
    }
    let fields = &fields["anyOf"][0]["properties"];
    if fields.is_null() {
        let asks_for_text = request.body.contains("Write the complete answer");
        return if asks_for_text {
            vec![Act::Send(completion("One. Two. Three."))]
        } else {
            model(sure)(request)
        };
    }
    let pattern =
        fields["final_solution"]["properties"]["canonical_text"]["pattern"].as_str().unwrap_or_default();
    let is_number = pattern.contains("[0-9]");
    let text = if is_number { "391" } else { "One. Two. Three." };
    let handles = &fields["final_solution"]["properties"]["accepts"]["enum"];
    let solution =
        if handles.is_null() { json!({"canonical_text": text}) } else { json!({"accepts": handles[0]}) };
    let envelope = json!({
        "role": fields["role"]["enum"][0], "domain": "d", "task_understanding": "as above", "public_message": "[SOLVED]",
        "artifact": {"type": "results", "content": {}}, "needs_from_peer": [], "handoff_to": "",
        "status": "SOLVED", "final_solution": solution,
    });
    vec![Act::Send(completion(&envelope.to_string()))]
}

/// Makes programs that are called as the servers that can be launched, and answer as the tests' one does.
fn fake_servers(folder: &Folder, fake_llm: &Path) -> PathBuf {
    for launcher in consensus::provider::launch::LAUNCHERS {
        let program = fake_llm.display();
        let script =
            format!("#!/bin/sh\nwhile [ \"$1\" != --port ]; do shift; done\nexec '{program}' \"$2\"\n");
        let path = folder.write(&format!("servers/{}", launcher.name), &script);
        std::fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    folder.path().join("servers")
}

/// Runs the commands of a page in a folder of its own; returns their number.
fn run_commands(page: &str) -> usize {
    let text = text_of(page);
    let server = Server::start(agreeable);
    let bedrock = Server::start(|request| vec![Act::Send(crate::provider::bedrock::answer(request))]);
    let folder = Folder::new();
    let url = server.url();
    let mut places = String::new();
    for name in ["vllm", "llamacpp", "ollama"] {
        places.extend(["[providers.", name, "]\nbase_url = \"", &url, "\"\n"]);
    }
    folder.write("config/consensus/config.toml", &places);
    folder.write("qwen2.5-1.5b-instruct-q4_k_m.gguf", "weights");
    let program = Path::new(env!("CARGO_BIN_EXE_consensus")).parent().unwrap();
    let launched = fake_servers(&folder, &program.join("examples").join("fake_llm"));
    let path = format!("{}:{}:{}", program.display(), launched.display(), std::env::var("PATH").unwrap());
    let mut count = 0;
    for block in blocks(&text, "console") {
        for (index, line) in block.iter().enumerate() {
            let Some(command) = line.strip_prefix("$ ") else { continue };
            count += 1;
            let expected: Vec<&str> =
                block[index + 1..].iter().take_while(|l| !l.starts_with("$ ")).copied().collect();
            let mut shell = std::process::Command::new("bash");
            shell.args(["-c", command]).current_dir(folder.path());
            let clean = consensus(&folder);
            for (name, value) in clean.get_envs() {
                match value {
                    Some(value) => shell.env(name, value),
                    None => shell.env_remove(name),
                };
            }
            shell
                .env("PATH", &path)
                .env("OPENAI_BASE_URL", &url)
                .env("URL", &url)
                .env("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", format!("http://127.0.0.1:{}", bedrock.port))
                .envs([("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"), ("AWS_SECRET_ACCESS_KEY", "secret")])
                .env("XDG_STATE_HOME", folder.path().join("state"))
                .env_remove("CONSENSUS_RUNS_DIR")
                .env_remove("OPENAI_API_KEY");
            let finished = Finished::of(&mut shell);
            assert_eq!(finished.code, 0, "{page}: {command}\n{}\n{}", finished.stdout, finished.stderr);
            if !expected.is_empty() {
                assert_eq!(finished.stdout.lines().collect::<Vec<_>>(), expected, "{page}: {command}");
            }
        }
    }
    count
}

#[test]
fn every_command_of_the_readme_works() {
    assert!(run_commands("README.md") >= 10);
}

#[test]
fn every_command_of_the_guides_works() {
    let count: usize = pages("docs/src/guides").iter().map(|page| run_commands(page)).sum();
    assert!(count >= 40, "{count} commands");
}

/// The README has two commands for a fresh machine, and the script of the gate has both.
#[test]
fn readme_setup_commands_match_gate() {
    let (readme, gate) = (text_of("README.md"), text_of(".ci/run"));
    let commands: Vec<Vec<&str>> = blocks(&readme, "sh");
    assert_eq!(commands, [["./quickstart.sh"], ["cargo test --locked"]]);
    for command in commands.concat() {
        assert!(gate.contains(command), "{command}");
    }
}

#[test]
fn the_configuration_of_the_book_is_read() {
    let page = text_of("docs/src/reference/configuration.md");
    let folder = Folder::new();
    let toml = blocks(&page, "toml").concat().join("\n").replace("roleset = \"solver_checker\"", "");
    folder.write("consensus.toml", &toml);
    trust(&folder);
    let plan = ["run", "--dry-run", "--model", "lab:NAME", "--prompt", "x", "--format", "json"];
    let value: Value =
        serde_json::from_str(&Finished::of(consensus(&folder).args(plan)).exits(0).stdout).unwrap();
    assert!(value["cost_micro_usd_max"].as_u64().unwrap() > 0);
    // The price binds: so the run is refused for what it could cost, and not for want of a price.
    let run = ["run", "--model", "lab:NAME", "--prompt", "x", "--max-cost", "0.000001"];
    Finished::of(consensus(&folder).args(run)).exits(5);
}
