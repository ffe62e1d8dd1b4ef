//! The interpreter of a program, as records name it.

use serde::{Deserialize, Serialize};

/// The interpreter that ran a program, and the limits of the program.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct InterpreterNote {
    /// The interpreter's name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The longest time that the program could take, in milliseconds.
    pub time_ms: u64,
    /// The most memory that it could use, in bytes.
    pub memory: u64,
}
