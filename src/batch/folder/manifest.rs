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

use super::budget_note::{BudgetNote, merge_budget};
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

/// The field with the budgets of tokens that votes share.
const BUDGETS: &str = "budgets";

/// All fields of a manifest.
const FIELDS: [&str; 9] =
    ["v", "shards", "commands", "columns", "data", "servers", REMOVES_RUNS, PLAN, BUDGETS];

/// A roleset on a model in an arm.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, rename = "ColumnNote")]
pub struct VariantNote {
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

impl VariantNote {
    /// Returns the names of roleset, model and arm, as far as they are given.
    pub(in crate::batch) fn name(&self) -> String {
        let names = [&self.roleset, &self.model, &self.arm].map(String::as_str);
        let given: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
        given.join(" · ")
    }

    /// Returns whether another note is about the same variant.
    fn is_same(&self, other: &Self) -> bool {
        (&self.roleset, &self.model, &self.arm) == (&other.roleset, &other.model, &other.arm)
    }
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
    /// Returns the I/O error if the file cannot be read.
    pub fn read(path: &Path) -> std::io::Result<(Self, u64)> {
        let mut counted = CountingReader { source: File::open(path)?, bytes: 0, lines: 0, is_begun: false };
        let sha256 = Digest::of(&mut counted)?;
        let lines = counted.lines + u64::from(counted.is_begun);
        Ok((Self { name: path.display().to_string(), bytes: counted.bytes, sha256 }, lines))
    }
}

/// A reader that counts bytes and lines.
struct CountingReader {
    source: File,
    bytes: u64,
    lines: u64,
    /// Whether text follows the last line break.
    is_begun: bool,
}

impl Read for CountingReader {
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
    #[serde(flatten)]
    pub info: ServerInfo,
}

/// The note of what a command is about to run.
#[derive(Clone, Debug)]
pub struct BatchNote {
    /// The number of shards of the batch.
    pub shards: u64,
    pub command: CommandNote,
    pub variants: Vec<VariantNote>,
    /// The file of tasks, if there is one.
    pub data: Option<DataNote>,
    /// The budget of tokens that its votes share, if they share one.
    pub budget: Option<BudgetNote>,
    /// Whether runs made with other settings may remain beside new ones of the same name.
    pub keep_old: bool,
}

/// Notes what a command is about to run in the folder of a batch.
///
/// Returns [`BatchError::Settings`] if the folder has runs of a variant that were made with other settings and may not be kept, and
/// [`BatchError::Usage`] if they share another budget. Returns [`BatchError::Io`] or [`BatchError::Manifest`] if the manifest cannot be
/// changed.
pub fn note(folder: &Path, new: &BatchNote) -> Result<(), BatchError> {
    change(folder, |manifest| {
        if manifest.contains_key(REMOVES_RUNS) {
            return Err(BatchError::OfServer(folder.to_owned()));
        }
        let mut commands: Vec<CommandNote> = read_list(folder, manifest, "commands")?;
        require_own_commands(folder, &commands)?;
        let variants: Vec<VariantNote> = read_list(folder, manifest, "columns")?;
        let is_begun = is_begun(folder, new.shards);
        let variants = merge(variants, &new.variants, new.keep_old, is_begun);
        let variants = variants.map_err(|variant| other_settings(folder, variant))?;
        let CommandNote { program, words, .. } = &new.command;
        let is_new = commands.iter().all(|known| known.program != *program || known.words != *words);
        if is_new && commands.len() < COMMANDS_MAX {
            commands.push(new.command.clone());
        }
        let mut data: Vec<DataNote> = read_list(folder, manifest, "data")?;
        if let Some(file) = &new.data
            && !data.contains(file)
        {
            data.push(file.clone());
        }
        manifest.insert("commands".to_owned(), json!(commands));
        manifest.insert("columns".to_owned(), json!(variants));
        manifest.insert("data".to_owned(), json!(data));
        if let Some(budget) = &new.budget {
            let budgets = merge_budget(folder, read_list(folder, manifest, BUDGETS)?, budget, is_begun)?;
            manifest.insert(BUDGETS.to_owned(), json!(budgets));
        }
        Ok(())
    })
}

/// Refuses a batch that another build has begun. Each shard has a journal of its own, so the journal of one does not show it to another.
///
/// Returns [`JournalError::OtherBuild`], and the errors of a manifest.
pub fn require_own_build(folder: &Path) -> Result<(), BatchError> {
    if !is_batch(folder) {
        return Ok(());
    }
    let commands: Vec<CommandNote> = read_list(folder, &read_manifest(folder)?, "commands")?;
    require_own_commands(folder, &commands)
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
/// Returns [`BatchError::Io`] or [`BatchError::Manifest`].
pub(in crate::batch) fn has_commands(folder: &Path) -> Result<bool, BatchError> {
    Ok(read_manifest(folder)?.contains_key("commands"))
}

/// Notes that a server removes old runs from its folder. Readers take gaps in its journal from then on.
///
/// Returns [`BatchError::OfBatch`] for the folder of a batch, [`BatchError::Io`] or [`BatchError::Manifest`].
pub(in crate::batch) fn note_removals(folder: &Path) -> Result<(), BatchError> {
    change(folder, |manifest| {
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
/// Returns [`BatchError::Io`] or [`BatchError::Manifest`], and [`BatchError::Journal`] for the batch of another build.
pub fn note_plan(folder: &Path, plan: Digest) -> Result<(), BatchError> {
    require_own_build(folder)?;
    private_folder(folder).map_err(BatchError::io("make", folder))?;
    claim(folder, ShardOf::default())?;
    change(folder, |manifest| {
        manifest.insert(PLAN.to_owned(), json!(plan));
        Ok(())
    })
}

/// Returns the SHA-256 of the plan of the evaluation to which the batch in a folder belongs, if it belongs to one.
///
/// Returns [`BatchError::Io`] or [`BatchError::Manifest`].
pub(in crate::batch) fn noted_plan(folder: &Path) -> Result<Option<Digest>, BatchError> {
    read_plan(folder, &read_manifest(folder)?)
}

/// Returns the variants of a manifest of which every field can be what this program writes.
///
/// Returns [`BatchError::Stray`] for a field that no manifest has or that contradicts another one, [`BatchError::Io`] or
/// [`BatchError::Manifest`].
pub(in crate::batch) fn require_possible(folder: &Path) -> Result<Vec<VariantNote>, BatchError> {
    let manifest = read_manifest(folder)?;
    if let Some(other) = manifest.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        let why = format!("a manifest has no field `{}`", escape::excerpt(other));
        return Err(BatchError::Stray { path: folder.join(BATCH_FILE), why });
    }
    if manifest.contains_key("commands") && manifest.contains_key(REMOVES_RUNS) {
        let why = "no batch is made in the folder of a server that removes old runs".to_owned();
        return Err(BatchError::Stray { path: folder.join(BATCH_FILE), why });
    }
    read_plan(folder, &manifest)?;
    read_list::<CommandNote>(folder, &manifest, "commands")?;
    read_list::<DataNote>(folder, &manifest, "data")?;
    read_list(folder, &manifest, "columns")
}

/// Returns the budgets that the votes of a batch share, by the manifest.
///
/// Returns [`BatchError::Stray`] for a budget whose rule is not that of this program, [`BatchError::Io`] or [`BatchError::Manifest`].
pub(in crate::batch) fn noted_budgets(folder: &Path) -> Result<Vec<BudgetNote>, BatchError> {
    let budgets: Vec<BudgetNote> = read_list(folder, &read_manifest(folder)?, BUDGETS)?;
    let shards = count(folder)?;
    for budget in &budgets {
        budget.require_possible(folder, shards)?;
    }
    Ok(budgets)
}

/// Refuses a budget for runs in the folder that share another one, as [`note`] would.
///
/// Returns [`BatchError::Usage`], [`BatchError::Io`] or [`BatchError::Manifest`].
pub(in crate::batch) fn check_budget(
    folder: &Path,
    shards: u64,
    budget: &BudgetNote,
) -> Result<(), BatchError> {
    if !is_batch(folder) {
        return Ok(());
    }
    let known = read_list(folder, &read_manifest(folder)?, BUDGETS)?;
    merge_budget(folder, known, budget, is_begun(folder, shards)).map(drop)
}

fn read_plan(folder: &Path, manifest: &Map<String, Value>) -> Result<Option<Digest>, BatchError> {
    let plan = manifest.get(PLAN).cloned().map(serde_json::from_value).transpose();
    plan.map_err(|why| unfit(folder, &why))
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
        commands: read_list(folder, &manifest, "commands")?,
        data: read_list(folder, &manifest, "data")?,
        results,
    })
}

/// Returns the variants whose runs were made with more than one choice of settings, which `--keep-old` allowed, each in words.
///
/// Returns [`BatchError::Io`] or [`BatchError::Manifest`].
pub fn mixed_variants(folder: &Path) -> Result<Vec<String>, BatchError> {
    let mut mixed = Vec::new();
    for variant in known_variants(folder)? {
        let count = variant.settings.len();
        if count > 1 {
            mixed.push(format!("{} has runs with {count} choices of settings", variant.name()));
        }
    }
    Ok(mixed)
}

/// Refuses variants whose runs in the folder were made with other settings, as [`note`] would.
///
/// Returns [`BatchError::Settings`], [`BatchError::Io`] or [`BatchError::Manifest`].
pub fn check_settings(folder: &Path, shards: u64, variants: &[VariantNote]) -> Result<(), BatchError> {
    if !is_batch(folder) {
        return Ok(());
    }
    match merge(known_variants(folder)?, variants, false, is_begun(folder, shards)) {
        Ok(_) => Ok(()),
        Err(variant) => Err(other_settings(folder, variant)),
    }
}

fn known_variants(folder: &Path) -> Result<Vec<VariantNote>, BatchError> {
    read_list(folder, &read_manifest(folder)?, "columns")
}

fn other_settings(folder: &Path, variant: &VariantNote) -> BatchError {
    BatchError::Settings {
        folder: folder.to_owned(),
        roleset: variant.roleset.clone(),
        model: variant.model.clone(),
        arm: variant.arm.clone(),
    }
}

fn read_manifest(folder: &Path) -> Result<Map<String, Value>, BatchError> {
    let path = folder.join(BATCH_FILE);
    let bytes = read_own(&path, SMALL_BYTES_MAX).map_err(|why| BatchError::of_manifest(&path, why))?;
    serde_json::from_slice(&bytes).map_err(|why| unfit(folder, &why))
}

/// Notes what the servers of a batch say about themselves. An earlier note remains if they say nothing.
///
/// Returns [`BatchError::Io`] or [`BatchError::Manifest`].
pub fn note_servers(folder: &Path, servers: &[ServerNote]) -> Result<(), BatchError> {
    if servers.is_empty() {
        return Ok(());
    }
    change(folder, |manifest| {
        manifest.insert("servers".to_owned(), json!(servers));
        Ok(())
    })
}

/// Changes the manifest, one command at a time.
fn change(
    folder: &Path,
    change: impl FnOnce(&mut Map<String, Value>) -> Result<(), BatchError>,
) -> Result<(), BatchError> {
    let path = folder.join(BATCH_FILE);
    // Shards that begin at once wait for each other. If the file system has no locks, the last one wins.
    let _held = HeldFolder::wait(folder).map_err(BatchError::io("open", folder))?;
    let bytes = read_own(&path, SMALL_BYTES_MAX).map_err(|why| BatchError::of_manifest(&path, why))?;
    let mut manifest: Map<String, Value> =
        serde_json::from_slice(&bytes).map_err(|why| unfit(folder, &why))?;
    change(&mut manifest)?;
    let text = serde_json::to_string_pretty(&manifest).unwrap_or_default() + "\n";
    if text.as_bytes() == bytes {
        return Ok(());
    }
    write_whole(&path, &text, PRIVATE).map_err(BatchError::io("write", &path))
}

/// Reads a list of the manifest, which need not be there.
fn read_list<T: serde::de::DeserializeOwned>(
    folder: &Path,
    manifest: &Map<String, Value>,
    name: &str,
) -> Result<Vec<T>, BatchError> {
    let Some(list) = manifest.get(name) else { return Ok(Vec::new()) };
    serde_json::from_value(list.clone()).map_err(|why| unfit(folder, &why))
}

/// Merges the variants of a command into the known ones.
///
/// Returns the first variant whose runs were made with other settings.
fn merge(
    mut known: Vec<VariantNote>,
    new: &[VariantNote],
    keep_old: bool,
    is_begun: bool,
) -> Result<Vec<VariantNote>, &VariantNote> {
    for variant in new {
        match known.iter_mut().find(|other| other.is_same(variant)) {
            None => known.push(variant.clone()),
            // Without a run, nothing was made with the old settings.
            Some(other) if !is_begun => *other = variant.clone(),
            Some(other)
                if keep_old || variant.settings.iter().all(|settings| other.settings.contains(settings)) =>
            {
                add_new(&mut other.settings, &variant.settings);
                add_new(&mut other.sha256, &variant.sha256);
            }
            Some(_) => return Err(variant),
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
