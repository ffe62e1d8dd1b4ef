//! A batch sends no text that is redacted, goes on after a kill with the same tokens, and counts right answers all the same.

use std::fs::read_to_string;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::batch::{batch, figures, lines, run_of};
use crate::support::{Finished, Folder, SENSIBLE, Server, consensus, model};

const ROLESET: [&str; 3] = ["--roleset", "plain", "--redact"];

/// Tasks about an address each, which is the right answer, and a roleset whose answers are any text.
fn tasks(folder: &Folder, count: usize) {
    folder.write(
        "rolesets/plain.json",
        r#"{"v": 1, "protocol": "pair", "canonical": {"kind": "text"}, "agents": [
            {"name": "Solver", "domain": "d", "pack": "one.md"}, {"name": "Checker", "domain": "d", "pack": "one.md"}]}"#,
    );
    folder.write("rolesets/packs/one.md", "Work.");
    let line = |number: usize| {
        let address = format!("ann{number}@example.org");
        let prompt = format!("Is it bob@example.org, or {address}?");
        json!({"id": number, "prompt": prompt, "answer": address}).to_string() + "\n"
    };
    folder.write("tasks.jsonl", &(1..=count).map(line).collect::<String>());
}

#[test]
fn forgotten_flag_sends_no_redacted_text() {
    let folder = Folder::new();
    tasks(&folder, 1);
    let server = Server::start(model(SENSIBLE));
    let url = server.url();
    let batch = |given: &[&str], code: i32| {
        let words = [given, &["--model", "tiny-model", "--base-url", &url]].concat();
        Finished::of(&mut batch(&folder, &words)).exits(code)
    };
    batch(&ROLESET, 0);
    let asked = server.chats().len();
    // One more task, and one flag less.
    tasks(&folder, 2);
    let refused = batch(&ROLESET[..2], 2);
    assert!(
        refused.stderr.contains("new runs would send the redacted text; give --redact"),
        "{}",
        refused.stderr
    );
    assert_eq!(server.chats().len(), asked, "nothing was sent");
    batch(&ROLESET, 0);
    assert!(!kept(&folder).contains("example.org"));
}

#[test]
fn unredacted_run_is_not_continued_redacted() {
    let folder = Folder::new();
    tasks(&folder, 1);
    folder.write("script.jsonl", "{\"delay_ms\": 5000, \"policy\": \"honest\", \"answer\": \"bob\"}\n");
    let words = |redact: bool| {
        let words = if redact { &ROLESET[..] } else { &ROLESET[..2] };
        [words, &["--mock-script", "script.jsonl"]].concat()
    };
    Finished::of(&mut batch(&folder, &[&words(false)[..], &["--deadline", "1s"]].concat())).exits(5);
    folder.write("script.jsonl", "{\"policy\": \"honest\", \"answer\": \"ann1@example.org\"}\n");
    let left = Finished::of(&mut batch(&folder, &words(true))).exits(2);
    assert!(left.stderr.contains("its run was begun without --redact"), "{}", left.stderr);
    assert_eq!(figures(&folder, &words(false), 0)["ended"]["right"], 1);
    // What has ended stands, and says that it was begun as something else.
    let again = figures(&folder, &words(true), 0);
    assert_eq!((&again["ended"]["right"], &again["changed"]), (&json!(1), &json!(1)), "{again}");
}

/// Everything that lies in the folder of the batch, but for the tables.
fn kept(folder: &Folder) -> String {
    ["journal-0.jsonl", "results-0.jsonl", "batch.json"]
        .map(|name| read_to_string(folder.path().join("out").join(name)).unwrap())
        .concat()
}

/// Redacted text lies only in the private tables of a batch, and right answers still count as right.
#[test]
fn redacted_text_is_never_kept() {
    let folder = Folder::new();
    tasks(&folder, 3);
    folder.write("script.jsonl", r#"{"policy": "honest", "answer": "[EMAIL_2]"}"#);
    let words = [&ROLESET[..], &["--mock-script", "script.jsonl"]].concat();
    let done = figures(&folder, &words, 0);
    assert_eq!(done["ended"]["right"], 3, "{done}");
    assert!(!kept(&folder).contains("example.org"), "{}", kept(&folder));
    for row in lines(&folder, "results-0.jsonl") {
        let table = folder.path().join(format!("out/redactions/{}.json", run_of(&row)));
        assert_eq!(std::fs::metadata(&table).unwrap().permissions().mode() & 0o777, 0o600);
        let table: Value = serde_json::from_str(&read_to_string(table).unwrap()).unwrap();
        let address = format!("ann{}@example.org", row["task"].as_str().unwrap());
        assert_eq!(table["originals"]["[EMAIL_2]"], address, "{row}");
    }
    Finished::of(consensus(&folder).args(["verify", "out"])).exits(0);
    // The same command again has nothing to do.
    assert_eq!(figures(&folder, &words, 0)["calls"], 0);
}

#[test]
fn killed_redacted_batch_keeps_its_tables() {
    let folder = Folder::new();
    tasks(&folder, 4);
    let server = Server::start(model(SENSIBLE));
    let url = server.url();
    let words =
        [&ROLESET[..], &["--model", "tiny-model", "--base-url", &url, "--runs-at-once", "2"]].concat();
    let mut first = batch(&folder, &words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while server.chats().len() < 3 && first.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    first.kill().unwrap();
    first.wait().unwrap();
    figures(&folder, &words, 0);
    assert_eq!(lines(&folder, "results-0.jsonl").len(), 4);
    let sent: String = server.chats().iter().map(|chat| chat.body.as_str()).collect();
    assert!(!sent.contains("example.org") && sent.contains("Is it [EMAIL_1], or [EMAIL_2]?"), "{sent}");
    assert!(!kept(&folder).contains("example.org"));
    Finished::of(consensus(&folder).args(["verify", "out"])).exits(0);

    // Without its table a run that could still be read is not taken for one whose answer is wrong.
    std::fs::remove_dir_all(folder.path().join("out/redactions")).unwrap();
    let refused = Finished::of(&mut batch(&folder, &words)).exits(2);
    assert!(refused.stdout.contains("needs its table of redactions"), "{}", refused.stdout);
    let words = [&words[..], &["--redact-pattern", "bob"]].concat();
    let refused = Finished::of(&mut batch(&folder, &words)).exits(2);
    assert!(refused.stdout.contains("needs its table of redactions"), "{}", refused.stdout);
}
