//! What a shell offers for a word that is half typed: rolesets, personas, runs and sessions.
//!
//! In: the word. Out: what it may become. Folders are listed and the first lines of journals are read; nothing is changed, nothing is
//! called, and an error only means that nothing is offered.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::Path;

use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter as _};

use super::table::{end, short_length};
use crate::config::{FileConfig, Persona, RolesetSource, list_rolesets};
use crate::files::read_line;
use crate::journal::{Entry, FILE_NAME, Record};
use crate::run::{folder_name, rolesets_folders, run_folders, runs_folder, session_names};
use crate::text::escape;

/// The variable by which a shell asks for completions.
pub(super) const VARIABLE: &str = "CONSENSUS_COMPLETE";

/// So many of the newest runs are offered.
const RUNS_MAX: usize = 30;

/// No first line of a journal is read beyond this, in bytes: a shell waits.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Rolesets by name, or files, once the word is a path.
pub(super) fn rolesets(current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy();
    if typed.contains('/') || typed.starts_with('.') {
        return PathCompleter::any().complete(current);
    }
    let folders = rolesets_folders(None, &FileConfig::load_to_read().unwrap_or_default());
    let found = list_rolesets(&folders).into_iter().filter(|roleset| roleset.name.starts_with(&*typed));
    found
        .map(|roleset| {
            let source = match &roleset.source {
                RolesetSource::Embedded(_) => "built in".to_owned(),
                RolesetSource::File(path) => escape::terminal(&path.display().to_string()),
            };
            CompletionCandidate::new(roleset.name).help(Some(source.into()))
        })
        .collect()
}

/// The built-in personas.
pub(super) fn personas() -> Vec<CompletionCandidate> {
    let offer = |persona: Persona| {
        CompletionCandidate::new(persona.name).help(Some(escape::excerpt(&persona.domain).into()))
    };
    Persona::built_in().into_iter().map(offer).collect()
}

/// The newest runs by the shortest ends of their ids, and folders.
pub(super) fn runs(current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy();
    let folder = runs_folder(None, &FileConfig::load_to_read().unwrap_or_default());
    let folders = run_folders(&folder);
    let ids: Vec<String> = folders.iter().map(|folder| folder_name(folder)).collect();
    let short = short_length(&ids);
    let newest = folders.iter().zip(&ids).rev().take(RUNS_MAX);
    let offered = newest.filter_map(|(folder, id)| {
        let id = if id.starts_with(&*typed) && !typed.is_empty() { id } else { end(id, short) };
        let question = question(&folder.join(FILE_NAME)).unwrap_or_default();
        id.starts_with(&*typed)
            .then(|| CompletionCandidate::new(id).help(Some(escape::excerpt(&question).into())))
    });
    offered.chain(PathCompleter::dir().complete(current)).collect()
}

/// Sessions by name.
pub(super) fn sessions() -> Vec<CompletionCandidate> {
    let folder = runs_folder(None, &FileConfig::load_to_read().unwrap_or_default());
    session_names(&folder).into_iter().map(CompletionCandidate::new).collect()
}

/// The task of a run, by the first line of its journal.
fn question(journal: &Path) -> Option<String> {
    let mut line = Vec::new();
    read_line(&mut BufReader::new(File::open(journal).ok()?.take(LINE_BYTES_MAX)), &mut line).ok()?;
    match serde_json::from_slice::<Record>(&line).ok()?.event {
        Entry::Opened(spec) => Some(spec.setup.task.prompt),
        Entry::Asked(_)
        | Entry::Found(_)
        | Entry::Replied(_)
        | Entry::Resumed { .. }
        | Entry::Stopped { .. } => None,
    }
}
