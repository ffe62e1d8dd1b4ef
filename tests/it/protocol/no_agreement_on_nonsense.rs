//! No run agrees on nonsense: the words of the program said back are no answer, and short right answers are answers.

use serde_json::{Value, json};

use crate::support::{Finished, Folder, consensus};

/// Runs a roleset whose agents all write the same text, and returns the exit code and the result.
fn all_say(text: &str, roleset: &str, prompt: &str) -> (i32, Value) {
    let folder = Folder::new();
    folder.write("script.jsonl", &json!({"policy": "honest", "answer": text}).to_string());
    let words = ["run", "--mock-script", "script.jsonl", "--roleset", roleset, "--prompt", prompt];
    let finished = Finished::of(consensus(&folder).args(words));
    Finished::of(consensus(&folder).args(["verify", "--last"])).exits(0);
    (finished.code, folder.result())
}

/// Two agents that both say the instructions of one of them end without agreement, and nothing is asked a third time.
#[test]
fn echoed_instructions_bring_no_agreement() {
    let echo = "I write for readers without training in the subject: a text that they understand on one reading and that is true. \
                I name the cause first, then what follows from it. I explain each technical term or leave it out.";
    let (code, result) = all_say(echo, "writer_physicist", "hi");
    assert_eq!((code, &result["outcome"]), (3, &json!("no_agreement")));
    // Two refusals of each, after its thoughts: nothing is asked a third time.
    assert_eq!(result["usage"]["calls"], 6);
}

/// Talk about the text of a peer ends a pair, a council and a panel without agreement.
#[test]
fn talk_about_peer_text_is_no_answer() {
    for roleset in ["generalist_critic", "council_tripartite", "panel_personas"] {
        let (code, result) = all_say("The peer's text is true, and yours is not.", roleset, "hi");
        assert_eq!((code, &result["outcome"]), (3, &json!("no_agreement")), "{roleset}");
    }
}

/// A short right answer is taken even if it repeats the task, and a repeated question is not.
#[test]
fn short_answer_may_repeat_task() {
    for (prompt, answer) in [
        ("hi", "Hi"),
        ("Good morning!", "Good morning!"),
        ("42", "42"),
        ("I recieve the letter.", "I receive the letter."),
        ("I receive the letter.", "I receive the letter."),
    ] {
        let (code, result) = all_say(answer, "generalist_critic", prompt);
        assert_eq!(
            (code, &result["text"], &result["usage"]["calls"]),
            (0, &json!(answer), &json!(4)),
            "{prompt}"
        );
    }
    let question = "What is the capital of Australia?";
    assert_eq!(all_say(question, "generalist_critic", question).0, 3);
}

/// Words of the program, such as peer and envelope, may be in an answer where the task has them.
#[test]
fn answer_may_use_words_of_task() {
    let prompt =
        "My peer's text says that P1 visas are for athletes. Is the envelope the place for the form?";
    let answer = "Your peer's text is right about P1 visas, and the envelope is the place.";
    assert_eq!(all_say(answer, "generalist_critic", prompt).0, 0);
}
