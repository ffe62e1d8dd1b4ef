//! Digests and canonical JSON: what it means for two byte strings to be the same.
//!
//! In go bytes and JSON values, out come [`Digest`]s and canonical bytes. Nothing here reads a
//! file, a clock or a key.

mod canonical_json;
mod digest;

pub use canonical_json::{NotInteroperable, canonical_json};
pub use digest::{Digest, Hasher, ParseDigestError};
