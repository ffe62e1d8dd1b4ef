//! Files that the program adds to or replaces, and those of a record that it reads back.
//!
//! The input is the path of such a file. The output is the file, or an error if anything other than a regular file is there. A link
//! that came with a folder could redirect the text to any file of the user, and a pipe would make the program wait
//! forever. Nothing is written here.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::fcntl::OFlag;

/// Refuses the path of a link, a folder or a special file. A path that does not exist is accepted.
///
/// Returns an error with advice, and any error of the system.
pub fn check_own(path: &Path) -> Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(about) if about.is_file() => Ok(()),
        Ok(_) => Err(Error::other("it is a link or a special file; put a regular file in its place")),
        Err(why) if why.kind() == ErrorKind::NotFound => Ok(()),
        Err(why) => Err(why),
    }
}

/// Opens a file of a record for reading. Anything other than a file is refused at once: a folder of a stranger may have a pipe in its
/// place, which has no end.
///
/// Returns any error of the system, and [`ErrorKind::InvalidData`] if something other than a file is there.
pub fn open_own(path: &Path) -> Result<File> {
    // Without this flag, a pipe is opened only once another process writes to it. A file is read as before.
    let file = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
    require_regular(&file)?;
    Ok(file)
}

/// Refuses an open pipe, device or folder.
///
/// Returns [`ErrorKind::InvalidData`], and any error of the system.
pub fn require_regular(file: &File) -> Result<()> {
    if file.metadata()?.is_file() {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::InvalidData,
        "it is a folder or a special file, and a record is a regular file",
    ))
}

#[cfg(test)]
mod tests {
    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;
    use crate::files::Scratch;

    #[test]
    fn pipe_is_refused_at_once() {
        let scratch = Scratch::new(&std::env::temp_dir(), "own").unwrap();
        let pipe = scratch.path().join("pipe");
        mkfifo(&pipe, Mode::S_IRWXU).unwrap();
        for other in [pipe.as_path(), scratch.path(), Path::new("/dev/zero")] {
            assert_eq!(open_own(other).unwrap_err().kind(), ErrorKind::InvalidData, "{}", other.display());
        }
        let file = scratch.path().join("file");
        std::fs::write(&file, "text").unwrap();
        assert_eq!(std::io::read_to_string(open_own(&file).unwrap()).unwrap(), "text");
    }
}
