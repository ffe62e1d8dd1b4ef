//! The mistakes in a user's request.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

use super::claim::{TrustClaim, TrustState, lines};
use crate::provider::ProviderError;
use crate::provider::launch::LaunchError;
use crypto::Digest;
use protocol::core::ExitCode;

/// One mistake, with its place.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Problem {
    /// The file, or the name of a source that is not a file.
    pub file: String,
    /// The JSON pointer or line inside it; may be empty.
    pub at: String,
    /// The mistake, and the remedy.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, at, message } = self;
        // A schema quotes the faulty value, which may be a whole file.
        let message = bounded(message);
        if at.is_empty() { write!(f, "{file}: {message}") } else { write!(f, "{file} at {at}: {message}") }
    }
}

/// The most characters of one mistake that are shown.
const MESSAGE_CHARS_MAX: usize = 400;

/// Returns the beginning and the end of a long message, since the fault is named at the end.
fn bounded(message: &str) -> Cow<'_, str> {
    let count = message.chars().count();
    if count <= MESSAGE_CHARS_MAX {
        return message.into();
    }
    let half = MESSAGE_CHARS_MAX / 2;
    let (head, tail) = (message.chars().take(half), message.chars().skip(count - half));
    format!("{} … {}", head.collect::<String>(), tail.collect::<String>()).into()
}

/// An error that prevents the setup of a run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read `{path}`")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A configuration file is not valid.
    #[error("`{path}`: {why}")]
    File {
        /// The file.
        path: PathBuf,
        /// The mistake, with its line.
        why: String,
    },
    /// A folder has settings that need its visitor's trust.
    #[error(
        "the folder `{}` has settings that start programs, name servers or keys, or lead out of it, and {}:{}\nread them, then trust them with `consensus trust` in that folder (in a job: CONSENSUS_TRUST={digest}), or put them into your own configuration file",
        .folder.display(),
        .standing,
        lines(.claims)
    )]
    Untrusted {
        /// The folder, without links.
        folder: PathBuf,
        /// The settings that need trust, each with its place.
        claims: Vec<TrustClaim>,
        /// The digest by which they can be trusted.
        digest: Digest,
        /// The reason why they do not count.
        standing: TrustState,
    },
    /// No roleset has this name.
    #[error("there is no roleset `{name}`{hint}")]
    NoRoleset {
        name: String,
        /// The nearest name, or where to look.
        hint: String,
    },
    /// A roleset has mistakes.
    #[error("the roleset has {} mistake{}:{}", .0.len(), if .0.len() == 1 { "" } else { "s" }, list(.0))]
    Roleset(Vec<Problem>),
    /// A flag or setting does not fit.
    #[error("{0}")]
    Usage(String),
    /// No model server was named, and none was found.
    #[error(
        "no model server is configured, and none answers on the usual local ports ({tried}); start one, or name it with --base-url URL or OPENAI_BASE_URL (or try `--mock --answer TEXT`)"
    )]
    NoServer {
        /// The ports that were tried.
        tried: String,
    },
    /// A server cannot be launched.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A server had to be asked for its model, and did not answer properly.
    #[error(transparent)]
    Provider(#[from] ProviderError),
}

impl ConfigError {
    /// Returns the exit code of a program that ends with this error.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Provider(error) => error.exit_code(),
            Self::NoServer { .. } => ExitCode::Provider,
            Self::Launch(error) => error.exit_code(),
            Self::Read { .. }
            | Self::File { .. }
            | Self::Untrusted { .. }
            | Self::NoRoleset { .. }
            | Self::Roleset(_)
            | Self::Usage(_) => ExitCode::Usage,
        }
    }
}

/// The most mistakes that are named; the others appear once these are mended.
const NAMED_MAX: usize = 20;

fn list(problems: &[Problem]) -> String {
    let named = problems.iter().take(NAMED_MAX);
    let list = named.fold(String::new(), |list, problem| list + "\n  " + &problem.to_string());
    match problems.len().saturating_sub(NAMED_MAX) {
        0 => list,
        more => format!("{list}\n  and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of many problems, the first are named and the rest are counted.
    #[test]
    fn further_problems_are_only_counted() {
        let problem =
            |at: usize| Problem { file: "r.json".to_owned(), at: format!("/{at}"), message: "no".to_owned() };
        let text = |count: usize| ConfigError::Roleset((0..count).map(problem).collect()).to_string();
        assert_eq!(text(20).matches("r.json").count(), 20);
        assert!(!text(20).contains("more"));
        assert_eq!(text(23).matches("r.json").count(), 20);
        assert!(text(23).ends_with("and 3 more"), "{}", text(23));
    }
    /// A long problem is shown by its beginning and its end.
    #[test]
    fn shortened_problem_keeps_its_end() {
        let message = format!("[{}] has more than 32 items", "{\"name\":\"A\"},".repeat(10_000));
        let problem = Problem { file: "r.json".to_owned(), at: "/agents".to_owned(), message };
        let text = problem.to_string();
        assert!(text.len() < 500 && text.ends_with("has more than 32 items"), "{text}");
    }
}
