//! `consensus roleset`: lists, shows, copies and checks rolesets.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::batch::{CellLabel, SelectedRun};
use crate::cli::args::{Format, RolesetAction, RolesetArgs, ShowArgs};
use crate::cli::error::UsageError;
use crate::cli::journals;
use crate::cli::output::Output;
use crate::config::{
    ConfigError, FileConfig, FoundRoleset, Packs, Roleset, RolesetSource, check_roleset, copy_roleset,
    find_roleset, list_rolesets, load_roleset, roleset_of, write_roleset,
};
use crate::engine::RunState;
use crate::journal::{Entry, Journal};
use crate::report::describe_quorum;
use crate::run::rolesets_folders;
use protocol::core::ExitCode;
use protocol::text::escape;
use protocol::{Params, Task};
use quorum::Quorum;

/// The largest number of runs that are listed to choose from.
const CHOICES_MAX: usize = 20;

pub(crate) fn roleset(args: &RolesetArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let folders = rolesets_folders(args.rolesets.rolesets_dir.as_ref(), &FileConfig::load_to_read()?);
    match &args.action {
        RolesetAction::List => list(&list_rolesets(&folders), output),
        RolesetAction::Show { from: Some(run), .. } => {
            let (name, roleset, packs) = read_from_run(run)?;
            show(&name, &roleset, &packs, output)
        }
        RolesetAction::Show { roleset, .. } => {
            let found = find_roleset(roleset.as_deref().unwrap_or_default(), &folders)?;
            let (roleset, packs) = load_roleset(&found)?;
            show(&found.name, &roleset, &packs, output)
        }
        RolesetAction::Copy { roleset: to, from: Some(run), .. } => {
            let (name, roleset, packs) = read_from_run(run)?;
            warn_of_check(&roleset, output);
            let (new, folder) = parse_target(to)?;
            let path = folder.join(format!("{}.json", new.unwrap_or(&name)));
            let text = serde_json::to_string_pretty(&roleset)? + "\n";
            print_copy(&write_roleset(&roleset, text, &packs, path)?, output)
        }
        RolesetAction::Copy { roleset, to, .. } => {
            let (name, folder) = parse_target(to)?;
            let found = find_roleset(roleset, &folders)?;
            warn_of_check(&load_roleset(&found)?.0, output);
            print_copy(&copy_roleset(&found, name, &folder)?, output)
        }
        RolesetAction::Check { rolesets } if rolesets.is_empty() => check(&list_rolesets(&folders), output),
        RolesetAction::Check { rolesets } => {
            let mut found = Vec::new();
            for name in rolesets {
                found.push(find_roleset(name, &folders)?);
            }
            check(&found, output)
        }
    }
}

fn list(all: &[FoundRoleset], output: &Output) -> anyhow::Result<ExitCode> {
    let mut rows = Vec::new();
    for found in all {
        let name = &found.name;
        let description = match load_roleset(found) {
            Ok((roleset, _)) => roleset.description,
            Err(_) => format!("not usable; `consensus roleset check {name}` says why"),
        };
        let shadows = if found.is_shadowing() { ", in place of the built-in one" } else { "" };
        let source = format!("{}{shadows}", found.source);
        if output.format == Format::Text {
            output.line(&format!("{name:24} {description}"))?;
            output.line(&format!("{:24} {source}", ""))?;
        } else {
            rows.push(json!({"name": name, "source": source, "description": description}));
        }
    }
    if output.format != Format::Text {
        output.json(&json!(rows))?;
    }
    Ok(ExitCode::Success)
}

/// Returns the name and the roleset of a run. Several runs of a task may share one roleset.
fn read_from_run(run: &str) -> anyhow::Result<(String, Roleset, Packs)> {
    let args = ShowArgs::of(run);
    let Some(folder) = args.batch() else { return read_from_journal(&journals::open(&args)?.journal) };
    let found = journals::find_in_batch(folder, &args)?;
    if found.iter().any(|other| !is_same_roleset(other, &found[0])) {
        let mut lines = Vec::new();
        for run in found.iter().take(CHOICES_MAX) {
            let CellLabel { roleset, model, arm, seed, .. } = &run.cell;
            let names: Vec<&str> =
                [roleset, model, arm].into_iter().map(String::as_str).filter(|n| !n.is_empty()).collect();
            let (id, names) = (&run.journal.records[0].run, names.join(" "));
            lines.push(format!("  --from {}/{id}  ({names}, seed {seed})", folder.display()));
        }
        let why = format!("runs of this task have several rolesets; choose one:\n{}", lines.join("\n"));
        return Err(UsageError(escape::terminal(&why)).into());
    }
    read_from_journal(&found[0].journal)
}

fn is_same_roleset(one: &SelectedRun, other: &SelectedRun) -> bool {
    let first = [one, other].map(|run| run.journal.records.first().map(|record| &record.event));
    if let [Some(Entry::Opened(one)), Some(Entry::Opened(other))] = first {
        let (one, other) = (&one.setup, &other.setup);
        return one.roleset == other.roleset
            && one.agents == other.agents
            && one.params == other.params
            && one.canonical == other.canonical;
    }
    // A journal without a beginning has no roleset.
    !first.iter().any(|event| matches!(event, Some(Entry::Opened(_))))
}

fn read_from_journal(journal: &Journal) -> anyhow::Result<(String, Roleset, Packs)> {
    let state = RunState::replay(&journal.records)?;
    let setup = &state.opened().setup;
    let (roleset, packs) = roleset_of(setup);
    Ok((setup.roleset.clone(), roleset, packs))
}

/// Returns the new name of a copy, if it has one, and its folder.
fn parse_target(to: &str) -> anyhow::Result<(Option<&str>, PathBuf)> {
    if to.contains('/') || Path::new(to).is_dir() {
        return Ok((None, to.into()));
    }
    let name = to.strip_suffix(".json").unwrap_or(to);
    let has_other = name.chars().any(|c| !c.is_ascii_alphanumeric() && !"-_.".contains(c));
    if name.is_empty() || name.starts_with('.') || has_other {
        let why = "a new name has letters, digits, `-`, `_` and `.`; a folder has a slash at its end";
        return Err(UsageError(why.to_owned()).into());
    }
    Ok((Some(name), "rolesets".into()))
}

/// Warns that a roleset has a check, since runs with the copy run that command without asking.
fn warn_of_check(roleset: &Roleset, output: &Output) {
    if let Some(check) = &roleset.check {
        let command = escape::one_line(&check.command);
        output.warn(&escape::terminal(&format!(
            "the roleset has a check, a command that each of its runs starts: {command}"
        )));
    }
}

fn print_copy(path: &Path, output: &Output) -> anyhow::Result<ExitCode> {
    output.line(&path.display().to_string())?;
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let found = FoundRoleset { name: name.to_owned(), source: RolesetSource::File(path.to_owned()) };
    if found.is_shadowing() {
        output.status(&format!(
            "the copy replaces the built-in roleset `{name}` wherever this folder is searched; to keep both, give the copy a name of \
             its own: consensus roleset copy {name} NAME"
        ));
    }
    Ok(ExitCode::Success)
}

fn show(name: &str, roleset: &Roleset, packs: &Packs, output: &Output) -> anyhow::Result<ExitCode> {
    if output.format != Format::Text {
        output.json(&json!(roleset))?;
        return Ok(ExitCode::Success);
    }
    output.line(&serde_json::to_string_pretty(roleset)?)?;
    let setup = roleset.setup(name, packs, Task::default(), 0);
    for agent in setup.agents.iter().chain(&setup.arbiter) {
        output.line(&format!("\n# {} ({})\n\n{}", agent.name, agent.domain, agent.pack.trim()))?;
    }
    Ok(ExitCode::Success)
}

fn check(all: &[FoundRoleset], output: &Output) -> anyhow::Result<ExitCode> {
    let mut problems = Vec::new();
    for found in all {
        match check_roleset(found) {
            Ok((roleset, _)) if output.format == Format::Text => {
                output.line(&format!("ok  {}  {}", found.name, found.source))?;
                if let (Params::Approval(_), Some(quorum)) =
                    (&roleset.params, Quorum::new(roleset.agents.len()))
                {
                    // Agents without a model of their own all use the model of the run.
                    let models: Vec<Option<String>> = roleset
                        .agents
                        .iter()
                        .map(|agent| Some(agent.model.clone().unwrap_or_default()))
                        .collect();
                    output.line(&format!("    quorum {}", describe_quorum(quorum, &models)))?;
                }
            }
            Ok(_) => {}
            Err(ConfigError::Roleset(found)) => problems.extend(found),
            Err(other) => return Err(other.into()),
        }
    }
    if output.format != Format::Text {
        let rows: Vec<_> =
            problems.iter().map(|p| json!({"file": p.file, "at": p.at, "message": p.message})).collect();
        output.json(&json!({"problems": rows}))?;
        return Ok(if problems.is_empty() { ExitCode::Success } else { ExitCode::Usage });
    }
    if problems.is_empty() { Ok(ExitCode::Success) } else { Err(ConfigError::Roleset(problems).into()) }
}
