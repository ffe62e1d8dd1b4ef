//! Which files there are, and what text is in them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use serde::Serialize;

use super::RetrievalError;

/// The largest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The width at which HTML is laid out as text, in characters; long, so that no sentence is broken.
const HTML_WIDTH: usize = 10_000;

/// A file that is not searched, and why.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Skipped {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub why: String,
}

/// Why there is no text of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Unread {
    /// It is a picture, a program, or something else without text.
    NotText,
    /// There may be text in it that is lost.
    Lost(String),
}

/// How a file's text is cut.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Layout {
    /// By headings, lists and paragraphs.
    Markdown,
    /// By paragraphs, lines and sentences.
    Plain,
}

/// Returns every file in the places, sorted; hidden files and those that `.gitignore` names are left out.
pub(super) fn list(places: &[PathBuf]) -> Result<Vec<PathBuf>, RetrievalError> {
    let mut found = Vec::new();
    for place in places {
        let path =
            place.canonicalize().map_err(|source| RetrievalError::Place { path: place.clone(), source })?;
        if path.is_file() {
            found.push(path);
            continue;
        }
        // What cannot be looked into has no text either.
        let entries = WalkBuilder::new(&path).require_git(false).follow_links(false).build().flatten();
        found.extend(
            entries
                .filter(|entry| entry.file_type().is_some_and(|t| t.is_file()))
                .map(ignore::DirEntry::into_path),
        );
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// Returns the text of a file.
pub(super) fn read(path: &Path) -> Result<(String, Layout), Unread> {
    let lost = |e: std::io::Error| Unread::Lost(e.to_string());
    let size = std::fs::metadata(path).map_err(lost)?.len();
    if size > FILE_BYTES_MAX {
        return Err(Unread::Lost(format!("it has {size} bytes; at most {FILE_BYTES_MAX} are read")));
    }
    let bytes = std::fs::read(path).map_err(lost)?;
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    let (text, layout) = match extension.as_str() {
        "html" | "htm" | "xhtml" => (html(&bytes)?, Layout::Plain),
        "pdf" => (pdf(&bytes)?, Layout::Plain),
        "md" | "markdown" => (plain(bytes)?, Layout::Markdown),
        _ => (plain(bytes)?, Layout::Plain),
    };
    if text.trim().is_empty() { Err(Unread::NotText) } else { Ok((text, layout)) }
}

fn plain(bytes: Vec<u8>) -> Result<String, Unread> {
    if bytes.contains(&0) {
        return Err(Unread::NotText);
    }
    String::from_utf8(bytes).map_err(|_| Unread::Lost("it is no UTF-8 text".to_owned()))
}

fn html(bytes: &[u8]) -> Result<String, Unread> {
    let text = html2text::config::plain_no_decorate().string_from_read(bytes, HTML_WIDTH);
    text.map_err(|why| Unread::Lost(format!("no HTML that can be read: {why}")))
}

/// The reader of PDF files panics on some that are broken; nobody needs to read where.
fn pdf(bytes: &[u8]) -> Result<String, Unread> {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let read = catch_unwind(AssertUnwindSafe(|| pdf_extract::extract_text_from_mem(bytes)));
    std::panic::set_hook(hook);
    let lost = |why: &str| Unread::Lost(format!("no PDF that can be read{why}"));
    match read {
        Ok(Ok(text)) => Ok(text),
        Ok(Err(why)) => Err(lost(&format!(": {why}"))),
        Err(_) => Err(lost("")),
    }
}
