//! Names the build. Records are read by the build that wrote them, which is the same wherever its sources are the same.
//!
//! A release also names the commit that it is built from. A build for development does not, so that a commit alone builds nothing anew.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What decides how the program behaves.
const SOURCES: [&str; 9] = [
    "build.rs",
    "Cargo.lock",
    "Cargo.toml",
    "crates/crypto/src",
    "crates/protocol/src",
    "crates/quorum/src",
    "crates/statistics/src",
    "rolesets",
    "src",
];

/// The kinds of files among the sources. Files that an editor leaves beside them do not count.
const KINDS: [&str; 9] = ["css", "html", "js", "json", "lock", "md", "rs", "toml", "txt"];

/// The start and the factor of FNV-1a with 64 bits, which needs no crate. The digest tells builds apart, and protects from no one.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x100_0000_01b3;

fn main() {
    println!("cargo::rerun-if-env-changed=CONSENSUS_COMMIT");
    let mut hash = FNV_OFFSET;
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        for path in files(Path::new(source)) {
            // A file that cannot be read is one that the compiler complains about.
            let content = std::fs::read(&path).unwrap_or_default();
            let length = (content.len() as u64).to_be_bytes();
            for part in [path.to_string_lossy().as_bytes(), &length, &content] {
                hash = part.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME));
            }
        }
    }
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let build = format!("{version}+{hash:016x}");
    println!("cargo::rustc-env=CONSENSUS_BUILD={build}");
    let named = std::env::var("CONSENSUS_COMMIT").ok().filter(|commit| !commit.is_empty());
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    for place in [".git/HEAD", ".git/logs/HEAD"] {
        if is_release && Path::new(place).exists() {
            println!("cargo::rerun-if-changed={place}");
        }
    }
    let commit = named.or_else(|| is_release.then(head).flatten());
    let commit = commit.map_or_else(String::new, |commit| format!(" ({commit})"));
    println!("cargo::rustc-env=CONSENSUS_VERSION={build}{commit}");
}

/// Returns a file, or the files in a folder in the order of their names.
fn files(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(path) else {
        let is_source = path.extension().is_some_and(|kind| KINDS.iter().any(|known| kind == *known));
        return if is_source { vec![path.to_owned()] } else { Vec::new() };
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().flat_map(|path| files(path)).collect()
}

/// The commit that is checked out, and its day; `-dirty` where a tracked file differs from it.
fn head() -> Option<String> {
    // A source archive that was unpacked inside of another repository is not built from that.
    let words = ["rev-parse", "--show-toplevel"];
    let top = Command::new("git").args(words).output().ok().filter(|said| said.status.success())?;
    let own = std::env::var("CARGO_MANIFEST_DIR").ok()?;
    let top = String::from_utf8(top.stdout).ok()?;
    if std::fs::canonicalize(top.trim()).ok()? != std::fs::canonicalize(own).ok()? {
        return None;
    }
    let words = ["log", "-1", "--format=%h %cs", "--abbrev=12"];
    let said = Command::new("git").args(words).output().ok().filter(|said| said.status.success())?;
    let commit = String::from_utf8(said.stdout).ok()?;
    let (commit, day) = commit.trim().split_once(' ')?;
    let clean = Command::new("git").args(["diff-index", "--quiet", "HEAD"]).status().ok()?;
    let dirty = if clean.success() { "" } else { "-dirty" };
    Some(format!("{commit}{dirty} {day}"))
}
