//! The stories of the program, each at three widths.

use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use super::screen::{Terminal, WIDTHS, is_as_before};
use crate::support::{Act, Finished, Folder, Project, Server, consensus, http};

/// Tells a story at each width: `set` makes what it needs, and `command` is what is typed.
#[track_caller]
fn check_story(name: &str, code: i32, set: impl Fn(&Folder), command: impl Fn(&Folder) -> Command) {
    for width in WIDTHS {
        let folder = Folder::new();
        set(&folder);
        let (ended, rows) = Terminal::start(&mut command(&folder), width).finish();
        assert_eq!(ended, code, "{name} at {width}: {rows:#?}");
        is_as_before(name, width, folder.path(), &rows);
    }
}

fn typed(folder: &Folder, words: &[&str]) -> Command {
    let mut command = consensus(folder);
    command.args(words);
    // A seed that is drawn is now longer and now shorter.
    let has_seed = words.contains(&QUESTION) || words.contains(&SUM) || words.contains(&"--change");
    command.args(has_seed.then_some(["--seed", "7"]).into_iter().flatten());
    command
}

/// Two agents of whom each is waited for by the other, so that their lines come in one order.
const ONE_AFTER_ANOTHER: &str = concat!(
    "{\"agent\": \"Generalist\", \"step\": \"think\", \"reply\": \"The water is colder than the egg, so that it takes the heat from outside to inside. An egg of usual size is firm after ten minutes in boiling water.\"}\n",
    "{\"agent\": \"Generalist\", \"policy\": \"honest\", \"answer\": \"Ten minutes in boiling water.\"}\n",
    "{\"agent\": \"Critic\", \"delay_ms\": 150, \"policy\": \"honest\", \"answer\": \"Ten minutes in boiling water.\"}\n",
);

const SUM: &str = "How much is 2+2?";

const QUESTION: &str =
    "How long does an egg take until it is hard all the way through, and why does it take that long?";

/// One agent answers at once, and the other one only after ten minutes.
const ONE_ANSWERS: &str = concat!(
    "{\"agent\": \"Solver\", \"policy\": \"honest\", \"answer\": \"4\"}\n",
    "{\"agent\": \"Checker\", \"delay_ms\": 600000, \"policy\": \"honest\", \"answer\": \"4\"}\n",
);

#[test]
fn a_run_that_agrees() {
    let set = |folder: &Folder| drop(folder.write("script.jsonl", ONE_AFTER_ANOTHER));
    check_story("run-agreed", 0, set, |folder| typed(folder, &[QUESTION, "--mock-script", "script.jsonl"]));
}

#[test]
fn a_run_that_does_not_agree() {
    let stubborn = |agent: &str, delay: u32, answer: &str| {
        json!({"agent": agent, "delay_ms": delay, "policy": "stubborn", "answer": answer}).to_string() + "\n"
    };
    let script = stubborn("Solver", 0, "4") + &stubborn("Checker", 40, "5");
    let set = |folder: &Folder| drop(folder.write("script.jsonl", &script));
    let words = [SUM, "-r", "solver_checker", "--mock-script", "script.jsonl", "--max-rounds", "3"];
    check_story("run-not-agreed", 3, set, |folder| typed(folder, &words));
}

#[test]
fn a_run_that_loses_something() {
    let script = concat!(
        "{\"agent\": \"Checker\", \"step\": \"envelope\", \"attempt\": 0, \"delay_ms\": 60, \"reply\": \"I think that it is four.\"}\n",
        "{\"agent\": \"Checker\", \"step\": \"envelope\", \"attempt\": 1, \"delay_ms\": 60, \"truncate\": 20, \"policy\": \"honest\", \"answer\": \"4\"}\n",
        "{\"agent\": \"Checker\", \"step\": \"envelope\", \"round\": 1, \"delay_ms\": 60, \"garbage\": true}\n",
        "{\"agent\": \"Checker\", \"delay_ms\": 60, \"policy\": \"honest\", \"answer\": \"4\"}\n",
        "{\"policy\": \"honest\", \"answer\": \"4\"}\n",
    );
    let set = |folder: &Folder| drop(folder.write("script.jsonl", script));
    let words = [SUM, "-r", "solver_checker", "--talk", "always", "--mock-script", "script.jsonl"];
    check_story("run-degraded", 0, set, |folder| typed(folder, &words));
}

#[test]
fn a_run_that_is_interrupted() {
    for width in WIDTHS {
        let folder = Folder::new();
        folder.write("script.jsonl", ONE_ANSWERS);
        let words = [SUM, "-r", "solver_checker", "--mock-script", "script.jsonl"];
        let mut terminal = Terminal::start(&mut typed(&folder, &words), width);
        let signal = |terminal: &Terminal| {
            kill(Pid::from_raw(i32::try_from(terminal.id()).unwrap()), Signal::SIGINT).unwrap();
        };
        terminal.until("Solver (sample 1)");
        signal(&terminal);
        terminal.until("press Ctrl-C");
        signal(&terminal);
        let (code, rows) = terminal.finish();
        assert_eq!(code, 130, "{rows:#?}");
        is_as_before("run-interrupted", width, folder.path(), &rows);
    }
}

#[test]
fn a_chat_outlives_a_question_that_is_stopped() {
    for width in WIDTHS {
        let folder = Folder::new();
        folder.write("script.jsonl", ONE_ANSWERS);
        let agents = ["-r", "solver_checker", "--mock-script", "script.jsonl", "--seed", "7"];
        let words = [&["chat", "--session", "sums"], &agents[..]].concat();
        let mut terminal = Terminal::converse(consensus(&folder).args(words), width);
        terminal.until("ends the chat\n> ");
        terminal.types("How much is 2+2?\r");
        terminal.until("Solver (sample 1)");
        terminal.types("\x03");
        terminal.until("to stop now\n");
        terminal.types("\x03");
        terminal.until("--last`\n> ");
        terminal.types("\x04");
        let (code, rows) = terminal.finish();
        assert_eq!(code, 0, "{rows:#?}");
        is_as_before("chat-stopped", width, folder.path(), &rows);
    }
}

#[test]
fn missing_server_or_key_is_explained() {
    let url = "http://127.0.0.1:1/v1";
    let down = [SUM, "--model", "tiny-model", "--base-url", url];
    check_story("run-server-down", 6, |_| {}, |folder| typed(folder, &down));
    check_story("run-no-server", 6, |_| {}, |folder| typed(folder, &[SUM, "--model", "tiny-model"]));
    check_story("run-no-key", 2, |_| {}, |folder| typed(folder, &[SUM, "--model", "openai:gpt-4o-mini"]));
}

#[test]
fn a_model_that_is_misspelt() {
    let server = Server::start(|_| {
        let model = |id: &str| json!({"id": id, "owned_by": "vllm"});
        let list = json!({"data": [model("Qwen/Qwen2.5-7B-Instruct"), model("Qwen/Qwen2.5-1.5B-Instruct")]});
        vec![Act::Send(http("200 OK", "", list.to_string().as_bytes()))]
    });
    let url = server.url();
    let words = [SUM, "--model", "Qwen/Qwen2.5-7B-Instuct", "--base-url", &url];
    check_story(
        "run-no-model",
        2,
        |_| {},
        |folder| {
            let mut command = typed(folder, &words);
            command.env_remove("CONSENSUS_NO_MODEL_CHECK");
            command
        },
    );
}

#[test]
fn a_batch_and_what_came_out_of_it() {
    let tasks: String = (1..=3)
        .map(|id| {
            json!({"id": id, "prompt": format!("How much is {id} + 1?"), "answer": 4}).to_string() + "\n"
        })
        .collect();
    let mock = ["--mock", "--answer", "4", "-r", "solver_checker", "--runs-at-once", "1", "--output", "out"];
    let words = [&["batch", "tasks.jsonl"], &mock[..]].concat();
    let set = |folder: &Folder| drop(folder.write("tasks.jsonl", &tasks));
    check_story("batch", 0, set, |folder| typed(folder, &words));
    let done = |folder: &Folder| {
        set(folder);
        assert!(typed(folder, &[&words[..], &["-q"]].concat()).status().unwrap().success());
    };
    check_story("batch-status", 0, done, |folder| typed(folder, &["batch", "status", "out"]));
    check_story("runs-of-a-batch", 0, done, |folder| typed(folder, &["runs", "out"]));
    check_story("results", 0, done, |folder| typed(folder, &["results", "out"]));
    let other = [
        "batch",
        "tasks.jsonl",
        "--mock",
        "--answer",
        "4",
        "-r",
        "solver_checker",
        "--output",
        "out",
        "--max-rounds",
        "5",
    ];
    check_story("batch-other-settings", 2, done, |folder| typed(folder, &other));
}

#[test]
fn change_is_reviewed_and_approved() {
    for width in WIDTHS {
        let project = Project::new();
        let words = [
            "approve",
            "--repo",
            "repo",
            "--change",
            "fix",
            "--keys",
            "keys",
            "--mock-script",
            "script.jsonl",
        ];
        project.folder.write(
            "script.jsonl",
            concat!(
                "{\"agent\": \"Security\", \"delay_ms\": 80, \"policy\": \"honest\", \"answer\": \"approve\"}\n",
                "{\"agent\": \"Performance\", \"delay_ms\": 160, \"policy\": \"honest\", \"answer\": \"approve\"}\n",
                "{\"agent\": \"Compatibility\", \"delay_ms\": 240, \"policy\": \"honest\", \"answer\": \"reject\"}\n",
                "{\"policy\": \"honest\", \"answer\": \"approve\"}\n",
            ),
        );
        let folder = &project.folder;
        let review = ["review", "--repo", "repo", "--change", "fix", "--mock-script", "script.jsonl"];
        let (code, rows) = Terminal::start(&mut typed(folder, &review), width).finish();
        assert_eq!(code, 0, "{rows:#?}");
        is_as_before("review", width, folder.path(), &rows);
        let (code, rows) = Terminal::start(&mut typed(folder, &words), width).finish();
        assert_eq!(code, 0, "{rows:#?}");
        is_as_before("approve", width, folder.path(), &rows);
        let (code, rows) = Terminal::start(&mut typed(folder, &words), width).finish();
        assert_eq!(code, 0, "{rows:#?}");
        is_as_before("approve-again", width, folder.path(), &rows);
    }
}

#[test]
fn runs_are_listed_and_mistakes_are_explained() {
    let none = |_: &Folder| {};
    check_story("no-command", 2, none, |folder| typed(folder, &["veriffy"]));
    check_story("no-roleset", 2, none, |folder| {
        typed(folder, &[SUM, "--mock", "--answer", "4", "-r", "solver_cheker"])
    });
    let broken = |folder: &Folder| {
        folder.write("rolesets/mine.json", "{\"v\": 1, \"protocol\": \"pairs\", \"agents\": []}");
    };
    check_story("bad-roleset", 2, broken, |folder| {
        typed(folder, &[SUM, "--mock", "--answer", "4", "-r", "mine"])
    });
    check_story("no-run", 2, none, |folder| typed(folder, &["show", "nine"]));
    check_story("bad-setting", 2, none, |folder| {
        typed(folder, &[SUM, "--mock", "--answer", "4", "--set", "params.adpot=text"])
    });
}

#[test]
fn a_run_is_opened_again() {
    let done = |words: &'static [&'static str]| {
        move |folder: &Folder| {
            folder.write("script.jsonl", ONE_AFTER_ANOTHER);
            let run = [&["run", "-q"], words].concat();
            typed(folder, &run).output().unwrap();
        }
    };
    let agreed = done(&[QUESTION, "--mock-script", "script.jsonl"]);
    check_story("show", 0, agreed, |folder| typed(folder, &["show", "--last"]));
    check_story("show-full", 0, agreed, |folder| typed(folder, &["show", "--full", "--last"]));
    check_story("runs", 0, agreed, |folder| typed(folder, &["runs"]));
    let apart = done(&[SUM, "--mock", "--answer", "4", "-r", "solver_checker", "--max-tokens-total", "900"]);
    check_story("show-cut-off", 0, apart, |folder| typed(folder, &["show", "--last"]));
}

#[test]
fn a_pager_has_ctrl_c_to_itself() {
    let folder = Folder::new();
    let answer = "line\n".repeat(100);
    let talk = ["--roleset", "generalist_critic", "--talk", "always"];
    let run = ["run", "--mock", "--prompt", "Count.", "--answer", &answer];
    Finished::of(consensus(&folder).args(run).args(talk)).exits(0);
    // It stays where the program that has started it would end.
    let pager = folder.write(
        "pager.sh",
        "cat > /dev/null\ntrap 'echo heard; exit 0' INT\necho ready\nwhile :; do sleep 0.01; done\n",
    );
    let mut command = consensus(&folder);
    command.args(["show", "--full"]).env("PAGER", format!("sh {}", pager.display()));
    let mut terminal = Terminal::converse(&command, 80);
    terminal.until("ready");
    terminal.types("\x03");
    let (code, rows) = terminal.finish();
    assert!(code == 0 && rows.iter().any(|row| row.contains("heard")), "{code}: {rows:#?}");
}
