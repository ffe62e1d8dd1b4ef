//! The packs of a roleset: their place, and the parts of a pack.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::bounded_read::read_roleset_file;
use super::embedded::EMBEDDED_PACKS;

/// The place of a roleset's packs, and the packs that were made for this run.
#[derive(Clone, Debug)]
pub struct Packs {
    folder: Option<PathBuf>,
    /// The packs of the binary that belong to the roleset, if it has no folder.
    embedded: &'static [(&'static str, &'static str)],
    /// The packs that were made for this run, by their file names.
    in_memory: BTreeMap<String, String>,
}

impl Packs {
    pub(super) fn in_folder(folder: PathBuf) -> Self {
        Self { folder: Some(folder), embedded: &[], in_memory: BTreeMap::new() }
    }

    /// Returns the packs that are part of the binary.
    pub(super) fn built_in() -> Self {
        Self { folder: None, embedded: EMBEDDED_PACKS, in_memory: BTreeMap::new() }
    }

    /// Returns packs that exist only in memory, by their file names.
    pub(super) fn in_memory(in_memory: BTreeMap<String, String>) -> Self {
        Self { folder: None, embedded: &[], in_memory }
    }

    /// Returns the folder of the packs, unless they are part of the binary.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Adds a pack under a new name.
    pub(super) fn add(&mut self, name: &str, text: String) {
        self.in_memory.insert(name.to_owned(), text);
    }

    /// Returns the text of a pack.
    pub(super) fn read(&self, name: &str) -> Result<String, String> {
        if let Some(text) = self.in_memory.get(name) {
            return Ok(text.clone());
        }
        if let Some(folder) = &self.folder {
            let path = folder.join(name);
            return read_roleset_file(&path).map_err(|e| format!("cannot read `{}`: {e}", path.display()));
        }
        match self.embedded.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => Ok((*text).to_owned()),
            None => Err("there is no such pack".to_owned()),
        }
    }

    pub(super) fn names(&self) -> Vec<String> {
        let Some(folder) = &self.folder else {
            return self.embedded.iter().map(|(name, _)| (*name).to_owned()).collect();
        };
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|e| e.file_name().into_string().ok()).collect()
    }
}

/// The line that divides a pack. The part before it is for work alone, and the part after it for comparing texts.
pub(super) const COMPARING: &str = "## Comparing";

/// Divides a pack into its part for work alone and its part for comparing. A pack without the dividing line has no second part.
pub(super) fn split_pack(text: &str) -> (String, String) {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_end() == COMPARING {
            return (text[..at].to_owned(), text[at + line.len()..].trim().to_owned());
        }
        at += line.len();
    }
    (text.to_owned(), String::new())
}
