//! The name of this program in everything that it writes.

/// Name and version of this program, as journals record it.
pub const PROGRAM: &str = concat!("consensus ", env!("CARGO_PKG_VERSION"));

/// The version of this program, with the commit that it was built from where that is known.
pub const VERSION: &str = match option_env!("CONSENSUS_BUILT_FROM") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};
