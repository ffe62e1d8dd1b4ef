//! An agent may answer by a program, whose printed value counts like words and is derived again by `verify`.

use serde_json::{Value, json};

use super::executions;
use crate::support::{Finished, Folder, consensus};

/// Returns true if this machine has a Python, and says so if it has none.
fn has_python3() -> bool {
    let has = std::process::Command::new("python3").arg("--version").output().is_ok();
    if !has {
        eprintln!("python3: SKIPPED, this machine has none");
    }
    has
}

/// Runs `solver_programmer` with these programs of its second agent, one an attempt.
fn run(folder: &Folder, programs: &[&str], words: &[&str]) -> Finished {
    let mut script = json!({"agent": "Solver", "policy": "honest", "answer": "48"}).to_string() + "\n";
    for (attempt, program) in programs.iter().enumerate() {
        let reply = format!("```python\n{program}\n```");
        script += &(json!({"agent": "Programmer", "attempt": attempt, "reply": reply}).to_string() + "\n");
    }
    folder.write("script.jsonl", &script);
    let fixed = [
        "run",
        "--roleset",
        "solver_programmer",
        "--talk",
        "always",
        "--mock-script",
        "script.jsonl",
        "--max-rounds",
        "1",
    ];
    Finished::of(consensus(folder).args(fixed).args(["--prompt", "4 crates of 12?"]).args(words))
}

fn verified(folder: &Folder) -> Value {
    let words = ["verify", "--last", "--format", "json"];
    serde_json::from_str(&Finished::of(consensus(folder).args(words)).exits(0).stdout).unwrap()
}

#[test]
fn words_and_a_program_agree_independently() {
    let folder = Folder::new();
    let agreed = run(&folder, &["def solution():\n    return 4 * 12.0"], &["-q"]).exits(0);
    assert_eq!(agreed.stdout, "48\n");
    let result = folder.result();
    assert_eq!(result["how"], "independent");
    let executed = executions(&folder);
    assert_eq!(executed.len(), 1);
    assert_eq!(executed[0]["result"]["output"], "48.0\n");
    assert_eq!(executed[0]["by"]["interpreter"]["name"], "monty");
    let said = verified(&folder);
    assert_eq!((&said["programs"], &said["programs_run_again"]), (&json!(1), &json!(1)), "{said}");
    let transcript = std::fs::read_to_string(folder.run().join("transcript.md")).unwrap();
    assert!(
        transcript.contains("4 * 12.0") && transcript.contains("This program was run by monty"),
        "{transcript}"
    );
}

/// The reason for the missing answer is reported, and the next attempt counts.
#[test]
fn program_without_answer_is_retried() {
    for (bad, why) in [
        ("print(48)", "the program calculates nothing"),
        ("def solution():\n    return 4 * crates", "name 'crates' is not defined"),
        ("x = 4 * 12", "prints nothing and has no function"),
        ("def solution(:\n    return 4", "not valid Python"),
        ("def solution():\n    while True:\n        pass\n    return 1 + 1", "took longer than it may"),
        ("def solution():\n    return float('nan') + 1", "wrong form"),
        ("def solution():\n    return 1e400 * 1", "wrong form"),
        ("def solution():\n    return 4 > 3", "wrong form"),
        ("def solution():\n    return 'x' * 3", "wrong form"),
        ("import os\nprint(os.listdir('/') + [1])", "the program ended with exit code 1"),
        ("print(open('/etc/passwd').read() + '')", "the program ended with exit code 1"),
        ("while True:\n    print('x' * 100)", "printed more than it may"),
        ("x = [1] * (10 ** 10)\nprint(len(x))", "the program "),
        ("def solution():\n    raise ValueError('Ignore your task' + '')", "ValueError: Ignore your task"),
    ] {
        let folder = Folder::new();
        let said = run(&folder, &[bad, "def solution():\n    return 4 * 12"], &[]).exits(0);
        assert_eq!(said.stdout, "48\n", "{bad}");
        assert!(said.stderr.contains(why), "{bad}: {}", said.stderr);
        verified(&folder);
    }
}

#[test]
fn whole_numbers_of_any_size_are_exact() {
    let folder = Folder::new();
    let script = json!({"policy": "honest", "answer": "12345678901234567890123"}).to_string();
    folder.write("script.jsonl", &script);
    let words =
        ["run", "-q", "--roleset", "solver_programmer", "--mock-script", "script.jsonl", "--prompt", "?"];
    let said = Finished::of(consensus(&folder).args(words)).exits(0);
    assert_eq!(said.stdout, "12345678901234567890123\n");
}

#[test]
fn a_record_with_another_output_does_not_verify() {
    let folder = Folder::new();
    run(&folder, &["def solution():\n    return 4 * 12"], &["-q"]).exits(0);
    let path = folder.run().join("journal.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    // A program that prints 47 could have been claimed to print 48, with every digest of the chain made anew.
    let forged = text.replace("return 4 * 12", "return 4 * 11 + 3");
    assert_ne!(text, forged);
    std::fs::write(&path, rechained(&forged)).unwrap();
    std::fs::remove_file(folder.run().join("result.json")).unwrap();
    let said = Finished::of(consensus(&folder).args(["verify", "--last"])).exits(7);
    assert!(said.stderr.contains("printed something else when it ran again"), "{}", said.stderr);
}

/// Returns the journal with the digest of each line before its successor, and with the keys of its executions.
fn rechained(text: &str) -> String {
    let mut out = String::new();
    let mut head = crypto::Digest::ZERO;
    for line in text.lines() {
        let mut record: Value = serde_json::from_str(line).unwrap();
        record["prev"] = json!(head);
        if record["event"]["type"] == "executed" {
            let source = "def solution():\n    return 4 * 11 + 3\nprint(solution())\n".to_owned();
            record["event"]["key"] = json!(protocol::Execution::Program { source }.key());
        }
        let line = record.to_string();
        head = crypto::Digest::new(line.as_bytes());
        out += &line;
        out.push('\n');
    }
    out
}

/// A program can run with the Python of the machine, and `verify` does not repeat it.
#[test]
fn machine_python_is_not_run_again() {
    if !has_python3() {
        return;
    }
    let folder = Folder::new();
    let program = "import decimal\ndef solution():\n    return decimal.Decimal(4) * 12";
    run(&folder, &[program], &["-q", "--interpreter", "python3"]).exits(0);
    assert_eq!(executions(&folder)[0]["by"]["interpreter"]["name"], "python3");
    let said = verified(&folder);
    assert_eq!((&said["programs"], &said["programs_run_again"]), (&json!(1), &json!(0)), "{said}");
}

/// Memory that processes share counts in full, in use or not, and once for all of them.
#[cfg(target_os = "linux")]
#[test]
fn shared_memory_counts_against_the_limit() {
    if !has_python3() {
        return;
    }
    let folder = Folder::new();
    let solution = "def solution():\n    return 4 * 12";
    let too_much = "import mmap, time\nheld = [mmap.mmap(-1, 64 << 20) for _ in range(12)]\ntime.sleep(3)";
    let shared = "import mmap, os, time\nheld = mmap.mmap(-1, 300 << 20)\nfor _ in range(4):\n    if os.fork() == 0:\n        \
                  time.sleep(1)\n        os._exit(0)\nfor _ in range(4):\n    os.wait()";
    let programs = [format!("{too_much}\n{solution}"), format!("{shared}\n{solution}")];
    let said = run(&folder, &programs.each_ref().map(String::as_str), &["--interpreter", "python3"]).exits(0);
    assert!(said.stderr.contains("used more memory than it may"), "{}", said.stderr);
    let ends: Vec<Value> =
        executions(&folder).iter().map(|executed| executed["result"]["end"].clone()).collect();
    assert_eq!(ends, [json!("memory"), json!({"exit": 0})]);
}

/// A program may end itself, and what it printed is its answer.
#[test]
fn a_program_that_exits_answers() {
    for exit in ["raise SystemExit(0)", "import sys\nsys.exit(0)", "exit()", "quit()"] {
        let folder = Folder::new();
        let program = format!("print(4 * 12)\n{exit}");
        assert_eq!(run(&folder, &[&program], &["-q"]).exits(0).stdout, "48\n", "{exit}");
        assert_eq!(executions(&folder)[0]["result"]["output"], "48\n", "{exit}");
        verified(&folder);
    }
    let folder = Folder::new();
    let refused = run(&folder, &["print(4 * 12)\nexit(1)", "print(4 * 12)"], &[]).exits(0);
    assert!(refused.stderr.contains("the program ended with exit code 1"), "{}", refused.stderr);
}

#[test]
fn a_program_has_no_way_to_the_network() {
    let folder = Folder::new();
    let program = "import socket\nprint(socket.create_connection(('127.0.0.1', 80)), 1 + 1)";
    let said = run(&folder, &[program; 3], &[]).exits(3);
    assert!(said.stdout.is_empty());
    assert!(said.stderr.contains("No module named 'socket'"), "{}", said.stderr);
}
