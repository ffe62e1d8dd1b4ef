//! Reading PDF files: in a process of its own, with limits.
//!
//! Nobody vouches for a file, and readers of this format panic, recurse without end or fill the memory on files
//! that are broken on purpose. What happens to that process costs its file, and nothing else.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::resource::{Resource, setrlimit};

/// The word with which a program is called to read one file.
pub const READ_PDF: &str = "read-pdf";

/// Seconds of computing that one file may take.
const CPU_SECONDS_MAX: u64 = 60;

/// Memory that one file may take, in bytes.
const MEMORY_BYTES_MAX: u64 = 512 << 20;

/// The most text of one file, in bytes.
const TEXT_BYTES_MAX: u64 = 64 << 20;

/// Where PDF files are read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PdfReader {
    /// In this process, for files that are trusted.
    Here,
    /// By this program, which must pass the path after [`READ_PDF`] to [`read_pdf_within_limits`], and print what it
    /// returns.
    Apart(PathBuf),
}

impl PdfReader {
    /// Returns the text of a file.
    pub(super) fn read(&self, path: &Path) -> Result<String, String> {
        match self {
            Self::Here => read_pdf(path),
            Self::Apart(program) => read_apart(program, path).map_err(|e| e.to_string())?,
        }
    }
}

fn read_apart(program: &Path, path: &Path) -> std::io::Result<Result<String, String>> {
    let mut child = Command::new(program)
        .arg(READ_PDF)
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut text = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(TEXT_BYTES_MAX + 1).read_to_end(&mut text)?;
    }
    if text.len() as u64 > TEXT_BYTES_MAX {
        child.kill()?;
        child.wait()?;
        return Ok(Err("there is more text in it than a document should have".to_owned()));
    }
    if !child.wait()?.success() {
        return Ok(Err("no PDF that can be read, or one that takes too much time or memory".to_owned()));
    }
    Ok(String::from_utf8(text).map_err(|why| why.to_string()))
}

/// Returns the text of a file, or ends this process if that takes too much of anything; for a process that does
/// nothing else.
///
/// # Errors
///
/// In words.
pub fn read_pdf_within_limits(path: &Path) -> Result<String, String> {
    // Where a limit is not known, the file is read without it.
    let _ = setrlimit(Resource::RLIMIT_CPU, CPU_SECONDS_MAX, CPU_SECONDS_MAX);
    let _ = setrlimit(Resource::RLIMIT_AS, MEMORY_BYTES_MAX, MEMORY_BYTES_MAX);
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    read_pdf(path)
}

fn read_pdf(path: &Path) -> Result<String, String> {
    pdf_extract::extract_text(path).map_err(|why| format!("no PDF that can be read: {why}"))
}
