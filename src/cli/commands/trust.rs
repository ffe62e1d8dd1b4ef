//! `consensus trust`: the user allows a folder to start programs, name servers and keys, and write elsewhere.
//!
//! The input is the current folder as it is now. The output is each of its settings that needs trust, with its place, and one digest of
//! all of them, which goes into the user's list. Nothing in the folder is started or sent here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::cli::args::{Format, TrustArgs};
use crate::cli::error::UsageError;
use crate::cli::output::Output;
use crate::cli::table::cell;
use crate::config::{Claims, FileConfig, TRUST_VARIABLE, TrustStore};
use crypto::Digest;
use protocol::core::ExitCode;
use protocol::text::escape;

pub(crate) fn trust(args: &TrustArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let Some(store) = TrustStore::open() else {
        let why = format!(
            "there is no configuration folder for a list of trusted folders: set HOME or XDG_CONFIG_HOME, or {TRUST_VARIABLE}"
        );
        return Err(UsageError(why).into());
    };
    match (&args.revoke, args.list) {
        (Some(folder), _) => revoke(&store, folder, output),
        (None, true) => list(&store.folders()?, output),
        (None, false) => add(&store, output),
    }
}

fn add(store: &TrustStore, output: &Output) -> anyhow::Result<ExitCode> {
    let Some(claims) = Claims::of_folder(Path::new("."), &FileConfig::of_user()?)? else {
        if output.format == Format::Text {
            output.status("nothing in this folder needs trust");
        } else {
            output.json(&json!({"settings": [], "digest": null}))?;
        }
        return Ok(ExitCode::Success);
    };
    store.trust(&claims)?;
    let folder = claims.folder.display().to_string();
    if output.format != Format::Text {
        let settings: Vec<Value> =
            claims.claims.iter().map(|claim| json!({"place": claim.place, "setting": claim.what})).collect();
        output.json(&json!({"folder": folder, "settings": settings, "digest": claims.digest}))?;
        return Ok(ExitCode::Success);
    }
    for claim in &claims.claims {
        output.line(&escape::terminal(&claim.to_string()))?;
    }
    output.line(&format!("{}  {}", claims.digest, escape::terminal(&folder)))?;
    output.status(&format!(
        "trusted until one of these settings changes, without the programs that they start; the list is in {}",
        escape::terminal(&store.path().display().to_string())
    ));
    Ok(ExitCode::Success)
}

/// Lists every trusted folder, and whether it has changed since.
fn list(folders: &BTreeMap<PathBuf, Digest>, output: &Output) -> anyhow::Result<ExitCode> {
    let user = FileConfig::of_user()?;
    let rows: Vec<Value> = folders
        .iter()
        .map(|(folder, digest)| {
            let state = state(folder, digest, &user);
            json!({"folder": folder.display().to_string(), "digest": digest, "state": state})
        })
        .collect();
    if output.format != Format::Text {
        output.json(&json!(rows))?;
        return Ok(ExitCode::Success);
    }
    if rows.is_empty() {
        output.status("no folder is trusted");
    }
    for row in &rows {
        let (digest, state, folder) = (cell(row, "digest"), cell(row, "state"), cell(row, "folder"));
        output.line(&format!("{digest}  {state:8}  {folder}"))?;
    }
    Ok(ExitCode::Success)
}

/// Returns the state of a folder since it was trusted, in one word.
fn state(folder: &Path, digest: &Digest, user: &FileConfig) -> &'static str {
    if !folder.is_dir() {
        return "gone";
    }
    match Claims::of_folder(folder, user) {
        Ok(Some(now)) if now.digest == *digest => "trusted",
        Ok(Some(_)) | Err(_) => "changed",
        // Without such settings there is nothing to trust.
        Ok(None) => "unneeded",
    }
}

fn revoke(store: &TrustStore, folder: &Path, output: &Output) -> anyhow::Result<ExitCode> {
    let shown = folder.display();
    if !store.revoke(folder)? {
        let why =
            format!("the folder `{shown}` is not on the list; `consensus trust --list` prints the list");
        return Err(UsageError(why).into());
    }
    output.status(&escape::terminal(&format!("the folder `{shown}` is no longer trusted")));
    Ok(ExitCode::Success)
}
