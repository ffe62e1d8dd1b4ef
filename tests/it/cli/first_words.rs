//! The first words that somebody types: a question by itself is answered, and what is missing is said before anything is sent.

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
}
