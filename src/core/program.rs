//! The name of this program in everything that it writes.

/// Name and version of this program, as journals record it.
pub const PROGRAM: &str = concat!("consensus ", env!("CARGO_PKG_VERSION"));
