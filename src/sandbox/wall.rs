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

use super::filter::{self, Needs};
use super::{SandboxError, WallPolicy, identity, system};
use crate::process::die_with_parent;

/// The newest version of Landlock whose rights this program has been tested with.
const TESTED: ABI = ABI::V7;

/// The most files that a process may have open. Each may have a buffer in the kernel.
const FILES_MAX: u64 = 4096;

/// The stack of a process, which decides how deep a program can nest before it fails.
const STACK: u64 = 8 << 20;

/// Walls in this process.
///
/// # Errors
///
/// [`SandboxError`]. After one, the process must not run the command.
pub(super) fn raise(policy: &WallPolicy) -> Result<(), SandboxError> {
    let failed =
        |what: &'static str| move |why: std::io::Error| SandboxError::Unavailable(format!("{what}: {why}"));
    // A file or socket that this process has inherited is not covered by any rule.
    close_fds::set_fds_cloexec(3, &[]);
    // The paths are opened while this process may still open them.
    let opened = Opened::of(policy)?;
    let is_own_user = identity::give_up(policy).map_err(failed("the user cannot be changed"))?;
    limit(policy, is_own_user).map_err(std::io::Error::from).map_err(failed("its limits cannot be set"))?;
    die_with_parent().map_err(failed("it cannot be tied to its parent"))?;
    let rules = restrict_files(opened)?;
    let needs = Needs { net: policy.net, spawns: !policy.interprets, rules };
    let refused = |why: &dyn std::fmt::Display| {
        SandboxError::Unavailable(format!("system calls cannot be filtered: {why}"))
    };
    for program in filter::filters(needs).map_err(|why| refused(&why))? {
        seccompiler::apply_filter(&program).map_err(|why| refused(&why))?;
    }
    Ok(())
}

/// The paths that a policy names, opened.
struct Opened {
    read: Vec<PathFd>,
    write: Vec<PathFd>,
    devices: Vec<PathFd>,
}

impl Opened {
    fn of(policy: &WallPolicy) -> Result<Self, SandboxError> {
        let named = |paths: &[PathBuf]| -> Result<Vec<PathFd>, SandboxError> {
            let open = |path: &PathBuf| {
                PathFd::new(path).map_err(|why| {
                    let source = std::io::Error::other(why.to_string());
                    SandboxError::Path { path: path.clone(), source }
                })
            };
            paths.iter().map(open).collect()
        };
        let present = |paths: &[&str]| paths.iter().filter_map(|path| PathFd::new(path).ok()).collect();
        let mut read = named(&policy.read)?;
        let mut devices: Vec<PathFd> = Vec::new();
        if !policy.interprets {
            read.extend::<Vec<_>>(present(&system::READ));
            // The link `self` leads to this process, which becomes the command.
            read.extend::<Vec<_>>(present(&system::ABOUT_SELF));
            devices = present(&system::DEVICES);
        }
        let mut write = named(&policy.write)?;
        write.extend(named(policy.scratch.as_slice())?);
        Ok(Self { read, write, devices })
    }
}

/// Restricts this process to the files of its policy. Returns the version of the kernel's rules.
fn restrict_files(opened: Opened) -> Result<ABI, SandboxError> {
    let unavailable = |why: landlock::RulesetError| SandboxError::Unavailable(format!("Landlock: {why}"));
    let all = AccessFs::from_all(TESTED);
    let read = AccessFs::from_read(TESTED);
    let device = AccessFs::ReadFile | AccessFs::WriteFile;
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V1))
        .and_then(|rules| rules.set_compatibility(CompatLevel::BestEffort).handle_access(all))
        .and_then(|rules| rules.scope(Scope::from_all(TESTED)))
        .and_then(Ruleset::create)
        .and_then(|rules| rules.add_rules(beneath(opened.read, read)))
        .and_then(|rules| rules.add_rules(beneath(opened.write, all)))
        .and_then(|rules| rules.add_rules(beneath(opened.devices, device)))
        .and_then(landlock::RulesetCreated::restrict_self)
        .map_err(unavailable)?;
    match status.landlock {
        LandlockStatus::Available { effective_abi, .. } => Ok(effective_abi),
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => {
            Err(SandboxError::Unavailable("Landlock is not enabled in its kernel".to_owned()))
        }
    }
}

type PathRule = Result<PathBeneath<PathFd>, landlock::RulesetError>;

fn beneath(paths: Vec<PathFd>, access: impl Into<BitFlags<AccessFs>>) -> impl Iterator<Item = PathRule> {
    let access = access.into();
    paths.into_iter().map(move |path| {
        let file =
            nix::sys::stat::fstat(&path).is_ok_and(|stat| stat.st_mode & libc::S_IFMT != libc::S_IFDIR);
        let access = if file { access & AccessFs::from_file(TESTED) } else { access };
        Ok(PathBeneath::new(path, access))
    })
}

/// Sets the limits of this process, which its children inherit.
fn limit(policy: &WallPolicy, is_own_user: bool) -> nix::Result<()> {
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
        lower(resource, most)?;
    }
    let (_, hard) = nix::sys::resource::getrlimit(Resource::RLIMIT_STACK)?;
    setrlimit(Resource::RLIMIT_STACK, STACK.min(hard), hard)
}

/// Lowers a limit; one that is lower already stays.
fn lower(resource: Resource, most: rlim_t) -> nix::Result<()> {
    let (_, hard) = nix::sys::resource::getrlimit(resource)?;
    let most = most.min(hard);
    setrlimit(resource, most, most)
}

/// Returns the number of threads of this process's user, as far as they can be seen.
fn threads_of_user() -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let own = getuid().as_raw();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_own = |entry: &std::fs::DirEntry| {
        let is_process = entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit());
        is_process && entry.metadata().is_ok_and(|data| data.uid() == own)
    };
    let threads =
        |entry: std::fs::DirEntry| std::fs::read_dir(entry.path().join("task")).map_or(0, Iterator::count);
    processes.filter(is_own).map(|entry| threads(entry) as u64).sum()
}
