//! `consensus keys`: makes the keys of reviewers, joins them into a roster, and moves them between machines.

use std::path::Path;

use serde_json::json;

use crate::approval::{self, KeyFolder, MovedKeys, ORCHESTRATOR, ROSTER_FILE, RUNS_MODEL};
use crate::cli::args::{Format, KeysAction, KeysArgs, RolesetsArgs};
use crate::cli::error::UsageError;
use crate::cli::output::Output;
use crate::config::FileConfig;
use crate::run::{NamedRoleset, read_named};
use crypto::Digest;
use protocol::core::{ExitCode, MOCK};
use protocol::text::escape;
use protocol::{Params, ProtocolParams};
use quorum::Membership;

pub(crate) fn keys(args: &KeysArgs, output: &Output) -> anyhow::Result<ExitCode> {
    match &args.action {
        KeysAction::Generate { folder, roleset, only: None, mock, rolesets } => {
            let keys = KeyFolder::generate(folder, &read_reviewers(roleset, *mock, rolesets)?)?;
            let count = keys.roster().reviewers.len();
            output.status(&format!(
                "{}: a key for each of {count} reviewers and for the orchestrator, which only you can read",
                folder.display()
            ));
            print_roster(&keys, folder, output)
        }
        KeysAction::Generate { folder, roleset, only: Some(name), mock, rolesets } => {
            let reviewers = read_reviewers(roleset, *mock, rolesets)?;
            let domain = match reviewers.iter().find(|(reviewer, _)| reviewer == name) {
                Some((_, domain)) => domain.as_str(),
                None if name == ORCHESTRATOR => "",
                None => {
                    let names: Vec<&str> = reviewers.iter().map(|(name, _)| name.as_str()).collect();
                    let names = names.join(", ");
                    let why = format!(
                        "`{roleset}` has no reviewer `{name}`; name one of {names}, or {ORCHESTRATOR}"
                    );
                    return Err(UsageError(why).into());
                }
            };
            let seat = KeyFolder::generate_one(folder, name, domain)?;
            output.status(&format!("{}: a key for {name}, which only you can read", folder.display()));
            output
                .status("give its public key to the person who makes the roster with `consensus keys join`");
            let seat = seat.display().to_string();
            output.line_or_json(&seat, &json!({"seat": seat}))?;
            Ok(ExitCode::Success)
        }
        KeysAction::Join { folder, seats, roleset, rolesets } => {
            let names: Vec<String> =
                read_reviewers(roleset, false, rolesets)?.into_iter().map(|(name, _)| name).collect();
            print_roster(&KeyFolder::join(folder, &names, seats)?, folder, output)
        }
        KeysAction::Export { file, keys } => export_keys(keys, file, output),
        KeysAction::Import { file, keys } => import_keys(keys, file, output),
    }
}

fn export_keys(folder: &Path, file: &Path, output: &Output) -> anyhow::Result<ExitCode> {
    let MovedKeys { seats, ledgers } = approval::export(folder, file)?;
    let (place, names) = (file.display().to_string(), seats.join(", "));
    output.status(&escape::terminal(&format!(
        "{place}: the keys of {names}, and their {ledgers} ledgers and logs"
    )));
    output.status(
        "anyone who reads it can sign with these keys: move it over a safe channel, and remove it afterwards",
    );
    output.status("use these keys in one place from now on: a copy does not know what the other has signed");
    output.line_or_json(&place, &json!({"file": place, "seats": seats, "ledgers": ledgers}))?;
    Ok(ExitCode::Success)
}

fn import_keys(folder: &Path, file: &Path, output: &Output) -> anyhow::Result<ExitCode> {
    let MovedKeys { seats, ledgers } = approval::import(folder, file)?;
    let place = folder.display().to_string();
    let keys =
        if seats.is_empty() { "no new key".to_owned() } else { format!("keys of {}", seats.join(", ")) };
    output.status(&escape::terminal(&format!(
        "{place}: {keys}; {ledgers} ledgers and logs are new or have grown"
    )));
    output.line_or_json(&place, &json!({"folder": place, "seats": seats, "ledgers": ledgers}))?;
    Ok(ExitCode::Success)
}

/// Returns the reviewers of a roleset, each with its domain: reviewers in one domain fail together. In a rehearsal scripts play them.
fn read_reviewers(
    roleset: &str,
    is_rehearsal: bool,
    rolesets: &RolesetsArgs,
) -> anyhow::Result<Vec<(String, String)>> {
    let file = FileConfig::load_to_read()?;
    let NamedRoleset { name, roleset, .. } =
        read_named(Some(roleset), rolesets.rolesets_dir.as_ref(), &file)?;
    if !matches!(roleset.params, Params::Approval(_)) {
        let why = format!(
            "keys are for reviewers, but `{name}` is a roleset of `{}`; `reviewers_f1` has four reviewers",
            roleset.params.protocol()
        );
        return Err(UsageError(why).into());
    }
    let mut reviewers = Vec::new();
    for agent in &roleset.agents {
        // Reviewers without a model of their own all use the model of the run.
        let model = agent.model.as_deref().unwrap_or(RUNS_MODEL);
        let domain = if is_rehearsal { MOCK } else { model };
        reviewers.push((agent.name.clone(), domain.to_owned()));
    }
    Ok(reviewers)
}

fn print_roster(keys: &KeyFolder, folder: &Path, output: &Output) -> anyhow::Result<ExitCode> {
    if output.format != Format::Text {
        output.json(&serde_json::to_value(keys.roster())?)?;
        return Ok(ExitCode::Success);
    }
    let place = folder.display();
    output.status(&format!(
        "{place}/{ROSTER_FILE}: the public keys; give it to everyone who verifies decisions"
    ));
    let digest = Membership::new(Digest::ZERO, keys.roster().clone())?.digest();
    output.status(&format!("its digest, the same on every machine: {digest}"));
    for seat in &keys.roster().reviewers {
        output.line(&format!("{}  {}", seat.key, seat.name))?;
    }
    Ok(ExitCode::Success)
}
