//! Finding a run by its id, the beginning of its id, or its folder.

use std::path::{Path, PathBuf};

use super::args::RunRef;
use super::error::UsageError;
use super::settings;
use crate::config::FileConfig;
use crate::journal::FILE_NAME;

/// Returns the run folder that the arguments name, for a command that only reads.
pub(super) fn run_folder(which: &RunRef) -> anyhow::Result<PathBuf> {
    run_folder_by(which, &FileConfig::load_to_read()?)
}

/// Returns the run folder that the arguments name, by a configuration that was read already.
pub(super) fn run_folder_by(which: &RunRef, file: &FileConfig) -> anyhow::Result<PathBuf> {
    let runs_dir = settings::runs_dir(which.runs_dir.as_ref(), file);
    let folders = run_folders(&runs_dir);
    let Some(name) = &which.run else {
        return folders.into_iter().next_back().ok_or_else(|| missing(&runs_dir, "there is no run"));
    };
    let path = Path::new(name);
    if path.join(FILE_NAME).is_file() {
        return Ok(path.to_owned());
    }
    if path.is_file() && path.file_name().is_some_and(|f| f == FILE_NAME) {
        return Ok(path.parent().unwrap_or(Path::new(".")).to_owned());
    }
    let begins = |folder: &&PathBuf| folder_name(folder).starts_with(name.as_str());
    let mut matching = folders.iter().filter(begins);
    match (matching.next(), matching.next()) {
        (Some(folder), None) => Ok(folder.clone()),
        (Some(_), Some(_)) => {
            Err(missing(&runs_dir, &format!("`{name}` is the beginning of more than one run's id")))
        }
        (None, _) => Err(missing(&runs_dir, &format!("there is no run `{name}`"))),
    }
}

/// Returns every run folder in `dir`, oldest first: ids are ordered by time.
pub(super) fn run_folders(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> =
        entries.map(|e| e.path()).filter(|p| p.join(FILE_NAME).is_file()).collect();
    folders.sort();
    folders
}

/// Returns the folder in which a run folder lies, and the run's session beside it.
pub(super) fn folder_of_runs(dir: &Path) -> PathBuf {
    let named =
        if dir.file_name().is_some() { dir.to_owned() } else { dir.canonicalize().unwrap_or_default() };
    named.parent().unwrap_or(Path::new("..")).to_owned()
}

pub(super) fn folder_name(folder: &Path) -> String {
    folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn missing(runs_dir: &Path, what: &str) -> anyhow::Error {
    let why = format!(
        "{what} in `{}`; `consensus runs` lists them, --runs-dir looks elsewhere",
        runs_dir.display()
    );
    UsageError(why).into()
}
