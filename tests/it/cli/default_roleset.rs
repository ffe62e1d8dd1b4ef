//! A run that names no roleset takes the one that suits its question. Its first line says which and why, and its last
//! line what the agreement is worth.

use std::process::Command;

use serde_json::{Value, json};

use crate::batch::{lines, tasks};
use crate::support::{Finished, Folder, SENSIBLE, Server, consensus, model};

/// Runs scripted agents that all answer this.
fn answered(folder: &Folder, answer: &str, words: &[&str]) -> Finished {
    let run = ["run", "--mock", "--seed", "1", "--prompt", "Is it so?", "--answer", answer];
    Finished::of(consensus(folder).args(run).args(words))
}

/// Runs the agents of a script.
fn scripted(folder: &Folder, rules: &[Value], words: &[&str]) -> Finished {
    let rules: Vec<String> = rules.iter().map(Value::to_string).collect();
    folder.write("script.jsonl", &rules.join("\n"));
    let run = ["run", "--mock-script", "script.jsonl", "--seed", "1", "--prompt", "Is it so?"];
    Finished::of(consensus(folder).args(run).args(words))
}

/// Returns what the first line says behind the run's id.
#[track_caller]
fn first(finished: &Finished) -> &str {
    let line = finished.stderr.lines().next().unwrap_or_default();
    assert!(line.starts_with("run "), "{}", finished.stderr);
    line.split_once(": ").unwrap().1
}

fn last(finished: &Finished) -> &str {
    finished.stderr.lines().last().unwrap_or_default()
}

const ANY: &str = "question (the default for any question; --roleset names another), seed 1, mock";

/// The first line of the run names the roleset, with the reason where the user named none.
#[test]
fn question_kind_chooses_roleset() {
    for (words, answer, expected) in [
        (&[][..], "Yes.", ANY),
        (&["--canonical", "lines"], "Yes.", ANY),
        (&["--choices", "yes,no"], "yes", "vote_choice (for --choices), seed 1, mock"),
        (&["--canonical", "number"], "4", "vote_number (for --canonical number), seed 1, mock"),
        (&["--canonical", "json"], "{\"a\":4}", "json_author_auditor (for --canonical json), seed 1, mock"),
        // A name needs no reason.
        (&["--roleset", "planner_coder", "--canonical", "json"], "4", "planner_coder, seed 1, mock"),
    ] {
        let folder = Folder::new();
        let finished = answered(&folder, answer, words).exits(0);
        assert_eq!(first(&finished), expected);
        assert_eq!(finished.stdout, format!("{answer}\n"));
        assert!(expected.starts_with(folder.result()["roleset"].as_str().unwrap()));
    }
}

#[test]
fn a_script_chooses_the_roleset_of_its_agents() {
    let honest = |agent: &str| json!({"agent": agent, "policy": "honest", "answer": "4"});
    let script = " (it has the agents of the script), seed 1, mock";
    for (agents, words, expected) in [
        (&["Writer", "Physicist"][..], &[][..], "writer_physicist"),
        (&["Pathos", "Logos", "Ethos"], &[], "council_tripartite"),
        // Their roleset is the only one that this script can play, and takes the flag too.
        (&["Writer", "Physicist"], &["--canonical", "number"], "writer_physicist"),
    ] {
        let rules: Vec<Value> = agents.iter().map(|agent| honest(agent)).collect();
        let finished = scripted(&Folder::new(), &rules, words).exits(0);
        assert_eq!(first(&finished), format!("{expected}{script}"));
    }
    let nobody = scripted(&Folder::new(), &[json!({"policy": "honest", "answer": "4"})], &[]).exits(0);
    assert_eq!(first(&nobody), ANY);
    // A name in two rolesets does not choose between them.
    let unclear = scripted(&Folder::new(), &[honest("Auditor")], &[]).exits(2);
    assert!(unclear.stderr.contains("the roleset's agents are Answerer"), "{}", unclear.stderr);
}

#[test]
fn a_script_may_come_from_a_pipe() {
    let folder = Folder::new();
    let command = r#"exec "$0" run --seed 1 --prompt x --mock-script <(printf '%s\n' "$1" "$2")"#;
    let mut bash = Command::new("bash");
    bash.args(["-c", command, env!("CARGO_BIN_EXE_consensus")]).current_dir(folder.path());
    bash.args(
        ["Solver", "Checker"]
            .map(|agent| json!({"agent": agent, "policy": "honest", "answer": "4"}).to_string()),
    );
    let finished = Finished::of(bash.env("HOME", folder.path())).exits(0);
    assert_eq!(first(&finished), "solver_checker (it has the agents of the script), seed 1, mock");
}

/// A roleset from the configuration file, the environment or a flag comes before the one that suits the question.
#[test]
fn named_roleset_overrides_question() {
    let folder = Folder::new();
    folder.write("consensus.toml", "roleset = \"translator_reviewer\"\n");
    let choices = ["--choices", "yes,no"];
    let configured = answered(&folder, "yes", &choices).exits(0);
    assert_eq!(first(&configured), "translator_reviewer (from the configuration file), seed 1, mock");
    let flag = answered(&folder, "yes", &[&choices[..], &["--roleset", "uiux_programmer"]].concat()).exits(0);
    assert_eq!(first(&flag), "uiux_programmer, seed 1, mock");
    let mut command = consensus(&folder);
    command.env("CONSENSUS_ROLESET", "planner_coder").args(["run", "--mock", "--seed", "1", "--answer", "4"]);
    let environment = Finished::of(command.args(["--prompt", "x"])).exits(0);
    assert_eq!(first(&environment), "planner_coder, seed 1, mock");
}

#[test]
fn plan_takes_same_roleset_as_run() {
    let folder = Folder::new();
    let plan = ["run", "--dry-run", "--prompt", "x", "--model", "m", "--choices", "yes,no"];
    let planned = Finished::of(consensus(&folder).args(plan).args(["--format", "json"])).exits(0);
    let planned: Value = serde_json::from_str(&planned.stdout).unwrap();
    assert_eq!(planned["roleset"], "vote_choice");
    let dry = answered(&folder, "4", &["--canonical", "number", "--dry-run"]).exits(0);
    assert!(dry.stdout.starts_with("vote_number (for --canonical number): Solver ("), "{}", dry.stdout);
}

#[test]
fn batch_without_roleset_takes_general_default() {
    let folder = Folder::new();
    tasks(&folder, 1);
    let batch =
        ["batch", "tasks.jsonl", "--output", "out", "--mock", "--answer", "4", "--canonical", "number"];
    Finished::of(consensus(&folder).args(batch)).exits(0);
    // The tasks may be of several kinds, so the default is the same for all. It counts numbers too.
    let row = &lines(&folder, "results-0.jsonl")[0];
    assert_eq!((&row["roleset"], &row["text"]), (&json!("question"), &json!("4")));
}

fn stubborn(agent: &str, answer: &str) -> Value {
    json!({"agent": agent, "policy": "stubborn", "answer": answer})
}

fn gives_in() -> Value {
    json!({"agent": "Critic", "policy": "sycophant", "answer": "5"})
}

/// A folder with a council that has an arbiter, and with a change.
fn with_a_court() -> Folder {
    let folder = Folder::new();
    folder.write("rolesets/packs/one.md", "Work.");
    let agent = |name: &str| json!({"name": name, "domain": "d", "pack": "one.md"});
    let court = json!({
        "v": 1, "protocol": "council", "params": {"threshold": 0.99, "max_rounds": 1},
        "agents": [agent("Ann"), agent("Bob"), agent("Cat")], "arbiter": agent("Dan"),
    });
    folder.write("rolesets/court.json", &court.to_string());
    folder.write("change.diff", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n");
    folder
}

#[test]
fn last_line_rates_agreement() {
    let second = json!({"agent": "Critic", "policy": "honest", "draft_answer": "5", "answer": "4"});
    let talk = ["--roleset", "generalist_critic", "--talk", "always"];
    let honest = json!({"policy": "honest", "answer": "4"});
    for (rules, words, how, expected) in [
        (vec![honest.clone()], &[][..], "voted", "weak agreement: more blind samples gave this answer"),
        (
            vec![honest.clone()],
            &["--roleset", "solver_checker"],
            "independent",
            "strong agreement: both wrote this answer independently",
        ),
        (
            vec![stubborn("Generalist", "4"), second],
            &talk,
            "converged",
            "medium agreement: both wrote this answer, but",
        ),
        (
            vec![stubborn("Generalist", "4"), gives_in()],
            &talk,
            "endorsed",
            "weak agreement: one agent wrote this text, and the other only accepted it; scripts played",
        ),
        (
            vec![honest.clone()],
            &["--roleset", "council_tripartite"],
            "weighed",
            "medium agreement: one member",
        ),
        (vec![honest.clone()], &["--roleset", "court"], "arbitrated", "weak agreement: the members left"),
        (
            vec![honest.clone()],
            &["--roleset", "panel_personas"],
            "scored",
            "medium agreement: the others' scores",
        ),
        (
            vec![honest],
            &["--roleset", "reviewers_f1", "-f", "change.diff"],
            "independent",
            "strong agreement: a quorum of reviewers approved the change",
        ),
    ] {
        let folder = with_a_court();
        let finished = scripted(&folder, &rules, words).exits(0);
        assert_eq!(folder.result()["how"], how, "{}", finished.stderr);
        assert!(last(&finished).starts_with(expected), "{}", finished.stderr);
        // Whatever tells the end of a run says so too.
        for command in [&["show"][..], &["show", "--replay"], &["resume"]] {
            let again = Finished::of(consensus(&folder).args(command).arg("--last")).exits(0);
            assert_eq!(last(&again), last(&finished), "{command:?}");
        }
    }
}

/// The last line says that the run is degraded, and without agreement it rates nothing.
#[test]
fn agreement_rating_mentions_loss() {
    let garbage = json!({"agent": "Critic", "round": 1, "step": "envelope", "garbage": true});
    // What was lost on the way takes from it.
    let talk = ["--talk", "always"];
    let rules = [garbage, gives_in(), stubborn("Generalist", "4")];
    let lost = scripted(&with_a_court(), &rules, &talk).exits(0);
    assert!(lost.stderr.contains("degraded: Critic committed to no blind draft"), "{}", lost.stderr);
    assert!(last(&lost).ends_with("only accepted it; scripts played the agents; the run is degraded"));
    // Where nothing was agreed on, nothing is worth anything.
    let rules = [stubborn("Generalist", "4"), stubborn("Critic", "5")];
    let open = scripted(&with_a_court(), &rules, &talk).exits(3);
    assert!(last(&open).starts_with("record: "), "{}", open.stderr);
}

/// The last line says that both agents are one model.
#[test]
fn agreement_of_one_model_rates_lower() {
    let server = Server::start(model(SENSIBLE));
    let url = server.url();
    for (roleset, expected) in [
        (
            "uiux_programmer",
            "medium agreement: both wrote this answer independently, before either saw the other's",
        ),
        ("generalist_critic", "weak agreement: one agent wrote this text, and the other only accepted it"),
    ] {
        let run = [
            "run",
            "--seed",
            "1",
            "--prompt",
            "2+2?",
            "--roleset",
            roleset,
            "--talk",
            "always",
            "--base-url",
            &url,
        ];
        let finished = Finished::of(consensus(&Folder::new()).args(run)).exits(0);
        assert_eq!(last(&finished), format!("{expected}; both agents are one model"));
    }
}
