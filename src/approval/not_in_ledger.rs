//! The refusal to sign what the ledger beside the keys does not know.

use std::path::PathBuf;

use thiserror::Error;

use crate::bft::Sequence;
use crate::repository::Oid;

/// A branch carries a decision of these keys, and what is beside them does not know it.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error(
    "`{branch}` carries decision {sequence}{whose}, landed by {commit}, and {} {found}: it is an older copy, or was left behind, and \
     these keys would sign one number twice. {advice}",
    place.display()
)]
pub struct NotInLedger {
    pub(super) branch: String,
    pub(super) sequence: Sequence,
    /// A commit that names no roster may be other keys'.
    pub(super) whose: &'static str,
    pub(super) commit: Oid,
    pub(super) place: PathBuf,
    pub(super) found: String,
    pub(super) advice: String,
}
