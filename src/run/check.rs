//! The check of a run's final texts: which command it is, and whether it may be run here.
//!
//! A command that a stranger's file names never runs without the user's word, and is refused before anything is asked.

use std::path::Path;

use super::error::RunError;
use super::parameters::{ParamChanges, takes_check};
use super::roleset::NamedRoleset;
use crate::config::{FileConfig, Roleset, RolesetSource, config_folder, state_folder};
use crate::engine::TASK;
use crate::sandbox::{Confinement, Sandbox};
use protocol::text::escape;
use protocol::{CheckCommand, RunSetup};

/// Gives a roleset without a check the one of the configuration, if there is one and no flag turns checks off.
pub(super) fn add_configured_check(roleset: &mut Roleset, given: &ParamChanges, file: &FileConfig) {
    if !given.no_check && takes_check(&roleset.params) && roleset.check.is_none() {
        roleset.check = file.check_command();
    }
}

/// Refuses the check of a roleset file in which no one has put trust, unless a flag gives another check.
///
/// A roleset of the program, one in the user's own folder, and one in the working folder's `rolesets` count. The last kind is covered by
/// the trust in the working folder, which the configuration has required before.
///
/// Returns [`RunError::Usage`] with the check, and the flag that allows it.
pub(crate) fn require_trusted(
    named: &NamedRoleset,
    given: &ParamChanges,
    file: &FileConfig,
) -> Result<(), RunError> {
    let (RolesetSource::File(path), Some(CheckCommand { command, .. })) =
        (&named.source, &named.roleset.check)
    else {
        return Ok(());
    };
    // A flag is the user's own word.
    if given.check.is_some() || given.no_check || is_trusted(path, file) {
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
    let parent = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    let Ok(folder) = parent.canonicalize() else { return false };
    if config_folder().is_some_and(|own| is_at(&own.join("rolesets"), &folder)) {
        return true;
    }
    if file.roleset.as_deref().is_some_and(|name| Path::new(name) == path) {
        return true;
    }
    // Only these files are looked at when the working folder is trusted.
    if path.extension().is_none_or(|extension| extension != "json") {
        return false;
    }
    if file.rolesets_dir.as_deref().is_some_and(|named| is_at(named, &folder)) {
        return true;
    }
    let is_here = Path::new(".").canonicalize().is_ok_and(|here| folder.starts_with(here));
    is_here && is_at(Path::new("rolesets"), &folder)
}

/// Returns whether a path leads to this folder, which is given without links.
fn is_at(path: &Path, folder: &Path) -> bool {
    path.canonicalize().is_ok_and(|path| path == folder)
}

/// Returns the sandbox for the check and the programs of a run, if there can be any.
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
/// Returns [`RunError::Usage`] with the check, and the flag that allows it.
pub(super) fn require_known_check(
    check: &CheckCommand,
    given: Option<&str>,
    dir: &Path,
) -> Result<(), RunError> {
    let why = match given {
        Some(given) if given == check.command => return Ok(()),
        Some(_) => "the run was begun with another check; give the same one, or begin a new run",
        None if is_own_record(dir) => return Ok(()),
        None => "the run has a check, a command that would run here; if you trust it, repeat it with --check",
    };
    Err(RunError::Usage(format!("{why}: {}", escape::terminal(&check.command))))
}

/// Returns whether a record is in the user's own folder of runs.
fn is_own_record(dir: &Path) -> bool {
    let own = state_folder().and_then(|own| own.canonicalize().ok());
    match (own, dir.canonicalize()) {
        (Some(own), Ok(dir)) => dir.starts_with(own),
        (_, _) => false,
    }
}
