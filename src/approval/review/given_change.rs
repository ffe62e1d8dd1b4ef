//! A change as it was given: a patch or a branch.

use std::io::Read as _;
use std::path::Path;

use crate::approval::error::ApprovalError;
use crate::repository::{Authorship, Candidate, Oid, Repository, RepositoryError};

/// The longest patch that is read, in bytes.
const PATCH_BYTES_MAX: u64 = 4 << 20;

/// A change as it was given.
pub(in crate::approval) enum GivenChange {
    Patch(Vec<u8>),
    Branch(String),
}

impl GivenChange {
    /// Reads the change: a patch in a file or on standard input, or the name of a branch.
    pub(in crate::approval) fn read(change: &str, repository: &Repository) -> Result<Self, ApprovalError> {
        if let Some(patch) = read_patch(change)? {
            return Ok(Self::Patch(patch));
        }
        match repository.branch(change) {
            Err(RepositoryError::NoBranch { advice, .. }) => {
                let why = format!("`{change}` is neither a file with a patch nor a branch; {advice}");
                Err(ApprovalError::Usage(why))
            }
            branch => Ok(Self::Branch(branch?)),
        }
    }

    /// Returns the authors of the change, if it is a branch.
    pub(in crate::approval) fn read_authorship(
        &self,
        repository: &Repository,
        base: &Oid,
    ) -> Result<Option<Authorship>, RepositoryError> {
        match self {
            Self::Patch(_) => Ok(None),
            Self::Branch(branch) => repository.read_authorship(base, branch),
        }
    }

    /// Returns the candidate that would land on `base`.
    pub(in crate::approval) fn candidate(
        &self,
        repository: &Repository,
        base: &str,
    ) -> Result<Candidate, RepositoryError> {
        match self {
            Self::Patch(bytes) => repository.candidate_of_patch(base, bytes),
            Self::Branch(branch) => repository.candidate_of_branch(base, branch),
        }
    }
}

/// Reads a patch from a file or from standard input. Returns `None` if no file has this name.
pub(super) fn read_patch(change: &str) -> Result<Option<Vec<u8>>, ApprovalError> {
    let path = Path::new(change);
    let limit = PATCH_BYTES_MAX + 1;
    let mut bytes = Vec::new();
    let read = match change {
        "-" => std::io::stdin().take(limit).read_to_end(&mut bytes),
        _ if path.is_file() => {
            std::fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
        }
        _ => return Ok(None),
    };
    read.map_err(ApprovalError::file("read the patch", path))?;
    if bytes.len() as u64 > PATCH_BYTES_MAX {
        let why = format!("the patch `{change}` is longer than {PATCH_BYTES_MAX} bytes; split it up");
        return Err(ApprovalError::Usage(why));
    }
    Ok(Some(bytes))
}
