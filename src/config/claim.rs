//! What of a folder needs the trust of its visitor, and whether it has it.

/// One thing that needs trust.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TrustClaim {
    /// Where it is: a file with its line, or a link.
    pub place: String,
    /// What it says.
    pub what: String,
}

/// Whether a folder is trusted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TrustState {
    /// It is, as it is now.
    Trusted,
    /// It never was.
    Unknown,
    /// It was, and what it says has changed.
    Changed,
    /// It never was, and the environment trusts something else.
    OtherDigest,
}

/// Returns the claims as lines of a message.
pub(super) fn lines(claims: &[TrustClaim]) -> String {
    claims.iter().fold(String::new(), |lines, claim| lines + "\n  " + &claim.to_string())
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
