//! Reading PDF files, in a process of its own with limits.
//!
//! A file may come from anywhere, and readers of this format panic, recurse without end or fill the memory on files
//! that are broken on purpose. If that process fails, only its file is lost.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::resource::{Resource, setrlimit};
use pdf_extract::{Document, MediaBox, Object, ObjectId, OutputDev, OutputError, PlainTextOutput, Transform};
use protocol::core::ExitCode;

/// The first argument of a program that is called to read one file.
pub const READ_PDF: &str = "read-pdf";

/// The time limit for one file, in seconds of computing.
const CPU_SECONDS_MAX: u64 = 60;

/// The memory limit for one file, in bytes.
const MEMORY_BYTES_MAX: u64 = 512 << 20;

/// The size limit of one file's text, in bytes.
const TEXT_BYTES_MAX: u64 = 64 << 20;

/// The most codes in one range of widths: as many as a code of two bytes has.
const CODES_MAX: i64 = 1 << 16;

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
    let text = String::from_utf8(text).map_err(|why| why.to_string());
    Ok(match child.wait()?.code() {
        Some(0) => text,
        // The process has printed why, in place of the text.
        Some(code) if code == ExitCode::Usage as i32 => Err(text.unwrap_or_default()),
        Some(_) | None => {
            Err("it is not a readable PDF, or reading it takes too much time or memory".to_owned())
        }
    })
}

/// Returns the text of a file, or ends this process if a limit is reached. It is meant for a process that does
/// nothing else.
///
/// Returns a message, if the file is not a readable PDF.
pub fn read_pdf_within_limits(path: &Path) -> Result<String, String> {
    // If the system does not know a limit, the file is read without it.
    let _ = setrlimit(Resource::RLIMIT_CPU, CPU_SECONDS_MAX, CPU_SECONDS_MAX);
    let _ = setrlimit(Resource::RLIMIT_AS, MEMORY_BYTES_MAX, MEMORY_BYTES_MAX);
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    read_pdf(path)
}

fn read_pdf(path: &Path) -> Result<String, String> {
    let mut document = Document::load(path).map_err(|why| unreadable(&why))?;
    // Most encrypted files only forbid to print or to copy, and open without a password.
    if document.is_encrypted() && document.decrypt("").is_err() {
        return Err("it opens with a password only; save a copy of it without one".to_owned());
    }
    list_widths(&mut document);
    let mut text = String::new();
    let mut upright = UprightOutput(PlainTextOutput::new(&mut text));
    pdf_extract::output_doc(&document, &mut upright).map_err(|why| unreadable(&why))?;
    Ok(text)
}

fn unreadable(why: &dyn std::fmt::Display) -> String {
    format!("it is not a readable PDF: {why}")
}

/// Writes the widths of characters as lists, since the reader takes a range of codes for its first code. Google Docs writes ranges.
fn list_widths(document: &mut Document) {
    let mut lists: Vec<(ObjectId, Object)> = Vec::new();
    for (id, font) in &document.objects {
        if let Ok(font) = font.as_dict()
            && font.has(b"CIDSystemInfo")
            && let Ok(widths) = font.get(b"W")
            && let Some(list) = expand_widths(document, widths)
        {
            lists.push((*id, Object::Array(list)));
        }
    }
    for (id, widths) in lists {
        if let Ok(font) = document.get_object_mut(id).and_then(Object::as_dict_mut) {
            font.set("W", widths);
        }
    }
}

/// Returns widths as codes that are each followed by a list. It ends at the first width that cannot be read.
fn expand_widths(document: &Document, widths: &Object) -> Option<Vec<Object>> {
    let mut rest = resolve(document, widths)?.as_array().ok()?.clone().into_iter();
    let mut lists = Vec::new();
    while let (Some(first), Some(next)) = (rest.next(), rest.next()) {
        let Some(next) = resolve(document, &next) else { break };
        let list = if let Ok(list) = next.as_array() {
            list.iter().filter_map(|width| resolve(document, width)).collect()
        } else {
            let (Ok(from), Ok(to), Some(width)) = (first.as_i64(), next.as_i64(), rest.next()) else { break };
            let codes = usize::try_from((to - from + 1).clamp(0, CODES_MAX)).unwrap_or_default();
            vec![width; codes]
        };
        lists.extend([first, Object::Array(list)]);
    }
    Some(lists)
}

/// Returns the object that a reference leads to, or the object itself if it is no reference.
fn resolve(document: &Document, object: &Object) -> Option<Object> {
    document.dereference(object).ok().map(|(_, object)| object.clone())
}

/// An output that turns text which runs in another direction, as in the wide tables of reports, so that it runs to the right.
struct UprightOutput<'a>(PlainTextOutput<&'a mut String>);

impl OutputDev for UprightOutput<'_> {
    fn begin_page(
        &mut self,
        number: u32,
        media: &MediaBox,
        art: Option<(f64, f64, f64, f64)>,
    ) -> Result<(), OutputError> {
        self.0.begin_page(number, media, art)
    }

    fn end_page(&mut self) -> Result<(), OutputError> {
        self.0.end_page()
    }

    fn output_character(
        &mut self,
        place: &Transform,
        width: f64,
        spacing: f64,
        font_size: f64,
        text: &str,
    ) -> Result<(), OutputError> {
        let (along, length) = ((place.m11, place.m12), place.m11.hypot(place.m12));
        if length == 0.0 || place.m12 == 0.0 && place.m11 > 0.0 && place.m22 > 0.0 {
            return self.0.output_character(place, width, spacing, font_size, text);
        }
        let (cos, sin) = (along.0 / length, along.1 / length);
        // Text in a mirror has its lines the other way round.
        let is_mirrored = place.m11 * place.m22 < place.m12 * place.m21;
        let up = if is_mirrored { -1.0 } else { 1.0 };
        let turn = Transform::row_major(cos, -sin * up, sin, cos * up, 0.0, 0.0);
        self.0.output_character(&place.post_transform(&turn), width, spacing, font_size, text)
    }

    fn begin_word(&mut self) -> Result<(), OutputError> {
        self.0.begin_word()
    }

    fn end_word(&mut self) -> Result<(), OutputError> {
        self.0.end_word()
    }

    fn end_line(&mut self) -> Result<(), OutputError> {
        self.0.end_line()
    }
}
