//! Data on standard input beside a question, as `git diff | consensus "review this"` has it.
//!
//! Standard input is read as a document only where a person means it: if it is a file at its beginning, or a pipe that has data at once.
//! Nothing waits for a pipe that stays silent, and nothing is read here.

use std::io::Seek as _;
use std::os::fd::{AsFd as _, BorrowedFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::{SFlag, fstat};

use super::error::RunError;

/// The time that a program at the other end of a pipe has to write, in milliseconds.
const WAIT_MS: u8 = 50;

/// Returns whether standard input has data that belongs to the task.
///
/// Returns [`RunError::Usage`] for a file that another program has begun to read, since it may be meant for that program.
pub(super) fn has_document() -> Result<bool, RunError> {
    let input = std::io::stdin();
    let input = input.as_fd();
    let Ok(about) = fstat(input) else { return Ok(false) };
    let kind = SFlag::from_bits_truncate(about.st_mode) & SFlag::S_IFMT;
    if kind == SFlag::S_IFREG {
        return match read_position(input) {
            Some(0) => Ok(about.st_size > 0),
            Some(place) if i64::try_from(place).is_ok_and(|place| place < about.st_size) => {
                Err(RunError::Usage(
                    "stdin is a file that another program has begun to read; give the rest of it with `-f -`, or nothing with `< /dev/null`"
                        .to_owned(),
                ))
            }
            Some(_) | None => Ok(false),
        };
    }
    Ok(kind == SFlag::S_IFIFO && has_data(input))
}

/// Returns the place up to which a file was read.
fn read_position(file: BorrowedFd<'_>) -> Option<u64> {
    let mut file = std::fs::File::from(file.try_clone_to_owned().ok()?);
    file.stream_position().ok()
}

fn has_data(pipe: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::new(pipe, PollFlags::POLLIN)];
    let is_ready = poll(&mut polled, PollTimeout::from(WAIT_MS)).is_ok_and(|ready| ready > 0);
    is_ready && polled[0].revents().is_some_and(|events| events.contains(PollFlags::POLLIN))
}
