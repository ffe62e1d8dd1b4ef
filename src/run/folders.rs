//! The folders of runs and rolesets on this machine, and the lookup of a run by a word.

use std::path::{Path, PathBuf};

use super::error::RunError;
use crate::config::{DEFAULT_RUNS_DIR, FileConfig, config_folder, state_folder};
use crate::journal::{Entry, FILE_NAME, LockedJournal, SESSIONS_FOLDER, read};

/// The environment variable that names the folder of run folders, like --runs-dir.
const RUNS_VARIABLE: &str = "CONSENSUS_RUNS_DIR";

/// Returns the folders in which rolesets are looked for, in that order.
pub fn rolesets_folders(flag: Option<&PathBuf>, file: &FileConfig) -> Vec<PathBuf> {
    let configured = flag.or(file.rolesets_dir.as_ref()).cloned();
    let user = config_folder().map(|folder| folder.join("rolesets"));
    configured.into_iter().chain([PathBuf::from("rolesets")]).chain(user).collect()
}

/// Returns the folder of run folders: the named one, else `runs` if it already has runs, else the user's own.
pub fn runs_folder(flag: Option<&PathBuf>, file: &FileConfig) -> PathBuf {
    if let Some(named) = flag {
        return named.clone();
    }
    // A command without the flag still reads the variable.
    if let Some(named) = std::env::var_os(RUNS_VARIABLE)
        && !named.is_empty()
    {
        return PathBuf::from(named);
    }
    if let Some(named) = &file.runs_dir {
        return named.clone();
    }
    let here = PathBuf::from(DEFAULT_RUNS_DIR);
    if has_runs(&here) {
        return here;
    }
    // Without a home folder there is no other place.
    state_folder().map_or(here, |state| state.join(DEFAULT_RUNS_DIR))
}

/// Returns whether a folder holds runs, or their sessions.
fn has_runs(folder: &Path) -> bool {
    folder.join(SESSIONS_FOLDER).is_dir() || !run_folders(folder).is_empty()
}

/// Returns the folder of the run that `name` means, among those in `runs_dir`. The name is an id, the beginning or the end of one,
/// or the path of a run folder. Without a name, returns the newest run.
///
/// Returns [`RunError::Usage`] if there is no such run, or more than one.
pub fn find_run(name: Option<&str>, runs_dir: &Path) -> Result<PathBuf, RunError> {
    let folders = run_folders(runs_dir);
    let Some(name) = name else {
        return folders.into_iter().next_back().ok_or_else(|| missing(runs_dir, "there is no run"));
    };
    let path = Path::new(name);
    if path.join(FILE_NAME).is_file() {
        return Ok(path.to_owned());
    }
    if path.is_file() && path.file_name().is_some_and(|f| f == FILE_NAME) {
        return Ok(path.parent().unwrap_or(Path::new(".")).to_owned());
    }
    let mut matching = folders.iter().filter(|folder| {
        let id = folder_name(folder);
        id.starts_with(name) || id.ends_with(name)
    });
    match (matching.next(), matching.next()) {
        (Some(folder), None) => Ok(folder.clone()),
        (Some(_), Some(_)) => {
            Err(missing(runs_dir, &format!("`{name}` is the beginning or the end of more than one run's id")))
        }
        (None, _) => Err(missing(runs_dir, &format!("there is no run `{name}`"))),
    }
}

/// Returns the newest run that can be resumed, or else the newest run. A run that a process holds is under way.
///
/// Returns [`RunError::Usage`] if there is no run.
pub fn find_resumable(runs_dir: &Path) -> Result<PathBuf, RunError> {
    match run_folders(runs_dir).into_iter().rev().find(|folder| is_resumable(folder)) {
        Some(folder) => Ok(folder),
        None => find_run(None, runs_dir),
    }
}

fn is_resumable(folder: &Path) -> bool {
    let path = folder.join(FILE_NAME);
    let Ok(journal) = read(&path) else { return false };
    let last = journal.records.last().map(|record| &record.event);
    let has_ended = matches!(last, Some(Entry::Stopped { outcome }) if outcome.is_final());
    !has_ended && !LockedJournal::is_held(&path)
}

/// Returns every run folder in `dir`, oldest first: ids are ordered by time.
pub fn run_folders(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> =
        entries.map(|e| e.path()).filter(|p| p.join(FILE_NAME).is_file()).collect();
    folders.sort();
    folders
}

/// Returns the folder that contains a run folder, and the run's session beside it.
pub fn folder_of_runs(dir: &Path) -> PathBuf {
    let named =
        if dir.file_name().is_some() { dir.to_owned() } else { dir.canonicalize().unwrap_or_default() };
    named.parent().unwrap_or(Path::new("..")).to_owned()
}

/// Returns a folder's own name.
pub fn folder_name(folder: &Path) -> String {
    folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn missing(runs_dir: &Path, what: &str) -> RunError {
    RunError::Usage(format!(
        "{what} in `{}`; `consensus runs` lists the runs, and --runs-dir names another folder",
        runs_dir.display()
    ))
}
