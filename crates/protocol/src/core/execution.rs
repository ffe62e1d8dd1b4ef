//! What records say about an execution: the way in which a command ended, and the interpreter of a program.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The way in which a command ended.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandEnd {
    /// It exited with this code.
    Exit(i32),
    /// This signal ended it.
    Signal(i32),
    /// Its time was over.
    Time,
    /// It used more memory than it may.
    Memory,
    /// It printed more than it may.
    Output,
}

impl CommandEnd {
    /// Returns true if the command succeeded.
    pub fn is_success(self) -> bool {
        self == Self::Exit(0)
    }
}

/// The end in words that follow a subject, such as `ended with exit code 1`.
impl fmt::Display for CommandEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(code) => write!(f, "ended with exit code {code}"),
            Self::Signal(signal) => write!(f, "was ended by signal {signal}"),
            Self::Time => f.write_str("took longer than it may"),
            Self::Memory => f.write_str("used more memory than it may"),
            Self::Output => f.write_str("printed more than it may"),
        }
    }
}

/// The interpreter that ran a program, and the limits of the program.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct InterpreterNote {
    pub name: String,
    pub version: String,
    /// The longest time that the program could take, in milliseconds.
    pub time_ms: u64,
    /// The most memory that it could use, in bytes.
    pub memory: u64,
}
