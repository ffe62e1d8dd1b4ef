//! The check of a roleset: finds every mistake, each with its file and JSON pointer.

use std::sync::LazyLock;

use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

use super::embedded::ROLESET_SCHEMA;
use super::error::Problem;
use super::nearest::did_you_mean;
use super::packs::{COMPARING, Packs, pack_parts};
use super::roleset::{Roleset, RolesetAgent};
use protocol::text::redact::Redactor;
use protocol::text::{CanonicalKind, Canonicalizer, Constraint, StrictValue, check_depth, escape, schema};
use protocol::{Method, Params, ProtocolParams};

/// The largest pack, in bytes; more would crowd out the task.
const PACK_BYTES_MAX: usize = 64 * 1024;

static SCHEMA: LazyLock<Value> = LazyLock::new(|| schema::parse_embedded(ROLESET_SCHEMA));
static VALIDATOR: LazyLock<Validator> = LazyLock::new(|| schema::compile(&SCHEMA));

/// Reads and checks a roleset; `file` is its name in messages.
pub(super) fn check(file: &str, text: &str, packs: &Packs) -> Result<Roleset, Vec<Problem>> {
    let problem = |at: &str, message: String| Problem { file: file.to_owned(), at: at.to_owned(), message };
    if !check_depth(text) {
        return Err(vec![problem("", "it nests too deeply".to_owned())]);
    }
    let StrictValue(value) =
        serde_json::from_str(text).map_err(|e| vec![problem("", format!("it is not valid JSON: {e}"))])?;
    let roleset = check_value(file, value)?;
    let found = check_meaning(&roleset).into_iter();
    let mut problems: Vec<Problem> = found.map(|p| problem(&p.at, p.message)).collect();
    for (at, agent) in agents(&roleset) {
        check_pack(agent, packs, &mut |message| problems.push(problem(&format!("{at}/pack"), message)));
    }
    if problems.is_empty() { Ok(roleset) } else { Err(problems) }
}

/// Checks a roleset against the schema; `file` is its name in messages.
pub(super) fn check_value(file: &str, value: Value) -> Result<Roleset, Vec<Problem>> {
    let problem = |at: &str, message: String| Problem { file: file.to_owned(), at: at.to_owned(), message };
    let by_schema: Vec<Problem> = VALIDATOR
        .iter_errors(&value)
        .map(|error| {
            let (pointer, message) = explain(&error);
            problem(&pointer, message)
        })
        .collect();
    if !by_schema.is_empty() {
        return Err(by_schema);
    }
    serde_json::from_value(value).map_err(|e| vec![problem("", e.to_string())])
}

/// Turns a validator's error into a place and a message.
#[expect(clippy::wildcard_enum_match_arm, reason = "the validator's own words serve for every other kind")]
fn explain(error: &jsonschema::ValidationError<'_>) -> (String, String) {
    let at = error.instance_path().to_string();
    let message = match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let known = known_keys(&SCHEMA);
            let name = |key: &String| {
                let shown = escape::excerpt(key);
                if known.contains(key) {
                    return format!("`{shown}` is not a key here, or not a key of this protocol");
                }
                format!("unknown key `{shown}`{}", did_you_mean(key, known.iter().map(String::as_str)))
            };
            unexpected.iter().map(name).collect::<Vec<_>>().join("; ")
        }
        ValidationErrorKind::Enum { options } => {
            let names: Vec<&str> =
                options.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let found = error.instance();
            let word = found.as_str().unwrap_or_default();
            format!(
                "{} is not one of {}{}",
                escape::excerpt(&found.to_string()),
                names.join(", "),
                did_you_mean(word, names.iter().copied())
            )
        }
        _ => escape::plain(&error.to_string()),
    };
    let at = if at.is_empty() { "/".to_owned() } else { at };
    (at, message)
}

/// Returns every key that a roleset may have anywhere.
fn known_keys(schema: &Value) -> Vec<String> {
    let mut keys = Vec::new();
    if let Some(map) = schema.as_object() {
        if let Some(properties) = map.get("properties").and_then(Value::as_object) {
            keys.extend(properties.keys().cloned());
        }
        keys.extend(map.values().flat_map(known_keys));
    }
    keys
}

/// Checks the rules for a roleset that a schema cannot express, including flags and excluding packs.
pub fn check_meaning(roleset: &Roleset) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut report = |at: &str, message: String| {
        problems.push(Problem { file: "the roleset with its flags".to_owned(), at: at.to_owned(), message });
    };
    if let Err(why) = roleset.params.check_agents(roleset.agents.len()) {
        report("/agents", why.to_string());
    }
    if let Params::Council(params) = &roleset.params
        && !params.weights.is_whole()
    {
        report("/params/weights", "the three weights must sum to 1".to_owned());
    }
    if roleset.check.as_ref().is_some_and(|check| check.command.trim().is_empty()) {
        report("/check", "it names no command".to_owned());
    }
    if let Err((pattern, why)) = Redactor::new(&roleset.redact_patterns) {
        report("/redact_patterns", format!("`{pattern}` is not a pattern: {why}"));
    }
    for (at, _) in agents(roleset).filter(|(_, agent)| agent.method == Method::Program) {
        if !roleset.params.runs_programs() || at == "/arbiter" {
            report(
                &format!("{at}/method"),
                "only the two agents of a `pair` can answer by a program".to_owned(),
            );
        }
    }
    let mut names: Vec<String> = Vec::new();
    for (at, agent) in agents(roleset) {
        let name = agent.name.to_ascii_lowercase();
        if names.contains(&name) {
            report(
                &format!("{at}/name"),
                format!("`{}` is taken; each agent needs a name of its own", agent.name),
            );
        }
        names.push(name);
    }
    if matches!(roleset.params, Params::Vote(_)) {
        check_voters(roleset, &mut report);
    }
    check_choices(roleset, &mut report);
    if roleset.canonical.decimal.is_some() && roleset.canonical.kind != CanonicalKind::Number {
        report("/canonical/decimal", "a decimal sign goes with kind `number` only".to_owned());
    }
    let by_line = matches!(roleset.canonical.kind, CanonicalKind::Lines | CanonicalKind::Verbatim);
    for (index, constraint) in roleset.params.constraints().iter().enumerate() {
        let at = format!("/params/constraints/{index}");
        if matches!(constraint, Constraint::Lines(_)) && !by_line {
            let why = "lines cannot be counted in a text whose line breaks do not count; use kind `lines` (--canonical lines)";
            report(&at, why.to_owned());
        }
        if constraint.is_impossible() {
            report(&at, format!("no text can have {constraint}"));
        }
    }
    problems
}

/// Voters that are alike would count as two, although they are one.
fn check_voters(roleset: &Roleset, report: &mut dyn FnMut(&str, String)) {
    let ways: Vec<_> = roleset.agents.iter().map(|agent| (&agent.pack, agent.method, &agent.model)).collect();
    for (index, way) in ways.iter().enumerate() {
        if let Some(first) = ways[..index].iter().position(|other| other == way) {
            let (one, other) = (&roleset.agents[first].name, &roleset.agents[index].name);
            let why = format!(
                "`{other}` votes as `{one}` does; a voter has a pack, a method or a model of its own"
            );
            report(&format!("/agents/{index}"), why);
        }
    }
}

fn check_choices(roleset: &Roleset, report: &mut dyn FnMut(&str, String)) {
    let canonicalizer = Canonicalizer::new(&roleset.canonical);
    let is_choice = roleset.canonical.kind == CanonicalKind::Choice;
    if is_choice && roleset.canonical.choices.len() < 2 {
        report("/canonical/choices", "kind `choice` needs a list of at least two choices".to_owned());
    }
    if !is_choice && !roleset.canonical.choices.is_empty() {
        report("/canonical/choices", "choices go with kind `choice` only".to_owned());
    }
    let mut seen = Vec::new();
    for (index, choice) in roleset.canonical.choices.iter().enumerate().filter(|_| is_choice) {
        let folded = canonicalizer.canonicalize(choice).map(|c| c.text).unwrap_or_default();
        if folded.is_empty() || seen.contains(&folded) {
            let message = format!("{choice:?} is the same as another choice, or is empty");
            report(&format!("/canonical/choices/{index}"), message);
        }
        seen.push(folded);
    }
}

/// Returns every agent with its JSON pointer, the arbiter last.
fn agents(roleset: &Roleset) -> impl Iterator<Item = (String, &RolesetAgent)> {
    let pair = roleset.agents.iter().enumerate().map(|(i, agent)| (format!("/agents/{i}"), agent));
    pair.chain(roleset.arbiter.as_ref().map(|agent| ("/arbiter".to_owned(), agent)))
}

/// Returns a heading that is meant to divide a pack, but is not written in the required form.
fn misspelt(text: &str) -> Option<&str> {
    let is_meant = |line: &&str| {
        let heading = line.trim_start().strip_prefix('#').map(|rest| rest.trim_start_matches('#').trim());
        let is_it = heading.is_some_and(|heading| {
            let word = heading.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
            word.eq_ignore_ascii_case("comparing")
        });
        is_it && line.trim_end() != COMPARING
    };
    text.lines().find(is_meant)
}

fn check_pack(agent: &RolesetAgent, packs: &Packs, report: &mut dyn FnMut(String)) {
    match packs.read(&agent.pack) {
        Ok(text) if text.trim().is_empty() => report(format!("the pack `{}` is empty", agent.pack)),
        Ok(text) if text.len() > PACK_BYTES_MAX => {
            report(format!(
                "the pack `{}` has {} bytes; at most {PACK_BYTES_MAX} are allowed",
                agent.pack,
                text.len()
            ));
        }
        Ok(text) => {
            if let Some(line) = misspelt(&text) {
                let pack = &agent.pack;
                report(format!(
                    "the pack `{pack}` has the line `{line}`; write `{COMPARING}` to begin the part for comparing"
                ));
            }
            let (alone, comparing) = pack_parts(&text);
            if alone.trim().is_empty() {
                report(format!(
                    "the pack `{}` has nothing before `{COMPARING}`, so its agent has no instructions when it works alone",
                    agent.pack
                ));
            }
            if misspelt(&comparing).is_none() && comparing.lines().any(|line| line.trim_end() == COMPARING) {
                report(format!("the pack `{}` has the line `{COMPARING}` twice", agent.pack));
            }
        }
        Err(why) => {
            let mut names = packs.names();
            names.retain(|name| *name != agent.pack);
            report(format!("{why}{}", did_you_mean(&agent.pack, names.iter().map(String::as_str))));
        }
    }
}
