//! Building the wall, in the process that becomes the command.
//!
//! The input is a policy. The output is a process that has given up every right that the policy does not name, and
//! cannot get one back. The order matters: the user first, then the limits, then the files, then the system calls. The
//! command does not start after a step that fails.

use std::path::PathBuf;

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, LandlockStatus, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, Scope,
};
use nix::sys::resource::{Resource, rlim_t, setrlimit};
use nix::unistd::getuid;

use super::{SandboxError, WallPolicy, filter, identity, system};
use crate::process::die_with_parent;

/// The newest version of Landlock whose rights this program has been tested with.
const TESTED: ABI = ABI::V7;

/// The most files that a process may have open. Each may have a buffer in the kernel.
const FILES_MAX: u64 = 4096;

/// The stack of a process, which decides how deep a program can nest before it fails.
const STACK: u64 = 8 << 20;

/// Walls in this process.
///
/// After an error, the process must not run the command.
pub(super) fn raise(policy: &WallPolicy) -> Result<(), SandboxError> {
    // A file or socket that this process has inherited is not covered by any rule.
    close_fds::set_fds_cloexec(3, &[]);
    // The paths are opened while this process may still open them.
    let mut read = open_named(&policy.read)?;
    let mut devices = Vec::new();
    if !policy.interprets {
        read.extend(open_present(&system::READ));
        // The link `self` leads to this process, which becomes the command.
        read.extend(open_present(&system::ABOUT_SELF));
        devices.extend(open_present(&system::DEVICES));
    }
    let mut write = open_named(&policy.write)?;
    write.extend(open_named(policy.scratch.as_slice())?);
    let is_own_user =
        identity::give_up(policy).map_err(|why| unavailable("the user cannot be changed", &why))?;
    set_limits(policy, is_own_user)
        .map_err(|why| unavailable("its limits cannot be set", &std::io::Error::from(why)))?;
    die_with_parent().map_err(|why| unavailable("it cannot be tied to its parent", &why))?;
    let landlock = restrict_files(read, write, devices).map_err(|why| unavailable("Landlock", &why))?;
    let Some(landlock) = landlock else {
        return Err(SandboxError::Unavailable("Landlock is not enabled in its kernel".to_owned()));
    };
    let failure = "system calls cannot be filtered";
    for program in filter::filters(policy, landlock).map_err(|why| unavailable(failure, &why))? {
        seccompiler::apply_filter(&program).map_err(|why| unavailable(failure, &why))?;
    }
    Ok(())
}

fn unavailable(what: &str, why: &dyn std::fmt::Display) -> SandboxError {
    SandboxError::Unavailable(format!("{what}: {why}"))
}

/// Opens paths that the user has named, all of which must be there.
fn open_named(paths: &[PathBuf]) -> Result<Vec<PathFd>, SandboxError> {
    let mut opened = Vec::new();
    for path in paths {
        opened.push(PathFd::new(path).map_err(|why| {
            let source = std::io::Error::other(why.to_string());
            SandboxError::Path { path: path.clone(), source }
        })?);
    }
    Ok(opened)
}

/// Opens those of these paths that this system has.
fn open_present(paths: &[&str]) -> impl Iterator<Item = PathFd> {
    paths.iter().filter_map(|path| PathFd::new(path).ok())
}

/// Restricts this process to these files. Returns the version of the kernel's rules, or `None` if its kernel has none.
fn restrict_files(
    read: Vec<PathFd>,
    write: Vec<PathFd>,
    devices: Vec<PathFd>,
) -> Result<Option<ABI>, landlock::RulesetError> {
    let all = AccessFs::from_all(TESTED);
    let device = AccessFs::ReadFile | AccessFs::WriteFile;
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V1))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::from_all(TESTED))?
        .create()?
        .add_rules(rules_beneath(read, AccessFs::from_read(TESTED)))?
        .add_rules(rules_beneath(write, all))?
        .add_rules(rules_beneath(devices, device))?
        .restrict_self()?;
    match status.landlock {
        LandlockStatus::Available { effective_abi, .. } => Ok(Some(effective_abi)),
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => Ok(None),
    }
}

fn rules_beneath(
    paths: Vec<PathFd>,
    access: BitFlags<AccessFs>,
) -> impl Iterator<Item = Result<PathBeneath<PathFd>, landlock::RulesetError>> {
    paths.into_iter().map(move |path| {
        let file =
            nix::sys::stat::fstat(&path).is_ok_and(|stat| stat.st_mode & libc::S_IFMT != libc::S_IFDIR);
        let access = if file { access & AccessFs::from_file(TESTED) } else { access };
        Ok(PathBeneath::new(path, access))
    })
}

/// Sets the limits of this process, which its children inherit.
fn set_limits(policy: &WallPolicy, is_own_user: bool) -> nix::Result<()> {
    let limits = policy.limits;
    // A person's other programs count as well, except where the command has a user of its own.
    let others = if is_own_user { 0 } else { threads_of_user() };
    let processes = others + limits.processes;
    for (resource, most) in [
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_CPU, limits.cpu_s),
        (Resource::RLIMIT_FSIZE, limits.file),
        (Resource::RLIMIT_DATA, limits.memory),
        (Resource::RLIMIT_MSGQUEUE, 0),
        (Resource::RLIMIT_NOFILE, FILES_MAX),
        (Resource::RLIMIT_NPROC, processes),
    ] {
        lower_limit(resource, most)?;
    }
    let (_, hard) = nix::sys::resource::getrlimit(Resource::RLIMIT_STACK)?;
    setrlimit(Resource::RLIMIT_STACK, STACK.min(hard), hard)
}

/// Lowers a limit; one that is lower already stays.
fn lower_limit(resource: Resource, most: rlim_t) -> nix::Result<()> {
    let (_, hard) = nix::sys::resource::getrlimit(resource)?;
    let most = most.min(hard);
    setrlimit(resource, most, most)
}

/// Returns the number of threads of this process's user, as far as they can be seen.
fn threads_of_user() -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let own = getuid().as_raw();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut threads = 0;
    for process in processes {
        let is_process = process.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit());
        if is_process && process.metadata().is_ok_and(|data| data.uid() == own) {
            threads += std::fs::read_dir(process.path().join("task")).map_or(0, Iterator::count) as u64;
        }
    }
    threads
}
