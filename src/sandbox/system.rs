//! The files of the system that programs need in order to run at all.
//!
//! The lists name what an interpreter, a compiler or a shell opens before it does anything of its own. They name no
//! folder with files of a user, no socket, and no file of another process. Paths that a system does not have are
//! skipped.

use std::path::PathBuf;

/// Files and folders that every walled command may read and execute.
pub(super) const READ: [&str; 48] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/run/current-system",
    "/snap",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/gitconfig",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/java-17-openjdk",
    "/etc/java-21-openjdk",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/tls/certs",
    "/etc/protocols",
    "/etc/python3",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/shells",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/meminfo",
    "/proc/sys/vm/overcommit_memory",
    "/sys/devices/system/cpu",
];

/// Files about itself that every command may read. Runtimes look there for the memory and the processors that they have.
///
/// Other files of the folder show the machine: its connections, its mounts. Programs need none of them to start, because
/// a process that the command starts may read no file about itself at all. Links such as `exe` need no rule.
pub(super) const ABOUT_SELF: [&str; 6] = [
    "/proc/self/cgroup",
    "/proc/self/fd",
    "/proc/self/maps",
    "/proc/self/stat",
    "/proc/self/statm",
    "/proc/self/status",
];

/// Devices that every walled command may read and write.
pub(super) const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Returns the files and folders of the system that every walled command may read.
pub fn system_paths() -> impl Iterator<Item = PathBuf> {
    READ.iter().map(PathBuf::from)
}
