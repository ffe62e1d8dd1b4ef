//! The settings of a folder that need its visitor's trust, and whether the visitor has given it.
//!
//! The input is a project's file as it was read, and the rolesets and links beside it. The output is [`Claims`]: the settings that
//! start programs, name servers or keys, or lead out of the folder. One digest covers every file with such a setting. The
//! [`TrustStore`] is the user's own list of folders, with the digest at which each was trusted.
//!
//! Every setting is a claim unless it is on the list of harmless ones. Nothing here starts, sends or changes anything but the user's
//! list, and a project's file never decides about its own trust.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::bounded_read::{PROJECT_FILE, config_folder, read_roleset_file};
use super::document::TomlDocument;
use super::error::ConfigError;
use super::file::FileConfig;
use super::link_targets::{LinkTarget, follow_links};
use super::trust_claim::{TrustClaim, TrustState};
use crate::files::{SMALL_BYTES_MAX, private_folder, read_text, write_whole};
use crate::provider::is_loopback;
use crypto::Digest;
use protocol::core::{BEDROCK, PRESETS};

/// The variable whose value is a digest, which makes the folder with that digest trusted.
pub const TRUST_VARIABLE: &str = "CONSENSUS_TRUST";

/// The name of the list in the user's configuration folder.
const STORE_FILE: &str = "trusted.json";

/// The settings that a project's file may make without trust, beside a model or roleset that [`is_harmless`], and a folder inside.
const HARMLESS: [&str; 6] = ["stream", "retries", "calls_at_once", "leave_out", "timeouts", "prices"];

/// The settings that name a folder, which are harmless if it is inside the project's folder.
const FOLDERS: [&str; 2] = ["runs_dir", "rolesets_dir"];

/// The folder with rolesets if no setting names one.
const ROLESETS_DIR: &str = "rolesets";

/// The folder for run folders if no setting names one.
pub const DEFAULT_RUNS_DIR: &str = "runs";

/// The paths below the folder for run folders that are written under a name that a project can foresee.
const FORESEEN: [&str; 3] = ["", "doctor/server.log", "sessions"];

/// The claims of a folder that need trust.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Claims {
    /// The folder, without links.
    pub folder: PathBuf,
    /// The claims, in the order of the file.
    pub claims: Vec<TrustClaim>,
    /// The digest over every file and link with a claim.
    pub digest: Digest,
    /// The outermost keys of the project's file that are among the claims.
    keys: Vec<String>,
}

impl Claims {
    /// Returns the claims of a folder that need trust; `None` if there are no claims.
    ///
    /// `user` is the user's own file, which may name the folder for run folders.
    ///
    /// Returns [`ConfigError`] if the project's file cannot be read.
    pub fn of_folder(folder: &Path, user: &FileConfig) -> Result<Option<Self>, ConfigError> {
        let file = folder.join(PROJECT_FILE);
        let document = TomlDocument::read(file.strip_prefix(".").unwrap_or(&file))?;
        let config = document.as_ref().map(FileConfig::parse).transpose()?.unwrap_or_default();
        Self::new(folder, document.as_ref(), &config, user)
    }

    /// Returns the same as [`Self::of_folder`], for a file that was already read and parsed.
    pub(super) fn new(
        folder: &Path,
        document: Option<&TomlDocument>,
        config: &FileConfig,
        user: &FileConfig,
    ) -> Result<Option<Self>, ConfigError> {
        let folder =
            folder.canonicalize().map_err(|source| ConfigError::Read { path: folder.to_owned(), source })?;
        let mut claims = Vec::new();
        let mut keys = Vec::new();
        let mut links = Vec::new();
        for setting in document.map(TomlDocument::settings).transpose()?.unwrap_or_default() {
            let key = setting.keys.first().map_or("", String::as_str);
            if is_harmless(key, config, user) {
                continue;
            }
            let mut what = format!("{} = {}", setting.name(), setting.value);
            if FOLDERS.contains(&key) {
                let Some(outside) = find_outside(&folder, key, config) else { continue };
                what = format!("{what} (outside of the folder: {})", outside.place.display());
                links.extend(outside.links);
            }
            keys.push(key.to_owned());
            claims.push(TrustClaim { place: setting.place(), what });
        }
        let mut files: Vec<(PathBuf, Digest)> = Vec::new();
        if let Some(document) = document
            && !claims.is_empty()
        {
            files.push((PROJECT_FILE.into(), document.digest()));
        }
        if !keys.iter().any(|key| key == "runs_dir") {
            let runs = config.runs_dir.as_ref().or(user.runs_dir.as_ref());
            let runs = runs.map_or(Path::new(DEFAULT_RUNS_DIR), PathBuf::as_path);
            if let Some(outside) = find_link_outside(&folder, runs) {
                let place = outside.links.first().map(|(link, _)| link.display().to_string());
                let what = format!("a link that leads out of the folder, to {}", outside.place.display());
                claims.push(TrustClaim { place: place.unwrap_or_default(), what });
                links.extend(outside.links);
            }
        }
        keys.dedup();
        let mut rolesets: Vec<&Path> = config.rolesets_dir.as_deref().into_iter().collect();
        rolesets.push(Path::new(ROLESETS_DIR));
        rolesets.dedup();
        for file in rolesets.iter().flat_map(|place| roleset_files(&folder.join(place))) {
            // A file that cannot be read is not a roleset that runs.
            let Ok(text) = read_roleset_file(&file) else { continue };
            let place = file.strip_prefix(&folder).unwrap_or(&file).to_owned();
            for what in claims_of_roleset(&text, user) {
                claims.push(TrustClaim { place: place.display().to_string(), what });
                files.push((place.clone(), Digest::new(text.as_bytes())));
            }
        }
        // A roleset that is named by its file is digested, wherever it is and whatever its name is.
        if let Some(name) = config.roleset.as_deref()
            && is_file_name(name)
        {
            let file = folder.join(name);
            let digest = std::fs::read(&file).map_or(Digest::ZERO, |bytes| Digest::new(&bytes));
            files.push((file, digest));
        }
        files.dedup();
        if claims.is_empty() {
            return Ok(None);
        }
        let digest = digest_listing(files, links);
        Ok(Some(Self { folder, claims, digest, keys }))
    }

    /// Returns whether an outermost key of the project's file is among the claims.
    pub(super) fn names(&self, key: &str) -> bool {
        self.keys.iter().any(|known| known == key)
    }

    /// Returns whether the user trusts the claims, through the environment or the user's list.
    ///
    /// Returns [`ConfigError`] if the list cannot be read.
    pub fn state(&self) -> Result<TrustState, ConfigError> {
        let given = std::env::var(TRUST_VARIABLE).ok().filter(|given| !given.is_empty());
        if given.as_ref().is_some_and(|given| given.trim() == self.digest.to_string()) {
            return Ok(TrustState::Trusted);
        }
        let known = match TrustStore::open() {
            Some(store) => store.folders()?.get(&self.folder).copied(),
            None => None,
        };
        Ok(match known {
            Some(digest) if digest == self.digest => TrustState::Trusted,
            Some(_) => TrustState::Changed,
            None if given.is_some() => TrustState::OtherDigest,
            None => TrustState::Unknown,
        })
    }

    /// Checks that the user trusts the claims.
    ///
    /// Returns [`ConfigError::Untrusted`] with all claims and the command that trusts them.
    pub(super) fn require_trust(&self) -> Result<(), ConfigError> {
        let state = self.state()?;
        if state == TrustState::Trusted {
            return Ok(());
        }
        let (folder, claims, digest) = (self.folder.clone(), self.claims.clone(), self.digest);
        Err(ConfigError::Untrusted { folder, claims, digest, state })
    }
}

/// Returns whether a project's file may have a setting without trust.
fn is_harmless(key: &str, config: &FileConfig, user: &FileConfig) -> bool {
    match key {
        "model" => !config.model.as_deref().is_some_and(|model| is_elsewhere(model, user)),
        "roleset" => !config.roleset.as_deref().is_some_and(is_file_name),
        _ => HARMLESS.contains(&key),
    }
}

/// Returns whether a roleset is named by its file, and not by a name that is looked up in folders.
fn is_file_name(roleset: &str) -> bool {
    roleset.contains('/') || Path::new(roleset).extension().is_some_and(|extension| extension == "json")
}

/// Returns whether a model is called at a server on another machine that the user's own file does not use. A question must not go
/// where a folder sends it. The servers of [`PRESETS`] are known by their names, so they can be named without an address.
fn is_elsewhere(model: &str, user: &FileConfig) -> bool {
    let Some((provider, _)) = model.split_once(':') else { return false };
    let is_far = PRESETS.iter().any(|preset| {
        preset.name == provider && reqwest::Url::parse(preset.base_url).is_ok_and(|url| !is_loopback(&url))
    });
    let users = user.model.as_deref().and_then(|model| model.split_once(':'));
    let is_users = users.is_some_and(|(own, _)| own == provider) || user.providers.contains_key(provider);
    (is_far || provider == BEDROCK) && !is_users
}

/// Returns the roleset files of a folder.
fn roleset_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    files
}

/// Returns the settings of a roleset that need trust: models that are called elsewhere, and the check.
fn claims_of_roleset(text: &str, user: &FileConfig) -> Vec<String> {
    let roleset: Value = serde_json::from_str(text).unwrap_or_default();
    let mut claims = Vec::new();
    for agent in roleset["agents"].as_array().into_iter().flatten().chain([&roleset["arbiter"]]) {
        if let Some(model) = agent["model"].as_str()
            && is_elsewhere(model, user)
        {
            claims.push(format!("model = {model:?}"));
        }
    }
    if let Some(check) = roleset["check"].as_str() {
        claims.push(format!("check = {check:?}"));
    }
    claims
}

/// Returns the place of a folder that the project's file names, if it is outside the project's folder.
fn find_outside(folder: &Path, key: &str, config: &FileConfig) -> Option<LinkTarget> {
    let named = if key == "runs_dir" { &config.runs_dir } else { &config.rolesets_dir };
    let target = follow_links(folder, named.as_ref()?);
    if target.is_outside { Some(target) } else { None }
}

/// Returns the way by which links lead the folder for run folders out of the project's folder, although no setting of the project says
/// so.
fn find_link_outside(folder: &Path, runs: &Path) -> Option<LinkTarget> {
    let mut targets = FORESEEN.iter().map(|name| follow_links(folder, &runs.join(name)));
    targets.find(|target| target.is_outside && !target.links.is_empty())
}

/// Returns the digest over a listing of files, each with the SHA-256 of its content; a link counts with its target.
fn digest_listing(files: Vec<(PathBuf, Digest)>, mut links: Vec<(PathBuf, PathBuf)>) -> Digest {
    let mut listing = b"consensus trust 1\n".to_vec();
    for (file, digest) in files {
        list_entry(&mut listing, "file", &file, digest);
    }
    links.sort();
    links.dedup();
    for (link, target) in links {
        list_entry(&mut listing, "link", &link, Digest::new(target.as_os_str().as_encoded_bytes()));
    }
    Digest::new(&listing)
}

fn list_entry(listing: &mut Vec<u8>, kind: &str, path: &Path, digest: Digest) {
    let path = path.as_os_str().as_encoded_bytes();
    listing.extend_from_slice(format!("{kind} {digest} {} ", path.len()).as_bytes());
    listing.extend_from_slice(path);
    listing.push(b'\n');
}

/// The user's list of trusted folders.
#[derive(Clone, Debug)]
pub struct TrustStore {
    folder: PathBuf,
}

/// The list in the form of its file.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct StoreFile {
    v: u32,
    folders: BTreeMap<PathBuf, Digest>,
}

impl TrustStore {
    /// Returns the list in the user's configuration folder; `None` if the user has no such folder.
    pub fn open() -> Option<Self> {
        config_folder().map(|folder| Self { folder })
    }

    pub fn path(&self) -> PathBuf {
        self.folder.join(STORE_FILE)
    }

    /// Returns each folder with the digest at which it was trusted.
    ///
    /// Returns [`ConfigError::Read`], or [`ConfigError::File`] if the list is damaged.
    pub fn folders(&self) -> Result<BTreeMap<PathBuf, Digest>, ConfigError> {
        let path = self.path();
        let text = match read_text(&path, SMALL_BYTES_MAX) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(source) => return Err(ConfigError::Read { path, source }),
        };
        let why = match serde_json::from_str::<StoreFile>(&text) {
            Ok(StoreFile { v: 1, folders }) => return Ok(folders),
            Ok(StoreFile { v, .. }) => format!("its version is {v}"),
            Err(why) => why.to_string(),
        };
        let why =
            format!("it is not a list of trusted folders: {why}; delete it, and trust the folders again");
        Err(ConfigError::File { path, why })
    }

    /// Trusts a folder in its present form.
    ///
    /// Fails as [`Self::folders`] does, or with [`ConfigError::Usage`] if the list cannot be written.
    pub fn trust(&self, claims: &Claims) -> Result<(), ConfigError> {
        if claims.folder.to_str().is_none() {
            let why = format!(
                "the name of the folder `{}` is not UTF-8 text; trust it with {TRUST_VARIABLE}={} in the environment",
                claims.folder.display(),
                claims.digest
            );
            return Err(ConfigError::Usage(why));
        }
        self.change(|folders| folders.insert(claims.folder.clone(), claims.digest))?;
        Ok(())
    }

    /// Removes a folder from the list. Returns whether it was listed.
    ///
    /// Fails as [`Self::trust`] does.
    pub fn revoke(&self, folder: &Path) -> Result<bool, ConfigError> {
        // A folder that no longer exists is found by its name in the list.
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        Ok(self.change(|folders| folders.remove(&folder))?.is_some())
    }

    /// Changes the list while no other process changes it.
    fn change<T>(&self, change: impl FnOnce(&mut BTreeMap<PathBuf, Digest>) -> T) -> Result<T, ConfigError> {
        let failed =
            |e: std::io::Error| ConfigError::Usage(format!("cannot write `{}`: {e}", self.path().display()));
        private_folder(&self.folder).map_err(failed)?;
        let lock = File::open(&self.folder).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let mut folders = self.folders()?;
        let changed = change(&mut folders);
        let text = serde_json::to_string_pretty(&StoreFile { v: 1, folders });
        let text = text.map_err(|e| failed(e.into()))? + "\n";
        write_whole(&self.path(), &text, 0o600).map_err(failed)?;
        Ok(changed)
    }
}
