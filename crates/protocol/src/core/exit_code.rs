//! Exit codes, which scripts and CI rely on. Each error of this crate knows its own.

use std::io::ErrorKind;

/// The exit code of the process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum ExitCode {
    /// The agents agreed, or the command succeeded.
    Success = 0,
    /// A fault of this program or of the system under it.
    Internal = 1,
    /// A mistake in flags, configuration or roleset.
    Usage = 2,
    /// The run ended without agreement, or its answer was withheld.
    NoAgreement = 3,
    /// The answer was vetoed, with evidence.
    Vetoed = 4,
    /// A limit on tokens, cost or time was reached.
    Budget = 5,
    /// A provider could not be used.
    Provider = 6,
    /// A journal or a result does not verify.
    Integrity = 7,
    /// The agents agreed, but something was lost on the way and `--fail-on-degraded` was given.
    Degraded = 8,
    /// An evaluation missed the bar that it was given, or a calibration cannot certify its risk.
    Missed = 9,
    /// The command was interrupted; the run can be resumed.
    Interrupted = 130,
}

impl ExitCode {
    pub const ALL: [Self; 11] = [
        Self::Success,
        Self::Internal,
        Self::Usage,
        Self::NoAgreement,
        Self::Vetoed,
        Self::Budget,
        Self::Provider,
        Self::Integrity,
        Self::Degraded,
        Self::Missed,
        Self::Interrupted,
    ];

    /// Returns the exit code with this number, or `None` if this program has no such code.
    pub fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|code| i32::from(u8::from(*code)) == number)
    }

    /// Returns the meaning of the code, as the manual page prints it.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Success => "The agents agreed, or the command succeeded.",
            Self::Internal => "A fault of the program or of the system under it.",
            Self::Usage => "A mistake in flags, configuration or roleset; the record of another build.",
            Self::NoAgreement => {
                "The run ended without agreement, a calibration withheld its answer, or a quorum did not approve."
            }
            Self::Vetoed => "The answer was vetoed, with evidence.",
            Self::Budget => "A limit on tokens, cost or time was reached.",
            Self::Provider => "A provider could not be used.",
            Self::Integrity => "A journal, a result or a record does not verify.",
            Self::Degraded => {
                "The agents agreed, but something was lost on the way, and --fail-on-degraded was given."
            }
            Self::Missed => {
                "An evaluation missed the bar of --fail-under or --baseline, or a calibration cannot certify its risk."
            }
            Self::Interrupted => "The command was interrupted; a run can be resumed.",
        }
    }
}

impl From<ExitCode> for u8 {
    fn from(code: ExitCode) -> Self {
        code as Self
    }
}

/// Returns true for errors about a folder that the user named and that cannot be used. A full disk is not such an
/// error.
pub fn is_unusable(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::NotFound
            | ErrorKind::PermissionDenied
            | ErrorKind::NotADirectory
            | ErrorKind::AlreadyExists
            | ErrorKind::ReadOnlyFilesystem
    )
}
