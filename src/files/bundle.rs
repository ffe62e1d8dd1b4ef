//! Several files as one archive that is the same wherever and whenever it is made.
//!
//! In: files with the names that they get. Out: a gzipped tar file (POSIX ustar). Times, owners and the order of names are left out of
//! it, so that the same files give the same bytes. What is there is never overwritten.

use std::fs::File;
use std::io::{Result, Write as _};
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

/// Whoever has an archive may read what is in it.
const MODE: u32 = 0o644;

/// Writes an archive of these files, each with its name in it, in the order of the names.
///
/// # Errors
///
/// Any error in reading or writing, also if the archive is there already.
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
