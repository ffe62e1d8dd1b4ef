//! What must be executed before a reply can be judged: the user's check of a text, or a program that a model wrote.
//!
//! A machine cannot execute anything. It asks for an [`Execution`] and learns the result as an event. An execution is known by the digest
//! of its content, so the same text is never checked twice in a run.

use serde::{Deserialize, Serialize};

use crate::core::CommandEnd;
use crypto::{Digest, Hasher};

/// The most bytes of a command's output that are recorded, from its beginning.
pub const OUTPUT_BYTES_MAX: usize = 4096;

/// The most bytes that are recorded of the end of a longer output.
pub const TAIL_BYTES_MAX: usize = 2048;

/// The user's own check of a final text.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CheckCommand {
    /// The command, as a shell reads it. It passes a text by exit code 0.
    pub command: String,
    /// The longest time that it may take, in milliseconds.
    pub timeout_ms: u64,
}

/// Something to execute.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Execution {
    /// The user's check of this text.
    Check { text: String },
    /// A program of an agent.
    Program {
        /// The program as it is run.
        source: String,
    },
    /// A trial of a program on inputs, of which every printed line counts.
    Trial {
        /// The program with its inputs, as it is run.
        source: String,
    },
}

impl Execution {
    /// Returns the text or the program.
    pub fn text(&self) -> &str {
        match self {
            Self::Check { text } => text,
            Self::Program { source } | Self::Trial { source } => source,
        }
    }

    /// Returns the digest by which records and results refer to the execution.
    pub fn key(&self) -> Digest {
        match self {
            Self::Check { text } => Hasher::default().part(b"check").part(text.as_bytes()).finish(),
            Self::Program { source } => Hasher::default().part(b"program").part(source.as_bytes()).finish(),
            Self::Trial { source } => Hasher::default().part(b"trial").part(source.as_bytes()).finish(),
        }
    }
}

/// The result of an execution.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ExecutionResult {
    /// The way in which it ended.
    pub end: CommandEnd,
    /// The beginning of its output, at most [`OUTPUT_BYTES_MAX`] bytes.
    pub output: String,
    /// The end of an output that is longer than that, at most [`TAIL_BYTES_MAX`] bytes. The end of a test's output says what failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tail: String,
    /// The SHA-256 of its whole output, up to 16 MiB.
    pub output_sha256: Digest,
}

impl ExecutionResult {
    /// Returns the last line of the output that is not empty, which says most about a failure.
    pub fn last_line(&self) -> Option<&str> {
        let end = if self.tail.is_empty() { &self.output } else { &self.tail };
        end.lines().map(str::trim).rfind(|line| !line.is_empty())
    }
}
