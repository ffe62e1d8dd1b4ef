//! Why a party is not reached: nobody is there, or a program that speaks another version of the protocol.
//!
//! In: what came of a request. Out: the reason, in the words of what noticed it. Nothing is sent here.

use std::fmt;

use http::StatusCode;

/// The version of the protocol that this program speaks. Since 2 a vote names the model that formed it.
pub const VERSION: u32 = 2;

/// The header of an answer that says which version was spoken. Version 1 had none.
pub(super) const VERSION_HEADER: &str = "consensus-protocol";

/// Why a packet did not come to a party.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Unreached {
    /// The connection or the answer was none, in the words of what noticed it.
    Lost(String),
    /// The party proved its key, and speaks this other version of the protocol.
    OtherVersion(u32),
}

impl fmt::Display for Unreached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(why) => write!(f, "cannot be reached: {why}"),
            Self::OtherVersion(other) => {
                let which = if *other < VERSION { "it" } else { "this one" };
                write!(
                    f,
                    "speaks version {other} of the protocol, this program speaks {VERSION}: update {which}"
                )
            }
        }
    }
}

/// Which other version of the protocol an answer is by: one that knows nothing of the place where packets are brought to.
pub(super) fn other_version(response: &reqwest::Response) -> Option<u32> {
    let named = response.headers().get(VERSION_HEADER);
    let version = match named {
        Some(named) => named.to_str().ok()?.parse().ok()?,
        None => 1,
    };
    (response.status() == StatusCode::NOT_FOUND && version != VERSION).then_some(version)
}

/// What is at the bottom of an error: why nobody is there, and not that a request has failed. A stranger's key is named as one.
pub(super) fn innermost(why: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = why;
    while let Some(source) = cause.source() {
        cause = source;
    }
    // What TLS says comes inside of an error of the connection, which may be inside of another one.
    let mut io: Option<&std::io::Error> = cause.downcast_ref();
    while let Some(inner) = io.and_then(inside) {
        io = Some(inner);
    }
    let tls = io.and_then(std::io::Error::get_ref).and_then(|inner| inner.downcast_ref());
    if matches!(tls, Some(rustls::Error::InvalidCertificate(_))) {
        return "another key answers there than the roster has for it; compare --peers and the rosters"
            .to_owned();
    }
    if io.is_some_and(|error| error.kind() == std::io::ErrorKind::UnexpectedEof) {
        return "it ends the connection".to_owned();
    }
    cause.to_string()
}

/// The error of a connection inside of another one.
fn inside(error: &std::io::Error) -> Option<&std::io::Error> {
    error.get_ref()?.downcast_ref()
}
