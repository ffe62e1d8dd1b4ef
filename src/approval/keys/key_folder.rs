//! A folder of keys: the roster of all members, and the secret keys of those who sign here.
//!
//! `roster.json` has the public keys and can be given to anyone. `NAME.key` is a secret (PKCS #8 in PEM form) that only its
//! owner may read. A folder with a roster and no secret key is enough to verify.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::approval::decision_error::DecisionError;
use crate::files::{SMALL_BYTES_MAX, private_folder, read_text};
use crate::journal::FILE_NAME;
use crypto::{Digest, SecretKey};
use quorum::{Membership, NodeId, Roster, RosterEntry, RosterFault, RosterSigner};

/// The name of the file with the public keys.
pub const ROSTER_FILE: &str = "roster.json";

/// The name of the orchestrator, which proposes.
pub const ORCHESTRATOR: &str = "orchestrator";

/// The domain of failure of a reviewer whose roleset names no model: all such reviewers are on the one model that a run is
/// given.
pub const RUNS_MODEL: &str = "the model of the run";

/// The domain of failure of the orchestrator.
const ORCHESTRATOR_DOMAIN: &str = "none: it has no vote";

/// The folder of everything that these keys have signed, and the folder in it for members in processes of their own.
pub(super) const DECISIONS: &str = "decisions";
pub(super) const APART: &str = "peers";

/// A folder with a roster, and perhaps with secret keys.
#[derive(Clone, Debug)]
pub struct KeyFolder {
    folder: PathBuf,
    roster: Roster,
}

impl KeyFolder {
    /// Makes a key for each of these reviewers, given by name and domain of failure, and one for the orchestrator.
    ///
    /// Returns [`DecisionError::KeysAreThere`] if the folder has a roster; another error if it cannot be written.
    pub fn generate(folder: &Path, reviewers: &[(String, String)]) -> Result<Self, DecisionError> {
        let roster_file = folder.join(ROSTER_FILE);
        if roster_file.exists() {
            return Err(DecisionError::KeysAreThere(roster_file));
        }
        if reviewers.iter().any(|(name, _)| name == ORCHESTRATOR) {
            return Err(RosterFault::SameName(ORCHESTRATOR.to_owned()).into());
        }
        let seats: Result<Vec<RosterEntry>, DecisionError> =
            reviewers.iter().map(|(name, domain)| new_seat(folder, name, domain)).collect();
        let orchestrators = vec![new_seat(folder, ORCHESTRATOR, ORCHESTRATOR_DOMAIN)?];
        Self::write(folder, Roster { reviewers: seats?, orchestrators })
    }

    /// Makes the key of one member, and beside it `NAME.seat.json` with its public key, for the maker of the roster. Returns
    /// the path of that file.
    ///
    /// Returns [`DecisionError::KeysAreThere`] if that file or the key exists; another error if it cannot be written.
    pub fn generate_one(folder: &Path, name: &str, domain: &str) -> Result<PathBuf, DecisionError> {
        let path = folder.join(format!("{}.seat.json", escape_name(name)));
        if path.exists() {
            return Err(DecisionError::KeysAreThere(path));
        }
        let seat = new_seat(folder, name, if name == ORCHESTRATOR { ORCHESTRATOR_DOMAIN } else { domain })?;
        write_new(&path, &(serde_json::to_string_pretty(&seat).unwrap_or_default() + "\n"), 0o644)?;
        Ok(path)
    }

    /// Makes a roster from the public keys of all members, with the reviewers in this order.
    ///
    /// Returns [`DecisionError`] if a file is not such a key, a member is missing, or a key belongs to no member.
    pub fn join(folder: &Path, reviewers: &[String], files: &[PathBuf]) -> Result<Self, DecisionError> {
        let mut seats = Vec::new();
        for path in files {
            let text = read_text(path, SMALL_BYTES_MAX).map_err(DecisionError::file("read", path))?;
            let seat: RosterEntry = serde_json::from_str(&text)
                .map_err(|why| DecisionError::Unreadable { path: path.clone(), why: why.to_string() })?;
            if seats.iter().any(|known: &RosterEntry| known.name == seat.name) {
                return Err(RosterFault::SameName(seat.name).into());
            }
            seats.push(seat);
        }
        let reviewers = reviewers.iter().map(|name| take_seat(&mut seats, name)).collect::<Result<_, _>>()?;
        let orchestrators = vec![take_seat(&mut seats, ORCHESTRATOR)?];
        if let Some(other) = seats.first() {
            return Err(DecisionError::NoPart(other.name.clone()));
        }
        make_folder(folder)?;
        Self::write(folder, Roster { reviewers, orchestrators })
    }

    /// Writes the roster, which completes a folder.
    fn write(folder: &Path, roster: Roster) -> Result<Self, DecisionError> {
        // Two members with one name are refused here, before anything is signed.
        Membership::new(Digest::ZERO, roster.clone())?;
        let text = serde_json::to_string_pretty(&roster).unwrap_or_default() + "\n";
        write_new(&folder.join(ROSTER_FILE), &text, 0o644)?;
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(DecisionError::file("sync", folder))?;
        Ok(Self { folder: folder.to_owned(), roster })
    }

    /// Reads the roster of a folder.
    ///
    /// Returns [`DecisionError`] if there is no roster, or if it cannot be read.
    pub fn open(folder: &Path) -> Result<Self, DecisionError> {
        let path = folder.join(ROSTER_FILE);
        if !path.exists() {
            let why = "it does not exist; `consensus keys generate` makes keys, and `consensus keys join` makes it from seats".to_owned();
            return Err(DecisionError::Unreadable { path, why });
        }
        let text = read_text(&path, SMALL_BYTES_MAX).map_err(DecisionError::file("read", &path))?;
        let roster = serde_json::from_str(&text)
            .map_err(|why| DecisionError::Unreadable { path: path.clone(), why: why.to_string() })?;
        Ok(Self { folder: folder.to_owned(), roster })
    }

    /// Returns the name that distinguishes the ledger of a repository under this roster from others.
    pub fn ledger_name(membership: &Membership) -> String {
        let digest = Digest::new(format!("{}\n{}\n", membership.chain(), membership.digest()).as_bytes());
        digest.to_string().chars().take(16).collect()
    }

    /// Returns the folder of what these keys have signed in one process.
    ///
    /// Returns [`DecisionError::Placement`] if they have signed in processes of their own.
    pub fn local_folder(&self, membership: &Membership) -> Result<PathBuf, DecisionError> {
        let folder = self.folder.join(DECISIONS).join(Self::ledger_name(membership));
        let apart = folder.join(APART);
        if apart.exists() {
            return Err(DecisionError::Placement { place: apart, other: "processes of their own (--peers)" });
        }
        Ok(folder)
    }

    /// Returns the folder of what these keys have signed, each in a process of its own.
    ///
    /// Returns [`DecisionError::Placement`] if they have signed in one process.
    pub fn distributed_folder(&self, membership: &Membership) -> Result<PathBuf, DecisionError> {
        let folder = self.folder.join(DECISIONS).join(Self::ledger_name(membership));
        let together = folder.join(FILE_NAME);
        if std::fs::metadata(&together).is_ok_and(|file| file.len() > 0) {
            return Err(DecisionError::Placement { place: together, other: "one process (without --peers)" });
        }
        Ok(folder.join(APART))
    }

    /// Returns the secret key of a member with its party and its signer, and the folder of its log, for a process of its own.
    ///
    /// Returns [`DecisionError`] if the roster lacks the member, its key is not here, or it has signed in one process with others.
    pub fn seat(
        &self,
        name: &str,
        membership: &Arc<Membership>,
    ) -> Result<(SecretKey, NodeId, RosterSigner, PathBuf), DecisionError> {
        let own = membership.seats().map(|(_, seat)| seat).find(|seat| seat.name == name);
        let own = own.ok_or_else(|| DecisionError::NoSeat(name.to_owned()))?;
        let (key, party, signer) = self.signer(own, membership)?;
        Ok((key, party, signer, self.distributed_folder(membership)?.join(escape_name(name))))
    }

    /// Returns the members whose secret keys are here, with the text of each key. Checks that only its owner may read each key.
    pub(super) fn held(&self) -> Result<Vec<(&RosterEntry, String)>, DecisionError> {
        let Roster { reviewers, orchestrators } = &self.roster;
        let here =
            reviewers.iter().chain(orchestrators).filter(|seat| key_file(&self.folder, &seat.name).exists());
        here.map(|seat| Ok((seat, self.key(seat)?.to_pem()))).collect()
    }

    /// Returns the roster of all members.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// Returns the signers of all members: the orchestrator's, and the reviewers' in their order.
    ///
    /// Returns [`DecisionError`] if a key is missing, belongs to another member, or can be read by others.
    pub fn signers(
        &self,
        membership: &Arc<Membership>,
    ) -> Result<(RosterSigner, Vec<RosterSigner>), DecisionError> {
        let Roster { reviewers, orchestrators } = &self.roster;
        // A membership was made of this roster, so it has an orchestrator.
        let orchestrator = orchestrators.first().ok_or(RosterFault::NoOrchestrators)?;
        let (.., orchestrator) = self.signer(orchestrator, membership)?;
        let mut signers = Vec::new();
        for seat in reviewers {
            let (.., signer) = self.signer(seat, membership)?;
            signers.push(signer);
        }
        Ok((orchestrator, signers))
    }

    fn signer(
        &self,
        seat: &RosterEntry,
        membership: &Arc<Membership>,
    ) -> Result<(SecretKey, NodeId, RosterSigner), DecisionError> {
        let key = self.key(seat)?;
        match RosterSigner::new(key.clone(), Arc::clone(membership)) {
            Some((party, signer)) => Ok((key, party, signer)),
            None => Err(self.other_key(seat)),
        }
    }

    fn other_key(&self, seat: &RosterEntry) -> DecisionError {
        DecisionError::OtherKey { path: key_file(&self.folder, &seat.name), name: seat.name.clone() }
    }

    fn key(&self, seat: &RosterEntry) -> Result<SecretKey, DecisionError> {
        let path = key_file(&self.folder, &seat.name);
        let about = std::fs::metadata(&path).map_err(DecisionError::file("read the key", &path))?;
        let text = read_text(&path, SMALL_BYTES_MAX).map_err(DecisionError::file("read the key", &path))?;
        if about.permissions().mode() & 0o077 != 0 {
            return Err(DecisionError::OpenKey(path));
        }
        let key = SecretKey::from_pem(&text).map_err(|why| DecisionError::Key { path: path.clone(), why })?;
        if key.public() != seat.key {
            return Err(self.other_key(seat));
        }
        Ok(key)
    }
}

fn take_seat(seats: &mut Vec<RosterEntry>, name: &str) -> Result<RosterEntry, DecisionError> {
    match seats.iter().position(|seat| seat.name == name) {
        Some(at) => Ok(seats.remove(at)),
        None => Err(DecisionError::NoSeat(name.to_owned())),
    }
}

pub(super) fn make_folder(folder: &Path) -> Result<(), DecisionError> {
    private_folder(folder).map_err(DecisionError::file("make the folder", folder))
}

/// Makes a key that only its owner may read.
fn new_seat(folder: &Path, name: &str, domain: &str) -> Result<RosterEntry, DecisionError> {
    make_folder(folder)?;
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)
        .map_err(|why| DecisionError::file("make a key for", &folder.join(name))(why.into()))?;
    let key = SecretKey::from_seed(&seed);
    write_new(&key_file(folder, name), &key.to_pem(), 0o600)?;
    Ok(RosterEntry { name: name.to_owned(), key: key.public(), domain: domain.to_owned() })
}

/// Returns the path of a key. A name that is read from a file may hold anything.
fn key_file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{}.key", escape_name(name)))
}

/// Returns a name in a form that can be part of a path.
pub(super) fn escape_name(name: &str) -> String {
    name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_', "_")
}

/// Writes a file that does not exist yet, and makes it durable.
pub(super) fn write_new(path: &Path, text: &str, mode: u32) -> Result<(), DecisionError> {
    let opened = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let written = opened.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    match written {
        Err(why) if why.kind() == ErrorKind::AlreadyExists => {
            Err(DecisionError::KeysAreThere(path.to_owned()))
        }
        written => written.map_err(DecisionError::file("write", path)),
    }
}
