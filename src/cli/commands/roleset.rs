//! `consensus roleset`.

use serde_json::json;

use crate::approval::quorum_in_words;
use crate::bft::Quorum;
use crate::cli::args::{Format, RolesetAction, RolesetArgs};
use crate::cli::output::Output;
use crate::config::{
    ConfigError, FileConfig, FoundRoleset, RolesetAgent, check_roleset, copy_roleset, find_roleset,
    list_rolesets, load_roleset,
};
use crate::core::ExitCode;
use crate::protocol::{Params, Task};
use crate::run::rolesets_folders;

pub(crate) fn roleset(args: &RolesetArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let folders = rolesets_folders(args.rolesets.rolesets_dir.as_ref(), &FileConfig::load_to_read()?);
    match &args.action {
        RolesetAction::List => list(&list_rolesets(&folders), output),
        RolesetAction::Show { roleset } => show(&find_roleset(roleset, &folders)?, output),
        RolesetAction::Copy { roleset, folder } => {
            let path = copy_roleset(&find_roleset(roleset, &folders)?, folder)?;
            output.line(&path.display().to_string())?;
            Ok(ExitCode::Success)
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
            json!({"name": found.name, "source": found.source.to_string(), "description": description})
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

fn show(found: &FoundRoleset, output: &Output) -> anyhow::Result<ExitCode> {
    let (roleset, packs) = load_roleset(found)?;
    if output.format != Format::Text {
        output.json(&json!(roleset))?;
        return Ok(ExitCode::Success);
    }
    output.line(&serde_json::to_string_pretty(&roleset)?)?;
    let setup = roleset.setup(&found.name, &packs, Task::default(), 0);
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
                    // Those that name none are all on the one that a run is given.
                    let model = |agent: &RolesetAgent| Some(agent.model.clone().unwrap_or_default());
                    let models: Vec<Option<String>> = roleset.agents.iter().map(model).collect();
                    output.line(&format!("    {}", quorum_in_words(quorum, &models)))?;
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
