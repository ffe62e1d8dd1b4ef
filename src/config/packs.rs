//! The packs of a roleset: their place, and the parts of a pack.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::bounded;
use super::embedded::EMBEDDED_PACKS;

/// The place of a roleset's packs, and the packs that were made for this run.
#[derive(Clone, Debug)]
pub struct Packs {
    place: PackPlace,
    made: BTreeMap<String, String>,
}

#[derive(Clone, Debug)]
pub(super) enum PackPlace {
    Folder(PathBuf),
    Embedded(&'static [(&'static str, &'static str)]),
}

impl Packs {
    pub(super) fn in_folder(folder: PathBuf) -> Self {
        Self { place: PackPlace::Folder(folder), made: BTreeMap::new() }
    }

    /// Returns the packs that are part of the binary.
    pub(super) fn built_in() -> Self {
        Self { place: PackPlace::Embedded(EMBEDDED_PACKS), made: BTreeMap::new() }
    }

    /// Returns packs that exist only in memory, by their file names.
    pub(super) fn made(made: BTreeMap<String, String>) -> Self {
        Self { place: PackPlace::Embedded(&[]), made }
    }

    /// Returns the folder of the packs, unless they are part of the binary.
    pub fn folder(&self) -> Option<&Path> {
        match &self.place {
            PackPlace::Folder(folder) => Some(folder),
            PackPlace::Embedded(_) => None,
        }
    }

    /// Adds a pack under a new name.
    pub(super) fn add(&mut self, name: &str, text: String) {
        self.made.insert(name.to_owned(), text);
    }

    /// Returns the text of a pack.
    pub(super) fn read(&self, name: &str) -> Result<String, String> {
        if let Some(text) = self.made.get(name) {
            return Ok(text.clone());
        }
        match &self.place {
            PackPlace::Folder(folder) => {
                let path = folder.join(name);
                bounded::read_of_roleset(&path).map_err(|e| format!("cannot read `{}`: {e}", path.display()))
            }
            PackPlace::Embedded(packs) => {
                let found = packs.iter().find(|(n, _)| *n == name);
                found.map(|(_, text)| (*text).to_owned()).ok_or_else(|| "there is no such pack".to_owned())
            }
        }
    }

    pub(super) fn names(&self) -> Vec<String> {
        match &self.place {
            PackPlace::Folder(folder) => {
                let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
                entries.filter_map(|e| e.file_name().into_string().ok()).collect()
            }
            PackPlace::Embedded(packs) => packs.iter().map(|(name, _)| (*name).to_owned()).collect(),
        }
    }
}

/// The line that divides a pack. The part before it is for work alone, and the part after it for comparing texts.
pub(super) const COMPARING: &str = "## Comparing";

/// Divides a pack into its part for work alone and its part for comparing. A pack without the dividing line has no second part.
pub(super) fn pack_parts(text: &str) -> (String, String) {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_end() == COMPARING {
            return (text[..at].to_owned(), text[at + line.len()..].trim().to_owned());
        }
        at += line.len();
    }
    (text.to_owned(), String::new())
}
