//! The check of a roleset: finds every mistake, each with its file and JSON pointer.

use std::sync::LazyLock;

use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

use super::embedded::ROLESET_SCHEMA;
use super::error::{Problem, did_you_mean};
use super::packs::{COMPARING, Packs, split_pack};
use super::roleset::{Roleset, RolesetAgent};
use protocol::text::redact::Redactor;
use protocol::text::{
    CanonicalKind, Canonicalizer, Constraint, StrictValue, check_depth, counted, escape, schema,
};
use protocol::{Method, Params, ProtocolParams};

/// The largest pack, in bytes; more would crowd out the task.
const PACK_BYTES_MAX: usize = 64 * 1024;

static SCHEMA: LazyLock<Value> = LazyLock::new(|| schema::parse_embedded(ROLESET_SCHEMA));
static VALIDATOR: LazyLock<Validator> = LazyLock::new(|| schema::compile(&SCHEMA));

/// Reads and checks a roleset; `file` is its name in messages.
pub(super) fn check(file: &str, text: &str, packs: &Packs) -> Result<Roleset, Vec<Problem>> {
    if !check_depth(text) {
        return Err(vec![Problem::new(file, "", "it nests too deeply")]);
    }
    let StrictValue(value) = serde_json::from_str(text)
        .map_err(|e| vec![Problem::new(file, "", format!("it is not valid JSON: {e}"))])?;
    let roleset = check_value(file, value)?;
    let mut problems = check_meaning(&roleset);
    for problem in &mut problems {
        file.clone_into(&mut problem.file);
    }
    for (at, agent) in agents(&roleset) {
        for message in check_pack(agent, packs) {
            problems.push(Problem::new(file, &format!("{at}/pack"), message));
        }
    }
    if problems.is_empty() { Ok(roleset) } else { Err(problems) }
}

/// Checks a roleset against the schema; `file` is its name in messages.
pub(super) fn check_value(file: &str, value: Value) -> Result<Roleset, Vec<Problem>> {
    let by_schema: Vec<Problem> = VALIDATOR.iter_errors(&value).map(|error| explain(file, &error)).collect();
    if !by_schema.is_empty() {
        return Err(by_schema);
    }
    serde_json::from_value(value).map_err(|e| vec![Problem::new(file, "", e.to_string())])
}

/// Turns a validator's error into a place and a message.
#[expect(clippy::wildcard_enum_match_arm, reason = "the validator's own words serve for every other kind")]
fn explain(file: &str, error: &jsonschema::ValidationError<'_>) -> Problem {
    let at = error.instance_path().to_string();
    let message = match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let known = known_keys(&SCHEMA);
            let messages: Vec<String> = unexpected.iter().map(|key| refuse_key(key, &known)).collect();
            messages.join("; ")
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
    Problem::new(file, if at.is_empty() { "/" } else { &at }, message)
}

/// Returns the message about a key that has no place where it is written.
fn refuse_key(key: &str, known: &[String]) -> String {
    let shown = escape::excerpt(key);
    if known.iter().any(|name| name == key) {
        return format!("`{shown}` is not a key here, or not a key of this protocol");
    }
    format!("unknown key `{shown}`{}", did_you_mean(key, known.iter().map(String::as_str)))
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
    if let Err(why) = roleset.params.check_agents(roleset.agents.len()) {
        problems.push(problem("/agents", why.to_string()));
    }
    if let Params::Council(params) = &roleset.params
        && !params.weights.is_whole()
    {
        problems.push(problem("/params/weights", "the three weights must sum to 1"));
    }
    problems.extend(check_min_members(roleset));
    if roleset.check.as_ref().is_some_and(|check| check.command.trim().is_empty()) {
        problems.push(problem("/check", "it names no command"));
    }
    if let Err((pattern, why)) = Redactor::new(&roleset.redact_patterns) {
        problems.push(problem("/redact_patterns", format!("`{pattern}` is not a pattern: {why}")));
    }
    for (at, agent) in agents(roleset) {
        let takes_programs = roleset.params.runs_programs() && at != "/arbiter";
        if agent.method == Method::Program && !takes_programs {
            let why = "only the two agents of a `pair` can answer by a program";
            problems.push(problem(&format!("{at}/method"), why));
        }
    }
    let mut names: Vec<String> = Vec::new();
    for (at, agent) in agents(roleset) {
        let name = agent.name.to_ascii_lowercase();
        if names.contains(&name) {
            let why = format!("`{}` is taken; each agent needs a name of its own", agent.name);
            problems.push(problem(&format!("{at}/name"), why));
        }
        names.push(name);
    }
    if matches!(roleset.params, Params::Vote(_)) {
        problems.extend(check_voters(roleset));
    }
    problems.extend(check_choices(roleset));
    if roleset.canonical.decimal.is_some() && roleset.canonical.kind != CanonicalKind::Number {
        problems.push(problem("/canonical/decimal", "a decimal sign goes with kind `number` only"));
    }
    let by_line = matches!(roleset.canonical.kind, CanonicalKind::Lines | CanonicalKind::Verbatim);
    for (index, constraint) in roleset.params.constraints().iter().enumerate() {
        let at = format!("/params/constraints/{index}");
        if matches!(constraint, Constraint::Lines(_)) && !by_line {
            let why = "lines cannot be counted in a text whose line breaks do not count; use kind `lines` (--canonical lines)";
            problems.push(problem(&at, why));
        }
        if constraint.is_impossible() {
            problems.push(problem(&at, format!("no text can have {constraint}")));
        }
    }
    problems
}

fn problem(at: &str, message: impl Into<String>) -> Problem {
    Problem::new("the roleset with its flags", at, message)
}

/// More members than there are cannot remain.
fn check_min_members(roleset: &Roleset) -> Option<Problem> {
    let min = match &roleset.params {
        Params::Panel(params) => params.min_members,
        Params::Vote(params) => params.min_members,
        Params::Pair(_) | Params::Council(_) | Params::Approval(_) => None,
    }?;
    let members = roleset.agents.len();
    if min as usize <= members {
        return None;
    }
    let why = format!("it is {min}, and the run has {}", counted(members, "member"));
    Some(problem("/params/min_members", why))
}

/// Voters that are alike would count as two, although they are one.
fn check_voters(roleset: &Roleset) -> Vec<Problem> {
    let mut problems = Vec::new();
    let ways: Vec<_> = roleset.agents.iter().map(|agent| (&agent.pack, agent.method, &agent.model)).collect();
    for (index, way) in ways.iter().enumerate() {
        if let Some(first) = ways[..index].iter().position(|other| other == way) {
            let (one, other) = (&roleset.agents[first].name, &roleset.agents[index].name);
            let why = format!(
                "`{other}` votes as `{one}` does; a voter has a pack, a method or a model of its own"
            );
            problems.push(problem(&format!("/agents/{index}"), why));
        }
    }
    problems
}

fn check_choices(roleset: &Roleset) -> Vec<Problem> {
    let mut problems = Vec::new();
    let choices = &roleset.canonical.choices;
    if roleset.canonical.kind != CanonicalKind::Choice {
        if !choices.is_empty() {
            problems.push(problem("/canonical/choices", "choices go with kind `choice` only"));
        }
        return problems;
    }
    if choices.len() < 2 {
        problems.push(problem("/canonical/choices", "kind `choice` needs a list of at least two choices"));
    }
    let canonicalizer = Canonicalizer::new(&roleset.canonical);
    let mut earlier = Vec::new();
    for (index, choice) in choices.iter().enumerate() {
        let folded = canonicalizer.canonicalize(choice).map(|c| c.text).unwrap_or_default();
        if folded.is_empty() || earlier.contains(&folded) {
            let message = format!("{choice:?} is the same as another choice, or is empty");
            problems.push(problem(&format!("/canonical/choices/{index}"), message));
        }
        earlier.push(folded);
    }
    problems
}

/// Returns every agent with its JSON pointer, the arbiter last.
fn agents(roleset: &Roleset) -> impl Iterator<Item = (String, &RolesetAgent)> {
    let pair = roleset.agents.iter().enumerate().map(|(i, agent)| (format!("/agents/{i}"), agent));
    pair.chain(roleset.arbiter.as_ref().map(|agent| ("/arbiter".to_owned(), agent)))
}

/// Returns a heading that is meant to divide a pack, but is not written in the required form.
fn find_misspelt_heading(text: &str) -> Option<&str> {
    text.lines().find(|line| {
        let Some(rest) = line.trim_start().strip_prefix('#') else { return false };
        let heading = rest.trim_start_matches('#').trim();
        let word = heading.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
        word.eq_ignore_ascii_case("comparing") && line.trim_end() != COMPARING
    })
}

/// Returns the mistakes in the pack of an agent.
fn check_pack(agent: &RolesetAgent, packs: &Packs) -> Vec<String> {
    let pack = &agent.pack;
    let text = match packs.read(pack) {
        Ok(text) => text,
        Err(why) => {
            let mut names = packs.names();
            names.retain(|name| name != pack);
            return vec![format!("{why}{}", did_you_mean(pack, names.iter().map(String::as_str)))];
        }
    };
    if text.trim().is_empty() {
        return vec![format!("the pack `{pack}` is empty")];
    }
    if text.len() > PACK_BYTES_MAX {
        let bytes = text.len();
        return vec![format!("the pack `{pack}` has {bytes} bytes; at most {PACK_BYTES_MAX} are allowed")];
    }
    let mut mistakes = Vec::new();
    if let Some(line) = find_misspelt_heading(&text) {
        mistakes.push(format!(
            "the pack `{pack}` has the line `{line}`; write `{COMPARING}` to begin the part for comparing"
        ));
    }
    let (alone, comparing) = split_pack(&text);
    if alone.trim().is_empty() {
        mistakes.push(format!(
            "the pack `{pack}` has nothing before `{COMPARING}`, so its agent has no instructions when it works alone"
        ));
    }
    if find_misspelt_heading(&comparing).is_none()
        && comparing.lines().any(|line| line.trim_end() == COMPARING)
    {
        mistakes.push(format!("the pack `{pack}` has the line `{COMPARING}` twice"));
    }
    mistakes
}
