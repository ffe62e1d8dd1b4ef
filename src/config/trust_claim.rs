//! The content of a folder that needs its visitor's trust, and whether it has that trust.

/// One item that needs trust.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TrustClaim {
    /// A file with its line, or a link.
    pub place: String,
    pub what: String,
}

/// The state of trust in a folder.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TrustState {
    Trusted,
    Unknown,
    /// The folder was trusted, and its content has changed since.
    Changed,
    /// The folder has never been trusted, and the environment trusts something else.
    OtherDigest,
}

/// Returns the claims as lines of a message.
pub(super) fn list_claims(claims: &[TrustClaim]) -> String {
    let mut lines = String::new();
    for claim in claims {
        lines.push_str("\n  ");
        lines.push_str(&claim.to_string());
    }
    lines
}

impl std::fmt::Display for TrustClaim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

impl std::fmt::Display for TrustState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Trusted => "you trust it",
            Self::Unknown => "you have not trusted it",
            Self::Changed => "it has changed since you trusted it",
            Self::OtherDigest => {
                "you have not trusted it, and CONSENSUS_TRUST is the digest of something else"
            }
        })
    }
}
