//! `consensus trust`: the user lets a folder start programs, name servers and keys, and write elsewhere.
//!
//! In: the folder that one stands in, as it is now. Out: each of its settings that needs trust, with its place, and the
//! digest that stands for all of them, which goes into the user's list. Nothing of the folder is started or sent here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::cli::args::Format;
use crate::cli::args::TrustArgs;
use crate::cli::error::UsageError;
use crate::cli::output::Output;
use crate::config::{Claims, FileConfig, TRUST_VARIABLE, TrustStore};
use crate::core::ExitCode;
use crate::crypto::Digest;
use crate::text::escape;

pub(crate) fn trust(args: &TrustArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let no_folder = || {
        UsageError(format!(
            "there is no configuration folder for a list of trusted folders: set HOME or XDG_CONFIG_HOME, or {TRUST_VARIABLE}"
        ))
    };
    let store = TrustStore::open().ok_or_else(no_folder)?;
    match (&args.revoke, args.list) {
        (Some(folder), _) => revoke(&store, folder, output),
        (None, true) => list(&store.folders()?, output),
        (None, false) => add(&store, output),
    }
}

/// Trusts the folder that one stands in.
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
        "trusted until one of them changes, and not the programs that they start; {} has the list",
        escape::terminal(&store.path().display().to_string())
    ));
    Ok(ExitCode::Success)
}

/// Lists every trusted folder, and whether it still is what was trusted.
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
        let field = |name: &str| escape::terminal(row[name].as_str().unwrap_or_default());
        output.line(&format!("{}  {:8}  {}", field("digest"), field("state"), field("folder")))?;
    }
    Ok(ExitCode::Success)
}

/// Returns, in one word, what has become of a folder since it was trusted.
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
        let why = format!("the folder `{shown}` is not on the list; `consensus trust --list` shows it");
        return Err(UsageError(why).into());
    }
    output.status(&escape::terminal(&format!("the folder `{shown}` is trusted no more")));
    Ok(ExitCode::Success)
}
