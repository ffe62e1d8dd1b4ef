//! A folder of keys: who takes part, and the secret keys of those who do so here.
//!
//! `roster.json` has the public keys and can be given to anybody; `NAME.key` is a secret (PKCS #8 in PEM form) that its owner
//! alone may read. A folder with a roster and no secret is enough to verify.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::DecisionError;
use crate::crypto::SecretKey;
use crate::protocol::approval::{Registry, Roster, RosterFault, Seal, Seat};

/// The file with the public keys.
pub const ROSTER_FILE: &str = "roster.json";

/// The name of who proposes.
const ORCHESTRATOR: &str = "orchestrator";

/// A folder with a roster, and perhaps with secret keys.
#[derive(Clone, Debug)]
pub struct KeyFolder {
    folder: PathBuf,
    roster: Roster,
}

impl KeyFolder {
    /// Makes a key for each of these reviewers, given by name and what it fails together with, and one for who proposes.
    ///
    /// # Errors
    ///
    /// [`DecisionError::KeysAreThere`] if the folder has a roster; others if it cannot be written.
    pub fn generate(folder: &Path, reviewers: &[(String, String)]) -> Result<Self, DecisionError> {
        let roster_file = folder.join(ROSTER_FILE);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(DecisionError::file("make the folder", folder))?;
        if roster_file.exists() {
            return Err(DecisionError::KeysAreThere(roster_file));
        }
        if reviewers.iter().any(|(name, _)| name == ORCHESTRATOR) {
            return Err(RosterFault::SameName(ORCHESTRATOR.to_owned()).into());
        }
        let seat = |(name, domain): &(String, String)| {
            let mut seed = [0; 32];
            getrandom::fill(&mut seed)
                .map_err(|why| DecisionError::file("make a key for", &folder.join(name))(why.into()))?;
            let key = SecretKey::from_seed(&seed);
            write_new(&key_file(folder, name), &key.to_pem(), 0o600)?;
            Ok(Seat { name: name.clone(), key: key.public(), domain: domain.clone() })
        };
        let seats: Result<Vec<Seat>, DecisionError> = reviewers.iter().map(seat).collect();
        let orchestrators = vec![seat(&(ORCHESTRATOR.to_owned(), "nobody: it has no vote".to_owned()))?];
        let roster = Roster { reviewers: seats?, orchestrators };
        // It says so before anything is signed, if two have one name.
        Registry::new(crate::crypto::Digest::ZERO, roster.clone())?;
        // Last, since with it the folder is complete.
        let text = serde_json::to_string_pretty(&roster).unwrap_or_default() + "\n";
        write_new(&roster_file, &text, 0o644)?;
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(DecisionError::file("sync", folder))?;
        Ok(Self { folder: folder.to_owned(), roster })
    }

    /// Reads the roster of a folder.
    ///
    /// # Errors
    ///
    /// [`DecisionError`] if there is none, or none that can be read.
    pub fn open(folder: &Path) -> Result<Self, DecisionError> {
        let path = folder.join(ROSTER_FILE);
        if !path.exists() {
            let why = "it is not there; `consensus keys generate` makes keys".to_owned();
            return Err(DecisionError::Unreadable { path, why });
        }
        let text = std::fs::read_to_string(&path).map_err(DecisionError::file("read", &path))?;
        let roster = serde_json::from_str(&text)
            .map_err(|why| DecisionError::Unreadable { path: path.clone(), why: why.to_string() })?;
        Ok(Self { folder: folder.to_owned(), roster })
    }

    /// The folder with the ledgers of what these keys have signed.
    #[must_use]
    pub fn decisions(&self) -> PathBuf {
        self.folder.join("decisions")
    }

    /// All who take part.
    #[must_use]
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// Those of them who sign here: the orchestrator, and all reviewers in their order.
    ///
    /// # Errors
    ///
    /// [`DecisionError`] if a key is missing, is another's, or can be read by others.
    pub fn seals(&self, registry: &Arc<Registry>) -> Result<(Seal, Vec<Seal>), DecisionError> {
        let Roster { reviewers, orchestrators } = &self.roster;
        let seal = |seat: &Seat| self.seal(seat, registry);
        // A roster without one is none, and a registry was made of it.
        let orchestrator = orchestrators.first().ok_or(RosterFault::NoOrchestrators)?;
        Ok((seal(orchestrator)?, reviewers.iter().map(seal).collect::<Result<_, _>>()?))
    }

    fn seal(&self, seat: &Seat, registry: &Arc<Registry>) -> Result<Seal, DecisionError> {
        let path = key_file(&self.folder, &seat.name);
        let read = || {
            let mode = std::fs::metadata(&path)?.permissions().mode();
            Ok((mode, std::fs::read_to_string(&path)?))
        };
        let (mode, text) = read().map_err(DecisionError::file("read the key", &path))?;
        if mode & 0o077 != 0 {
            return Err(DecisionError::OpenKey(path));
        }
        let key = SecretKey::from_pem(&text).map_err(|why| DecisionError::Key { path: path.clone(), why })?;
        let other = || DecisionError::OtherKey { path: path.clone(), name: seat.name.clone() };
        if key.public() != seat.key {
            return Err(other());
        }
        Seal::new(key, Arc::clone(registry)).map(|(_, seal)| seal).ok_or_else(other)
    }
}

/// Where a key is. A name that is read from a file may be anything.
fn key_file(folder: &Path, name: &str) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' };
    folder.join(format!("{}.key", name.chars().map(plain).collect::<String>()))
}

/// Writes a file that is not there, and makes it durable.
fn write_new(path: &Path, text: &str, mode: u32) -> Result<(), DecisionError> {
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write().map_err(|source| {
        if source.kind() == ErrorKind::AlreadyExists {
            return DecisionError::KeysAreThere(path.to_owned());
        }
        DecisionError::file("write", path)(source)
    })
}
