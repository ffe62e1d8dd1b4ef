//! Reading PDF files, in a process of its own with limits.
//!
//! A file may come from anywhere, and readers of this format panic, recurse without end or fill the memory on files
//! that are broken on purpose. If that process fails, only its file is lost.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::resource::{Resource, setrlimit};

/// The first argument of a program that is called to read one file.
pub const READ_PDF: &str = "read-pdf";

/// The time limit for one file, in seconds of computing.
const CPU_SECONDS_MAX: u64 = 60;

/// The memory limit for one file, in bytes.
const MEMORY_BYTES_MAX: u64 = 512 << 20;

/// The size limit of one file's text, in bytes.
const TEXT_BYTES_MAX: u64 = 64 << 20;

/// The process in which PDF files are read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PdfReader {
    /// This process, for files that are trusted.
    Here,
    /// A process of this program, which must pass the path after [`READ_PDF`] to [`read_pdf_within_limits`] and print
    /// the result.
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
        return Ok(Err("it contains more text than a document may have".to_owned()));
    }
    if !child.wait()?.success() {
        return Ok(Err("it is not a readable PDF, or reading it takes too much time or memory".to_owned()));
    }
    Ok(String::from_utf8(text).map_err(|why| why.to_string()))
}

/// Returns the text of a file, or ends this process if a limit is reached. It is meant for a process that does
/// nothing else.
///
/// # Errors
///
/// A message, if the file is not a readable PDF.
pub fn read_pdf_within_limits(path: &Path) -> Result<String, String> {
    // If the system does not know a limit, the file is read without it.
    let _ = setrlimit(Resource::RLIMIT_CPU, CPU_SECONDS_MAX, CPU_SECONDS_MAX);
    let _ = setrlimit(Resource::RLIMIT_AS, MEMORY_BYTES_MAX, MEMORY_BYTES_MAX);
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    read_pdf(path)
}

fn read_pdf(path: &Path) -> Result<String, String> {
    pdf_extract::extract_text(path).map_err(|why| format!("it is not a readable PDF: {why}"))
}
