//! Packing several files into one archive that is the same wherever and whenever it is made.
//!
//! The input is files, each with its name in the archive. The output is a gzipped tar file (POSIX ustar). Times,
//! owners and the order of names are left out, so the same files give the same bytes. An existing file is never
//! overwritten.

use std::fs::File;
use std::io::{Result, Write as _};
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

/// The mode of the files in the archive: anyone who has the archive may read them.
const MODE: u32 = 0o644;

/// Writes an archive of these files, each under its name, in the order of the names.
///
/// # Errors
///
/// Any error while reading or writing, and an error if the archive exists already.
pub fn write_bundle(path: &Path, files: &[(String, PathBuf)]) -> Result<()> {
    let mut files: Vec<&(String, PathBuf)> = files.iter().collect();
    files.sort();
    let archive = File::create_new(path)?;
    let mut tar = Builder::new(GzBuilder::new().mtime(0).write(archive, Compression::default()));
    for (name, file) in files {
        let file = File::open(file)?;
        let mut header = Header::new_ustar();
        header.set_entry_type(EntryType::Regular);
        header.set_size(file.metadata()?.len());
        header.set_mode(MODE);
        header.set_mtime(0);
        tar.append_data(&mut header, name, file)?;
    }
    tar.into_inner()?.finish()?.flush()
}
