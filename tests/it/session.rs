//! Sessions: what was agreed on before is known to the next run, as data.

use consensus::api::{ConsensusEngine, Session};
use consensus::provider::{Endpoint, MockEndpoint};

use crate::support::{Finished, Folder, SENSIBLE, Server, consensus, model};

#[test]
fn what_was_agreed_on_before_stands_before_the_next_task_as_a_document() {
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

#[test]
fn a_session_that_cannot_be_used_is_a_mistake_before_anything_is_asked() {
    let folder = Folder::new();
    let run = |words: &[&str]| {
        let given = ["run", "--mock", "--answer", "4", "--prompt", "2+2?"];
        Finished::of(consensus(&folder).args(given).args(words)).exits(2).stderr
    };
    assert!(run(&["--session", "../x"]).contains("is no session's name"));
    folder.write("runs/sessions/broken.jsonl", "{\n");
    assert!(run(&["--session", "broken"]).contains("is damaged in line 1"));
    assert!(run(&["--session", "s", "--redact"]).contains("cannot be used with"));
}

#[test]
fn a_session_that_cannot_be_written_costs_no_answer() {
    let given = ["run", "--mock", "--answer", "4", "--prompt", "2+2?", "--session", "s"];
    // A link that leads nowhere: there is nothing to read behind it, and nothing can be made there.
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path().join("runs")).unwrap();
    std::os::unix::fs::symlink("nowhere/at/all", folder.path().join("runs/sessions")).unwrap();
    let finished = Finished::of(consensus(&folder).args(given)).exits(0);
    assert_eq!(finished.stdout, "4\n");
    assert!(finished.stderr.contains("was not added to its session"), "{}", finished.stderr);
}

#[test]
fn a_session_whose_place_is_taken_is_found_out_before_anything_is_asked() {
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
fn a_session_grows_and_forgets_what_is_oldest_first() {
    let folder = Folder::new();
    let script = r#"{"policy": "honest", "answer": "4"}"#.to_owned();
    let engine = ConsensusEngine::new("solver_checker", Endpoint::Mock(MockEndpoint { script })).unwrap();
    let engine = engine.in_folder(folder.path()).with_seed(1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let long = "x".repeat(5000);
    for number in 1..=4 {
        let result = runtime.block_on(engine.run(&format!("Task {number}: {long}"), Some("s"))).unwrap();
        assert_eq!((result.outcome, result.text.as_deref()), ("agreed", Some("4")));
    }
    let document = Session::open(folder.path(), "s").unwrap().document().unwrap();
    // 12,000 characters hold the last two.
    assert!(
        document.text.starts_with("Asked: Task 3") && document.text.contains("Task 4"),
        "{}",
        document.text
    );
    assert!(document.text.ends_with("Agreed on: 4"));
}
