//! What must not leave the machine does not, and comes back in the answer.

use std::os::unix::fs::PermissionsExt;

use consensus::engine::{Engine, EngineError, Resumption};
use consensus::journal::Writer;
use serde_json::{Value, json};

use crate::support::{Finished, Folder, SENSIBLE, Server, consensus, model};

const ADDRESS: &str = "ann@example.org";

fn run(folder: &Folder, words: &[&str]) -> Finished {
    Finished::of(consensus(folder).args(["run", "--redact", "--seed", "1"]).args(words))
}

/// The requests, journal, result and transcript hold no redacted secret, and a private table keeps the originals.
#[test]
fn secrets_are_neither_sent_nor_journaled() {
    let server = Server::start(model(SENSIBLE));
    let folder = Folder::new();
    folder.write("notes.txt", "Ann Lee's card is 4111 1111 1111 1111.");
    let task = format!("Add 2 and 2, and mail it to {ADDRESS} from 10.1.2.3.");
    let words =
        ["--base-url", &server.url(), "--prompt", &task, "-f", "notes.txt", "--redact-pattern", "Ann Lee"];
    run(&folder, &[&words[..], &["--constraint", "excludes=ann@example.org"]].concat()).exits(0);
    folder.result();
    let files = ["journal.jsonl", "result.json", "transcript.md"];
    let kept = files.iter().map(|name| std::fs::read_to_string(folder.run().join(name)).unwrap());
    for text in server.chats().into_iter().map(|request| request.body).chain(kept) {
        for secret in [ADDRESS, "Ann Lee", "4111 1111", "10.1.2.3"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
    let sent = server.chats()[0].body.clone();
    for token in ["[EMAIL_1]", "[IP_1]", "[CARD_1]", "[PRIVATE_1]"] {
        assert!(sent.contains(token), "{token} not in {sent}");
    }
    let table = folder.run().join("redactions.json");
    assert_eq!(std::fs::metadata(&table).unwrap().permissions().mode() & 0o777, 0o600);
    let table: Value = serde_json::from_str(&std::fs::read_to_string(table).unwrap()).unwrap();
    assert_eq!(table["originals"]["[EMAIL_1]"], ADDRESS);
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
}

#[test]
fn answer_restores_originals_record_keeps_tokens() {
    let folder = Folder::new();
    let task = format!("Who is {ADDRESS}?");
    let words = ["--mock", "--answer", "Write to [EMAIL_1].", "--prompt", &task, "-o", "answer.txt"];
    assert_eq!(run(&folder, &words).exits(0).stdout, format!("Write to {ADDRESS}.\n"));
    assert_eq!(folder.result()["text"], "Write to [EMAIL_1].");
    let copy = std::fs::read_to_string(folder.path().join("answer.txt")).unwrap();
    assert_eq!(copy, format!("Write to {ADDRESS}.\n"));
    for words in [&["show", "--replay", "--last"][..], &["resume", "--last"]] {
        let again = Finished::of(consensus(&folder).args(words).args(["--format", "json"])).exits(0);
        let result: Value = serde_json::from_str(&again.stdout).unwrap();
        assert_eq!(result["restored_text"], format!("Write to {ADDRESS}."));
    }
}

#[test]
fn a_bent_token_is_reported() {
    let folder = Folder::new();
    let task = format!("Who is {ADDRESS}?");
    let words =
        ["--mock", "--answer", "Write to EMAIL_1 or [EMAIL_2].", "--prompt", &task, "--fail-on-degraded"];
    let finished = run(&folder, &words).exits(8);
    assert_eq!(finished.stdout, "Write to EMAIL_1 or [EMAIL_2].\n");
    let result = folder.result();
    let kinds: Vec<&Value> =
        result["degraded"].as_array().unwrap().iter().map(|loss| &loss["kind"]).collect();
    assert_eq!(kinds, ["bent_token", "bent_token"]);
}

#[test]
fn passages_of_documents_are_redacted_as_well() {
    let folder = Folder::new();
    folder.write("docs/staff.md", &format!("# Staff\n\nThe keeper of the lighthouse is {ADDRESS}.\n"));
    let citation = json!({"source": "S1", "quote": "is [EMAIL_1]."});
    let script = [
        json!({"agent": "Logos", "envelope": {"response": "[EMAIL_1]", "confidence": 0.95, "citations": [citation]}}),
        json!({"policy": "honest", "answer": "[EMAIL_1]"}),
    ];
    let lines: Vec<String> = script.iter().map(Value::to_string).collect();
    folder.write("script.jsonl", &lines.join("\n"));
    let words = ["--roleset", "council_tripartite", "--docs", "docs", "--mock-script", "script.jsonl"];
    let finished = run(&folder, &[&words[..], &["--prompt", "Who keeps the lighthouse?"]].concat()).exits(0);
    assert_eq!(finished.stdout, format!("{ADDRESS}\n"));
    assert_eq!(folder.result()["council"]["citations"][0]["redacted"], true);
    let journal = std::fs::read_to_string(folder.run().join("journal.jsonl")).unwrap();
    assert!(!journal.contains(ADDRESS));
    // Who has the rest of a document could guess by its digest what was left out: of the same it is another each time.
    let digest = |journal: &str| {
        let opened: Value = serde_json::from_str(journal.lines().next().unwrap()).unwrap();
        opened["event"]["library"]["sha256"].as_str().unwrap().to_owned()
    };
    run(&folder, &[&words[..], &["--prompt", "Who keeps it?", "--runs-dir", "again"]].concat()).exits(0);
    let again = std::fs::read_dir(folder.path().join("again")).unwrap().next().unwrap().unwrap().path();
    assert_ne!(digest(&journal), digest(&std::fs::read_to_string(again.join("journal.jsonl")).unwrap()));
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
}

#[test]
fn changed_redacted_documents_are_noted() {
    for changes in [false, true] {
        let folder = Folder::new();
        folder.write("docs/staff.md", &format!("The keeper of the lighthouse is {ADDRESS}.\n"));
        let words = ["--roleset", "council_tripartite", "--docs", "docs", "--mock", "--answer", "[EMAIL_1]"];
        let stops = ["--prompt", "Who keeps the lighthouse?", "--max-tokens-total", "10"];
        run(&folder, &[&words[..], &stops].concat()).exits(5);
        if changes {
            folder.write("docs/staff.md", "Nobody keeps the lighthouse.\n");
        }
        let resume = ["resume", "--last", "--max-tokens-total", "1000000"];
        Finished::of(consensus(&folder).args(resume)).exits(0);
        let kinds = folder.result()["degraded"].to_string();
        assert_eq!(kinds.contains("documents_changed"), changes, "{kinds}");
    }
}

#[test]
fn citation_of_redacted_file_is_marked() {
    let folder = Folder::new();
    folder.write("fees.txt", &format!("Ask {ADDRESS} first.\nThe fee is twelve euros.\n"));
    let citation = json!({"source": "D1", "quote": "The fee is twelve euros."});
    let script = [
        json!({"agent": "Logos", "envelope": {"response": "twelve", "confidence": 0.95, "citations": [citation]}}),
        json!({"policy": "honest", "answer": "twelve"}),
    ];
    let lines: Vec<String> = script.iter().map(Value::to_string).collect();
    folder.write("script.jsonl", &lines.join("\n"));
    let words = ["--roleset", "council_tripartite", "-f", "fees.txt", "--mock-script", "script.jsonl"];
    run(&folder, &[&words[..], &["--prompt", "What is the fee?"]].concat()).exits(0);
    assert_eq!(folder.result()["council"]["citations"][0]["redacted"], true);
}

#[test]
fn a_run_resumes_only_with_its_table() {
    let folder = Folder::new();
    let task = format!("Who is {ADDRESS}?");
    let words = ["--mock", "--answer", "[EMAIL_1]", "--prompt", &task, "--max-tokens-total", "10"];
    run(&folder, &words).exits(5);
    let resume = ["resume", "--last", "--max-tokens-total", "100000"];
    let table = folder.run().join("redactions.json");
    let kept = folder.path().join("kept.json");
    std::fs::rename(&table, &kept).unwrap();
    let refused = Finished::of(consensus(&folder).args(resume)).exits(2);
    assert!(refused.stderr.contains("table of redactions"), "{}", refused.stderr);
    std::fs::rename(&kept, &table).unwrap();
    assert_eq!(Finished::of(consensus(&folder).args(resume)).exits(0).stdout, format!("{ADDRESS}\n"));
}

/// A program that resumes a run without its table or its documents leaves the journal as it was.
#[test]
fn refused_resume_leaves_journal_unchanged() {
    let folder = Folder::new();
    folder.write("docs/staff.md", "The keeper of the lighthouse is Ann.\n");
    let stops = ["--mock", "--answer", "Ann", "--prompt", "Who?", "--max-tokens-total", "10"];
    let refusal = |words: &[&str]| {
        Finished::of(consensus(&folder).arg("run").args(words).args(stops)).exits(5);
        let file = folder.run().join("journal.jsonl");
        let before = std::fs::read(&file).unwrap();
        let (writer, journal) = Writer::reopen(&folder.run()).unwrap();
        let why = Engine::resume(writer, &journal, Resumption::default(), &()).unwrap_err();
        assert_eq!(std::fs::read(&file).unwrap(), before, "{why}");
        std::fs::remove_dir_all(folder.run()).unwrap();
        why
    };
    assert!(matches!(refusal(&["--redact"]), EngineError::NoRedaction));
    assert!(matches!(refusal(&["--roleset", "council_tripartite", "--docs", "docs"]), EngineError::NoCorpus));
}

#[test]
fn a_pattern_that_is_none_is_explained() {
    let folder = Folder::new();
    let words = ["--mock", "--answer", "4", "--prompt", "2+2?", "--redact-pattern", "("];
    let refused = run(&folder, &words).exits(2);
    assert!(refused.stderr.contains("`(` is not a valid pattern"), "{}", refused.stderr);
    assert!(!folder.path().join("runs").exists());
}
