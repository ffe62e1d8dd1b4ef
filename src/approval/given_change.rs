//! A change as it was given: a patch, or a branch.

use std::io::Read as _;
use std::path::Path;

use super::error::ApprovalError;
use crate::repository::{Candidate, ChangeSource, Repository, RepositoryError};

/// The longest patch that is read.
const PATCH_BYTES_MAX: u64 = 4 << 20;

/// A change as it was given.
pub(super) enum GivenChange {
    Patch(Vec<u8>),
    Branch(String),
}

impl GivenChange {
    /// Reads the change: a patch in a file or on standard input, or the name of a branch.
    pub(super) fn read(change: &str, repository: &Repository) -> Result<Self, ApprovalError> {
        let is_stdin = change == "-";
        let path = Path::new(change);
        if !is_stdin && !path.is_file() {
            let branch = match repository.branch(change) {
                Err(RepositoryError::NoBranch { advice, .. }) => {
                    let why = format!("`{change}` is neither a file with a patch nor a branch; {advice}");
                    return Err(ApprovalError::Usage(why));
                }
                branch => branch?,
            };
            return Ok(Self::Branch(branch));
        }
        let mut bytes = Vec::new();
        let limit = PATCH_BYTES_MAX + 1;
        let read = if is_stdin {
            std::io::stdin().take(limit).read_to_end(&mut bytes)
        } else {
            std::fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
        };
        read.map_err(ApprovalError::file("read the patch", path))?;
        if bytes.len() as u64 > PATCH_BYTES_MAX {
            let why =
                format!("the patch `{change}` is longer than {PATCH_BYTES_MAX} bytes; make several of it");
            return Err(ApprovalError::Usage(why));
        }
        Ok(Self::Patch(bytes))
    }

    /// Makes ready what would land on `base`.
    pub(super) fn candidate(
        &self,
        repository: &Repository,
        base: &str,
    ) -> Result<Candidate, RepositoryError> {
        let source = match self {
            Self::Patch(bytes) => ChangeSource::Patch(bytes),
            Self::Branch(branch) => ChangeSource::Branch(branch),
        };
        repository.candidate(base, source)
    }
}
