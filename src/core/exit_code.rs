//! Exit codes, as scripts and CI rely on them. Each error of this crate knows its own.

use std::io::ErrorKind;

/// What the process returns.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum ExitCode {
    /// Agreed, or the command did what it was asked.
    Success = 0,
    /// A fault of this program or of the system under it.
    Internal = 1,
    /// A mistake in flags, configuration or roleset.
    Usage = 2,
    /// The talk ended without agreement.
    NoAgreement = 3,
    /// The answer was stopped, with evidence.
    Vetoed = 4,
    /// A limit on tokens, cost or time was reached.
    Budget = 5,
    /// A provider could not be used.
    Provider = 6,
    /// A journal or a result does not verify.
    Integrity = 7,
    /// Agreed, but something was lost on the way and `--fail-on-degraded` was given.
    Degraded = 8,
    /// Interrupted; the run can be resumed.
    Interrupted = 130,
}

impl From<ExitCode> for u8 {
    fn from(code: ExitCode) -> Self {
        code as Self
    }
}

/// Whether a folder that somebody named cannot be used; a full disk was named by nobody.
pub(crate) fn is_unusable(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::NotFound
            | ErrorKind::PermissionDenied
            | ErrorKind::NotADirectory
            | ErrorKind::AlreadyExists
            | ErrorKind::ReadOnlyFilesystem
    )
}
