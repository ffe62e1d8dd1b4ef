//! The name and the version of this program, for everything that it writes.

/// The name and version of this program, as journals record them.
pub const PROGRAM: &str = concat!("consensus ", env!("CARGO_PKG_VERSION"));

/// The version of this program, with the commit that it was built from if that is known.
pub const VERSION: &str = match option_env!("CONSENSUS_BUILT_FROM") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};
