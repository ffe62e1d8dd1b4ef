//! Digests, canonical JSON and signatures: they define when two byte strings are the same, and who signed them.
//!
//! The input is bytes, JSON values and keys. The output is [`Digest`]s, canonical bytes and [`Signature`]s. Nothing
//! here reads a file or a clock, or draws a random number.

#![warn(missing_docs)]

mod canonical_json;
mod digest;
pub mod dsse;
mod signing;

pub use canonical_json::{NotInteroperable, canonical_json};
pub use digest::{Digest, Hasher, ParseDigestError};
pub use signing::{NotAKey, PublicKey, SecretKey, Signature};
