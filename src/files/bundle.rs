//! Packing several files into one archive that is the same wherever and whenever it is made, and unpacking it.
//!
//! The input is files, each with its name in the archive. The output is a gzipped tar file (POSIX ustar). Times,
//! owners and the order of names are left out, so the same files give the same bytes. An existing file is never
//! overwritten.

use std::fs::File;
use std::io::{Read as _, Result, Write as _};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};
use tar::{Archive, Builder, EntryType, Header};

use super::own::open_own;

/// The mode of the files in the archive: anyone who has the archive may read them.
const MODE: u32 = 0o644;

/// Writes an archive of these files, each under its name, in the order of the names. A file that grows meanwhile is in it as it was at
/// the beginning. If the archive cannot be written whole, it is not left behind.
///
/// Returns any error while reading or writing, and an error if the archive exists already.
pub fn write_bundle(path: &Path, files: &[(String, PathBuf)]) -> Result<()> {
    let mut files: Vec<&(String, PathBuf)> = files.iter().collect();
    files.sort();
    let archive = File::create_new(path)?;
    write_files(archive, &files).inspect_err(|_| {
        // The first error is the one that matters.
        let _ = std::fs::remove_file(path);
    })
}

fn write_files(archive: File, files: &[&(String, PathBuf)]) -> Result<()> {
    // The results of a batch follow from its journal, so they are measured before it.
    let mut opened = Vec::new();
    for (name, path) in files.iter().rev() {
        let file = open_own(path)?;
        let bytes = file.metadata()?.len();
        opened.push((name, file, bytes));
    }
    let mut tar = Builder::new(GzBuilder::new().mtime(0).write(archive, Compression::default()));
    for (name, file, bytes) in opened.into_iter().rev() {
        let mut header = Header::new_ustar();
        header.set_entry_type(EntryType::Regular);
        header.set_size(bytes);
        header.set_mode(MODE);
        header.set_mtime(0);
        tar.append_data(&mut header, name, file.take(bytes))?;
    }
    let mut archive = tar.into_inner()?.finish()?;
    archive.flush()?;
    archive.sync_all()
}

/// Unpacks an archive into a folder, as `tar xf` does. No file of it leaves the folder.
pub fn unpack_bundle(path: &Path, folder: &Path) -> Result<()> {
    Archive::new(GzDecoder::new(File::open(path)?)).unpack(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Scratch;

    #[test]
    fn bundle_is_whole_or_not_there() {
        let scratch = Scratch::new(&std::env::temp_dir(), "bundle").unwrap();
        let path = |name: &str| scratch.path().join(name);
        std::fs::write(path("one"), "1").unwrap();
        std::fs::write(path("two"), "22").unwrap();
        let named = |names: &[&str]| -> Vec<(String, PathBuf)> {
            names.iter().map(|name| (format!("top/{name}"), path(name))).collect()
        };
        write_bundle(&path("whole.tar.gz"), &named(&["two", "one"])).unwrap();
        unpack_bundle(&path("whole.tar.gz"), &path("unpacked")).unwrap();
        for (name, text) in [("one", "1"), ("two", "22")] {
            assert_eq!(std::fs::read_to_string(path("unpacked/top").join(name)).unwrap(), text);
        }
        write_bundle(&path("half.tar.gz"), &named(&["one", "missing"])).unwrap_err();
        assert!(!path("half.tar.gz").exists());
        write_bundle(&path("whole.tar.gz"), &named(&["one"])).unwrap_err();
        assert!(path("whole.tar.gz").exists(), "a file that is there stays");
    }
}
