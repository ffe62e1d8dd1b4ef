//! The user that a walled command of root runs as.
//!
//! The owner of a file may change its mode whatever file rules say, and the kernel limits the processes of every user
//! but root. A command of root therefore gets a user of its own, who owns nothing but the scratch folder. Of root's
//! rights it keeps one at most: to open files whatever their modes, within the wall.

use std::os::unix::fs::lchown;
use std::path::Path;

use caps::{CapSet, Capability, CapsHashSet};
use nix::unistd::{Gid, Uid, User, geteuid, setgroups, setresgid, setresuid};

use super::WallPolicy;

/// The range of users that systemd gives to services for as long as they run, and that no person has.
const TRANSIENT: std::ops::Range<u32> = 61_184..65_520;

/// Gives up every right of root, if this process has any. Returns true if the process is a user of its own now.
///
/// Returns an error of the kernel. After one, the process must not run the command.
pub(super) fn give_up(policy: &WallPolicy) -> std::io::Result<bool> {
    let mut rights = CapsHashSet::new();
    let mut is_own_user = false;
    if geteuid().is_root() {
        let right = remaining_right(policy);
        is_own_user = become_own_user(policy, right)?;
        if is_own_user {
            rights.extend(right);
        }
    }
    set_rights(CapSet::Effective, &rights)?;
    set_rights(CapSet::Inheritable, &CapsHashSet::new())?;
    set_rights(CapSet::Permitted, &rights)?;
    if !rights.is_empty() {
        set_rights(CapSet::Inheritable, &rights)?;
        set_rights(CapSet::Ambient, &rights)?;
    }
    Ok(is_own_user)
}

fn set_rights(set: CapSet, rights: &CapsHashSet) -> std::io::Result<()> {
    caps::set(None, set, rights).map_err(std::io::Error::other)
}

/// Returns the right that a command of root keeps: to read what the wall lets it read, or also to write where it names
/// a place for writing.
fn remaining_right(policy: &WallPolicy) -> Option<Capability> {
    let right =
        if policy.write.is_empty() { Capability::CAP_DAC_READ_SEARCH } else { Capability::CAP_DAC_OVERRIDE };
    let has_right = !policy.interprets && caps::has_cap(None, CapSet::Permitted, right).unwrap_or(false);
    has_right.then_some(right)
}

/// Turns a process of root into one of a user that no one has. Returns false where this user does not exist, as in a
/// container with a single user, whose root is an ordinary user outside.
fn become_own_user(policy: &WallPolicy, right: Option<Capability>) -> std::io::Result<bool> {
    for capability in caps::all().into_iter().filter(|capability| Some(*capability) != right) {
        // A right that the kernel does not know cannot be dropped.
        let _ = caps::drop(None, CapSet::Bounding, capability);
    }
    // Walls that are built at the same time begin at different users.
    let (count, first) = (TRANSIENT.end - TRANSIENT.start, std::process::id());
    let mut users = (0..count).map(|step| TRANSIENT.start + (first.wrapping_add(step)) % count);
    let free = users.find(|user| User::from_uid(Uid::from_raw(*user)).ok().flatten().is_none());
    let Some(user) = free else {
        return Err(std::io::Error::other("every transient user is taken"));
    };
    if let Some(scratch) = &policy.scratch {
        match hand_over(scratch, user) {
            Err(why) if why.raw_os_error() == Some(libc::EINVAL) => return Ok(false),
            done => done?,
        }
    }
    nix::sys::prctl::set_keepcaps(true)?;
    let (uid, gid) = (Uid::from_raw(user), Gid::from_raw(user));
    let changed =
        setgroups(&[]).and_then(|()| setresgid(gid, gid, gid)).and_then(|()| setresuid(uid, uid, uid));
    match changed {
        Err(nix::Error::EINVAL) => Ok(false),
        done => Ok(done.map(|()| true)?),
    }
}

/// Makes a user the owner of a folder and of everything in it.
fn hand_over(folder: &Path, user: u32) -> std::io::Result<()> {
    lchown(folder, Some(user), Some(user))?;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            hand_over(&entry.path(), user)?;
        } else {
            lchown(entry.path(), Some(user), Some(user))?;
        }
    }
    Ok(())
}
