//! `consensus roleset`: lists, shows, copies and checks rolesets.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::batch::{CellLabel, PickedRun};
use crate::cli::args::{Format, RolesetAction, RolesetArgs, ShowArgs};
use crate::cli::error::UsageError;
use crate::cli::journals;
use crate::cli::output::Output;
use crate::config::{
    ConfigError, FileConfig, FoundRoleset, Packs, Roleset, RolesetAgent, RolesetSource, check_roleset,
    copy_roleset, find_roleset, list_rolesets, load_roleset, roleset_of, write_roleset,
};
use crate::engine::RunState;
use crate::journal::{Entry, Journal};
use crate::report::quorum_in_words;
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
            let (name, roleset, packs) = of_run(run)?;
            show(&name, &roleset, &packs, output)
        }
        RolesetAction::Show { roleset, .. } => {
            let found = find_roleset(roleset.as_deref().unwrap_or_default(), &folders)?;
            let (roleset, packs) = load_roleset(&found)?;
            show(&found.name, &roleset, &packs, output)
        }
        RolesetAction::Copy { roleset: to, from: Some(run), .. } => {
            let (name, roleset, packs) = of_run(run)?;
            warn_of_check(&roleset, output);
            let (new, folder) = place(to)?;
            let path = folder.join(format!("{}.json", new.unwrap_or(&name)));
            let text = serde_json::to_string_pretty(&roleset)? + "\n";
            copied(&write_roleset(&roleset, text, &packs, path)?, output)
        }
        RolesetAction::Copy { roleset, to, .. } => {
            let (name, folder) = place(to)?;
            let found = find_roleset(roleset, &folders)?;
            warn_of_check(&load_roleset(&found)?.0, output);
            copied(&copy_roleset(&found, name, &folder)?, output)
        }
        RolesetAction::Check { rolesets } if rolesets.is_empty() => check(&list_rolesets(&folders), output),
        RolesetAction::Check { rolesets } => {
            let found =
                rolesets.iter().map(|name| find_roleset(name, &folders)).collect::<Result<Vec<_>, _>>()?;
            check(&found, output)
        }
    }
}

fn list(all: &[FoundRoleset], output: &Output) -> anyhow::Result<ExitCode> {
    let rows: Vec<_> = all
        .iter()
        .map(|found| {
            let description = match load_roleset(found) {
                Ok((roleset, _)) => roleset.description,
                Err(_) => format!("not usable; `consensus roleset check {}` says why", found.name),
            };
            let shadows = if found.is_shadowing() { ", in place of the built-in one" } else { "" };
            let source = format!("{}{shadows}", found.source);
            json!({"name": found.name, "source": source, "description": description})
        })
        .collect();
    if output.format != Format::Text {
        output.json(&json!(rows))?;
        return Ok(ExitCode::Success);
    }
    for row in &rows {
        let field = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        output.line(&format!("{:24} {}", field("name"), field("description")))?;
        output.line(&format!("{:24} {}", "", field("source")))?;
    }
    Ok(ExitCode::Success)
}

/// Returns the name and the roleset of a run. Several runs of a task may share one roleset.
fn of_run(run: &str) -> anyhow::Result<(String, Roleset, Packs)> {
    let args = ShowArgs::of(run);
    let Some(folder) = args.batch() else { return roleset_in(&journals::open(&args)?.journal) };
    let found = journals::of_batch(folder, &args)?;
    let made_by = |run: &PickedRun| match run.journal.records.first().map(|record| &record.event) {
        Some(Entry::Opened(opened)) => {
            let setup = &opened.setup;
            Some((setup.roleset.clone(), setup.agents.clone(), setup.params.clone(), setup.canonical.clone()))
        }
        Some(_) | None => None,
    };
    if found.iter().any(|other| made_by(other) != made_by(&found[0])) {
        let line = |run: &PickedRun| {
            let CellLabel { roleset, model, arm, seed, .. } = &run.cell;
            let named: Vec<&str> =
                [roleset, model, arm].into_iter().map(String::as_str).filter(|n| !n.is_empty()).collect();
            format!(
                "  --from {}/{}  ({}, seed {seed})",
                folder.display(),
                run.journal.records[0].run,
                named.join(" ")
            )
        };
        let lines: Vec<String> = found.iter().take(CHOICES_MAX).map(line).collect();
        let why = format!("runs of this task have several rolesets; choose one:\n{}", lines.join("\n"));
        return Err(UsageError(escape::terminal(&why)).into());
    }
    roleset_in(&found[0].journal)
}

fn roleset_in(journal: &Journal) -> anyhow::Result<(String, Roleset, Packs)> {
    let state = RunState::replay(&journal.records)?;
    let setup = &state.opened().setup;
    let (roleset, packs) = roleset_of(setup);
    Ok((setup.roleset.clone(), roleset, packs))
}

/// Returns the new name of a copy, if it has one, and its folder.
fn place(to: &str) -> anyhow::Result<(Option<&str>, PathBuf)> {
    if to.contains('/') || Path::new(to).is_dir() {
        return Ok((None, to.into()));
    }
    let name = to.strip_suffix(".json").unwrap_or(to);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.';
    if name.is_empty() || name.starts_with('.') || !name.chars().all(is_plain) {
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

fn copied(path: &Path, output: &Output) -> anyhow::Result<ExitCode> {
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
                if let (Params::Approval(_), Ok(quorum)) =
                    (&roleset.params, Quorum::new(roleset.agents.len()))
                {
                    // Agents without a model of their own all use the model of the run.
                    let model = |agent: &RolesetAgent| Some(agent.model.clone().unwrap_or_default());
                    let models: Vec<Option<String>> = roleset.agents.iter().map(model).collect();
                    output.line(&format!("    quorum {}", quorum_in_words(quorum, &models)))?;
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
