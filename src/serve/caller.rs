//! The callers of a server, as its runs know them.

use crypto::Digest;

/// The label of a run with the digest of its caller's token, if it has one.
pub(super) const CALLER_LABEL: &str = "caller";

/// The caller of a request: the digest of its token, or zeros where no token is wanted. Keys of different callers are different keys.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Caller(pub(super) Digest);

impl Caller {
    /// The caller where no token is wanted.
    pub(super) const ANYONE: Self = Self(Digest::ZERO);

    /// Returns the caller that this label names. A run without the label is anyone's, and one with another text in it has no caller.
    pub(super) fn of_label(label: Option<impl AsRef<str>>) -> Option<Self> {
        label.map_or(Some(Self::ANYONE), |label| label.as_ref().parse().ok().map(Self))
    }
}
