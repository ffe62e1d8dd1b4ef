//! From errors to exit codes and hints.

use std::io::ErrorKind;

use super::ExitCode;
use crate::batch::BatchError;
use crate::config::ConfigError;
use crate::decision::DecisionError;
use crate::engine::EngineError;
use crate::journal::JournalError;
use crate::peer::PeerError;
use crate::provider::ProviderError;
use crate::provider::launch::LaunchError;
use crate::repository::RepositoryError;
use crate::retrieval::RetrievalError;

/// A mistake in how the program was called.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct UsageError(pub(super) String);

/// A journal or result that does not verify.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct IntegrityError(pub(super) String);

/// A signal that came while a run was being prepared.
#[derive(Debug, thiserror::Error)]
#[error("interrupted {0}")]
pub(super) struct Interrupted(pub(super) &'static str);

/// A deadline that passed while a run was being prepared.
#[derive(Debug, thiserror::Error)]
#[error("the deadline passed {0}")]
pub(super) struct TooLate(pub(super) &'static str);

/// Returns the exit code for an error.
pub(super) fn exit_code(error: &anyhow::Error) -> ExitCode {
    error.chain().find_map(of_cause).unwrap_or(ExitCode::Internal)
}

fn of_cause(cause: &(dyn std::error::Error + 'static)) -> Option<ExitCode> {
    if cause.is::<UsageError>() {
        return Some(ExitCode::Usage);
    }
    if cause.is::<Interrupted>() {
        return Some(ExitCode::Interrupted);
    }
    if cause.is::<TooLate>() {
        return Some(ExitCode::Budget);
    }
    if cause.is::<IntegrityError>() {
        return Some(ExitCode::Integrity);
    }
    if let Some(error) = cause.downcast_ref::<ConfigError>() {
        return Some(match error {
            ConfigError::Provider(error) => of_provider(error),
            ConfigError::NoServer { .. } => ExitCode::Provider,
            ConfigError::Launch(error) => of_launch(error),
            ConfigError::Read { .. }
            | ConfigError::File { .. }
            | ConfigError::Untrusted { .. }
            | ConfigError::NoRoleset { .. }
            | ConfigError::Roleset(_)
            | ConfigError::Usage(_) => ExitCode::Usage,
        });
    }
    if let Some(error) = cause.downcast_ref::<EngineError>() {
        return Some(of_engine(error));
    }
    if let Some(error) = cause.downcast_ref::<BatchError>() {
        return Some(match error {
            BatchError::Journal(error) => of_journal(error),
            BatchError::Engine(error) => of_engine(error),
            BatchError::Io { source, .. } if is_unusable(source.kind()) => ExitCode::Usage,
            BatchError::Io { .. } | BatchError::Tasks(_) => ExitCode::Internal,
            BatchError::Results { .. }
            | BatchError::Evidence { .. }
            | BatchError::Stray { .. }
            | BatchError::Manifest { .. } => ExitCode::Integrity,
            BatchError::Shards { .. } => ExitCode::Usage,
            BatchError::InVain { .. } => ExitCode::Provider,
        });
    }
    if let Some(error) = cause.downcast_ref::<DecisionError>() {
        return Some(of_decision(error));
    }
    if let Some(error) = cause.downcast_ref::<PeerError>() {
        return Some(match error {
            PeerError::Journal(error) => of_journal(error),
            PeerError::Log { .. } | PeerError::Forgotten { .. } => ExitCode::Integrity,
            PeerError::NoAddress(_)
            | PeerError::Unknown(_)
            | PeerError::SamePlace(..)
            | PeerError::Addresses { .. }
            | PeerError::NoPlace(_)
            | PeerError::StartsElsewhere { .. }
            | PeerError::Listen { .. } => ExitCode::Usage,
            PeerError::Tls(_) => ExitCode::Internal,
        });
    }
    if let Some(error) = cause.downcast_ref::<RepositoryError>() {
        return Some(of_repository(error));
    }
    if let Some(error) = cause.downcast_ref::<JournalError>() {
        return Some(of_journal(error));
    }
    if let Some(error) = cause.downcast_ref::<LaunchError>() {
        return Some(of_launch(error));
    }
    if let Some(error) = cause.downcast_ref::<RetrievalError>() {
        return Some(of_retrieval(error));
    }
    cause.downcast_ref::<ProviderError>().map(of_provider)
}

fn of_engine(error: &EngineError) -> ExitCode {
    match error {
        EngineError::Journal(error) => of_journal(error),
        EngineError::Mismatch { .. } => ExitCode::Integrity,
        EngineError::Provider { why, .. } => of_provider(why),
        EngineError::Retrieval(error) => of_retrieval(error),
        EngineError::NoCorpus | EngineError::NoRedaction => ExitCode::Usage,
        EngineError::Redaction(_) => ExitCode::Internal,
    }
}

fn of_decision(error: &DecisionError) -> ExitCode {
    match error {
        DecisionError::File { source, .. } if is_unusable(source.kind()) => ExitCode::Usage,
        DecisionError::File { .. }
        | DecisionError::UnderWay(_)
        | DecisionError::Idle
        | DecisionError::Mistrial(_) => ExitCode::Internal,
        DecisionError::KeysAreThere(_)
        | DecisionError::OpenKey(_)
        | DecisionError::Key { .. }
        | DecisionError::OtherKey { .. }
        | DecisionError::Unreadable { .. }
        | DecisionError::Sitting { .. }
        | DecisionError::NotInLedger(_)
        | DecisionError::StartsElsewhere { .. }
        | DecisionError::NoKeys(_)
        | DecisionError::InUse(_)
        | DecisionError::Clash { .. }
        | DecisionError::NoSeat(_)
        | DecisionError::NoPart(_)
        | DecisionError::Roster(_)
        | DecisionError::TooLong(_) => ExitCode::Usage,
        DecisionError::Journal(error) => of_journal(error),
        DecisionError::Repository(error) => of_repository(error),
        DecisionError::Ledger { .. }
        | DecisionError::Damaged { .. }
        | DecisionError::NotProven(_)
        | DecisionError::Refused(_)
        | DecisionError::OtherRoster { .. } => ExitCode::Integrity,
    }
}

fn of_repository(error: &RepositoryError) -> ExitCode {
    match error {
        RepositoryError::File(..) | RepositoryError::Git { .. } | RepositoryError::Strange { .. } => {
            ExitCode::Internal
        }
        RepositoryError::NoGit(_)
        | RepositoryError::NotARepository(_)
        | RepositoryError::NoCommit(_)
        | RepositoryError::NoBranch(_)
        | RepositoryError::DoesNotApply { .. }
        | RepositoryError::Nothing(_)
        | RepositoryError::Shallow
        | RepositoryError::Marked { .. }
        | RepositoryError::Submodule(_)
        | RepositoryError::Name(_)
        | RepositoryError::CheckedOut { .. }
        | RepositoryError::Dirty(_)
        | RepositoryError::Stale { .. }
        | RepositoryError::Locked(_) => ExitCode::Usage,
    }
}

fn of_retrieval(error: &RetrievalError) -> ExitCode {
    match error {
        RetrievalError::Place { .. } | RetrievalError::NoText { .. } | RetrievalError::NoCache => {
            ExitCode::Usage
        }
        RetrievalError::Cache { source, .. } if is_unusable(source.kind()) => ExitCode::Usage,
        RetrievalError::Index { .. } | RetrievalError::Cache { .. } => ExitCode::Internal,
    }
}

fn of_journal(error: &JournalError) -> ExitCode {
    match error {
        JournalError::Damaged { .. } => ExitCode::Integrity,
        JournalError::Locked { .. } => ExitCode::Usage,
        JournalError::Io { source, .. } if is_unusable(source.kind()) => ExitCode::Usage,
        JournalError::Io { .. } => ExitCode::Internal,
    }
}

/// Whether a folder that somebody named cannot be used; a full disk was named by nobody.
fn is_unusable(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::NotFound
            | ErrorKind::PermissionDenied
            | ErrorKind::NotADirectory
            | ErrorKind::AlreadyExists
            | ErrorKind::ReadOnlyFilesystem
    )
}

fn of_launch(error: &LaunchError) -> ExitCode {
    match error {
        LaunchError::Command(_) => ExitCode::Usage,
        LaunchError::Start(_) | LaunchError::Ended { .. } | LaunchError::NotReady { .. } => {
            ExitCode::Provider
        }
    }
}

fn of_provider(error: &ProviderError) -> ExitCode {
    match error {
        ProviderError::Setup(_) => ExitCode::Usage,
        ProviderError::Launch(error) => of_launch(error),
        ProviderError::Unreachable { .. }
        | ProviderError::TimedOut { .. }
        | ProviderError::Status { .. }
        | ProviderError::Overflow { .. }
        | ProviderError::BadAnswer { .. }
        | ProviderError::TooLarge { .. } => ExitCode::Provider,
    }
}
