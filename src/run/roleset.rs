//! Which roleset a run has, and reading it.

use std::path::PathBuf;

use super::error::RunError;
use super::folders::rolesets_folders;
use super::request::RunRequest;
use crate::config::{
    FileConfig, Hints, Packs, Roleset, RolesetSource, config_folder, default_roleset, find_roleset,
    load_roleset,
};
use crate::provider::MockScript;

/// The roleset of a batch that names none; that of a single run depends on its question.
const DEFAULT_ROLESET: &str = "generalist_critic";

/// A roleset with its name and packs.
#[derive(Clone, Debug)]
pub struct NamedRoleset {
    /// Its name.
    pub name: String,
    /// What its file says.
    pub roleset: Roleset,
    /// The packs that it names.
    pub packs: Packs,
    /// Where it was found.
    pub source: RolesetSource,
    /// Whether it takes the place of a built-in roleset of that name.
    pub is_shadowing: bool,
}

impl NamedRoleset {
    /// Says in words that it takes the place of a built-in one, if it does.
    #[must_use]
    pub fn shadows(&self) -> Option<String> {
        let (name, source) = (&self.name, &self.source);
        let words = || format!("`{name}` is {source}, in place of the built-in roleset of that name");
        self.is_shadowing.then(words)
    }
}

/// The name of a run's roleset, and why it is that one.
#[derive(Clone, Debug)]
pub struct RolesetChoice {
    /// The name, or the path of its file.
    pub name: String,
    /// Why it is that one, unless a flag or the environment names it.
    pub why: Option<&'static str>,
    /// Whether the question has chosen it. Then no roleset of that name in the working folder takes its place: a folder that came from
    /// elsewhere could send a question to another server by it.
    is_chosen: bool,
}

impl RolesetChoice {
    /// Returns the roleset that a run names, or else the one that suits its question; `script` is its mock script.
    ///
    /// # Errors
    ///
    /// [`RunError::Usage`] if the script is none.
    pub fn new(request: &RunRequest, file: &FileConfig, script: Option<&str>) -> Result<Self, RunError> {
        if let Some(name) = &request.roleset {
            return Ok(Self { name: name.clone(), why: None, is_chosen: false });
        }
        if let Some(name) = &file.roleset {
            let why = Some("from the configuration file");
            return Ok(Self { name: name.clone(), why, is_chosen: false });
        }
        let script = script.map(str::parse::<MockScript>).transpose();
        let script = script.map_err(|why| RunError::Usage(why.to_string()))?;
        let script_agents: Vec<&str> = script.iter().flat_map(MockScript::agents).collect();
        let chosen = default_roleset(&Hints {
            script_agents: &script_agents,
            has_choices: !request.params.choices.is_empty(),
            canonical: request.params.canonical,
        });
        Ok(Self { name: chosen.name.to_owned(), why: Some(chosen.why), is_chosen: true })
    }

    /// Reads the roleset; `folder` is searched first.
    ///
    /// # Errors
    ///
    /// [`RunError::Config`] if there is none, or it has mistakes; [`RunError::Usage`] if there is no such folder.
    pub fn read(&self, folder: Option<&PathBuf>, file: &FileConfig) -> Result<NamedRoleset, RunError> {
        let folders = if self.is_chosen {
            folder.cloned().into_iter().chain(config_folder().map(|own| own.join("rolesets"))).collect()
        } else {
            rolesets_folders(folder, file)
        };
        read(&self.name, folder, &folders)
    }
}

/// Reads the roleset that a flag or the configuration names, else that of batches; `folder` is searched first.
///
/// # Errors
///
/// As [`RolesetChoice::read`].
pub fn read_named(
    name: Option<&str>,
    folder: Option<&PathBuf>,
    file: &FileConfig,
) -> Result<NamedRoleset, RunError> {
    let name = name.or(file.roleset.as_deref()).unwrap_or(DEFAULT_ROLESET);
    read(name, folder, &rolesets_folders(folder, file))
}

fn read(name: &str, flag: Option<&PathBuf>, folders: &[PathBuf]) -> Result<NamedRoleset, RunError> {
    // A folder that was named and is not there would silently give way to a built-in roleset of that name.
    if let Some(missing) = flag.filter(|folder| !folder.is_dir()) {
        let why = format!("there is no folder `{}`, which --rolesets-dir names", missing.display());
        return Err(RunError::Usage(why));
    }
    let found = find_roleset(name, folders)?;
    let (roleset, packs) = load_roleset(&found)?;
    let is_shadowing = found.is_shadowing();
    Ok(NamedRoleset { name: found.name, roleset, packs, source: found.source, is_shadowing })
}
