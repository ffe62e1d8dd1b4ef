//! The check of a run's final texts: which command it is, and whether it may be run here.
//!
//! The input is a roleset as it was found, the request and the configuration. The output is the [`Sandbox`] in which the check runs, or a
//! refusal before anything is asked. A command that a stranger's file names never runs without the user's word.

use std::path::Path;

use super::error::RunError;
use super::parameters::{CheckChange, takes_check};
use super::roleset::NamedRoleset;
use crate::config::{FileConfig, Roleset, RolesetSource, config_folder, state_folder};
use crate::engine::TASK;
use crate::sandbox::{Confinement, Sandbox};
use protocol::text::escape;
use protocol::{CheckCommand, RunSetup};

/// Gives a roleset without a check the one of the configuration, if there is one and no flag turns checks off.
pub(crate) fn add_configured_check(roleset: &mut Roleset, given: &CheckChange, file: &FileConfig) {
    if !given.is_off && takes_check(&roleset.params) && roleset.check.is_none() {
        roleset.check = file.check_command();
    }
}

/// Refuses the check of a roleset file in which no one has put trust, unless a flag gives another check.
///
/// A roleset of the program, one in the user's own folder, and one in the working folder's `rolesets` count. The last kind is covered by
/// the trust in the working folder, which the configuration has required before.
///
/// # Errors
///
/// Returns [`RunError::Usage`] with the check, and the flag that allows it.
pub(crate) fn require_trusted(
    named: &NamedRoleset,
    given: &CheckChange,
    file: &FileConfig,
) -> Result<(), RunError> {
    let (RolesetSource::File(path), Some(CheckCommand { command, .. })) =
        (&named.source, &named.roleset.check)
    else {
        return Ok(());
    };
    // A flag is the user's own word.
    if given.command.is_some() || given.is_off || is_trusted(path, file) {
        return Ok(());
    }
    Err(RunError::Usage(format!(
        "`{}` has a check, a command that would run here: {}\nif you trust it, repeat it with --check",
        path.display(),
        escape::terminal(&escape::one_line(command))
    )))
}

/// Refuses a check that names the task of a batch, for a run of its own.
pub(super) fn require_no_task_word(roleset: &Roleset) -> Result<(), RunError> {
    match &roleset.check {
        Some(check) if check.command.contains(TASK) => Err(RunError::Usage(
            "the check names {task}, the id of a task, and only the runs of a batch have one".to_owned(),
        )),
        Some(_) | None => Ok(()),
    }
}

/// Returns true if a roleset file is covered by the trust in the working folder, or is the user's own.
fn is_trusted(path: &Path, file: &FileConfig) -> bool {
    let place = |path: &Path| path.canonicalize().ok();
    let parent = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    let Some(folder) = place(parent) else { return false };
    let is = |known: &Path| place(known).is_some_and(|known| known == folder);
    let is_own = config_folder().is_some_and(|own| is(&own.join("rolesets")));
    // Only these files are looked at when the working folder is trusted.
    let is_listed = path.extension().is_some_and(|extension| extension == "json");
    let is_here = place(Path::new(".")).is_some_and(|here| folder.starts_with(here));
    let is_named = file.rolesets_dir.as_deref().is_some_and(is);
    let is_file_of_config = file.roleset.as_deref().is_some_and(|name| Path::new(name) == path);
    is_own || is_file_of_config || is_listed && (is_named || is_here && is(Path::new("rolesets")))
}

/// Returns the sandbox for the check and the programs of a run, if there can be any.
///
/// # Errors
///
/// Returns [`RunError::Sandbox`] if this machine cannot run a command so.
pub async fn sandbox_for(setup: &RunSetup, confinement: &Confinement) -> Result<Option<Sandbox>, RunError> {
    if !setup.executes() {
        return Ok(None);
    }
    let sandbox = Sandbox::new(confinement.clone())?;
    sandbox.probe().await?;
    Ok(Some(sandbox))
}

/// Refuses the check of a journal, unless the user has given the same command, or the record is in the user's own folder of runs.
///
/// # Errors
///
/// Returns [`RunError::Usage`] with the check, and the flag that allows it.
pub(super) fn require_given(check: &CheckCommand, given: Option<&str>, dir: &Path) -> Result<(), RunError> {
    let own = state_folder().and_then(|own| own.canonicalize().ok());
    let is_own = own.zip(dir.canonicalize().ok()).is_some_and(|(own, dir)| dir.starts_with(own));
    if given.map_or(is_own, |given| given == check.command) {
        return Ok(());
    }
    let why = match given {
        Some(_) => "the run was begun with another check; give the same one, or begin a new run",
        None => "the run has a check, a command that would run here; if you trust it, repeat it with --check",
    };
    Err(RunError::Usage(format!("{why}: {}", escape::terminal(&check.command))))
}
