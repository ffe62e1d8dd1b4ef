//! What a batch is made of, so that its folder explains itself: `batch.json`.
//!
//! In: what a command is about to run, and what commands before it have noted. Out: the same with the new one, or the reason why it
//! may not go on: runs of one name that were made by different settings would be counted as one thing. Settings are compared by what
//! a person has chosen. The text of a built-in roleset is the program's, so that a queued job survives an upgrade.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::error::BatchError;
use super::layout::{BATCH_FILE, PRIVATE, count, is_batch, is_begun, results_file};
use crate::crypto::Digest;
use crate::files::{SMALL_BYTES_MAX, read, write_whole};
use crate::provider::ServerInfo;

/// So many commands are noted; later ones change nothing about what came before.
const COMMANDS_MAX: usize = 100;

/// A roleset on a model in an arm.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ColumnNote {
    /// The roleset's name.
    pub roleset: String,
    /// The model as it was named; empty for that of the roleset or the server.
    pub model: String,
    /// The name of its arm; empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arm: String,
    /// Where the roleset is from.
    pub source: String,
    /// SHA-256 of everything that its runs begin with, but for task and seed.
    pub sha256: Digest,
    /// SHA-256 of each choice of settings that its runs were made by.
    pub settings: Vec<Digest>,
    /// Where each agent's model is called, the arbiter's last.
    pub endpoints: Vec<String>,
}

/// A command that has run a part of the batch.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct CommandNote {
    /// When it was given first, RFC 3339.
    pub at: String,
    /// Name and version of the program.
    pub program: String,
    /// Its words, without the shard.
    pub words: Vec<String>,
}

/// The file of tasks.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct DataNote {
    /// Its name, as it was given.
    pub name: String,
    /// How long it is.
    pub bytes: u64,
    /// SHA-256 of it.
    pub sha256: Digest,
}

impl DataNote {
    /// Reads a file of tasks once, and returns what is noted of it and how many lines it has.
    ///
    /// # Errors
    ///
    /// What keeps it from being read.
    pub fn read(path: &Path) -> std::io::Result<(Self, u64)> {
        let mut counted = Counted { source: File::open(path)?, bytes: 0, lines: 0, is_begun: false };
        let sha256 = Digest::of(&mut counted)?;
        let lines = counted.lines + u64::from(counted.is_begun);
        Ok((Self { name: path.display().to_string(), bytes: counted.bytes, sha256 }, lines))
    }
}

/// Counts what is read.
struct Counted {
    source: File,
    bytes: u64,
    lines: u64,
    /// Whether there is something behind the last line break.
    is_begun: bool,
}

impl Read for Counted {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let count = self.source.read(bytes)?;
        for byte in &bytes[..count] {
            self.lines += u64::from(*byte == b'\n');
            self.is_begun = *byte != b'\n';
        }
        self.bytes += count as u64;
        Ok(count)
    }
}

/// A server, and what it says about itself.
#[derive(Clone, Debug, Serialize)]
pub struct ServerNote {
    /// Where it is.
    pub base_url: String,
    /// What it says.
    #[serde(flatten)]
    pub info: ServerInfo,
}

/// What a command is about to run.
#[derive(Clone, Debug)]
pub struct BatchNote {
    /// Into how many shards the batch is divided.
    pub shards: u64,
    /// The command.
    pub command: CommandNote,
    /// Its columns.
    pub columns: Vec<ColumnNote>,
    /// Its tasks, where they are from a file.
    pub data: Option<DataNote>,
    /// Whether runs that were made by other settings may stay beside new ones of the same name.
    pub keep_old: bool,
}

/// Notes in the folder of a batch what a command is about to run.
///
/// # Errors
///
/// [`BatchError::Settings`] if the folder has runs of a column that were made by other settings, and they are not to be kept;
/// [`BatchError::Io`], [`BatchError::Manifest`].
pub fn note(folder: &Path, new: &BatchNote) -> Result<(), BatchError> {
    change(folder, |manifest, wrong| {
        let columns: Vec<ColumnNote> = listed(manifest, "columns").map_err(wrong)?;
        let is_begun = is_begun(folder, new.shards);
        let columns = merged(columns, &new.columns, new.keep_old, is_begun);
        let columns = columns.map_err(|column| in_the_way(folder, column))?;
        let mut commands: Vec<CommandNote> = listed(manifest, "commands").map_err(wrong)?;
        let is_new = |known: &CommandNote| {
            (&known.program, &known.words) != (&new.command.program, &new.command.words)
        };
        if commands.iter().all(is_new) && commands.len() < COMMANDS_MAX {
            commands.push(new.command.clone());
        }
        let mut data: Vec<DataNote> = listed(manifest, "data").map_err(wrong)?;
        data.extend(new.data.iter().filter(|file| !data.contains(file)).cloned().collect::<Vec<_>>());
        let put = [("commands", json!(commands)), ("columns", json!(columns)), ("data", json!(data))];
        manifest.extend(put.map(|(name, value)| (name.to_owned(), value)));
        Ok(())
    })
}

/// Whether a batch was made by version 0.1 alone, which noted nothing but the number of shards.
///
/// # Errors
///
/// [`BatchError::Io`], [`BatchError::Manifest`].
pub fn is_of_first_version(folder: &Path) -> Result<bool, BatchError> {
    let manifest = read_manifest(folder)?;
    Ok(!manifest.contains_key("columns"))
}

/// Where the results in a folder are from.
#[derive(Clone, Debug)]
pub struct Provenance {
    /// The folder, as it was named.
    pub folder: String,
    /// The commands that made them; none of version 0.1.
    pub commands: Vec<CommandNote>,
    /// The files of tasks; none of version 0.1.
    pub data: Vec<DataNote>,
    /// Each file of results with its SHA-256.
    pub results: Vec<(String, Digest)>,
}

/// Says where the results in a folder are from.
///
/// # Errors
///
/// [`BatchError::Io`], [`BatchError::Manifest`].
pub fn provenance(folder: &Path) -> Result<Provenance, BatchError> {
    let manifest = read_manifest(folder)?;
    let wrong =
        |why: serde_json::Error| BatchError::Manifest { path: folder.join(BATCH_FILE), why: why.to_string() };
    let mut results = Vec::new();
    for path in (0..count(folder)?).map(|index| results_file(folder, index)).filter(|path| path.exists()) {
        let file = File::open(&path).map_err(BatchError::io("open", &path))?;
        let sha256 = Digest::of(file).map_err(BatchError::io("read", &path))?;
        results.push((path.display().to_string(), sha256));
    }
    Ok(Provenance {
        folder: folder.display().to_string(),
        commands: listed(&manifest, "commands").map_err(wrong)?,
        data: listed(&manifest, "data").map_err(wrong)?,
        results,
    })
}

/// Refuses columns of which the folder of a batch has runs that were made by other settings, as [`note`] would.
///
/// # Errors
///
/// [`BatchError::Settings`], [`BatchError::Io`], [`BatchError::Manifest`].
pub fn check_settings(folder: &Path, shards: u64, columns: &[ColumnNote]) -> Result<(), BatchError> {
    if !is_batch(folder) {
        return Ok(());
    }
    let manifest = read_manifest(folder)?;
    let wrong =
        |why: serde_json::Error| BatchError::Manifest { path: folder.join(BATCH_FILE), why: why.to_string() };
    let known: Vec<ColumnNote> = listed(&manifest, "columns").map_err(wrong)?;
    merged(known, columns, false, is_begun(folder, shards))
        .map(drop)
        .map_err(|column| in_the_way(folder, column))
}

fn in_the_way(folder: &Path, column: &ColumnNote) -> BatchError {
    BatchError::Settings {
        folder: folder.to_owned(),
        roleset: column.roleset.clone(),
        model: column.model.clone(),
        arm: column.arm.clone(),
    }
}

fn read_manifest(folder: &Path) -> Result<Map<String, Value>, BatchError> {
    let path = folder.join(BATCH_FILE);
    let bytes = read(&path, SMALL_BYTES_MAX).map_err(BatchError::io("read", &path))?;
    serde_json::from_slice(&bytes).map_err(|why| BatchError::Manifest { path, why: why.to_string() })
}

/// Notes what the servers of a batch say about themselves; what is noted stays, where they say nothing.
///
/// # Errors
///
/// [`BatchError::Io`], [`BatchError::Manifest`].
pub fn note_servers(folder: &Path, servers: &[ServerNote]) -> Result<(), BatchError> {
    if servers.is_empty() {
        return Ok(());
    }
    change(folder, |manifest, _| {
        manifest.insert("servers".to_owned(), json!(servers));
        Ok(())
    })
}

/// Changes the manifest, one command at a time.
fn change(
    folder: &Path,
    change: impl FnOnce(
        &mut Map<String, Value>,
        &dyn Fn(serde_json::Error) -> BatchError,
    ) -> Result<(), BatchError>,
) -> Result<(), BatchError> {
    let path = folder.join(BATCH_FILE);
    // Shards that begin at once wait for each other; where the file system has no locks, the last one wins.
    let lock = File::open(folder).map_err(BatchError::io("open", folder))?;
    let _ = lock.lock();
    let bytes = read(&path, SMALL_BYTES_MAX).map_err(BatchError::io("read", &path))?;
    let wrong = |why: serde_json::Error| BatchError::Manifest { path: path.clone(), why: why.to_string() };
    let mut manifest: Map<String, Value> = serde_json::from_slice(&bytes).map_err(wrong)?;
    change(&mut manifest, &wrong)?;
    let text = serde_json::to_string_pretty(&manifest).unwrap_or_default() + "\n";
    if text.as_bytes() == bytes {
        return Ok(());
    }
    write_whole(&path, &text, PRIVATE).map_err(BatchError::io("write", &path))
}

fn listed<T: serde::de::DeserializeOwned>(
    manifest: &Map<String, Value>,
    name: &str,
) -> Result<Vec<T>, serde_json::Error> {
    manifest.get(name).cloned().map_or(Ok(Vec::new()), serde_json::from_value)
}

/// Puts the columns of a command to those that are known.
///
/// # Errors
///
/// The first column whose runs were made by other settings.
fn merged(
    mut known: Vec<ColumnNote>,
    new: &[ColumnNote],
    keep_old: bool,
    is_begun: bool,
) -> Result<Vec<ColumnNote>, &ColumnNote> {
    for column in new {
        let is_same = |other: &&mut ColumnNote| {
            (&other.roleset, &other.model, &other.arm) == (&column.roleset, &column.model, &column.arm)
        };
        match known.iter_mut().find(is_same) {
            None => known.push(column.clone()),
            // Without a run nothing was made by them.
            Some(other) if !is_begun => *other = column.clone(),
            Some(other) if column.settings.iter().all(|settings| other.settings.contains(settings)) => {}
            Some(other) if keep_old => {
                let settings = [other.settings.clone(), column.settings.clone()].concat();
                *other = ColumnNote { settings, ..column.clone() };
            }
            Some(_) => return Err(column),
        }
    }
    Ok(known)
}
