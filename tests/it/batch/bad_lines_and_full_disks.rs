//! What stands in a batch's way: lines that are no tasks, disks that are full, servers that are not there.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Value, json};

use crate::batch::{MOCK, batch, figures, lines, replies, run_of, tasks};
use crate::support::{Act, Finished, Folder, SENSIBLE, Server, consensus, http, model};

#[test]
fn bad_line_is_named_and_stops_no_other() {
    let folder = Folder::new();
    let good = |id: &str| json!({"id": id, "prompt": "How much is 2+2?"}).to_string();
    let bad = [
        "nonsense".to_owned(),
        json!({"id": "a", "prompt": "again"}).to_string(),
        json!({"id": "b", "prompt": "b", "roleset": "solver_cheker"}).to_string(),
        json!({"id": "c", "prompt": "c", "documents": ["missing.txt"]}).to_string(),
        // What has no end, and what has no beginning.
        json!({"id": "g", "prompt": "g", "documents": ["/dev/zero"]}).to_string(),
        json!({"id": "h", "prompt": "h", "documents": ["pipe"]}).to_string(),
        json!({"id": "d", "prompt": "d", "canonical": "number", "answer": "four"}).to_string(),
        json!({"id": "e"}).to_string(),
        json!({"id": "i", "prompt": "i", "documents": [{"name": "n", "text": "1"}, {"name": "n", "text": "2"}]})
            .to_string(),
        "{\"id\": \"f\", \"prompt\": \"\u{7}".to_owned(),
    ];
    let text = format!("{}\n{}\n\n{}", good("a"), bad.join("\n"), good("z"));
    folder.write("tasks.jsonl", &text);
    assert!(Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap().success());
    let done = figures(&folder, &[&MOCK[..], &["--seeds", "2"]].concat(), 2);
    assert_eq!((&done["ended"]["agreed"], &done["refused"]), (&json!(4), &json!(10)), "{done}");
    let refused = lines(&folder, "refused-0.jsonl");
    let named: Vec<u64> = refused.iter().map(|line| line["line"].as_u64().unwrap()).collect();
    assert_eq!(named, [2, 3, 4, 5, 6, 7, 8, 9, 10, 11], "{refused:?}");
    for (line, part) in refused.iter().zip([
        "not a task",
        "already",
        "did you mean `solver_checker`",
        "missing.txt",
        "it is not a file",
        "it is not a file",
        "can never be the answer",
        "it has no `prompt`; its fields are `id`",
        "two of its documents are called `n`",
        "not a task",
    ]) {
        assert!(line["why"].as_str().unwrap().contains(part), "{line}");
    }
    // Whatever has an id is found by it.
    let ids: Vec<&Value> = refused.iter().map(|line| &line["task"]).collect();
    assert_eq!(json!(ids), json!([null, "a", "b", "c", "g", "h", "d", "e", "i", null]));
    // Mended, they are run, and the others are not run again.
    let text: String =
        text.lines().filter(|line| !bad.contains(&(*line).to_owned())).collect::<Vec<_>>().join("\n");
    folder.write("tasks.jsonl", &format!("{text}\n{}", good("b")));
    let done = figures(&folder, &[&MOCK[..], &["--seeds", "2"]].concat(), 0);
    assert_eq!((&done["ended"]["agreed"], &done["before"]), (&json!(6), &json!(4)), "{done}");
    assert_eq!(lines(&folder, "refused-0.jsonl").len(), 0);
}

/// The error names the file that cannot be written.
#[test]
fn full_disk_stops_batch_without_loss() {
    let folder = Folder::new();
    tasks(&folder, 200);
    let program = env!("CARGO_BIN_EXE_consensus");
    let full = format!("ulimit -f 400; exec '{program}' \"$@\"");
    let mut words = vec!["-c", &full, "sh", "batch", "tasks.jsonl", "--output", "out", "--quiet"];
    words.extend(MOCK);
    let mut command = Command::new("sh");
    command.current_dir(folder.path()).args(&words);
    let stopped = Finished::of(&mut command).exits(1);
    assert!(stopped.stderr.contains("cannot write to `out/journal-0.jsonl`"), "{}", stopped.stderr);
    let before = lines(&folder, "results-0.jsonl").len();
    assert!(before > 5, "{before}");
    let done = figures(&folder, &MOCK, 0);
    assert_eq!(done["ended"]["agreed"], 200, "{done}");
    let runs: BTreeSet<String> = lines(&folder, "results-0.jsonl").iter().map(run_of).collect();
    assert_eq!((runs.len(), lines(&folder, "results-0.jsonl").len()), (200, 200));
    assert!(replies(&folder, "journal-0.jsonl").values().all(|calls| *calls == 4));
}

#[test]
fn batch_reports_obstacles_at_once() {
    let folder = Folder::new();
    tasks(&folder, 2);
    let refused = |words: &[&str], code, part: &str| {
        let mut command = consensus(&folder);
        let finished = Finished::of(command.arg("batch").args(words)).exits(code);
        assert!(finished.stderr.contains(part), "{part}: {}", finished.stderr);
    };
    let with = |words: &[&'static str]| [words, &MOCK[..]].concat();
    refused(&with(&["missing.jsonl", "--output", "out"]), 2, "cannot read the tasks `missing.jsonl`");
    refused(&with(&["tasks.jsonl"]), 2, "--output");
    refused(&with(&["tasks.jsonl", "--output", "out", "--shard", "4/4"]), 2, "0/4 to 3/4");
    refused(
        &with(&["tasks.jsonl", "--output", "out", "--shard", "auto"]),
        2,
        "SLURM_ARRAY_TASK_ID is not set",
    );
    refused(&with(&["tasks.jsonl", "--output", "tasks.jsonl/out"]), 2, "cannot make the folder");
    refused(
        &["tasks.jsonl", "--output", "out", "--mock", "--answer", "4", "--roleset", "nobody"],
        2,
        "no roleset `nobody`",
    );
    let twice = [
        "tasks.jsonl",
        "--output",
        "out",
        "--mock",
        "--answer",
        "4",
        "--roleset",
        "solver_checker,solver_checker",
    ];
    refused(&twice, 2, "`solver_checker` is named twice");
    refused(&["status", "nowhere"], 2, "there is no batch in `nowhere`");
    // One process a shard.
    figures(&folder, &MOCK, 0);
    let held = std::fs::File::open(folder.path().join("out/journal-0.jsonl")).unwrap();
    held.lock().unwrap();
    refused(&with(&["tasks.jsonl", "--output", "out"]), 2, "in use by another process");
    drop(held);
    // A change of the record is found.
    let journal = folder.path().join("out/journal-0.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, text.replacen("How much is 1", "How much is 7", 1)).unwrap();
    refused(&with(&["tasks.jsonl", "--output", "out"]), 7, "the chain is broken");
}

/// A server that is not there ends a batch before every run has failed.
#[test]
fn missing_server_ends_batch_early() {
    let folder = Folder::new();
    tasks(&folder, 200);
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{gone}/v1");
    let words = ["--roleset", "solver_checker", "--model", "m", "--base-url", &url, "--runs-at-once", "4"];
    // Without repetitions calls fail; with them they wait for the server.
    for config in ["retries = 0\n", ""] {
        folder.write("consensus.toml", config);
        let ended =
            Finished::of(batch(&folder, &words).args(["--shard", "0/1", "--retry", "failed"])).exits(6);
        let said = "further calls would fail as the last ones did, so no more runs begin";
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
        let status = Finished::of(consensus(&folder).args(["batch", "status", "out"])).exits(0);
        assert!(status.stdout.contains("stopped"), "{}", status.stdout);
    }
    let failed = lines(&folder, "results-0.jsonl").len();
    assert!((1..=16).contains(&failed), "{failed}");
    let done = figures(&folder, &[&MOCK[..], &["--retry", "failed"]].concat(), 0);
    assert_eq!((&done["ended"]["agreed"], &done["ended"]["failed"]), (&json!(200), &json!(0)), "{done}");
}

#[test]
fn runs_share_knowledge_of_server() {
    let folder = Folder::new();
    tasks(&folder, 20);
    let refusal = "{\"error\": {\"message\": \"response_format json_schema is not supported\"}}";
    let honest = model(SENSIBLE);
    let server = Server::start(move |request| {
        if request.json()["response_format"]["type"] == "json_schema" {
            return vec![Act::Send(http(
                "400 Bad Request",
                "content-type: application/json\r\n",
                refusal.as_bytes(),
            ))];
        }
        honest(request)
    });
    let url = server.url();
    let words = ["--roleset", "writer_physicist", "--model", "m", "--base-url", &url, "--runs-at-once", "1"];
    figures(&folder, &words, 0);
    let refused =
        server.chats().into_iter().filter(|chat| chat.json()["response_format"]["type"] == "json_schema");
    let refused = refused.count();
    assert!((1..=2).contains(&refused), "both first drafts at most, and not each run's: {refused}");
}

/// A run is not graded by the answer of another question that has taken the place of its line.
#[test]
fn moved_line_keeps_its_own_answer() {
    let folder = Folder::new();
    let line =
        |sum: u32| json!({"question": format!("How much is {sum} + 0?"), "answer": sum}).to_string() + "\n";
    let map = ["--map", "prompt=question", "--mock", "--answer", "4", "--roleset", "solver_checker"];
    folder.write("tasks.jsonl", &(line(4) + &line(5)));
    assert_eq!(figures(&folder, &map, 0)["ended"]["right"], 1);
    folder.write("tasks.jsonl", &(line(5) + &line(4)));
    let moved = Finished::of(&mut batch(&folder, &map)).exits(0).stderr;
    assert!(moved.contains("2 runs kept unchanged"), "{moved}");
    let rows = lines(&folder, "results-0.jsonl");
    assert_eq!(rows.iter().find(|row| row["task"] == "1").unwrap()["right"], json!(true), "{rows:?}");
    // Nothing distinguishes the runs of two settings under one name, and a note says so.
    let other = [&map[..], &["--set", "params.max_rounds=7", "--keep-old"]].concat();
    Finished::of(&mut batch(&folder, &other)).exits(0);
    let shown = Finished::of(consensus(&folder).args(["results", "out"])).exits(0);
    assert!(shown.stderr.contains("solver_checker has runs with 2 choices of settings"), "{}", shown.stderr);
}

#[test]
fn a_batch_adds_to_no_link() {
    for name in ["results-0.jsonl", "journal-0.jsonl", "refused-0.jsonl"] {
        let folder = Folder::new();
        tasks(&folder, 1);
        let private = folder.write("private.txt", "mine");
        std::fs::create_dir(folder.path().join("out")).unwrap();
        std::os::unix::fs::symlink(&private, folder.path().join("out").join(name)).unwrap();
        let refused = Finished::of(&mut batch(&folder, &MOCK)).stderr;
        assert!(refused.contains(name) && refused.contains("is a link"), "{refused}");
        assert_eq!(std::fs::read_to_string(&private).unwrap(), "mine");
    }
}

/// Public sets, lists in JSON and tables in CSV are read as they are.
#[test]
fn public_task_formats_are_read() {
    let folder = Folder::new();
    let derived =
        |answer: &str| json!({"question": "How much is 2+2?", "answer": format!("2+2=4\n#### {answer}")});
    let story = json!({"ID": "s", "Body": "Ann has 2 and gets 2.", "Question": "How many?", "Answer": 4.0});
    let choice = json!({"question": "How much?", "choices": ["3", "4"], "answer": 2});
    folder.write("tasks.jsonl", &format!("{}\n{story}\n{choice}\n", derived("4")));
    let done = figures(&folder, &MOCK, 2);
    assert_eq!((&done["ended"]["right"], &done["refused"]), (&json!(2), &json!(1)), "{done}");
    assert!(
        lines(&folder, "refused-0.jsonl")[0]["why"]
            .as_str()
            .unwrap()
            .contains("beside 2 choices it is the place")
    );
    folder.write("list.json", &json!([derived("4"), derived("5"), story]).to_string());
    folder.write("table.csv", "id,prompt,answer\n1,\"How much is 2+2,\nagain?\",4\n2,x\n3,How much?,5\n");
    folder.write("wrong.csv", "id;prompt\n1;x\n");
    for (file, code, ended) in [("list.json", 0, [2, 1]), ("table.csv", 2, [1, 1]), ("wrong.csv", 2, [0, 0])]
    {
        let words = [
            "batch",
            file,
            "--roleset",
            "solver_checker",
            "--mock",
            "--answer",
            "4",
            "-o",
            file.split_at(4).0,
        ];
        let finished = Finished::of(consensus(&folder).args(words)).exits(code);
        let [right, wrong] = ended;
        let said = format!("{right} right and {wrong} wrong");
        assert!(right == 0 || finished.stderr.contains(&said), "{file}: {}", finished.stderr);
        assert!(
            right > 0 || finished.stderr.contains("columns are separated by commas"),
            "{file}: {}",
            finished.stderr
        );
    }
}
