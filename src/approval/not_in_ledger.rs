//! The refusal to sign after a decision that the ledger beside the keys does not know.

use std::path::PathBuf;

use thiserror::Error;

use crate::bft::Sequence;
use crate::repository::Oid;

/// A branch carries a decision of these keys that the ledger or log beside them does not know.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error(
    "`{branch}` carries decision {sequence}{whose}, landed by {commit}, but {} {found}: it is an older copy or was left behind, and \
     these keys would sign one number twice. {advice}",
    place.display()
)]
pub struct NotInLedger {
    pub(super) branch: String,
    pub(super) sequence: Sequence,
    /// The owner of the decision, in words. A commit that names no roster may be other keys'.
    pub(super) whose: &'static str,
    pub(super) commit: Oid,
    pub(super) place: PathBuf,
    pub(super) found: String,
    pub(super) advice: String,
}
