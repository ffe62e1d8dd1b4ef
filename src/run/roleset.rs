//! The choice of a run's roleset, and its reading.

use std::path::PathBuf;

use super::error::RunError;
use super::folders::rolesets_folders;
use super::parameters::ParamChanges;
use super::request::{ReadInPieces, RunRequest};
use crate::config::{
    ANY_VOTE, ConfigError, FileConfig, FoundRoleset, Packs, QuestionHints, Roleset, RolesetSource,
    config_folder, default_roleset, find_roleset, load_roleset, vote_roleset,
};
use crate::provider::MockScript;
use protocol::{Method, Override, ProtocolParams as _, RunSetup, Task};

/// A roleset with its name and packs.
#[derive(Clone, Debug)]
pub struct NamedRoleset {
    pub name: String,
    /// The content of the file.
    pub roleset: Roleset,
    /// The packs that it names.
    pub packs: Packs,
    /// The source of the roleset.
    pub source: RolesetSource,
    /// Whether it replaces a built-in roleset of the same name.
    pub is_shadowing: bool,
}

impl NamedRoleset {
    /// Finds a roleset by its name in these folders, or by its path, and reads it.
    pub fn find(name: &str, folders: &[PathBuf]) -> Result<Self, ConfigError> {
        Self::load(find_roleset(name, folders)?)
    }

    /// Reads a roleset that was found.
    pub fn load(found: FoundRoleset) -> Result<Self, ConfigError> {
        let (roleset, packs) = load_roleset(&found)?;
        let is_shadowing = found.is_shadowing();
        Ok(Self { name: found.name, roleset, packs, source: found.source, is_shadowing })
    }

    /// Makes the setup of a run with this roleset.
    pub fn setup(&self, task: Task, seed: u64) -> RunSetup {
        self.roleset.setup(&self.name, &self.packs, task, seed)
    }

    /// Returns the same roleset with these methods of a vote, if they are given.
    pub fn with_modes(&self, modes: Option<Vec<Method>>) -> Self {
        let mut changed = self.clone();
        if let Some(modes) = modes {
            changed.roleset.params.apply(&Override::Modes(modes));
        }
        changed
    }

    /// Returns a message that the roleset replaces a built-in one, if it does.
    pub fn shadow_message(&self) -> Option<String> {
        if !self.is_shadowing {
            return None;
        }
        let (name, source) = (&self.name, &self.source);
        Some(format!("`{name}` is {source}, in place of the built-in roleset of that name"))
    }
}

/// The name of a run's roleset, and the reason for it.
#[derive(Clone, Debug)]
pub struct RolesetChoice {
    /// The name, or the path of its file.
    pub name: String,
    /// The reason for it, unless a flag or the environment names the roleset.
    pub why: Option<&'static str>,
    /// Whether the question has decided. A roleset of that name in the working folder does not replace the chosen one then: a folder
    /// from elsewhere could otherwise send a question to another server.
    is_chosen: bool,
}

impl RolesetChoice {
    /// Returns the roleset that a run names, or else the one that suits its question; `script` is its mock script.
    ///
    /// Returns [`RunError::Usage`] if the script is invalid.
    pub fn new(request: &RunRequest, file: &FileConfig, script: Option<&str>) -> Result<Self, RunError> {
        let params = &request.settings.params;
        if let Some(name) = &request.roleset {
            let name = resolve_vote_name(name, params).to_owned();
            return Ok(Self { name, why: None, is_chosen: false });
        }
        if let Some(name) = &file.roleset {
            let why = Some("from the configuration file");
            let name = resolve_vote_name(name, params).to_owned();
            return Ok(Self { name, why, is_chosen: false });
        }
        let script = script.map(str::parse::<MockScript>).transpose();
        let script = script.map_err(RunError::Usage)?;
        let script_agents: Vec<&str> = script.iter().flat_map(MockScript::agents).collect();
        let chosen = default_roleset(QuestionHints {
            script_agents: &script_agents,
            has_choices: !params.choices.is_empty(),
            canonical: params.canonical,
            has_documents: !request.task.files.is_empty()
                || request.chunks.map_reduce == ReadInPieces::Always,
        });
        Ok(Self { name: chosen.name.to_owned(), why: Some(chosen.why), is_chosen: true })
    }

    /// Reads the roleset; `folder` is searched first.
    ///
    /// Returns [`RunError::Config`] if there is no such roleset or it has mistakes, and [`RunError::Usage`] if there is no such
    /// folder.
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
/// Fails as [`RolesetChoice::read`] does.
pub fn read_named(
    name: Option<&str>,
    folder: Option<&PathBuf>,
    file: &FileConfig,
) -> Result<NamedRoleset, RunError> {
    // The tasks of a batch may be of any kind, so its default is the same for all.
    let usual = default_roleset(QuestionHints::default()).name;
    let name = name.or(file.roleset.as_deref()).unwrap_or(usual);
    read(name, folder, &rolesets_folders(folder, file))
}

/// Returns the name of a roleset, where `vote` stands for the vote that suits the kind of the answer.
pub fn resolve_vote_name<'a>(name: &'a str, params: &ParamChanges) -> &'a str {
    if name == ANY_VOTE { vote_roleset(!params.choices.is_empty(), params.canonical) } else { name }
}

fn read(name: &str, flag: Option<&PathBuf>, folders: &[PathBuf]) -> Result<NamedRoleset, RunError> {
    // Without this check, a missing named folder would silently give way to a built-in roleset of that name.
    if let Some(folder) = flag
        && !folder.is_dir()
    {
        let why = format!("there is no folder `{}`, which --rolesets-dir names", folder.display());
        return Err(RunError::Usage(why));
    }
    Ok(NamedRoleset::find(name, folders)?)
}
