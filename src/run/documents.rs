//! The documents of a run: opens their index, and reports lost documents.

use std::path::PathBuf;

use super::error::RunError;
use super::notices::Notices;
use crate::config::cache_folder;
use crate::journal::Library;
use crate::retrieval::{Corpus, PdfReader, RetrievalError, Updated};
use protocol::text::escape;

/// Opens the index of these places, and brings it up to date. Returns `None` if there are no places.
///
/// The index is read on a separate thread, so that signals are still handled.
///
/// # Errors
///
/// Returns [`RunError::Retrieval`], [`RunError::OwnFile`] or [`RunError::Thread`].
pub async fn open(places: &[PathBuf], notices: &dyn Notices) -> Result<Option<(Corpus, Library)>, RunError> {
    if places.is_empty() {
        return Ok(None);
    }
    let owned = places.to_owned();
    let opened = tokio::task::spawn_blocking(move || index(&owned)).await;
    let (corpus, updated) = opened.map_err(RunError::Thread)??;
    notices.status(&format!(
        "documents: {} passages in {} files, {} of them read now",
        updated.passages, updated.files, updated.read
    ));
    let skipped = updated.skipped.iter();
    let lost: Vec<String> = skipped.map(|file| format!("{}: {}", file.path.display(), file.why)).collect();
    for line in &lost {
        notices.status(&format!("left out {}", escape::terminal(line)));
    }
    let places = places.iter().map(|place| place.canonicalize().unwrap_or_else(|_| place.clone())).collect();
    Ok(Some((corpus, Library { places, lost, sha256: Some(updated.sha256) })))
}

fn index(places: &[PathBuf]) -> Result<(Corpus, Updated), RunError> {
    let cache = cache_folder().ok_or(RetrievalError::NoCache)?.join("index");
    let program = std::env::current_exe().map_err(RunError::OwnFile)?;
    Ok(Corpus::open(places, &cache, &PdfReader::Apart(program))?)
}
