//! The words that a shell offers to complete a half-typed word: rolesets, personas, runs and sessions.
//!
//! The input is the word. The output is candidates for it. Folders are listed and the first lines of journals are read; nothing is
//! changed and no server is called. An error only means that nothing is offered. Names come from folders that may not be the user's:
//! a name that could act on the terminal, or that bash would run as a command, is never offered.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufReader, Read as _, Write};
use std::path::Path;

use clap::Command;
use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter as _};
use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Shells, Zsh};

use super::table::{end, short_length};
use crate::config::{FileConfig, Persona, RolesetSource, list_rolesets};
use crate::files::read_line;
use crate::journal::{Entry, FILE_NAME, Record};
use crate::run::{folder_name, rolesets_folders, run_folders, runs_folder, session_names};
use protocol::text::escape;

/// The variable by which a shell asks for completions.
pub(super) const VARIABLE: &str = "CONSENSUS_COMPLETE";

/// The largest number of runs that are offered, the newest first.
const RUNS_MAX: usize = 30;

/// The largest length of a journal's first line that is read, in bytes, since a shell waits.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// The shells that this program completes words for.
pub(super) const SHELLS: Shells<'static> = Shells(&[
    &SafeShell(Bash),
    &SafeShell(Elvish),
    &SafeShell(Fish),
    &SafeShell(Powershell),
    &SafeShell(Zsh),
]);

/// The variable in which a shell's script names the separator of candidates.
const SEPARATOR: &str = "_CLAP_IFS";

/// A shell that receives only candidates without side effects.
struct SafeShell<S>(S);

impl<S: EnvCompleter> EnvCompleter for SafeShell<S> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn is(&self, name: &str) -> bool {
        self.0.is(name)
    }

    fn write_registration(
        &self,
        var: &str,
        name: &str,
        bin: &str,
        completer: &str,
        to: &mut dyn Write,
    ) -> std::io::Result<()> {
        self.0.write_registration(var, name, bin, completer, to)
    }

    fn write_complete(
        &self,
        command: &mut Command,
        words: Vec<OsString>,
        folder: Option<&Path>,
        to: &mut dyn Write,
    ) -> std::io::Result<()> {
        let mut offered = Vec::new();
        self.0.write_complete(command, words, folder, &mut offered)?;
        let separator = std::env::var(SEPARATOR).unwrap_or_else(|_| "\n".to_owned());
        let offered = String::from_utf8_lossy(&offered);
        // Bash does not quote the candidate that it inserts; the other shells do.
        let is_bash = self.0.is("bash");
        let safe = offered.split(&*separator).filter(|candidate| is_safe(candidate, is_bash));
        to.write_all(safe.collect::<Vec<_>>().join(&separator).as_bytes())
    }
}

/// Returns whether a candidate is harmless, both in a list and in a command line.
fn is_safe(candidate: &str, is_bash: bool) -> bool {
    for c in candidate.chars() {
        let is_plain = c.is_alphanumeric() || "-_./:=,+@%^".contains(c);
        let is_visible = matches!(c, '\t' | '\n' | '\r') || !escape::is_invisible(c);
        if !is_visible || is_bash && !is_plain {
            return false;
        }
    }
    true
}

/// Returns rolesets by name, or files if the word is a path.
pub(super) fn rolesets(current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy();
    if typed.contains('/') || typed.starts_with('.') {
        return PathCompleter::any().complete(current);
    }
    let folders = rolesets_folders(None, &FileConfig::load_to_read().unwrap_or_default());
    let mut offered = Vec::new();
    for roleset in list_rolesets(&folders) {
        if roleset.name.starts_with(&*typed) {
            let source = match &roleset.source {
                RolesetSource::Embedded(_) => "built in".to_owned(),
                RolesetSource::File(path) => escape::terminal(&path.display().to_string()),
            };
            offered.push(CompletionCandidate::new(roleset.name).help(Some(source.into())));
        }
    }
    offered
}

pub(super) fn personas() -> Vec<CompletionCandidate> {
    let mut offered = Vec::new();
    for persona in Persona::built_in() {
        let help = escape::excerpt(&persona.domain).into();
        offered.push(CompletionCandidate::new(persona.name).help(Some(help)));
    }
    offered
}

/// Returns the newest runs by the shortest unique ends of their ids, and folders.
pub(super) fn runs(current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy();
    let folder = runs_folder(None, &FileConfig::load_to_read().unwrap_or_default());
    let folders = run_folders(&folder);
    let ids: Vec<String> = folders.iter().map(|folder| folder_name(folder)).collect();
    let short = short_length(&ids);
    let mut offered = Vec::new();
    for (folder, id) in folders.iter().zip(&ids).rev().take(RUNS_MAX) {
        let id = if id.starts_with(&*typed) && !typed.is_empty() { id } else { end(id, short) };
        if id.starts_with(&*typed) {
            let question = read_question(&folder.join(FILE_NAME)).unwrap_or_default();
            offered.push(CompletionCandidate::new(id).help(Some(escape::excerpt(&question).into())));
        }
    }
    offered.extend(PathCompleter::dir().complete(current));
    offered
}

pub(super) fn sessions() -> Vec<CompletionCandidate> {
    let folder = runs_folder(None, &FileConfig::load_to_read().unwrap_or_default());
    session_names(&folder).into_iter().map(CompletionCandidate::new).collect()
}

/// Returns the task of a run, from the first line of its journal.
fn read_question(journal: &Path) -> Option<String> {
    let mut line = Vec::new();
    read_line(&mut BufReader::new(File::open(journal).ok()?.take(LINE_BYTES_MAX)), &mut line).ok()?;
    match serde_json::from_slice::<Record>(&line).ok()?.event {
        Entry::Opened(spec) => Some(spec.setup.task.prompt),
        Entry::Asked(_)
        | Entry::Lost(_)
        | Entry::Found(_)
        | Entry::Executed(_)
        | Entry::LeftOut(_)
        | Entry::Permitted(_)
        | Entry::Closed(_)
        | Entry::Replied(_)
        | Entry::Resumed { .. }
        | Entry::Stopped { .. } => None,
    }
}
