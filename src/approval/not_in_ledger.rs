//! The refusal to sign after a decision that the ledger beside the keys does not know.

use std::path::PathBuf;

use thiserror::Error;

use crate::repository::Oid;
use quorum::Sequence;

/// A branch carries a decision of these keys that the ledger or log beside them does not know.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error(
    "`{branch}` carries decision {sequence} of these keys, landed by {commit}, but {} {found}: it is an older copy or was left behind, and \
     these keys would sign one number twice. {advice}",
    place.display()
)]
pub struct NotInLedger {
    pub(super) branch: String,
    pub(super) sequence: Sequence,
    pub(super) commit: Oid,
    pub(super) place: PathBuf,
    pub(super) found: String,
    pub(super) advice: String,
}
