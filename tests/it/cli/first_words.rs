//! The first words that somebody types: a question by itself is answered, and what is missing is said before anything is sent.

use std::net::TcpListener;

use crate::support::{Finished, Folder, consensus};

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
fn a_lone_word_is_a_mistyped_command_and_a_file_is_no_word_of_a_question() {
    let mistyped = typed(&["veriffy"], 2).stderr;
    assert!(mistyped.contains("a similar subcommand exists: 'verify'"), "{mistyped}");
    let flag = typed(&["verify", "--nonsense", "a b"], 2).stderr;
    assert!(flag.contains("unexpected argument '--nonsense'"), "{flag}");
    let files = typed(&["run", "--mock", "When", "was", "it", "built?", "notes.txt"], 2).stderr;
    assert!(files.contains("`notes.txt` is a file; give each file with its own -f"), "{files}");
}

#[test]
fn a_key_that_is_missing_is_said_at_once() {
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

#[test]
fn a_server_of_this_machine_that_is_not_there_is_not_waited_for_and_told_once() {
    let folder = Folder::new();
    // A port that nobody listens on any more.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/v1");
    let told = |config: &str| {
        folder.write("consensus.toml", config);
        let words = ["How much is 2+2?", "--model", "tiny-model", "--base-url", &url];
        let story = Finished::of(consensus(&folder).args(words)).exits(6).stderr;
        (story.matches("Connection refused").count(), story.contains("; trying again"))
    };
    assert_eq!(told(""), (1, false), "at once");
    assert_eq!(told("retries = 1\n"), (2, true), "as often as was said, in one line and at the end");
}

#[test]
fn a_run_without_agreement_shows_each_answer_and_says_so_also_where_no_story_is_wanted() {
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
    let told = run(&[]);
    assert!(told.contains("\nWriter answered: 4\nPhysicist answered: 5\n"), "{told}");
    let quiet = run(&["--quiet"]);
    assert!(quiet.starts_with("no_agreement: ") && quiet.lines().count() == 1, "{quiet}");

    // The newest alone is listed, and the end of its id names it.
    let listed = Finished::of(consensus(&folder).args(["runs", "--limit", "1"])).exits(0).stdout;
    assert_eq!(listed.lines().count(), 1, "{listed}");
    let id = listed.split(' ').next().unwrap();
    let shown = Finished::of(consensus(&folder).args(["show", &id[id.len() - 8..]])).exits(0).stdout;
    assert!(shown.starts_with(&format!("# Run {id}")), "{shown}");
}

#[test]
fn a_duration_without_a_unit_is_answered_with_examples() {
    let refused = typed(&["run", "--mock", "--answer", "4", "--deadline", "10", "2 + 2?"], 2).stderr;
    assert!(refused.contains("give a number with a unit, such as 90s, 10m or 2h"), "{refused}");
}
