//! `consensus keys`.

use super::ExitCode;
use super::args::{KeysAction, KeysArgs};
use super::error::UsageError;
use super::output::{Format, Output};
use super::settings;
use crate::config::FileConfig;
use crate::decision::{KeyFolder, ROSTER_FILE};
use crate::protocol::Params;

pub(super) fn keys(args: &KeysArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let KeysAction::Generate { folder, roleset, rolesets } = &args.action;
    let file = FileConfig::load()?;
    let (name, roleset, _) = settings::roleset(Some(roleset), rolesets.rolesets_dir.as_ref(), &file)?;
    if !matches!(roleset.params, Params::Approval(_)) {
        let why = format!(
            "keys are for reviewers, and `{name}` is a roleset of `{}`; `reviewers_f1` has four",
            roleset.params.protocol()
        );
        return Err(UsageError(why).into());
    }
    // Reviewers without a model of their own are all on the one that a run is given.
    let domain = |model: &Option<String>| model.clone().unwrap_or_else(|| "the model of the run".to_owned());
    let seats: Vec<(String, String)> =
        roleset.agents.iter().map(|agent| (agent.name.clone(), domain(&agent.model))).collect();
    let made = KeyFolder::generate(folder, &seats)?;
    if output.format != Format::Text {
        output.json(&serde_json::to_value(made.roster())?)?;
        return Ok(ExitCode::Success);
    }
    let place = folder.display();
    output.tell(&format!(
        "{place}: a key for each of {} reviewers and for the orchestrator, which only you can read",
        seats.len()
    ));
    output.tell(&format!("{place}/{ROSTER_FILE}: the public keys; give it to whoever verifies decisions"));
    for seat in &made.roster().reviewers {
        output.line(&format!("{}  {}", seat.key, seat.name))?;
    }
    Ok(ExitCode::Success)
}
