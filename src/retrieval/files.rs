//! Finding files, and reading the text in them.

use std::io::Read;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use serde::Serialize;

use super::{PdfReader, RetrievalError};

/// The size limit of a file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The width at which HTML is laid out as text, in characters. It is large, so that no sentence is broken.
const HTML_WIDTH: usize = 10_000;

/// A file that is not searched, with the reason.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct SkippedFile {
    pub path: PathBuf,
    pub why: String,
}

/// The reason why a file has no text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum ReadFault {
    /// The file is a picture, a program, or something else without text.
    NotText,
    /// The file may contain text that is lost, for this reason.
    Lost(String),
}

impl From<std::io::Error> for ReadFault {
    fn from(why: std::io::Error) -> Self {
        Self::Lost(why.to_string())
    }
}

/// The way in which a file's text is cut.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Layout {
    /// Headings, lists and paragraphs.
    Markdown,
    /// Paragraphs, lines and sentences.
    Plain,
}

/// The files that mark a folder as a run of this program. A run that has just begun may have only the second.
const RUN: [&str; 2] = [crate::journal::FILE_NAME, crate::journal::REDACTIONS_FILE];

/// Returns every file in the places, sorted, and the entries that cannot be read.
///
/// Hidden files and those that a `.gitignore` in the place names are left out. So are the folders of runs and of
/// sessions: text by models is not evidence for other text by models.
pub(super) fn list(places: &[PathBuf]) -> Result<(Vec<String>, Vec<SkippedFile>), RetrievalError> {
    let (mut found, mut lost) = (Vec::new(), Vec::new());
    for place in places {
        let path =
            place.canonicalize().map_err(|source| RetrievalError::Place { path: place.clone(), source })?;
        if path.to_str().is_none() {
            let source = std::io::Error::other("its name is not UTF-8 text");
            return Err(RetrievalError::Place { path: place.clone(), source });
        }
        let mut walk = WalkBuilder::new(&path);
        // Only the place itself says what is left out, not the folders around it.
        walk.require_git(false).parents(false).git_global(false).git_exclude(false);
        walk.filter_entry(|entry| !is_run(entry.path()) && !is_sessions(entry.path()));
        for entry in walk.build() {
            match entry {
                Err(why) => lost.push(SkippedFile { path: path.clone(), why: why.to_string() }),
                Ok(entry) if entry.file_type().is_some_and(|kind| kind.is_dir()) => {}
                // A link inside a folder may lead anywhere, and the user did not name its target.
                Ok(entry) if entry.path_is_symlink() && entry.depth() > 0 => {
                    let why = "it is a link; to search its target, name that instead".to_owned();
                    lost.push(SkippedFile { path: entry.into_path(), why });
                }
                Ok(entry) => match entry.path().to_str() {
                    Some(name) if entry.path().is_file() => found.push(name.to_owned()),
                    // The entry is a socket, a device, or a link that leads nowhere.
                    Some(_) => {}
                    None => {
                        let why = "its name is not UTF-8 text".to_owned();
                        lost.push(SkippedFile { path: entry.into_path(), why });
                    }
                },
            }
        }
    }
    found.sort();
    found.dedup();
    Ok((found, lost))
}

fn is_run(folder: &Path) -> bool {
    RUN.iter().any(|name| folder.join(name).is_file())
}

/// Returns true if a folder is the one for sessions, beside the folders of runs.
fn is_sessions(path: &Path) -> bool {
    let is_named_so = path.file_name().is_some_and(|name| name == crate::journal::SESSIONS_FOLDER);
    if !is_named_so || !path.is_dir() {
        return false;
    }
    let Some(Ok(runs)) = path.parent().map(std::fs::read_dir) else { return false };
    runs.flatten().any(|run| run.path().join(crate::journal::FILE_NAME).is_file())
}

/// Returns the text of a file.
pub(super) fn read(path: &Path, pdf: &PdfReader) -> Result<(String, Layout), ReadFault> {
    let size = std::fs::metadata(path)?.len();
    if size > FILE_BYTES_MAX {
        return Err(ReadFault::Lost(format!("it has {size} bytes; at most {FILE_BYTES_MAX} are read")));
    }
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
    if extension != "pdf" && is_binary(path)? {
        return Err(ReadFault::NotText);
    }
    let (text, layout) = match extension.as_str() {
        "html" | "htm" | "xhtml" => (html_text(&std::fs::read(path)?)?, Layout::Plain),
        "pdf" => (pdf.read(path).map_err(ReadFault::Lost)?, Layout::Plain),
        "md" | "markdown" => (plain_text(std::fs::read(path)?)?, Layout::Markdown),
        _ => (plain_text(std::fs::read(path)?)?, Layout::Plain),
    };
    match (text.trim().is_empty(), extension.as_str()) {
        (false, _) => Ok((text, layout)),
        (true, "pdf") => Err(ReadFault::Lost("it contains no text; it may be a scan".to_owned())),
        (true, _) => Err(ReadFault::NotText),
    }
}

/// Returns true if the first bytes of a file are not text. Such a file is not read further.
fn is_binary(path: &Path) -> std::io::Result<bool> {
    let mut first = Vec::new();
    std::fs::File::open(path)?.take(8192).read_to_end(&mut first)?;
    let has_mark = first.starts_with(&[0xFF, 0xFE]) || first.starts_with(&[0xFE, 0xFF]);
    Ok(first.contains(&0) && !has_mark)
}

fn plain_text(bytes: Vec<u8>) -> Result<String, ReadFault> {
    if let Some(text) = utf16(&bytes) {
        return Ok(text);
    }
    match String::from_utf8(bytes) {
        // The first bytes looked like text.
        Ok(text) if text.contains('\0') => Err(ReadFault::Lost("it contains NUL bytes".to_owned())),
        Ok(text) => Ok(text),
        Err(_) => Err(ReadFault::Lost("it is not UTF-8 text".to_owned())),
    }
}

/// Reads a text whose first two bytes mark it as UTF-16.
fn utf16(bytes: &[u8]) -> Option<String> {
    if bytes.starts_with(&[0xFF, 0xFE, 0, 0]) {
        // This is the mark of UTF-32.
        return None;
    }
    let read: fn([u8; 2]) -> u16 = match bytes.get(..2)? {
        [0xFF, 0xFE] => u16::from_le_bytes,
        [0xFE, 0xFF] => u16::from_be_bytes,
        _ => return None,
    };
    let units: Vec<u16> = bytes[2..].chunks_exact(2).map(|pair| read([pair[0], pair[1]])).collect();
    String::from_utf16(&units).ok()
}

fn html_text(bytes: &[u8]) -> Result<String, ReadFault> {
    if std::str::from_utf8(bytes).is_err() {
        return Err(ReadFault::Lost("it is not UTF-8 text".to_owned()));
    }
    let text = html2text::config::plain_no_decorate().string_from_read(bytes, HTML_WIDTH);
    text.map_err(|why| ReadFault::Lost(format!("it is not readable HTML: {why}")))
}
