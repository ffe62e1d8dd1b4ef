//! The policy of a wall: what a command may read, write, reach and use.
//!
//! The owner of a command makes the policy, and the process that becomes the command reads it, as one JSON argument.
//! Everything that a policy does not name is forbidden. Nothing is enforced here.

use std::path::PathBuf;

use nix::unistd::{SysconfVar, sysconf};
use serde::{Deserialize, Serialize};

/// What a walled command may do.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WallPolicy {
    /// Files and folders that it may read and execute, beside those of the system.
    pub read: Vec<PathBuf>,
    /// Files and folders that it may also write.
    pub write: Vec<PathBuf>,
    /// The folder that belongs to the command alone, which it may also write.
    pub scratch: Option<PathBuf>,
    /// Whether it may use the network by IP.
    pub net: bool,
    /// Whether it is this program itself, interpreting a program of a model. Then it starts no process, and reads no
    /// system file.
    pub interprets: bool,
    /// The most that it may use.
    pub limits: WallLimits,
}

/// The most that a walled command may use.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WallLimits {
    /// CPU time of each process, in seconds.
    pub cpu_s: u64,
    /// Memory of each process, and of all together, in bytes.
    pub memory: u64,
    /// The length of each file that it writes, in bytes.
    pub file: u64,
    /// Processes and threads at one time.
    pub processes: u64,
}

impl Default for WallLimits {
    /// Enough for the tests of a large program, and at most half of the machine's memory.
    fn default() -> Self {
        Self { cpu_s: 3600, memory: (8 << 30).min(physical_memory() / 2), file: 4 << 30, processes: 512 }
    }
}

/// Returns the size of the machine's memory in bytes; the largest number if it is unknown.
fn physical_memory() -> u64 {
    match (system_figure(SysconfVar::_PHYS_PAGES), system_figure(SysconfVar::PAGE_SIZE)) {
        (Some(pages), Some(size)) => pages.saturating_mul(size),
        (None, _) | (_, None) => u64::MAX,
    }
}

fn system_figure(variable: SysconfVar) -> Option<u64> {
    u64::try_from(sysconf(variable).ok()??).ok()
}
