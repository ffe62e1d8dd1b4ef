//! The callers of a server, as its runs know them.

use crate::crypto::Digest;

/// The label of a run with the digest of its caller's token, if it has one.
pub(super) const CALLER_LABEL: &str = "caller";

/// The caller of a request: the digest of its token, or zeros where no token is wanted. Keys of different callers are different keys.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Caller(pub(super) Digest);

impl Caller {
    /// The caller where no token is wanted.
    pub(super) const ANYONE: Self = Self(Digest::ZERO);
}
