//! Exports and imports keys together with everything that they have signed, as one file that can be taken to another machine.
//!
//! An export of a folder of keys is one JSON document: the roster, the secret keys that are there, and every ledger and log
//! beside them, with a digest over all of it. An import adds to another folder whatever is missing there. Existing content is
//! never overwritten: a ledger may only grow by the lines that the file has beyond it. Ledgers are durable before the first key
//! is, so that a key is never without them.
//!
//! The file is one JSON document rather than an archive. All of it is text, and the names in it have few known shapes. So no
//! path or link can lead the program that unpacks it out of the folder.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::key_folder::{APART, DECISIONS, KeyFolder, ROSTER_FILE, escape_name, make_folder, write_new};
use crate::approval::decision_error::DecisionError;
use crate::files;
use crate::files::{LARGE_BYTES_MAX, SMALL_BYTES_MAX, read_text};
use crate::journal::FILE_NAME;
use crypto::{Digest, SecretKey};
use quorum::{Membership, Roster};

/// The form that this program writes.
const VERSION: u32 = 1;

/// The beginning of the name of a file that proves a fraud.
const ACCUSATION: &str = "accusation-";

/// Keys, with everything that they have signed.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct KeyBundle {
    v: u32,
    /// The SHA-256 of the JSON form of the files.
    sha256: Digest,
    /// The files, each by its path inside the folder of keys.
    files: BTreeMap<String, String>,
}

/// The result of an export or an import.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MovedKeys {
    /// The names of the members whose keys were exported, or were not there before an import.
    pub seats: Vec<String>,
    /// The number of ledgers and logs that were exported, or that are new or have grown by an import.
    pub ledgers: usize,
}

/// The kinds of files, in the order in which they are written.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum KeyFileKind {
    Ledger,
    Accusation,
    Roster,
    Key,
}

/// The action for one file.
enum ImportAction {
    Make,
    /// Adds only the content beyond this many bytes, to a file that is locked.
    Grow(File, usize),
    Leave,
}

/// Writes the keys of a folder, and everything that they have signed, into a new file that only its owner may read.
///
/// Returns [`DecisionError::NoKeys`] if there is no key, [`DecisionError::InUse`] if one of the keys is in use,
/// [`DecisionError::KeysAreThere`] if the file exists; another error if something cannot be read or written.
pub fn export(folder: &Path, file: &Path) -> Result<MovedKeys, DecisionError> {
    let keys = KeyFolder::open(folder)?;
    let held = keys.held()?;
    if held.is_empty() {
        return Err(DecisionError::NoKeys(folder.to_owned()));
    }
    let mut files = BTreeMap::new();
    let roster = folder.join(ROSTER_FILE);
    let text = read_text(&roster, SMALL_BYTES_MAX).map_err(DecisionError::file("read", &roster))?;
    files.insert(ROSTER_FILE.to_owned(), text);
    let mut seats = Vec::new();
    for (seat, pem) in held {
        files.insert(format!("{}.key", escape_name(&seat.name)), pem);
        seats.push(seat.name.clone());
    }
    // While the locks are held, no process adds a line.
    let mut locks = Vec::new();
    let mut ledgers = 0;
    for path in list_files(&folder.join(DECISIONS))? {
        let Some(name) = path.strip_prefix(folder).ok().and_then(Path::to_str) else { continue };
        let Some(kind) = kind_of(name) else { continue };
        let text = if kind == KeyFileKind::Ledger {
            let (lock, text) = read_whole_lines(&path)?;
            locks.push(lock);
            ledgers += 1;
            text
        } else {
            read_text(&path, LARGE_BYTES_MAX).map_err(DecisionError::file("read", &path))?
        };
        files.insert(name.to_owned(), text);
    }
    let bundle = KeyBundle { v: VERSION, sha256: digest(&files), files };
    write_new(file, &(serde_json::to_string(&bundle).unwrap_or_default() + "\n"), 0o600)?;
    Ok(MovedKeys { seats, ledgers })
}

/// Brings keys, and everything that they have signed, into a folder, which is made if it is missing.
///
/// Returns [`DecisionError::Damaged`] if the file cannot be trusted, [`DecisionError::Clash`] if the folder has something else, or more
/// than the file brings. Then nothing is changed. Another error if something cannot be read or written.
pub fn import(folder: &Path, file: &Path) -> Result<MovedKeys, DecisionError> {
    let bundle = read(file)?;
    let mut actions = Vec::new();
    for (name, text) in &bundle.files {
        let kind = kind_of(name).ok_or_else(|| damaged(file, format!("`{name}` is not a file of keys")))?;
        let path = folder.join(name);
        let action = plan_import(kind, &path, text)?;
        actions.push((kind, path, text, action));
    }
    // The files are written in the order of their kinds: the keys come last.
    actions.sort_by_key(|(kind, ..)| *kind);
    make_folder(folder)?;
    let mut imported = MovedKeys { seats: Vec::new(), ledgers: 0 };
    for (kind, path, text, action) in actions {
        let has_changed = !matches!(action, ImportAction::Leave);
        perform(kind, &path, text, action)?;
        match kind {
            KeyFileKind::Ledger => imported.ledgers += usize::from(has_changed),
            KeyFileKind::Key if has_changed => imported.seats.extend(bundle.owner(&path)),
            KeyFileKind::Key | KeyFileKind::Roster | KeyFileKind::Accusation => {}
        }
    }
    sync(folder)?;
    Ok(imported)
}

impl KeyBundle {
    fn roster(&self) -> Option<Roster> {
        serde_json::from_str(self.files.get(ROSTER_FILE)?).ok()
    }

    /// Returns the name of the member whose key is at this path.
    fn owner(&self, path: &Path) -> Option<String> {
        let roster = self.roster()?;
        let stem = path.file_stem()?.to_str()?.to_owned();
        let mut seats = roster.reviewers.into_iter().chain(roster.orchestrators);
        seats.find(|seat| escape_name(&seat.name) == stem).map(|seat| seat.name)
    }

    /// Returns why its keys are not those of its roster, if they are not.
    fn fault(&self) -> Option<String> {
        let Some(roster) = self.roster() else { return Some("it has no roster".to_owned()) };
        if let Err(why) = Membership::new(Digest::ZERO, roster.clone()) {
            return Some(why.to_string());
        }
        let keys = self.files.iter().filter_map(|(name, text)| Some((name.strip_suffix(".key")?, text)));
        for (stem, text) in keys {
            let mut seats = roster.reviewers.iter().chain(&roster.orchestrators);
            let seat = seats.find(|seat| escape_name(&seat.name) == stem);
            let key = SecretKey::from_pem(text).ok().map(|key| key.public());
            if seat.is_none_or(|seat| key != Some(seat.key)) {
                return Some(format!("`{stem}.key` is not a key of its roster"));
            }
        }
        None
    }
}

/// Reads an exported file.
fn read(file: &Path) -> Result<KeyBundle, DecisionError> {
    let about = std::fs::metadata(file).map_err(DecisionError::file("read", file))?;
    if about.is_file() && about.permissions().mode() & 0o077 != 0 {
        return Err(DecisionError::OpenKey(file.to_owned()));
    }
    let bytes = files::read(file, LARGE_BYTES_MAX).map_err(DecisionError::file("read", file))?;
    let bundle: KeyBundle = serde_json::from_slice(&bytes).map_err(|why| damaged(file, why.to_string()))?;
    if bundle.v != VERSION {
        return Err(damaged(file, format!("its form is {}, but this program reads {VERSION}", bundle.v)));
    }
    if digest(&bundle.files) != bundle.sha256 {
        return Err(damaged(file, "its contents have another digest than it states".to_owned()));
    }
    match bundle.fault() {
        Some(why) => Err(damaged(file, why)),
        None => Ok(bundle),
    }
}

/// Returns the action for one file. Nothing is changed yet.
fn plan_import(kind: KeyFileKind, path: &Path, text: &str) -> Result<ImportAction, DecisionError> {
    if !path.exists() {
        return Ok(ImportAction::Make);
    }
    if kind != KeyFileKind::Ledger {
        let here = files::read(path, LARGE_BYTES_MAX).map_err(DecisionError::file("read", path))?;
        let mut is_same = here == text.as_bytes();
        if kind == KeyFileKind::Roster && !is_same {
            let roster: Option<Roster> = serde_json::from_str(&String::from_utf8_lossy(&here)).ok();
            is_same = roster == serde_json::from_str(text).ok();
        }
        if is_same {
            return Ok(ImportAction::Leave);
        }
        return Err(clash(path, "already exists with other content"));
    }
    let open = OpenOptions::new().read(true).append(true).open(path);
    let mut here = open.map_err(DecisionError::file("open", path))?;
    here.try_lock().map_err(|_| DecisionError::InUse(path.to_owned()))?;
    let mut bytes = Vec::new();
    here.read_to_end(&mut bytes).map_err(DecisionError::file("read", path))?;
    let whole = whole_bytes(&bytes);
    if text.as_bytes().starts_with(&bytes[..whole]) {
        return Ok(if text.len() == whole { ImportAction::Leave } else { ImportAction::Grow(here, whole) });
    }
    if bytes.starts_with(text.as_bytes()) {
        return Err(clash(
            path,
            "has more than is imported: it would go back, and its keys would sign one number twice",
        ));
    }
    Err(clash(path, "already exists as another ledger of these keys: they were at work in two places"))
}

fn clash(path: &Path, why: &'static str) -> DecisionError {
    DecisionError::Clash { path: path.to_owned(), why }
}

/// Performs the action for one file, durably.
fn perform(kind: KeyFileKind, path: &Path, text: &str, action: ImportAction) -> Result<(), DecisionError> {
    match action {
        ImportAction::Leave => Ok(()),
        ImportAction::Make => {
            let parent = path.parent().unwrap_or(Path::new("."));
            make_folder(parent)?;
            write_new(path, text, if kind == KeyFileKind::Roster { 0o644 } else { 0o600 })?;
            parent.ancestors().take(4).filter(|folder| !folder.as_os_str().is_empty()).try_for_each(sync)
        }
        ImportAction::Grow(mut file, whole) => {
            let grown = file.set_len(whole as u64);
            let grown = grown.and_then(|()| file.write_all(&text.as_bytes()[whole..]));
            grown.and_then(|()| file.sync_all()).map_err(DecisionError::file("write", path))
        }
    }
}

/// Returns all files below the folder of decisions, in the order of their names.
fn list_files(decisions: &Path) -> Result<Vec<PathBuf>, DecisionError> {
    let (mut open, mut found) = (vec![decisions.to_owned()], Vec::new());
    while let Some(folder) = open.pop() {
        if !folder.is_dir() {
            continue;
        }
        let entries = std::fs::read_dir(&folder).map_err(DecisionError::file("read", &folder))?;
        for entry in entries {
            let path = entry.map_err(DecisionError::file("read", &folder))?.path();
            if path.is_dir() { open.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    Ok(found)
}

/// Returns the kind of a path inside a folder of keys. No other path is written, so that none leads out of the folder.
fn kind_of(name: &str) -> Option<KeyFileKind> {
    let parts: Vec<&str> = name.split('/').collect();
    match parts.as_slice() {
        [file] if *file == ROSTER_FILE => Some(KeyFileKind::Roster),
        [file] => {
            if is_plain(file.strip_suffix(".key")?) {
                Some(KeyFileKind::Key)
            } else {
                None
            }
        }
        [decisions, of, rest @ ..] if *decisions == DECISIONS && is_plain(of) => match rest {
            [file] if *file == FILE_NAME => Some(KeyFileKind::Ledger),
            [apart, file] if *apart == APART && *file == FILE_NAME => Some(KeyFileKind::Ledger),
            [apart, name, file] if *apart == APART && is_plain(name) && *file == FILE_NAME => {
                Some(KeyFileKind::Ledger)
            }
            [apart, name, file] if *apart == APART && is_plain(name) => {
                let stem = file.strip_prefix(ACCUSATION)?.strip_suffix(".json")?;
                if is_plain(stem) { Some(KeyFileKind::Accusation) } else { None }
            }
            _ => None,
        },
        _ => None,
    }
}

/// Returns whether a part of a path is a name that this program gives.
fn is_plain(part: &str) -> bool {
    !part.is_empty() && part == escape_name(part)
}

/// Reads a ledger without a torn last line. No process writes to the ledger while the returned file is held.
fn read_whole_lines(path: &Path) -> Result<(File, String), DecisionError> {
    let mut file = File::open(path).map_err(DecisionError::file("read", path))?;
    file.try_lock_shared().map_err(|_| DecisionError::InUse(path.to_owned()))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(DecisionError::file("read", path))?;
    bytes.truncate(whole_bytes(&bytes));
    match String::from_utf8(bytes) {
        Ok(text) => Ok((file, text)),
        Err(_) => Err(DecisionError::Unreadable { path: path.to_owned(), why: "it is not UTF-8".to_owned() }),
    }
}

/// Returns the number of bytes of the whole lines.
fn whole_bytes(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

fn digest(files: &BTreeMap<String, String>) -> Digest {
    Digest::new(&serde_json::to_vec(files).unwrap_or_default())
}

fn damaged(file: &Path, why: String) -> DecisionError {
    DecisionError::Damaged { path: file.to_owned(), why }
}

fn sync(folder: &Path) -> Result<(), DecisionError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(DecisionError::file("sync", folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No accepted name leads out of the folder of keys.
    #[test]
    fn only_key_folder_files_have_a_kind() {
        for (name, expected) in [
            ("roster.json", Some(KeyFileKind::Roster)),
            ("Security.key", Some(KeyFileKind::Key)),
            ("decisions/ab12/journal.jsonl", Some(KeyFileKind::Ledger)),
            ("decisions/ab12/peers/journal.jsonl", Some(KeyFileKind::Ledger)),
            ("decisions/ab12/peers/Security/journal.jsonl", Some(KeyFileKind::Ledger)),
            ("decisions/ab12/peers/Security/accusation-1-0a.json", Some(KeyFileKind::Accusation)),
            ("decisions/ab12/peers/Security/review-0a", None),
            ("../roster.json", None),
            ("/etc/x.key", None),
            ("..key", None),
            (".key", None),
            ("decisions/../journal.jsonl", None),
            ("decisions/ab12/peers/../journal.jsonl", None),
            ("decisions/ab12/other/journal.jsonl", None),
            ("a/b.key", None),
            ("", None),
        ] {
            assert_eq!(kind_of(name), expected, "{name}");
        }
    }
}
