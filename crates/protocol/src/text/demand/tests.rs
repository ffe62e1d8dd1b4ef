//! Tasks that demand something, and tasks that only seem to.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn said(task: &str) -> Vec<String> {
    find_demands(task).iter().map(|found| serde_json::to_string(&found.rule).unwrap()).collect()
}

/// A phrase with two senses would have the first one of the table.
#[test]
fn each_phrase_has_one_sense() {
    let mut senses = BTreeMap::new();
    for (sense, phrases) in english::ENGLISH {
        for phrase in phrases.split('|') {
            if let Some(other) = senses.insert(phrase, sense) {
                panic!("`{phrase}` is {other:?} and {sense:?}");
            }
        }
    }
}

#[test]
fn words_around_a_rule_can_take_it_back() {
    for task in [
        "Explain why the sky is blue, but not in one word.",
        "Explain it in full instead of answering in one word.",
        "Answer with only the letter for each of these two questions.",
        "Tell me why my son replies in one word.",
        "Explain why Hemingway could tell a whole story in six words.",
        "Give a definition of entropy in one sentence and an example.",
        "Explain the phrase ‘answer in one word’.",
        "Explain the phrase „answer in one word“.",
        "Write three taglines in five words.",
        "Summarise both articles in two sentences.",
        "Name films with titles in two words.",
        "In two sentences, the judge dismissed the case. Why is that rare?",
        "Answer in one word unless it is unclear.",
        "Answer with only the letter. If none is right, write \"none\".",
        "Answer in French. If you do not know French, answer in English.",
        "Write in all lowercase. Except for names.",
        "Finish with the words \"The End\". Below that, write the word count.",
        "Respond in JSON format. Before the JSON, write one line of explanation.",
        "Answer in one sentence or two.",
        "Explain it in 3 sentences (4 is fine too).",
        "Summarise it in 50 words or so.",
        "Give the title in one word and the plot in three sentences.",
        "Answer in one word. Also add your reasoning.",
        "Answer in two sentences. Include sources below.",
        "Explain your reasoning and return a JSON array.",
    ] {
        assert!(said(task).is_empty(), "{task}: {:?}", said(task));
    }
    for task in [
        "In one sentence, what is entropy?",
        "Answer in two sentences and nothing else.",
        "Answer in 50 words or fewer.",
    ] {
        assert_eq!(said(task).len(), 1, "{task}");
    }
}

#[test]
fn plain_words_of_task_become_rule() {
    let exactly = |kind: &str, n: u32| format!("{{\"kind\":\"{kind}\",\"min\":{n},\"max\":{n}}}");
    let most = |kind: &str, n: u32| format!("{{\"kind\":\"{kind}\",\"max\":{n}}}");
    for (task, rule) in [
        ("Explain in exactly three sentences why the sky is blue.", exactly("sentences", 3)),
        ("Please summarise the report in 2 sentences.", exactly("sentences", 2)),
        ("Why is the sky blue? Answer in one sentence.", exactly("sentences", 1)),
        ("Explain why the sky is blue in exactly three sentences.", exactly("sentences", 3)),
        ("Tell me what inflation is, in at most 30 words.", most("words", 30)),
        ("In one sentence, what is inflation?", exactly("sentences", 1)),
        ("Write a two-sentence summary of the text.", exactly("sentences", 2)),
        ("Describe the plot in at most 50 words.", most("words", 50)),
        ("Can you explain it in no more than four sentences?", most("sentences", 4)),
        ("Write a haiku in three lines.", exactly("lines", 3)),
        ("Answer in 40 words.", most("words", 40)),
        ("Answer with one word.", exactly("words", 1)),
        ("Answer in fewer than 60 characters.", most("characters", 59)),
        ("Limit your answer to 50 words.", most("words", 50)),
        ("Keep it under 50 words.", most("words", 49)),
        ("Answer in 50 words or more.", "{\"kind\":\"words\",\"min\":50}".to_owned()),
        ("Answer in 3 sentences or fewer.", most("sentences", 3)),
        ("Use between 20 and 30 words.", "{\"kind\":\"words\",\"min\":20,\"max\":30}".to_owned()),
        ("Write at least 100 words.", "{\"kind\":\"words\",\"min\":100}".to_owned()),
        ("Reply with only the letter.", exactly("characters", 1)),
        ("Return a JSON array with the names.", "{\"kind\":\"starts_with\",\"text\":\"[\"}".to_owned()),
    ] {
        assert_eq!(said(task), [rule], "{task}");
    }
}

/// Tasks that mention sentences, words and lines, but state no rule.
const NO_RULE: &str = include_str!("no_demands.txt");

/// Tasks that state no rule get none.
#[test]
fn no_unstated_rule_is_found() {
    let tasks: Vec<&str> = NO_RULE.lines().filter(|line| !line.trim().is_empty()).collect();
    assert!(tasks.len() >= 600, "{}", tasks.len());
    let alarms: Vec<_> =
        tasks.iter().map(|task| (task, find_demands(task))).filter(|(_, rules)| !rules.is_empty()).collect();
    assert!(alarms.is_empty(), "{alarms:#?}");
}

fn expect(pairs: &[(&str, &[&str])]) {
    for (task, rules) in pairs {
        let found: Vec<String> = find_demands(task).iter().map(|demand| demand.rule.to_string()).collect();
        assert_eq!(found, *rules, "{task}");
    }
}

#[test]
fn forms_of_the_answer_become_rules() {
    expect(&[
        (
            "Write a riddle about rain, but make sure you don't use any commas.",
            &["it must not contain \",\""],
        ),
        (
            "Name four seas. Your answer must contain exactly 4 bullet points and cannot contain commas.",
            &["exactly 4 bullet points", "it must not contain \",\""],
        ),
        (
            "Write a poem. Your entire response should be in English, and in all lowercase letters.",
            &["it must be English", "it must have small letters only"],
        ),
        (
            "Is praying a good idea? Your answer must be in all capital letters.",
            &["it must have capital letters only"],
        ),
        ("Write a haiku. No capital letters are allowed.", &["it must have small letters only"]),
        (
            "Write an essay and wrap your entire response with double quotation marks.",
            &["the whole of it must be in quotation marks"],
        ),
        (
            "Write a joke. Double quotes should be placed around your entire response.",
            &["the whole of it must be in quotation marks"],
        ),
        (
            "Tell a story. Finish the story with this exact phrase: \"The end.\"",
            &["it must end with \"The end.\""],
        ),
        ("Please wrap the entire output in JSON format.", &["it must be JSON"]),
        ("What is a lattice? Please answer in Finnish.", &["it must be Finnish"]),
        ("Write a poem using only the Hindi language.", &["it must be Hindi"]),
        (
            "Write a rap. There should be exactly 3 paragraphs. Separate the paragraphs with ***.",
            &["exactly 3 paragraphs"],
        ),
        ("Write a 200+ word poem about shoes.", &["at least 200 words"]),
        ("Write a letter with at least 300 words. Also add a postscript.", &["at least 300 words"]),
    ]);
}

#[test]
fn wanted_and_forbidden_words_become_rules() {
    expect(&[
        (
            "Write a song. Use the word war at least 8 times, and the word peace twice.",
            &["it must mention \"war\" at least 8 times", "it must mention \"peace\" at least 2 times"],
        ),
        (
            "Write a post. Do not include the following keywords: worry, thanks.",
            &["it must not mention \"worry\"", "it must not mention \"thanks\""],
        ),
        (
            "Write an ad without using the word 'fresh' or 'good'.",
            &["it must not mention \"fresh\"", "it must not mention \"good\""],
        ),
        (
            "Write a poem. The word \"fake\" should appear 6 or 7 times in your response.",
            &["it must mention \"fake\" 6 to 7 times"],
        ),
        (
            "Is it cold? Do not say 'yes' or 'no' throughout your entire response.",
            &["it must not mention \"yes\"", "it must not mention \"no\""],
        ),
        (
            "Write a rap. Include keywords gao and hearts in the response.",
            &["it must mention \"gao\"", "it must mention \"hearts\""],
        ),
        (
            "Write a letter. Make sure to use the word \"the\" once or less.",
            &["it must mention \"the\" at most 1 time"],
        ),
    ]);
}

/// Quoted words, and those behind a colon, are not the task's own.
#[test]
fn material_demands_nothing() {
    expect(&[
        ("Translate into German: Use at most ten words.", &[]),
        (
            "Criticise this text: \"Be nice.\" Do not use any commas in your response.",
            &["it must not contain \",\""],
        ),
        (
            "Write a list. Use bullet points such as:\n* Answer in one word.\nUse no commas.",
            &["it must not contain \",\""],
        ),
        ("Summarise this.\n```\nAnswer in one word.\n```", &[]),
        (
            "Write a poem. Requirements:\n- Use at most 50 words.\n- Do not use commas.",
            &["at most 50 words", "it must not contain \",\""],
        ),
    ]);
}

/// Returns a phrase of the table, or a sign.
fn phrase() -> impl Strategy<Value = String> {
    let phrases: Vec<String> =
        english::ENGLISH.iter().flat_map(|(_, phrases)| phrases.split('|')).map(str::to_owned).collect();
    let signs = [".", ",", ":", "?", "\n", "'a b'", "\"x\"", "```", "-", "3", "ü", "…"].map(str::to_owned);
    prop_oneof![3 => prop::sample::select(phrases), 1 => prop::sample::select(signs.to_vec())]
}

proptest! {
    /// A demand's words are words of the task, whatever the task is.
    #[test]
    fn words_of_a_demand_are_those_of_the_task(phrases in prop::collection::vec(phrase(), 0..30)) {
        let task = phrases.join(" ");
        for demand in find_demands(&task) {
            prop_assert!(task.contains(&demand.words), "{task:?} {demand:?}");
        }
    }
}
