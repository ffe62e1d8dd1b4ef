//! The manifest, `batch.json`: what a batch is made of, so that its folder explains itself.
//!
//! The input is what a command is about to run, and what earlier commands have noted. The output is the manifest with the new
//! command, or the reason why the command may not continue: runs of one name made with different settings would be counted as one
//! thing. Settings are compared by a person's choices. The text of a built-in roleset belongs to the program, so a queued job
//! survives an upgrade.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::error::BatchError;
use super::layout::{PRIVATE, claim, count, is_batch, is_begun, results_file};
use super::shard_id::ShardOf;
use crate::files::{HeldFolder, SMALL_BYTES_MAX, open_own, private_folder, read_own, write_whole};
use crate::journal::{BATCH_FILE, JournalError};
use crate::program::PROGRAM;
use crate::provider::ServerInfo;
use crypto::Digest;
use protocol::text::escape;

/// The most commands that are noted; later ones change nothing about earlier runs.
const COMMANDS_MAX: usize = 100;

/// The field by which the manifest says that a server removes old runs, as readers of journals know it too.
const REMOVES_RUNS: &str = "removes_runs";

/// The field with the SHA-256 of the plan of an evaluation to which the batch belongs.
const PLAN: &str = "plan";

/// All fields of a manifest.
const FIELDS: [&str; 8] = ["v", "shards", "commands", "columns", "data", "servers", REMOVES_RUNS, PLAN];

/// A roleset on a model in an arm.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnNote {
    /// The roleset's name.
    pub roleset: String,
    /// The model as it was named; empty for that of the roleset or the server.
    pub model: String,
    /// The name of the arm; empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arm: String,
    /// The source of the roleset.
    pub source: String,
    /// The SHA-256 of each setup with which its runs were begun: everything except task, seed and redaction.
    pub sha256: Vec<Digest>,
    /// The SHA-256 of each choice of settings with which its runs were made.
    pub settings: Vec<Digest>,
    /// The endpoint of each agent's model, the arbiter's last.
    pub endpoints: Vec<String>,
}

/// A command that has run a part of the batch.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CommandNote {
    /// The time at which it was first given, RFC 3339.
    pub at: String,
    /// The name and version of the program.
    pub program: String,
    /// The words of the command, without the shard.
    pub words: Vec<String>,
}

/// The file of tasks.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DataNote {
    /// The name, as it was given.
    pub name: String,
    /// The length in bytes.
    pub bytes: u64,
    /// The SHA-256 of the file.
    pub sha256: Digest,
}

impl DataNote {
    /// Reads a file of tasks once. Returns its note and its number of lines.
    ///
    /// # Errors
    ///
    /// Returns the I/O error if the file cannot be read.
    pub fn read(path: &Path) -> std::io::Result<(Self, u64)> {
        let mut counted = Counted { source: File::open(path)?, bytes: 0, lines: 0, is_begun: false };
        let sha256 = Digest::of(&mut counted)?;
        let lines = counted.lines + u64::from(counted.is_begun);
        Ok((Self { name: path.display().to_string(), bytes: counted.bytes, sha256 }, lines))
    }
}

/// A reader that counts bytes and lines.
struct Counted {
    source: File,
    bytes: u64,
    lines: u64,
    /// Whether text follows the last line break.
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

/// A server and its description of itself.
#[derive(Clone, Debug, Serialize)]
pub struct ServerNote {
    pub base_url: String,
    /// The description.
    #[serde(flatten)]
    pub info: ServerInfo,
}

/// The note of what a command is about to run.
#[derive(Clone, Debug)]
pub struct BatchNote {
    /// The number of shards of the batch.
    pub shards: u64,
    pub command: CommandNote,
    pub columns: Vec<ColumnNote>,
    /// The file of tasks, if there is one.
    pub data: Option<DataNote>,
    /// Whether runs made with other settings may remain beside new ones of the same name.
    pub keep_old: bool,
}

/// Notes what a command is about to run in the folder of a batch.
///
/// # Errors
///
/// Returns [`BatchError::Settings`] if the folder has runs of a column that were made with other settings and may not be kept, and
/// [`BatchError::Io`] or [`BatchError::Manifest`] if the manifest cannot be changed.
pub fn note(folder: &Path, new: &BatchNote) -> Result<(), BatchError> {
    change(folder, |manifest, wrong| {
        if manifest.contains_key(REMOVES_RUNS) {
            return Err(BatchError::OfServer(folder.to_owned()));
        }
        let mut commands: Vec<CommandNote> = listed(manifest, "commands").map_err(wrong)?;
        require_own_commands(folder, &commands)?;
        let columns: Vec<ColumnNote> = listed(manifest, "columns").map_err(wrong)?;
        let is_begun = is_begun(folder, new.shards);
        let columns = merged(columns, &new.columns, new.keep_old, is_begun);
        let columns = columns.map_err(|column| in_the_way(folder, column))?;
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

/// Refuses a batch that another build has begun. Each shard has a journal of its own, so the journal of one does not show it to another.
///
/// # Errors
///
/// Returns [`JournalError::OtherBuild`], and the errors of a manifest.
pub fn require_own_build(folder: &Path) -> Result<(), BatchError> {
    if !is_batch(folder) {
        return Ok(());
    }
    let commands = listed::<CommandNote>(&read_manifest(folder)?, "commands");
    require_own_commands(folder, &commands.map_err(|why| unfit(folder, &why))?)
}

fn require_own_commands(folder: &Path, commands: &[CommandNote]) -> Result<(), BatchError> {
    if let Some(other) = commands.iter().find(|command| !command.program.starts_with(PROGRAM)) {
        let program = escape::terminal(&other.program);
        return Err(JournalError::OtherBuild { path: folder.join(BATCH_FILE), program }.into());
    }
    Ok(())
}

/// Returns whether commands on batches have made runs in this folder.
///
/// # Errors
///
/// Returns [`BatchError::Io`] or [`BatchError::Manifest`].
pub(super) fn has_commands(folder: &Path) -> Result<bool, BatchError> {
    Ok(read_manifest(folder)?.contains_key("commands"))
}

/// Notes that a server removes old runs from its folder. Readers take gaps in its journal from then on.
///
/// # Errors
///
/// Returns [`BatchError::OfBatch`] for the folder of a batch, [`BatchError::Io`] or [`BatchError::Manifest`].
pub(super) fn note_removals(folder: &Path) -> Result<(), BatchError> {
    change(folder, |manifest, _| {
        if manifest.contains_key("commands") {
            return Err(BatchError::OfBatch(folder.to_owned()));
        }
        manifest.insert(REMOVES_RUNS.to_owned(), true.into());
        Ok(())
    })
}

/// Notes the SHA-256 of the plan of an evaluation in the folder of one of its batches, which need not exist. Runs that begin there from
/// then on record it.
///
/// # Errors
///
/// Returns [`BatchError::Io`] or [`BatchError::Manifest`], and [`BatchError::Journal`] for the batch of another build.
pub fn note_plan(folder: &Path, plan: Digest) -> Result<(), BatchError> {
    require_own_build(folder)?;
    private_folder(folder).map_err(BatchError::io("make", folder))?;
    claim(folder, ShardOf::default())?;
    change(folder, |manifest, _| {
        manifest.insert(PLAN.to_owned(), json!(plan));
        Ok(())
    })
}

/// Returns the SHA-256 of the plan of the evaluation to which the batch in a folder belongs, if it belongs to one.
///
/// # Errors
///
/// Returns [`BatchError::Io`] or [`BatchError::Manifest`].
pub(super) fn noted_plan(folder: &Path) -> Result<Option<Digest>, BatchError> {
    plan_of(&read_manifest(folder)?).map_err(|why| unfit(folder, &why))
}

/// Returns the columns of a manifest of which every field can be what this program writes.
///
/// # Errors
///
/// Returns [`BatchError::Stray`] for a field that no manifest has or that contradicts another one, [`BatchError::Io`] or
/// [`BatchError::Manifest`].
pub(super) fn require_possible(folder: &Path) -> Result<Vec<ColumnNote>, BatchError> {
    let manifest = read_manifest(folder)?;
    let contradicts = |why: String| BatchError::Stray { path: folder.join(BATCH_FILE), why };
    if let Some(other) = manifest.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        return Err(contradicts(format!("a manifest has no field `{}`", escape::excerpt(other))));
    }
    if manifest.contains_key("commands") && manifest.contains_key(REMOVES_RUNS) {
        return Err(contradicts(
            "no batch is made in the folder of a server that removes old runs".to_owned(),
        ));
    }
    plan_of(&manifest).map_err(|why| unfit(folder, &why))?;
    listed::<CommandNote>(&manifest, "commands").map_err(|why| unfit(folder, &why))?;
    listed::<DataNote>(&manifest, "data").map_err(|why| unfit(folder, &why))?;
    listed(&manifest, "columns").map_err(|why| unfit(folder, &why))
}

fn plan_of(manifest: &Map<String, Value>) -> Result<Option<Digest>, serde_json::Error> {
    manifest.get(PLAN).cloned().map(serde_json::from_value).transpose()
}

/// Returns the error of a manifest with a field of another form.
fn unfit(folder: &Path, why: &serde_json::Error) -> BatchError {
    BatchError::Manifest { path: folder.join(BATCH_FILE), why: why.to_string() }
}

/// The provenance of the results in a folder.
#[derive(Clone, Debug)]
pub struct Provenance {
    /// The folder, as it was named.
    pub folder: String,
    /// The commands that made the results.
    pub commands: Vec<CommandNote>,
    /// The files of tasks.
    pub data: Vec<DataNote>,
    /// The files of results, each with its SHA-256.
    pub results: Vec<(String, Digest)>,
}

/// Returns the provenance of the results in a folder.
///
/// # Errors
///
/// Returns [`BatchError::Io`] or [`BatchError::Manifest`].
pub fn provenance(folder: &Path) -> Result<Provenance, BatchError> {
    let manifest = read_manifest(folder)?;
    let mut results = Vec::new();
    for path in (0..count(folder)?).map(|index| results_file(folder, index)).filter(|path| path.exists()) {
        let file = open_own(&path).map_err(|why| BatchError::of_results(&path, 1, why))?;
        let sha256 = Digest::of(file).map_err(BatchError::io("read", &path))?;
        results.push((path.display().to_string(), sha256));
    }
    Ok(Provenance {
        folder: folder.display().to_string(),
        commands: listed(&manifest, "commands").map_err(|why| unfit(folder, &why))?,
        data: listed(&manifest, "data").map_err(|why| unfit(folder, &why))?,
        results,
    })
}

/// Returns the columns whose runs were made with more than one choice of settings, which `--keep-old` allowed, each in words.
///
/// # Errors
///
/// Returns [`BatchError::Io`] or [`BatchError::Manifest`].
pub fn mixed_columns(folder: &Path) -> Result<Vec<String>, BatchError> {
    let columns = known_columns(folder)?;
    let mixed = columns.iter().filter(|column| column.settings.len() > 1);
    let in_words = |column: &ColumnNote| {
        let names = [&column.roleset, &column.model, &column.arm].map(String::as_str);
        let given: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
        format!("{} has runs with {} choices of settings", given.join(" · "), column.settings.len())
    };
    Ok(mixed.map(in_words).collect())
}

/// Refuses columns whose runs in the folder were made with other settings, as [`note`] would.
///
/// # Errors
///
/// Returns [`BatchError::Settings`], [`BatchError::Io`] or [`BatchError::Manifest`].
pub fn check_settings(folder: &Path, shards: u64, columns: &[ColumnNote]) -> Result<(), BatchError> {
    if !is_batch(folder) {
        return Ok(());
    }
    merged(known_columns(folder)?, columns, false, is_begun(folder, shards))
        .map(drop)
        .map_err(|column| in_the_way(folder, column))
}

fn known_columns(folder: &Path) -> Result<Vec<ColumnNote>, BatchError> {
    listed(&read_manifest(folder)?, "columns").map_err(|why| unfit(folder, &why))
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
    let bytes = read_own(&path, SMALL_BYTES_MAX).map_err(|why| BatchError::of_manifest(&path, why))?;
    serde_json::from_slice(&bytes).map_err(|why| unfit(folder, &why))
}

/// Notes what the servers of a batch say about themselves. An earlier note remains if they say nothing.
///
/// # Errors
///
/// Returns [`BatchError::Io`] or [`BatchError::Manifest`].
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
    // Shards that begin at once wait for each other. If the file system has no locks, the last one wins.
    let _held = HeldFolder::wait(folder).map_err(BatchError::io("open", folder))?;
    let bytes = read_own(&path, SMALL_BYTES_MAX).map_err(|why| BatchError::of_manifest(&path, why))?;
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

/// Merges the columns of a command into the known ones.
///
/// # Errors
///
/// Returns the first column whose runs were made with other settings.
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
            // Without a run, nothing was made with the old settings.
            Some(other) if !is_begun => *other = column.clone(),
            Some(other)
                if keep_old || column.settings.iter().all(|settings| other.settings.contains(settings)) =>
            {
                add_new(&mut other.settings, &column.settings);
                add_new(&mut other.sha256, &column.sha256);
            }
            Some(_) => return Err(column),
        }
    }
    Ok(known)
}

fn add_new(known: &mut Vec<Digest>, more: &[Digest]) {
    for digest in more {
        if !known.contains(digest) {
            known.push(*digest);
        }
    }
}
