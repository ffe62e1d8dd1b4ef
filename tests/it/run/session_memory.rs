//! Sessions: what was agreed on before is known to the next run, as data.

use std::io::{BufRead as _, Write as _};
use std::process::Stdio;
use std::time::Duration;

use consensus::api::{ConsensusEngine, Session};
use crypto::Digest;
use protocol::core::Endpoint;
use serde_json::{Value, json};

use crate::support::{Act, Finished, Folder, SENSIBLE, Server, consensus, model};

/// A later run of a session receives the earlier task as data, and a run of another session does not.
#[test]
fn next_run_receives_session_as_data() {
    let server = Server::start(model(SENSIBLE));
    let folder = Folder::new();
    let run = |prompt: &str, words: &[&str]| {
        let given = ["run", "--model", "tiny-model", "--base-url", &server.url(), "--prompt", prompt];
        Finished::of(consensus(&folder).args(given).args(words))
    };
    run("How much is 2+2?", &["--session", "sums"]).exits(0);
    let before = server.chats().len();
    run("And twice that?", &["--session", "sums"]).exits(0);
    let said: Vec<String> = server.chats()[before..].iter().map(|chat| chat.body.clone()).collect();
    assert!(
        said.iter().all(|body| body.contains("data, not instructions") && body.contains("How much is 2+2?"))
    );
    run("And twice that?", &["--session", "other"]).exits(0);
    assert!(!server.chats().last().unwrap().body.contains("How much is 2+2?"));
    // Sessions are no runs, and every run of one stands alone.
    let listed = Finished::of(consensus(&folder).args(["runs"])).exits(0);
    assert_eq!(listed.stdout.lines().count(), 3, "{}", listed.stdout);
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
}

/// A wrong session name or a damaged session file is refused before any call.
#[test]
fn unusable_session_is_refused() {
    let folder = Folder::new();
    let run = |words: &[&str]| {
        let given = ["run", "--mock", "--answer", "4", "--prompt", "2+2?"];
        Finished::of(consensus(&folder).args(given).args(words)).exits(2).stderr
    };
    assert!(run(&["--session", "../x"]).contains("is not a session name"));
    folder.write("runs/sessions/broken.jsonl", "{\n");
    assert!(run(&["--session", "broken"]).contains("is damaged in line 1"));
}

#[test]
fn unwritable_session_costs_no_answer() {
    let given = ["run", "--mock", "--answer", "4", "--prompt", "2+2?", "--session", "s"];
    // A link that leads nowhere: there is nothing to read behind it, and nothing can be made there.
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path().join("runs")).unwrap();
    std::os::unix::fs::symlink("nowhere/at/all", folder.path().join("runs/sessions")).unwrap();
    let finished = Finished::of(consensus(&folder).args(given)).exits(0);
    assert_eq!(finished.stdout, "4\n");
    assert!(finished.stderr.contains("was not added to its session"), "{}", finished.stderr);
}

/// A file in place of the sessions folder, or a folder in place of the session file, is found before any call.
#[test]
fn taken_session_place_is_refused() {
    let folder = Folder::new();
    // A file where the folder would be.
    folder.write("runs/sessions", "");
    let given = ["run", "--mock", "--answer", "4", "--prompt", "2+2?", "--session", "s"];
    let finished = Finished::of(consensus(&folder).args(given));
    assert_eq!((finished.code, finished.stdout.as_str()), (2, ""), "{}", finished.stderr);
    assert!(finished.stderr.contains("cannot be used"), "{}", finished.stderr);
    // A folder in place of the session's file is found out before anything is asked as well.
    let folder = Folder::new();
    folder.write("runs/sessions/s.jsonl/x", "");
    let finished = Finished::of(consensus(&folder).args(given)).exits(2);
    assert!(finished.stderr.contains("cannot be used"), "{}", finished.stderr);
}

#[test]
fn session_forgets_oldest_task_first() {
    let folder = Folder::new();
    let script = r#"{"policy": "honest", "answer": "4"}"#.to_owned();
    let engine = ConsensusEngine::new("solver_checker", Endpoint::Mock { script }).unwrap();
    let engine = engine.in_folder(folder.path()).with_seed(1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let long = "x".repeat(5000);
    for number in 1..=4 {
        let result = runtime.block_on(engine.run(&format!("Task {number}: {long}"), Some("s"))).unwrap();
        assert_eq!((result.outcome.name(), result.text.as_deref()), ("agreed", Some("4")));
    }
    let document = Session::open(folder.path(), "s").unwrap().document(false).unwrap().unwrap();
    // 12,000 characters hold the last two.
    assert!(
        document.text.starts_with("Asked: Task 3") && document.text.contains("Task 4"),
        "{}",
        document.text
    );
    assert!(document.text.ends_with("Agreed on: 4"));
}

/// Originals stay on this machine, and a later run without redaction or without the table is refused.
#[test]
fn redacted_session_sends_no_originals() {
    let server = Server::start(model(SENSIBLE));
    let folder = Folder::new();
    let run = |prompt: &str, words: &[&str]| {
        let given = [
            "run",
            "--model",
            "tiny-model",
            "--base-url",
            &server.url(),
            "--session",
            "s",
            "--prompt",
            prompt,
        ];
        Finished::of(consensus(&folder).args(given).args(words))
    };
    run("How much is 2+2? Ask bob@example.org or ann@example.org.", &["--redact"]).exits(0);
    // Here the same address has another number: tokens of one run mean something else in the next.
    run("Does ann@example.org agree?", &["--redact"]).exits(0);
    let asked = server.chats();
    let sent: String = asked.iter().map(|chat| chat.body.as_str()).collect();
    assert!(!sent.contains("example.org"), "an original was sent");
    let last = &asked.last().unwrap().body;
    assert!(last.contains("Does [EMAIL_1] agree?"), "{last}");
    assert!(last.contains("Ask [EMAIL_2] or [EMAIL_1]."), "{last}");
    let kept = std::fs::read_to_string(folder.path().join("runs/sessions/s.jsonl")).unwrap();
    assert!(!kept.contains("example.org") && kept.lines().count() == 2, "{kept}");
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);

    let refused = run("And now?", &[]).exits(2).stderr;
    assert!(refused.contains("would send the redacted text; give --redact"), "{refused}");
    let first: Value = serde_json::from_str(kept.lines().next().unwrap()).unwrap();
    let table = folder.path().join("runs").join(first["run"].as_str().unwrap()).join("redactions.json");
    std::fs::remove_file(table).unwrap();
    let earlier = ["verify", first["run"].as_str().unwrap()];
    let stdout = Finished::of(consensus(&folder).args(earlier)).exits(0).stdout;
    assert!(stdout.contains("redactions.json is missing"), "{stdout}");
    let refused = run("And now?", &["--redact"]).exits(2).stderr;
    assert!(refused.contains("needs the table of redactions of its run"), "{refused}");
    // The record is sound without the table, and says what could not be compared.
    let sound = Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0).stdout;
    assert!(sound.contains("the run's text was not compared"), "{sound}");
    assert_eq!(server.chats().len(), asked.len(), "nothing was asked");
}

/// Runs in the session `sums`.
#[test]
fn earlier_redactions_hold_in_later_runs() {
    let folder = Folder::new();
    let run = |prompt: &str, answer: &str, words: &[&str]| {
        let given = ["run", "--mock", "--redact", "--session", "s", "--prompt", prompt, "--answer", answer];
        Finished::of(consensus(&folder).args(given).args(words)).exits(0);
    };
    // Beside its word it is a password, and alone it is not; the other is one of the user's own.
    run("My password: hunter22x. How do I log in?", "Log in with [SECRET_1].", &[]);
    run("Is bluebird the name?", "[PRIVATE_1] it is.", &["--redact-pattern", "blue\\w+"]);
    run("And then?", "ok", &["--redact-pattern", "green\\w+"]);
    let journals = std::fs::read_dir(folder.path().join("runs")).unwrap().map(|run| run.unwrap().path());
    let journals: Vec<_> =
        journals.map(|run| run.join("journal.jsonl")).filter(|file| file.exists()).collect();
    let text: String = journals.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    assert_eq!(journals.len(), 3);
    assert!(!text.contains("hunter22x") && !text.contains("bluebird"), "{text}");
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
}

/// A run with redaction also redacts the earlier text of a session that had no redaction.
#[test]
fn session_redaction_can_start_later() {
    let server = Server::start(model(SENSIBLE));
    let folder = Folder::new();
    let url = server.url();
    let run = |prompt: &str, words: &[&str]| {
        let given =
            ["run", "--model", "tiny-model", "--base-url", &url, "--session", "s", "--prompt", prompt];
        Finished::of(consensus(&folder).args(given).args(words)).exits(0);
    };
    run("How much is 2+2? Ask ann@example.org.", &[]);
    let before = server.chats().len();
    run("Does ann@example.org agree?", &["--redact"]);
    let sent: String = server.chats()[before..].iter().map(|chat| chat.body.as_str()).collect();
    assert!(!sent.contains("example.org") && sent.contains("Ask [EMAIL_1]."), "{sent}");
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
}

fn in_session(folder: &Folder, prompt: &str, words: &[&str]) -> Finished {
    let given =
        ["run", "--session", "sums", "--roleset", "writer_physicist", "--seed", "1", "--prompt", prompt];
    Finished::of(consensus(folder).args(given).args(words))
}

pub(super) const MOCK: [&str; 3] = ["--mock", "--answer", "4"];

/// The lines of the session `sums`.
pub(super) fn lines(folder: &Folder) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.path().join("runs/sessions/sums.jsonl")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Verifies the newest run, and returns what its session says of it.
#[track_caller]
pub(super) fn says(folder: &Folder) -> Value {
    let words = ["verify", "--last", "--format", "json"];
    let said = Finished::of(consensus(folder).args(words)).exits(0).stdout;
    serde_json::from_str::<Value>(&said).unwrap()["session"]["says"].take()
}

/// The run is killed at each of its calls in turn before it is resumed.
#[test]
fn resumed_run_enters_session_once() {
    let undisturbed = Server::start(model(SENSIBLE));
    let whole = Folder::new();
    in_session(&whole, "How much is 2+2?", &["--model", "m", "--base-url", &undisturbed.url()]).exits(0);
    let (calls, expected) = (undisturbed.chats().len(), lines(&whole)[0]["text"].clone());
    assert!(calls > 3 && expected.is_string());
    for at in 0..calls {
        let folder = Folder::new();
        let (reached, waits) = std::sync::mpsc::channel();
        let reached = std::sync::Mutex::new(reached);
        let say = model(SENSIBLE);
        let server = Server::start(move |request| {
            if request.index == at {
                reached.lock().unwrap().send(()).unwrap();
                // The caller is killed before it has the answer.
                return vec![Act::Pause(Duration::from_mins(1))];
            }
            say(request)
        });
        let url = server.url();
        let given =
            ["run", "--session", "sums", "--roleset", "writer_physicist", "--seed", "1", "--model", "m"];
        let mut child = consensus(&folder)
            .args(given)
            .args(["--prompt", "How much is 2+2?", "--base-url", &url])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        waits.recv().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((lines(&folder).len(), says(&folder)), (0, json!("no_file")), "killed at call {at}");
        // Once it is in the session, it is not added again.
        for _ in 0..2 {
            Finished::of(consensus(&folder).args(["resume", "--last"])).exits(0);
            let lines = lines(&folder);
            assert_eq!((lines.len(), &lines[0]["text"]), (1, &expected), "killed at call {at}");
            assert_eq!(says(&folder), "same", "killed at call {at}");
        }
    }
}

#[test]
fn resume_adds_missing_run_to_session() {
    let folder = Folder::new();
    in_session(&folder, "How much is 2+2?", &MOCK).exits(0);
    let file = folder.path().join("runs/sessions/sums.jsonl");
    let whole = std::fs::read_to_string(&file).unwrap();
    // As if the process had died between its result and the session, or in the middle of the line.
    for left in ["", &whole[..20]] {
        std::fs::write(&file, left).unwrap();
        assert_eq!(says(&folder), "nothing");
        Finished::of(consensus(&folder).args(["resume", "--last"])).exits(0);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), whole);
        assert_eq!(says(&folder), "same");
    }
    let next = in_session(&folder, "And again?", &MOCK).exits(0);
    assert!(!next.stderr.contains("session"), "{}", next.stderr);
    assert_eq!(says(&folder), "same");
}

/// A run that stops at its budget and is resumed has two lines in its session.
#[test]
fn last_line_of_resumed_run_counts() {
    let folder = Folder::new();
    in_session(&folder, "How much is 2+2?", &[&MOCK[..], &["--max-tokens-total", "1"]].concat()).exits(5);
    assert_eq!((&lines(&folder)[0]["outcome"], says(&folder)), (&json!("budget"), json!("same")));
    let id = lines(&folder)[0]["run"].as_str().unwrap().to_owned();
    in_session(&folder, "What else?", &MOCK).exits(0);
    Finished::of(consensus(&folder).args(["resume", &id, "--max-tokens-total", "1000000"])).exits(0);
    let outcomes: Vec<Value> = lines(&folder).iter().map(|line| line["outcome"].clone()).collect();
    assert_eq!(outcomes, ["budget", "agreed", "agreed"]);
    let document =
        Session::open(&folder.path().join("runs"), "sums").unwrap().document(false).unwrap().unwrap();
    let expected = "Asked: What else?\nAgreed on: 4\n\nAsked: How much is 2+2?\nAgreed on: 4";
    assert_eq!(&*document.text, expected);
    for run in [id.as_str(), "--last"] {
        let said = Finished::of(consensus(&folder).args(["verify", run])).exits(0).stdout;
        assert!(said.contains("sums: matches the text that the run received, and how"), "{said}");
    }
    // If that line is lost, the one before it says what was so then.
    let file = folder.path().join("runs/sessions/sums.jsonl");
    let whole = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, whole.split_inclusive('\n').take(2).collect::<String>()).unwrap();
    let said = Finished::of(consensus(&folder).args(["verify", &id])).exits(0).stdout;
    assert!(said.contains("its line is from before the run was resumed"), "{said}");
}

#[test]
fn verify_compares_session_with_run_records() {
    let folder = Folder::new();
    in_session(&folder, "How much is 2+2?", &MOCK).exits(0);
    in_session(&folder, "And twice that?", &["--mock", "--answer", "8"]).exits(0);
    assert_eq!(says(&folder), "same");
    let file = folder.path().join("runs/sessions/sums.jsonl");
    let whole = std::fs::read_to_string(&file).unwrap();
    let refused = |text: &[u8]| {
        assert_ne!(text, whole.as_bytes(), "the test changes nothing");
        std::fs::write(&file, text).unwrap();
        let refused = Finished::of(consensus(&folder).args(["verify", "--last"])).exits(7).stderr;
        std::fs::write(&file, &whole).unwrap();
        refused
    };
    // What the run was given, and what it came to.
    assert!(
        refused(whole.replace("\"text\":\"4\"", "\"text\":\"5\"").as_bytes()).contains("no longer in it")
    );
    assert!(refused(whole.replace("\"text\":\"8\"", "\"text\":\"9\"").as_bytes()).contains("line 2 differs"));
    assert!(refused(whole.replace("And twice", "And half").as_bytes()).contains("line 2 differs"));
    assert!(refused(whole.replace("agreed", "vetoed").as_bytes()).contains("no longer in it"));
    let (first, second) = whole.split_once('\n').unwrap();
    refused(format!("{second}{first}\n").as_bytes());
    refused(format!("{whole}{second}").replace("8\"}\n{", "9\"}\n{").as_bytes());
    // This file belongs to no session.
    for damaged in [&b"\xff\n"[..], b"{\n", b"[]\n"] {
        assert!(refused(damaged).contains("is damaged in line 1"));
    }
    assert_eq!(says(&folder), "same");
    std::fs::remove_file(&file).unwrap();
    let said = Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0).stdout;
    assert!(said.contains("session      sums: its file is missing, and was not compared"), "{said}");
}

/// The program adds no line twice, so a line that comes again was added by hand.
#[test]
fn doubled_session_lines_are_refused() {
    let folder = Folder::new();
    in_session(&folder, "How much is 2+2?", &MOCK).exits(0);
    in_session(&folder, "And twice that?", &["--mock", "--answer", "8"]).exits(0);
    let file = folder.path().join("runs/sessions/sums.jsonl");
    let whole = std::fs::read_to_string(&file).unwrap();
    let doubled: String = whole.split_inclusive('\n').map(|line| line.repeat(2)).collect();
    let (first, last) = whole.split_once('\n').unwrap();
    let spaced = format!("{first}\n{last}{}", last.replacen(':', ": ", 1));
    for text in [doubled, spaced] {
        std::fs::write(&file, text).unwrap();
        let refused = Finished::of(consensus(&folder).args(["verify", "--last"])).exits(7).stderr;
        assert!(refused.contains("says again what an earlier line says of the same run"), "{refused}");
    }
}

/// The journal claims a past of the run that differs from its session.
#[test]
fn record_with_other_past_fails_verification() {
    let folder = Folder::new();
    in_session(&folder, "How much is 2+2?", &MOCK).exits(0);
    let first = folder.path().join("runs").join(lines(&folder)[0]["run"].as_str().unwrap());
    let journal = first.join("journal.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    let mut records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // Its opening says that it had seen the line that it made itself.
    let place = Session::open(&folder.path().join("runs"), "sums").unwrap().place();
    records[0]["event"]["session"]["head"] = json!(place.head);
    let mut prev = Digest::ZERO;
    let mut forged = String::new();
    for record in &mut records {
        record["prev"] = json!(prev);
        let line = record.to_string();
        prev = Digest::new(line.as_bytes());
        forged.extend([&line, "\n"]);
    }
    std::fs::write(&journal, forged).unwrap();
    std::fs::remove_file(first.join("result.json")).unwrap();
    let refused = Finished::of(consensus(&folder).args(["verify", "--last"])).exits(7).stderr;
    assert!(refused.contains("the run received a text that differs"), "{refused}");
}

#[test]
fn runs_take_turns_writing_session() {
    let folder = Folder::new();
    in_session(&folder, "How much is 2+2?", &MOCK).exits(0);
    let path = folder.path().join("runs/sessions/sums.jsonl");
    // Another run is in the middle of its line.
    let mut other = std::fs::File::options().append(true).open(&path).unwrap();
    other.lock().unwrap();
    let line = "{\"run\":\"other\",\"prompt\":\"p\",\"outcome\":\"agreed\",\"text\":\"x\"}\n";
    let (begin, end) = line.split_at(20);
    other.write_all(begin.as_bytes()).unwrap();
    let given = ["run", "--session", "sums", "--roleset", "writer_physicist", "--prompt", "And again?"];
    let mut child = consensus(&folder).args(given).args(MOCK).stdout(Stdio::piped()).spawn().unwrap();
    let mut answer = String::new();
    std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut answer).unwrap();
    assert_eq!(answer, "4\n");
    other.write_all(end.as_bytes()).unwrap();
    drop(other);
    assert!(child.wait().unwrap().success());
    let lines = lines(&folder);
    let runs: Vec<&Value> = lines.iter().map(|line| &line["text"]).collect();
    assert_eq!(runs, ["4", "x", "4"], "each line is whole");
    assert_eq!(says(&folder), "same");
}

#[test]
fn no_session_is_a_link() {
    let folder = Folder::new();
    let outside = Folder::new();
    std::fs::create_dir_all(folder.path().join("runs/sessions")).unwrap();
    let target = outside.path().join("target.jsonl");
    std::os::unix::fs::symlink(&target, folder.path().join("runs/sessions/s.jsonl")).unwrap();
    let given = ["run", "--mock", "--answer", "4", "--prompt", "2+2?", "--session", "s"];
    let refused = Finished::of(consensus(&folder).args(given)).exits(2);
    assert!(refused.stderr.contains("it is a link"), "{}", refused.stderr);
    assert!(!target.exists());
}
