//! `consensus export`: a run or a batch as one file, for others to verify.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::batch;
use crate::cli::args::ExportArgs;
use crate::cli::error::UsageError;
use crate::cli::output::Output;
use crate::config::FileConfig;
use crate::core::ExitCode;
use crate::engine::RunState;
use crate::files::write_bundle;
use crate::journal::{FILE_NAME, read};
use crate::report::{RESULT_FILE, TRANSCRIPT_FILE};
use crate::run::{find_run, runs_folder};

/// What of a batch is exported: tables of redactions and logs of servers are its owner's.
const OF_BATCH: [&str; 4] = ["batch.json", "journal-", "results-", "refused-"];

pub(crate) fn export(args: &ExportArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let (dir, wanted) = if batch::is_batch(&args.dir) {
        batch::verify(&args.dir)?;
        (args.dir.clone(), &OF_BATCH[..])
    } else {
        let runs = runs_folder(None, &FileConfig::load_to_read()?);
        let dir = find_run(args.dir.to_str(), &runs)?;
        RunState::replay(&read(&dir.join(FILE_NAME))?.records)?;
        (dir, &[FILE_NAME, RESULT_FILE, TRANSCRIPT_FILE][..])
    };
    let top = dir.canonicalize().ok().and_then(|dir| dir.file_name().map(OsStr::to_owned));
    let top = top.as_deref().and_then(OsStr::to_str).unwrap_or("run").to_owned();
    let files = files(&dir, &top, wanted)?;
    write_bundle(&args.bundle, &files)
        .map_err(|why| UsageError(format!("cannot write `{}`: {why}", args.bundle.display())))?;
    output.line(&args.bundle.display().to_string())?;
    output.status(&format!(
        "{} files; whoever has it checks it with: tar xf {} && consensus verify {top}",
        files.len(),
        args.bundle.display()
    ));
    Ok(ExitCode::Success)
}

/// The files of a folder whose names begin so, each with its name below `top`.
fn files(dir: &Path, top: &str, wanted: &[&str]) -> anyhow::Result<Vec<(String, PathBuf)>> {
    let entries = std::fs::read_dir(dir).with_context(|| format!("cannot read `{}`", dir.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default().to_owned();
        if path.is_file() && wanted.iter().any(|wanted| name.starts_with(wanted)) {
            files.push((format!("{top}/{name}"), path));
        }
    }
    Ok(files)
}
