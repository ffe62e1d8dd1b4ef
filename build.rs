//! Names the build. Records are read by the build that wrote them, which is the same wherever its sources are the same.
//!
//! A release also names the commit that it is built from. A build for development does not, so that a commit alone builds nothing anew.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What decides how the program behaves.
const SOURCES: [&str; 5] = ["build.rs", "Cargo.lock", "crates", "rolesets", "src"];

fn main() {
    println!("cargo::rerun-if-env-changed=CONSENSUS_COMMIT");
    let mut hasher = DefaultHasher::new();
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        for path in files(Path::new(source)) {
            path.hash(&mut hasher);
            // A file that cannot be read is one that the compiler complains about.
            std::fs::read(&path).unwrap_or_default().hash(&mut hasher);
        }
    }
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let build = format!("{version}+{:016x}", hasher.finish());
    println!("cargo::rustc-env=CONSENSUS_BUILD={build}");
    let named = std::env::var("CONSENSUS_COMMIT").ok().filter(|commit| !commit.is_empty());
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    if is_release {
        println!("cargo::rerun-if-changed=.git/HEAD");
        println!("cargo::rerun-if-changed=.git/logs/HEAD");
    }
    let commit = named.or_else(|| is_release.then(head).flatten());
    let commit = commit.map_or_else(String::new, |commit| format!(" ({commit})"));
    println!("cargo::rustc-env=CONSENSUS_VERSION={build}{commit}");
}

/// Returns a file, or the files in a folder in the order of their names. Tests are not part of the program.
fn files(path: &Path) -> Vec<PathBuf> {
    if path.ends_with("tests") {
        return Vec::new();
    }
    let Ok(entries) = std::fs::read_dir(path) else { return vec![path.to_owned()] };
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
