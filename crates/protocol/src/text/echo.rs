//! Texts that come from the program instead of the task: its own words repeated, and talk about its own workings.
//!
//! The input is a final text, the program's words to its author, and the user's words. The output is the sign that
//! gives the text away, if there is one. The user's words never give it away: a word, phrase or sentence of the task or
//! of its documents may be in the answer as well.
//!
//! Given the task `hi`, two 1.5B models agreed on the instructions of one of them with "You" turned into "I". A
//! comparison of whole texts does not see that, but shares of words in a row do.

use std::sync::Arc;

use super::one_line;

/// This many words in a row that are in the instructions too are not a coincidence.
const WORDS_IN_A_ROW: usize = 5;

/// A text repeats the instructions if at least one word in this many is in such a row.
const SHARE: usize = 3;

/// The names that a peer's text may have.
const WORKS: [&str; 7] = ["text", "answer", "draft", "proposal", "version", "solution", "message"];

/// The owners that such a text may have, besides the agents by their names, in the form of [`fold`].
const OWNERS: [&str; 4] = ["peer", "the other agent", "other agent", "the agent"];

/// Phrases in which a text speaks about itself or about the form it is sent in, in the form of [`fold`].
const PHRASES: [&str; 9] = [
    "canonical_text",
    "final_solution",
    "handoff_to",
    "my final text",
    "needs_from_peer",
    "public_message",
    "task_understanding",
    "this is the final text",
    "your final text",
];

/// The marks of the protocol, as messages contain them.
const MARKS: [&str; 2] = ["[SOLVED]", "[CONTACT]"];

/// Words that begin a statement: pronouns and articles of the languages in which users ask most. An order does not
/// begin with any of them.
const BEGINNINGS: [&str; 44] = [
    "a", "an", "das", "de", "der", "die", "ein", "eine", "el", "er", "es", "het", "he", "i", "ich", "ik",
    "il", "it", "je", "la", "las", "le", "les", "los", "my", "nous", "nosotros", "o", "os", "she", "sie",
    "the", "there", "these", "they", "this", "un", "una", "une", "we", "wij", "wir", "you", "yo",
];

/// Returns the form in which two texts are compared here: lower-case letters, digits and `_/+-*=<>`, with single
/// spaces.
pub(super) fn fold(text: &str) -> String {
    let spaced: String =
        text.chars().map(|c| if c.is_alphanumeric() || "_/+-*=<>".contains(c) { c } else { ' ' }).collect();
    one_line(&spaced.to_lowercase())
}

/// Returns true if a folded text takes much of its wording from folded instructions. `user_words` are the folded words
/// of the user.
pub(super) fn repeats(text: &str, instructions: &[Arc<str>], user_words: &str) -> bool {
    let words: Vec<&str> = text.split(' ').collect();
    let mut covered = vec![false; words.len()];
    for (start, row) in words.windows(WORDS_IN_A_ROW).enumerate() {
        let row = row.join(" ");
        if instructions.iter().any(|text| has_words(text, &row)) && !has_words(user_words, &row) {
            covered[start..start + WORDS_IN_A_ROW].fill(true);
        }
    }
    let count = covered.iter().filter(|is_covered| **is_covered).count();
    count > 0 && count * SHARE >= words.len()
}

/// Returns the words in which a text talks about the protocol instead of the task, if it does.
///
/// `names` are the names of the agents. A phrase that the user has used does not count as the protocol's.
pub(super) fn find_talk(text: &str, names: &[String], user_words: &str) -> Option<String> {
    let folded = fold(text);
    let names = names.iter().map(|name| fold(name));
    let owners = OWNERS.iter().map(|owner| (*owner).to_owned()).chain(names);
    let works = owners.flat_map(|owner| WORKS.map(|work| format!("{owner} s {work}")));
    for phrase in works.chain(PHRASES.map(str::to_owned)) {
        if has_words(&folded, &phrase) && !has_words(user_words, &phrase) {
            // The phrase is returned as people write it.
            return Some(phrase.replace(" s ", "'s "));
        }
    }
    for mark in MARKS {
        if text.contains(mark) && !has_words(user_words, &fold(mark)) {
            return Some(mark.to_owned());
        }
    }
    None
}

/// Returns true if the right answer to this task may be the task's own text.
///
/// That is so for a greeting, a name or a value, and for a sentence that is only to be corrected. Repeating a longer
/// question or order does not answer it.
pub(super) fn may_be_repeated(task: &str) -> bool {
    let folded = fold(task);
    let is_short = folded.split(' ').nth(3).is_none();
    let is_question = task.contains(['?', '？', '؟', '¿']);
    let is_statement = folded.split(' ').next().is_some_and(|word| BEGINNINGS.contains(&word));
    is_short || is_statement && !is_question
}

/// Returns true if `text` contains `words` as whole words.
pub(super) fn has_words(text: &str, words: &str) -> bool {
    text.match_indices(words).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + words.len()..]);
        (before.is_empty() || before.ends_with(' ')) && (after.is_empty() || after.starts_with(' '))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACK: &str = "You write for readers without training in the subject: a text that they understand on one reading and that is \
                        true. Name the cause first, then what follows from it.";

    fn is_echo(text: &str, user_words: &str) -> bool {
        repeats(&fold(text), &[fold(PACK).into()], &fold(user_words))
    }

    #[test]
    fn instructions_with_some_words_changed_are_an_echo() {
        assert!(is_echo(
            "I write for readers without training in the subject: a text that they grasp on one reading.",
            "hi"
        ));
        assert!(is_echo("Hello! I name the cause first, then what follows from it.", "hi"));
        assert!(!is_echo("Hello! How can I help you today?", "hi"));
        // A phrase of five words is a coincidence in a long text.
        let long = format!(
            "Rain falls. Name the cause first, then what. {}",
            "It rains and it pours again. ".repeat(6)
        );
        assert!(!is_echo(&long, "Write about rain."));
    }

    #[test]
    fn user_words_are_no_echo() {
        assert!(!is_echo("You write for readers without training in the subject.", PACK));
    }

    /// A phrase that the user has used does not count as talk about the protocol.
    #[test]
    fn protocol_talk_is_found() {
        let names = ["Writer".to_owned(), "Physicist".to_owned()];
        for (text, user_words, found) in [
            ("The peer's text is true, and yours is not.", "hi", Some("peer's text")),
            ("I will take over the peer’s text and complete it.", "hi", Some("peer's text")),
            ("The Physicist's answer is right.", "hi", Some("physicist's answer")),
            ("This is my final text.", "hi", Some("my final text")),
            ("[SOLVED] 4", "2+2?", Some("[SOLVED]")),
            ("Set canonical_text to 4.", "2+2?", Some("canonical_text")),
            (
                "A peer's text is easier to judge than one's own.",
                "Whose text is easier to judge, a peer's text or my own?",
                None,
            ),
            ("An envelope.", "What holds a letter?", None),
            ("A writer needs a desk.", "What does a writer need?", None),
            ("My peers are kind.", "Describe your class.", None),
        ] {
            assert_eq!(find_talk(text, &names, &fold(user_words)).as_deref(), found, "{text}");
        }
    }

    #[test]
    fn task_without_request_may_be_repeated() {
        for task in
            ["hi", "Good morning!", "42", "?", "I recieve the letter.", "Ich habe einen Hund gesehen."]
        {
            assert!(may_be_repeated(task), "{task}");
        }
        for task in ["What is the capital of Australia?", "Write a poem about rain.", "Is it going to rain?"]
        {
            assert!(!may_be_repeated(task), "{task}");
        }
    }
}
