//! Numbers and choices that look alike and are not: decimal commas, groups of thousands, negated words.
//!
//! `lookalike_numbers.tsv` holds texts as people and models write numbers in thirteen places, and how each rule reads them.

use protocol::text::decoding::answer_schema;
use protocol::text::schema::compile;
use protocol::text::{
    CanonicalKind, CanonicalRule, Canonicalizer, Constraint, DecimalSign, NotANumber, NotCanonical,
};
use serde_json::json;

use crate::batch::{figures, lines};
use crate::support::{Finished, Folder, consensus};

/// A roleset of two agents who both say one number, with this `canonical`.
fn roleset(folder: &Folder, name: &str, canonical: &str) {
    folder.write("rolesets/packs/one.md", "Work.");
    let text = format!(
        r#"{{"v": 1, "protocol": "pair", "canonical": {canonical}, "agents": [
            {{"name": "Solver", "domain": "d", "pack": "one.md"}}, {{"name": "Checker", "domain": "d", "pack": "one.md"}}]}}"#
    );
    folder.write(&format!("rolesets/{name}.json"), &text);
}

/// Runs two agents who stand by their answers, and returns what is left of it.
fn run(answers: [&str; 2], agents: [&str; 2], words: &[&str]) -> (Folder, Finished) {
    let folder = Folder::new();
    for (name, canonical) in [
        ("comma", r#"{"kind": "number", "decimal": ","}"#),
        ("unsaid", r#"{"kind": "number"}"#),
        ("prose", r#"{"kind": "text"}"#),
    ] {
        roleset(&folder, name, canonical);
    }
    let line =
        |at: usize| json!({"agent": agents[at], "policy": "honest", "answer": answers[at]}).to_string();
    folder.write("script.jsonl", &format!("{}\n{}\n", line(0), line(1)));
    let run = ["run", "--mock-script", "script.jsonl", "--seed", "7", "--prompt", "How much is it?"];
    let finished = Finished::of(consensus(&folder).args(run).args(words));
    (folder, finished)
}

const SOLVERS: [&str; 2] = ["Solver", "Checker"];

#[track_caller]
fn agrees(answers: [&str; 2], agents: [&str; 2], words: &[&str]) {
    let (folder, finished) = run(answers, agents, words);
    assert_eq!(finished.exits(0).stdout, format!("{}\n", answers[0]));
    assert_eq!(folder.result()["how"], "independent", "{answers:?}");
}

#[track_caller]
fn does_not_agree(answers: [&str; 2], agents: [&str; 2], words: &[&str]) {
    let (folder, finished) = run(answers, agents, words);
    assert_eq!((finished.stdout.as_str(), finished.code), ("", 3), "{answers:?}: {}", finished.stderr);
    assert_eq!(folder.result()["outcome"], "no_agreement", "{answers:?}");
}

/// The table has numbers as thirteen places write them, and how each rule reads them.
#[test]
fn numbers_are_read_as_table_says() {
    let rule = |decimal| CanonicalRule { decimal, ..CanonicalKind::Number.into() };
    let rules = [Some(DecimalSign::Point), Some(DecimalSign::Comma), None]
        .map(|decimal| Canonicalizer::new(&rule(decimal)));
    let table = include_str!("lookalike_numbers.tsv");
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| !line.starts_with('#'))
        .skip(1)
        .map(|line| line.split('\t').collect())
        .collect();
    assert!(rows.len() >= 200, "{} rows", rows.len());
    let mut wrong = Vec::new();
    for row in &rows {
        let text =
            row[1].replace("{nbsp}", "\u{a0}").replace("{thin}", "\u{2009}").replace("{narrow}", "\u{202f}");
        for (canonicalizer, wanted) in rules.iter().zip(&row[2..]) {
            let found = said(canonicalizer.canonicalize(&text).map(|canonical| canonical.text));
            if found != **wanted {
                wrong.push(format!("{row:?}: {wanted} wanted, {found} found"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The schema for decoding allows the decimal sign of the rule and no groups of thousands.
#[test]
fn number_decoding_follows_decimal_sign() {
    for (decimal, constraint, good, bad) in [
        (None, "excludes=x", "-12.50", "12,50"),
        (Some(DecimalSign::Point), "excludes=x", "12.50", "12,50"),
        (Some(DecimalSign::Comma), "excludes=x", "12,50", "12.50"),
        (Some(DecimalSign::Comma), "integer", "12", "12,50"),
    ] {
        let rule = CanonicalRule { decimal, ..CanonicalKind::Number.into() };
        let canonicalizer = Canonicalizer::new(&rule);
        let constraints = [Constraint::parse(constraint).unwrap()];
        let schema = compile(&answer_schema(&canonicalizer, &constraints, 100));
        assert!(schema.is_valid(&json!(good)), "{decimal:?}: {good}");
        assert!(canonicalizer.canonicalize(good).is_ok(), "{decimal:?}: {good}");
        for text in [bad, "1,234,567", "1.234.567", "1,234.5", "1.234,5"] {
            assert!(!schema.is_valid(&json!(text)), "{decimal:?}: {text}");
        }
    }
}

/// A reading as the table writes it.
fn said(read: Result<String, NotCanonical>) -> String {
    match read {
        Ok(form) => form,
        Err(NotCanonical::NotANumber(NotANumber::NoNumber)) => "no".to_owned(),
        Err(NotCanonical::NotANumber(NotANumber::Ambiguous { whole, decimal, .. })) => {
            format!("? {whole} {decimal}")
        }
        Err(NotCanonical::NotANumber(
            NotANumber::OtherSign { better, .. } | NotANumber::Grouped { better, .. },
        )) => {
            format!("! {better}")
        }
        Err(other) => other.to_string(),
    }
}

#[test]
fn a_decimal_comma_is_never_read_as_thousands() {
    let words = ["--roleset", "solver_checker", "--talk", "always"];
    for answers in [["125", "0,125"], ["4", "0,004"], ["0,125", "0,125"], ["12345", "012,345"]] {
        does_not_agree(answers, SOLVERS, &words);
    }
    agrees(["1000", "1,000"], SOLVERS, &words);
    agrees(["1,234,567.50", "1234567.5"], SOLVERS, &words);
}

#[test]
fn comma_roleset_reads_decimal_comma() {
    for words in [&["--roleset", "comma"][..], &["--roleset", "comma", "--canonical", "number"]] {
        agrees(["0,125", "0,1250"], SOLVERS, words);
        agrees(["1.234.567,5", "1234567,5"], SOLVERS, words);
        does_not_agree(["0.125", "0.125"], SOLVERS, words);
    }
}

/// A number with one group of thousands is refused where the roleset names no decimal sign.
#[test]
fn ambiguous_group_is_refused_without_sign() {
    does_not_agree(["1,234", "1,234"], SOLVERS, &["--roleset", "unsaid"]);
    does_not_agree(["0,125", "125"], SOLVERS, &["--roleset", "unsaid"]);
    agrees(["1,234,567", "1234567"], SOLVERS, &["--roleset", "unsaid"]);
    agrees(["1,234.5", "1234.5"], SOLVERS, &["--roleset", "unsaid"]);
}

/// Where the roleset names no sign, `--canonical number` reads decimals after a point.
#[test]
fn canonical_number_flag_means_decimal_point() {
    for roleset in ["prose", "unsaid"] {
        let words = ["--roleset", roleset, "--canonical", "number"];
        agrees(["1,000", "1000"], SOLVERS, &words);
        does_not_agree(["0,125", "125"], SOLVERS, &words);
    }
}

#[test]
fn a_negated_choice_is_no_vote_for_it() {
    let agents = ["Reasoner", "Auditor"];
    let words = ["--roleset", "mcq_reasoner_auditor", "--talk", "always", "--choices", "yes,no"];
    for text in ["!yes", "~yes", "yes?", "¬yes", "-yes"] {
        does_not_agree(["yes", text], agents, &words);
        does_not_agree([text, text], agents, &words);
    }
    for text in ["(yes).", "\"YES\"", "Yes)", "**yes**"] {
        agrees(["yes", text], agents, &words);
    }
}

#[test]
fn right_answer_may_have_grouped_thousands() {
    let folder = Folder::new();
    roleset(&folder, "comma", r#"{"kind": "number", "decimal": ","}"#);
    roleset(&folder, "unsaid", r#"{"kind": "number"}"#);
    let line = |id: &str, roleset: &str, answer: serde_json::Value| {
        json!({"id": id, "prompt": "How much is it?", "roleset": roleset, "answer": answer}).to_string()
    };
    let tasks = [
        line("point", "solver_checker", json!("1,000")),
        line("unsaid", "unsaid", json!("1,000")),
        line("comma", "comma", json!("1.000")),
        line("other", "solver_checker", json!("1,001")),
        line("decimals", "solver_checker", json!("0,125")),
        line("words", "unsaid", json!("0,125")),
    ];
    folder.write("tasks.jsonl", &tasks.join("\n"));
    figures(&folder, &["--mock", "--answer", "1000"], 2);
    let mut right: Vec<(String, serde_json::Value)> = lines(&folder, "results-0.jsonl")
        .iter()
        .map(|row| (row["task"].as_str().unwrap().to_owned(), row["right"].clone()))
        .collect();
    right.sort_by(|a, b| a.0.cmp(&b.0));
    let wanted = [("comma", true), ("other", false), ("point", true), ("unsaid", true)];
    assert_eq!(right, wanted.map(|(task, right)| (task.to_owned(), json!(right))));
    let refused = lines(&folder, "refused-0.jsonl");
    assert_eq!(refused.len(), 2, "{refused:?}");
    for line in refused {
        assert!(
            line["why"].as_str().unwrap().contains("can never be the answer: `0,125` is not read"),
            "{line}"
        );
    }
}

/// A right answer that is a JSON number is read with a point, even where numbers have a comma.
#[test]
fn json_number_answer_has_decimal_point() {
    let folder = Folder::new();
    let canonical = json!({"kind": "number", "decimal": ","});
    let line = |id: &str, answer: serde_json::Value| {
        let mut line =
            json!({"id": id, "prompt": "How much is it?", "answer": answer, "canonical": canonical});
        line["roleset"] = "solver_checker".into();
        line.to_string()
    };
    // 1.234 is no thousand.
    let tasks = [line("a", json!(1.234)), line("b", json!(1234)), line("c", json!("1,234"))];
    folder.write("tasks.jsonl", &tasks.join("\n"));
    figures(&folder, &["--mock", "--answer", "1,234"], 0);
    for row in lines(&folder, "results-0.jsonl") {
        assert_eq!(row["right"], json!(row["task"] != "b"), "{row}");
    }
}

#[test]
fn decimal_sign_needs_number_kind() {
    let folder = Folder::new();
    roleset(&folder, "prose", r#"{"kind": "text", "decimal": "."}"#);
    roleset(&folder, "strange", r#"{"kind": "number", "decimal": ";"}"#);
    let finished = Finished::of(consensus(&folder).args(["roleset", "check", "prose", "strange"])).exits(2);
    for part in [
        "/canonical/decimal: a decimal sign goes with kind `number` only",
        "/canonical/decimal: \";\" is not one of ., ,",
    ] {
        assert!(finished.stderr.contains(part), "{part} is not in {}", finished.stderr);
    }
}
