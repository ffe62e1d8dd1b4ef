//! `consensus docs`: what a run would find in the user's documents.

use std::path::PathBuf;

use anyhow::Context as _;
use serde_json::json;

use super::args::{DocsArgs, DocsCommand, ReadPdfArgs};
use super::global::Format;
use super::output::Output;
use crate::config::cache_folder;
use crate::core::ExitCode;
use crate::journal::Library;
use crate::retrieval::{Corpus, PdfReader, RetrievalError, read_pdf_within_limits};
use crate::text::escape;

pub(super) fn docs(args: &DocsArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let DocsCommand::Search { words, docs, tokens } = &args.command;
    let (corpus, _) = open(docs, output)?;
    let passages = corpus.search(words, *tokens)?;
    if output.format != Format::Text {
        output.json(&json!(passages))?;
        return Ok(ExitCode::Success);
    }
    for passage in &passages {
        output.line(&format!("{}, from byte {}:", escape::json_string(&passage.document), passage.start))?;
        output.line(&format!("{}\n", escape::terminal(&passage.text)))?;
    }
    if passages.is_empty() {
        output.tell("nothing fits these words within --tokens");
    }
    Ok(ExitCode::Success)
}

/// `consensus read-pdf`: never called by people.
pub(super) fn read_pdf(args: &ReadPdfArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let text = read_pdf_within_limits(&args.file).map_err(anyhow::Error::msg)?;
    output.print(&text)?;
    Ok(ExitCode::Success)
}

/// As [`open`], on a thread of its own, so that a signal is heard meanwhile; nothing, where there are no places.
pub(super) async fn open_beside(
    places: &[PathBuf],
    output: &Output,
) -> anyhow::Result<Option<(Corpus, Library)>> {
    if places.is_empty() {
        return Ok(None);
    }
    let (places, output) = (places.to_owned(), *output);
    tokio::task::spawn_blocking(move || open(&places, &output)).await?.map(Some)
}

/// Opens the index of these places, brings it up to date, and tells what was lost.
fn open(places: &[PathBuf], output: &Output) -> anyhow::Result<(Corpus, Library)> {
    let cache = cache_folder().ok_or(RetrievalError::NoCache)?.join("index");
    let program = std::env::current_exe().context("this program does not know its own file")?;
    let (corpus, updated) = Corpus::open(places, &cache, &PdfReader::Apart(program))?;
    output.tell(&format!(
        "documents: {} passages in {} files, {} of them read now",
        updated.passages, updated.files, updated.read
    ));
    let lost: Vec<String> = updated
        .skipped
        .iter()
        .map(|skipped| format!("{}: {}", skipped.path.display(), skipped.why))
        .collect();
    for line in &lost {
        output.tell(&format!("left out {}", escape::terminal(line)));
    }
    let places = places.iter().map(|place| place.canonicalize().unwrap_or_else(|_| place.clone())).collect();
    Ok((corpus, Library { places, lost, sha256: Some(updated.sha256) }))
}
