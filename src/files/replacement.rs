//! A new file in the place of another one, which is there whole and durable, or not at all.
//!
//! The input is the path of the old file, of which this process is the only writer, and the bytes of the new one. The new file has a fixed
//! name beside the old one until then, so that one which a killed process has left is removed by the next.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Result, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// A file for the user alone that is to take the place of another. It is removed when this is dropped, unless it has taken that place.
#[derive(Debug)]
pub struct Replacement {
    path: PathBuf,
    temporary: PathBuf,
    new: BufWriter<File>,
}

impl Replacement {
    /// Begins the file that is to take the place of the one at `path`, which need not exist.
    pub fn of(path: &Path) -> Result<Self> {
        let name = path.file_name().ok_or(ErrorKind::InvalidInput)?;
        let temporary = path.with_file_name(format!(".{}.new", name.to_string_lossy()));
        match std::fs::remove_file(&temporary) {
            Err(why) if why.kind() != ErrorKind::NotFound => return Err(why),
            Ok(()) | Err(_) => {}
        }
        let new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        Ok(Self { path: path.to_owned(), temporary, new: BufWriter::new(new) })
    }

    /// Puts the file in the place of the old one. When this returns, it survives the death of the machine.
    pub fn commit(mut self) -> Result<()> {
        self.new.flush()?;
        self.new.get_ref().sync_all()?;
        std::fs::rename(&self.temporary, &self.path)?;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.new.write(bytes)
    }

    fn flush(&mut self) -> Result<()> {
        self.new.flush()
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        // A file that has taken its place is no longer here. Another one is removed by the next process, if not now.
        let _ = std::fs::remove_file(&self.temporary);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Scratch;

    /// No other file remains beside it.
    #[test]
    fn old_file_stays_until_commit() {
        let scratch = Scratch::new(&std::env::temp_dir(), "replacement").unwrap();
        let path = scratch.path().join("file");
        std::fs::write(&path, "old").unwrap();
        // A killed process has left its file.
        std::fs::write(scratch.path().join(".file.new"), "torn").unwrap();
        let mut dropped = Replacement::of(&path).unwrap();
        dropped.write_all(b"half").unwrap();
        drop(dropped);
        let names = || std::fs::read_dir(scratch.path()).unwrap().count();
        assert_eq!((std::fs::read_to_string(&path).unwrap().as_str(), names()), ("old", 1));
        let mut new = Replacement::of(&path).unwrap();
        new.write_all(b"new").unwrap();
        new.commit().unwrap();
        assert_eq!((std::fs::read_to_string(&path).unwrap().as_str(), names()), ("new", 1));
    }
}
