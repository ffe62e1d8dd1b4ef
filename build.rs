//! Tells the program which commit it is built from: a release that somebody measures with is named by it.
//!
//! A build for development is not told, so that a commit alone builds nothing anew.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CONSENSUS_COMMIT");
    let named = std::env::var("CONSENSUS_COMMIT").ok().filter(|commit| !commit.is_empty());
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    if is_release {
        println!("cargo::rerun-if-changed=.git/HEAD");
        println!("cargo::rerun-if-changed=.git/logs/HEAD");
    }
    if let Some(commit) = named.or_else(|| is_release.then(head).flatten()) {
        let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
        println!("cargo::rustc-env=CONSENSUS_BUILT_FROM={version} ({commit})");
    }
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
