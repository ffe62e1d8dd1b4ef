//! Pages of the book that are made from the program: its help texts, its exit codes and its schemas.
//!
//! `CONSENSUS_REWRITE=1 cargo test --test it generated` writes them anew after a change.

use std::fmt::Write as _;

use protocol::core::ExitCode;
use serde_json::Value;

use super::{repository, text_of};
use crate::support::{Finished, Folder, consensus, listed_commands};

/// The note at the end of a page that no person writes.
const NOTE: &str = "This page is made from the program, and a test compares the two.";

/// Compares a page with the program, or writes it anew where that is asked for.
fn is_fresh(page: &str, text: &str) {
    let text = format!("{}\n\n*{NOTE}*\n", text.trim_end());
    if std::env::var_os("CONSENSUS_REWRITE").is_some() {
        std::fs::write(repository(page), &text).unwrap();
    }
    assert!(
        text_of(page) == text,
        "{page} is stale; CONSENSUS_REWRITE=1 cargo test --test it generated writes it anew"
    );
}

fn help(folder: &Folder, words: &[String]) -> String {
    let finished = Finished::of(consensus(folder).args(words).arg("--help")).exits(0);
    finished.stdout.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

/// Adds a command and those below it, each with its help text.
fn add_command(folder: &Folder, words: &[String], page: &mut String) {
    let text = help(folder, words);
    let names = ["consensus".to_owned()].into_iter().chain(words.iter().cloned()).collect::<Vec<_>>();
    write!(page, "{} `{}`\n\n```text\n{text}\n```\n\n", "#".repeat(2), names.join(" ")).unwrap();
    for name in listed_commands(&text, words.is_empty()) {
        add_command(folder, &[words, &[name]].concat(), page);
    }
}

#[test]
fn commands_page_has_each_help_text() {
    let mut page = "# Commands\n\nEach command prints this text with `--help`, and a shorter one with `-h`. \
                    `consensus man --output DIR` writes the same as manual pages.\n\n"
        .to_owned();
    add_command(&Folder::new(), &[], &mut page);
    is_fresh("docs/src/reference/commands.md", &page);
}

#[test]
fn the_page_of_exit_codes_has_each() {
    let mut page = "# Exit codes\n\nA script reads how a command ended from its exit code. A run that ended with 5, 6 or 130 \
                    continues with `consensus resume`.\n\n| code | meaning |\n|---|---|\n"
        .to_owned();
    for code in ExitCode::ALL {
        let meaning = code.meaning().replace("--fail-on-degraded", "`--fail-on-degraded`");
        writeln!(page, "| {} | {meaning} |", u8::from(code)).unwrap();
    }
    is_fresh("docs/src/reference/exit-codes.md", &page);
}

/// Says in a few words which values a schema allows.
fn kind(schema: &Value) -> String {
    let names = |values: &Value| {
        let values = values.as_array().into_iter().flatten();
        values
            .map(|value| format!("`{}`", value.to_string().trim_matches('"')))
            .collect::<Vec<_>>()
            .join(", ")
    };
    if let Some(to) = schema["$ref"].as_str() {
        let name = to.rsplit('/').next().unwrap_or_default();
        return format!("[`{name}`](#{name})");
    }
    if !schema["enum"].is_null() {
        return names(&schema["enum"]);
    }
    if !schema["const"].is_null() {
        return format!("`{}`", schema["const"]);
    }
    for choice in ["oneOf", "anyOf"] {
        if let Some(of) = schema[choice].as_array() {
            let mut kinds: Vec<String> = of.iter().map(kind).filter(|kind| !kind.is_empty()).collect();
            kinds.dedup();
            return kinds.join(" or ");
        }
    }
    let range = match (schema["minimum"].as_i64(), schema["maximum"].as_i64()) {
        (Some(from), Some(to)) => format!(" from {from} to {to}"),
        (Some(from), None) => format!(" from {from}"),
        (None, Some(to)) => format!(" up to {to}"),
        (None, None) => String::new(),
    };
    match &schema["type"] {
        Value::String(name) if name == "array" && schema["items"].is_object() => {
            format!("list of {}", kind(&schema["items"]))
        }
        Value::String(name) => format!("{name}{range}"),
        Value::Array(kinds) => {
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
            format!("{}{range}", kinds.join(" or "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// Adds a row for each property, with those of objects and lists below it.
fn add_rows(schema: &Value, path: &str, page: &mut String) {
    let properties = schema["properties"].as_object().into_iter().flatten();
    for (name, property) in properties {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let about = property["description"].as_str().unwrap_or_default().replace('|', "\\|");
        writeln!(page, "| `{path}` | {} | {about} |", kind(property)).unwrap();
        add_rows(property, &path, page);
        add_rows(&property["items"], &format!("{path}[]"), page);
    }
}

fn add_table(schema: &Value, page: &mut String) {
    let mut rows = String::new();
    add_rows(schema, "", &mut rows);
    if rows.is_empty() {
        writeln!(page, "{}\n", kind(schema)).unwrap();
    } else {
        write!(page, "| field | value | meaning |\n|---|---|---|\n{rows}\n").unwrap();
    }
    // A field that is one of several objects has a table for each.
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        for choice in property["oneOf"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|choice| choice["properties"].is_object())
        {
            // The type of an object distinguishes it, or its only field does.
            let kind = choice["properties"]["type"]["const"].as_str().or(choice["required"][0].as_str());
            let kind = kind.unwrap_or_default();
            let about = choice["description"].as_str().unwrap_or_default();
            write!(page, "## `{name}`: `{kind}`\n\n{about}\n\n").unwrap();
            add_table(choice, page);
        }
    }
}

#[test]
fn the_pages_of_formats_have_each_field() {
    let folder = Folder::new();
    for (name, title, about) in [
        (
            "roleset",
            "Roleset",
            "A roleset is a JSON file. [Rolesets and packs](../concepts/rolesets.md) explains it; `consensus roleset check` finds mistakes \
             in it, and `consensus schema roleset` prints the schema that this page is made from.",
        ),
        (
            "result",
            "Result",
            "A run writes `result.json` into its folder, and `--format json` prints it. `consensus schema result` prints the schema that \
             this page is made from.",
        ),
        (
            "record",
            "Record",
            "A journal has one record on each line. [Journal and verify](../concepts/verify.md) explains it, and `consensus schema record` \
             prints the schema that this page is made from.",
        ),
    ] {
        let schema = Finished::of(consensus(&folder).args(["schema", name])).exits(0).stdout;
        let schema: Value = serde_json::from_str(&schema).unwrap();
        let mut page = format!("# {title}\n\n{about}\n\n");
        add_table(&schema, &mut page);
        for (name, part) in schema["$defs"].as_object().into_iter().flatten() {
            write!(page, "## `{name}`\n\n").unwrap();
            if let Some(about) = part["description"].as_str() {
                write!(page, "{about}\n\n").unwrap();
            }
            add_table(part, &mut page);
        }
        is_fresh(&format!("docs/src/reference/{name}.md"), &page);
    }
}
