//! The reason why a party is not reached: no one is there, or a program that speaks another version of the protocol.
//!
//! The input is the result of a request. The output is the reason, in the words of the component that noticed it. Nothing is
//! sent here.

use std::fmt;

use http::StatusCode;

/// The version of the protocol that this program speaks. Since version 2, a vote names the model that formed it.
pub const VERSION: u32 = 2;

/// The header of an answer that names the version that was spoken. Version 1 had no such header.
pub(super) const VERSION_HEADER: &str = "consensus-protocol";

/// The reason why a packet did not reach a party.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Unreached {
    /// There was no connection or no answer, in the words of the component that noticed it.
    Lost(String),
    /// The party proved its key, but speaks this other version of the protocol.
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

/// Returns the other version of the protocol that an answer comes from: one that does not know the path for packets.
pub(super) fn other_version(response: &reqwest::Response) -> Option<u32> {
    let named = response.headers().get(VERSION_HEADER);
    let version = match named {
        Some(named) => named.to_str().ok()?.parse().ok()?,
        None => 1,
    };
    (response.status() == StatusCode::NOT_FOUND && version != VERSION).then_some(version)
}

/// Returns the innermost cause of an error: why no one is there, rather than that a request has failed. A stranger's key is
/// named as one.
pub(super) fn innermost(why: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = why;
    while let Some(source) = cause.source() {
        cause = source;
    }
    // An error of TLS is inside an error of the connection, which may be inside another one.
    let mut io: Option<&std::io::Error> = cause.downcast_ref();
    while let Some(inner) = io.and_then(inside) {
        io = Some(inner);
    }
    let tls = io.and_then(std::io::Error::get_ref).and_then(|inner| inner.downcast_ref());
    if matches!(tls, Some(rustls::Error::InvalidCertificate(_))) {
        return "the key that answers there is not the one in the roster; compare --peers and the rosters"
            .to_owned();
    }
    if io.is_some_and(|error| error.kind() == std::io::ErrorKind::UnexpectedEof) {
        return "it closed the connection".to_owned();
    }
    cause.to_string()
}

/// Returns the error of a connection inside another one.
fn inside(error: &std::io::Error) -> Option<&std::io::Error> {
    error.get_ref()?.downcast_ref()
}
