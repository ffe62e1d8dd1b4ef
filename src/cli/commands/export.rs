//! `consensus export`: writes a run or a batch into one file, for others to verify.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use regex::Regex;

use super::verified_run::{require_output_digests, verified_run};
use crate::batch::{self, without_results};
use crate::cli::args::ExportArgs;
use crate::cli::error::{IntegrityError, UsageError};
use crate::cli::output::Output;
use crate::config::FileConfig;
use crate::eval::EvalPlan;
use crate::files::{Scratch, check_own, unpack_bundle, write_bundle};
use crate::run::{find_run, runs_folder};
use protocol::core::ExitCode;
use protocol::text::counted;

/// The files of a batch that are exported. Tables of redactions and logs of servers stay with the owner.
const OF_BATCH: &str =
    r"^(batch|progress(-\d+)?)\.json$|^(journal|results|refused)-\d+\.jsonl$|^journal-\d+\.gaps\.json$";

/// The files of a run that are exported.
const OF_RUN: &str = r"^(journal\.jsonl|result\.json|transcript\.md)$";

pub(crate) fn export(args: &ExportArgs, output: &Output) -> anyhow::Result<ExitCode> {
    EvalPlan::require_batch(&args.dir)?;
    let (dir, pattern) = if batch::is_batch(&args.dir) {
        (args.dir.clone(), OF_BATCH)
    } else {
        let runs = runs_folder(None, &FileConfig::load_to_read()?);
        (find_run(args.dir.to_str(), &runs)?, OF_RUN)
    };
    // The runs that end while the archive is written have no results in it.
    let is_live =
        batch::is_batch(&dir) && batch::status(&dir)?.iter().any(|shard| shard.is_live != Some(false));
    require_sound(&dir, is_live)?;
    let top = dir.canonicalize().ok().and_then(|dir| dir.file_name().map(OsStr::to_owned));
    let top = top.as_deref().and_then(OsStr::to_str).unwrap_or("run").to_owned();
    let files = list_files(&dir, &top, pattern)?;
    write_bundle(&args.bundle, &files)
        .map_err(|why| UsageError(format!("cannot write `{}`: {why}", args.bundle.display())))?;
    require_sound_bundle(&args.bundle, &top, is_live).inspect_err(|_| {
        // The first error is the one that matters.
        let _ = std::fs::remove_file(&args.bundle);
    })?;
    output.line(&args.bundle.display().to_string())?;
    output.status(&format!(
        "{} in the archive; to verify it: tar xf {} && consensus verify {top}",
        counted(files.len(), "file"),
        args.bundle.display()
    ));
    Ok(ExitCode::Success)
}

/// Verifies the run or the batch in a folder. While a batch runs, its last runs may have no results yet.
fn require_sound(dir: &Path, is_live: bool) -> anyhow::Result<()> {
    if !batch::is_batch(dir) {
        verified_run(dir)?;
        return Ok(());
    }
    let verified =
        batch::verify(dir, &mut |state| require_output_digests(state).map_err(|why| why.to_string()))?;
    if verified.without_result == 0 {
        return Ok(());
    }
    let runs = counted(verified.without_result, "run");
    if is_live {
        let why = format!("the batch is running, and {runs} ended while it was read; export it again");
        return Err(UsageError(why).into());
    }
    Err(IntegrityError(without_results(verified.without_result)).into())
}

/// Verifies an archive as a recipient does, in the folder `top` that comes out of it.
fn require_sound_bundle(bundle: &Path, top: &str, is_live: bool) -> anyhow::Result<()> {
    let beside = match bundle.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    };
    let scratch = Scratch::new(beside, "export")
        .with_context(|| format!("cannot make a folder in `{}`", beside.display()))?;
    unpack_bundle(bundle, scratch.path()).with_context(|| format!("cannot unpack `{}`", bundle.display()))?;
    require_sound(&scratch.path().join(top), is_live).with_context(|| {
        format!("`{}` does not verify once it is unpacked, and was removed", bundle.display())
    })
}

/// Returns the files of a folder whose names match a pattern, each with its name below `top`. A link is refused, since it may lead
/// anywhere.
fn list_files(dir: &Path, top: &str, pattern: &str) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let entries = std::fs::read_dir(dir).with_context(|| format!("cannot read `{}`", dir.display()))?;
    let pattern = Regex::new(pattern).context("the pattern of file names is not valid")?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default().to_owned();
        if pattern.is_match(&name) {
            check_own(&path)
                .map_err(|why| UsageError(format!("`{}` is not exported: {why}", path.display())))?;
            files.push((format!("{top}/{name}"), path));
        }
    }
    Ok(files)
}
