//! The name, version and build of this program, for everything that it writes.

/// The name, version and build of this program, as records name the program that wrote them. The build is a digest of the sources.
pub const PROGRAM: &str = concat!("consensus ", env!("CONSENSUS_BUILD"));

/// The version and build of this program, with the commit that it was built from if that is known.
pub const VERSION: &str = env!("CONSENSUS_VERSION");
