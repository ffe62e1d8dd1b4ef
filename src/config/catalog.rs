//! The catalogue of rolesets: finds, reads and copies them.

use std::path::{Path, PathBuf};

use super::bounded_read::read_roleset_file;
use super::check::check;
use super::default_roleset::ANY_VOTE;
use super::embedded::EMBEDDED_ROLESETS;
use super::error::{ConfigError, Problem, did_you_mean};
use super::packs::Packs;
use super::roleset::Roleset;
use crate::files::{SMALL_BYTES_MAX, read};

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum RolesetSource {
    File(PathBuf),
    /// The binary itself, under this file name.
    Embedded(&'static str),
}

impl std::fmt::Display for RolesetSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Embedded(name) => write!(f, "{name} (built in)"),
        }
    }
}

/// A roleset that was found but not yet checked.
#[derive(Clone, Debug)]
pub struct FoundRoleset {
    /// The name: the file name without `.json`.
    pub name: String,
    pub source: RolesetSource,
}

impl FoundRoleset {
    /// Returns whether a file has the name of a built-in roleset, and replaces it.
    pub fn is_shadowing(&self) -> bool {
        let is_built_in =
            EMBEDDED_ROLESETS.iter().any(|(file, _)| file.trim_end_matches(".json") == self.name);
        is_built_in && matches!(self.source, RolesetSource::File(_))
    }
}

/// Lists every roleset that can be named, nearest folder first, without repeats.
pub fn list_rolesets(folders: &[PathBuf]) -> Vec<FoundRoleset> {
    let mut found: Vec<FoundRoleset> = Vec::new();
    for folder in folders {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            if path.extension().is_some_and(|e| e == "json")
                && let Some(name) = path.file_stem().and_then(|s| s.to_str())
            {
                add_new(&mut found, name, RolesetSource::File(path.clone()));
            }
        }
    }
    for (file, _) in EMBEDDED_ROLESETS {
        add_new(&mut found, file.trim_end_matches(".json"), RolesetSource::Embedded(file));
    }
    found
}

fn add_new(found: &mut Vec<FoundRoleset>, name: &str, source: RolesetSource) {
    if !found.iter().any(|known| known.name == name) {
        found.push(FoundRoleset { name: name.to_owned(), source });
    }
}

/// Finds a roleset by name, or by the path of its file.
///
/// Returns [`ConfigError::NoRoleset`] with the nearest name.
pub fn find_roleset(name: &str, folders: &[PathBuf]) -> Result<FoundRoleset, ConfigError> {
    let path = Path::new(name);
    if path.extension().is_some_and(|e| e == "json") || name.contains('/') {
        let stem = path.file_stem().and_then(|s| s.to_str()).unwrap_or(name);
        return Ok(FoundRoleset { name: stem.to_owned(), source: RolesetSource::File(path.to_owned()) });
    }
    let all = list_rolesets(folders);
    let nearest = did_you_mean(name, all.iter().map(|f| f.name.as_str()));
    let hint = if name == ANY_VOTE {
        "; it is `vote_number`, `vote_choice` or `vote_short`, by the kind of answer of a run".to_owned()
    } else if nearest.is_empty() {
        "; `consensus roleset list` shows them all".to_owned()
    } else {
        nearest
    };
    let found = all.into_iter().find(|f| f.name == name);
    found.ok_or_else(|| ConfigError::NoRoleset { name: name.to_owned(), hint })
}

/// Reads a roleset and its packs, and reports every mistake in them.
///
/// Built-in rolesets were checked when the program was tested, and are only read; [`check_roleset`] checks them too.
///
/// Returns [`ConfigError::Read`], or [`ConfigError::Roleset`] with all mistakes.
pub fn load_roleset(found: &FoundRoleset) -> Result<(Roleset, Packs), ConfigError> {
    match &found.source {
        RolesetSource::File(_) => check_roleset(found),
        RolesetSource::Embedded(_) => {
            let (file, text, packs) = open(found)?;
            let roleset = serde_json::from_str(&text)
                .map_err(|e| ConfigError::Roleset(vec![Problem::new(&file, "", e.to_string())]))?;
            Ok((roleset, packs))
        }
    }
}

/// Checks a roleset and its packs, from any source.
///
/// Fails as [`load_roleset`] does.
pub fn check_roleset(found: &FoundRoleset) -> Result<(Roleset, Packs), ConfigError> {
    let (file, text, packs) = open(found)?;
    let roleset = check(&file, &text, &packs).map_err(ConfigError::Roleset)?;
    Ok((roleset, packs))
}

/// Copies a roleset and its packs into `folder`, under another name if one is given. Returns the roleset's new file.
///
/// Fails as [`load_roleset`] and [`write_roleset`] do.
pub fn copy_roleset(found: &FoundRoleset, name: Option<&str>, folder: &Path) -> Result<PathBuf, ConfigError> {
    let (roleset, packs) = load_roleset(found)?;
    let (_, text, _) = open(found)?;
    let path = folder.join(format!("{}.json", name.unwrap_or(&found.name)));
    if let RolesetSource::File(own) = &found.source
        && own.canonicalize().is_ok_and(|own| path.canonicalize().is_ok_and(|path| path == own))
    {
        let why = format!("`{}` is already the roleset of that name; nothing was copied", path.display());
        return Err(ConfigError::Usage(why));
    }
    write_roleset(&roleset, text, &packs, path)
}

/// Writes a roleset into a file, and its packs into the folder `packs` beside it. Returns the file.
///
/// Returns [`ConfigError::Usage`] if a file already exists with other content, or cannot be written. An existing file is never
/// overwritten.
pub fn write_roleset(
    roleset: &Roleset,
    text: String,
    packs: &Packs,
    path: PathBuf,
) -> Result<PathBuf, ConfigError> {
    let folder = path.parent().unwrap_or(Path::new("")).join("packs");
    let mut files = vec![(path.clone(), text)];
    for agent in roleset.agents.iter().chain(&roleset.arbiter) {
        let pack = packs.read(&agent.pack).map_err(ConfigError::Usage)?;
        files.push((folder.join(&agent.pack), pack));
    }
    for (path, text) in &files {
        // A file that cannot be read is assumed to differ.
        let differs = match read(path, SMALL_BYTES_MAX) {
            Ok(now) => now != text.as_bytes(),
            Err(why) => why.kind() != std::io::ErrorKind::NotFound,
        };
        if differs {
            let why = format!("`{}` already exists and differs; nothing was written", path.display());
            return Err(ConfigError::Usage(why));
        }
    }
    for (path, text) in files {
        write_with_folder(&path, &text)
            .map_err(|e| ConfigError::Usage(format!("cannot write `{}`: {e}", path.display())))?;
    }
    Ok(path)
}

fn write_with_folder(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, text)
}

/// Returns a roleset's name in messages, its text, and the place of its packs.
pub(super) fn open(found: &FoundRoleset) -> Result<(String, String, Packs), ConfigError> {
    match &found.source {
        RolesetSource::File(path) => {
            let read = read_roleset_file(path);
            let text = read.map_err(|source| ConfigError::Read { path: path.clone(), source })?;
            let folder = path.parent().unwrap_or(Path::new("")).join("packs");
            Ok((path.display().to_string(), text, Packs::in_folder(folder)))
        }
        RolesetSource::Embedded(name) => {
            let text = EMBEDDED_ROLESETS.iter().find(|(n, _)| n == name).map_or("", |(_, text)| text);
            Ok((found.source.to_string(), text.to_owned(), Packs::built_in()))
        }
    }
}
