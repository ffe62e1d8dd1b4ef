//! The mistakes in a user's request, and the right name for a misspelt one.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

use super::trust_claim::{TrustClaim, TrustState, list_claims};
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

impl Problem {
    pub(super) fn new(file: &str, at: &str, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), at: at.to_owned(), message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, at, message } = self;
        // A schema quotes the faulty value, which may be a whole file.
        let message = shorten(message);
        if at.is_empty() { write!(f, "{file}: {message}") } else { write!(f, "{file} at {at}: {message}") }
    }
}

/// The most characters of one mistake that are shown.
const MESSAGE_CHARS_MAX: usize = 400;

/// Returns the beginning and the end of a long message, since the fault is named at the end.
fn shorten(message: &str) -> Cow<'_, str> {
    let count = message.chars().count();
    if count <= MESSAGE_CHARS_MAX {
        return message.into();
    }
    let half = MESSAGE_CHARS_MAX / 2;
    let head: String = message.chars().take(half).collect();
    let tail: String = message.chars().skip(count - half).collect();
    format!("{head} … {tail}").into()
}

/// An error that prevents the setup of a run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read `{path}`")]
    Read { path: PathBuf, source: std::io::Error },
    /// A configuration file is not valid.
    #[error("`{path}`: {why}")]
    File {
        path: PathBuf,
        /// The mistake, with its line.
        why: String,
    },
    /// A folder has settings that need its visitor's trust.
    #[error(
        "the folder `{}` has settings that start programs, name servers or keys, or lead out of it, and {}:{}\nread them, then trust them with `consensus trust` in that folder (in a job: CONSENSUS_TRUST={digest}), or put them into your own configuration file",
        .folder.display(),
        .state,
        list_claims(.claims)
    )]
    Untrusted {
        /// The folder, without links.
        folder: PathBuf,
        /// The settings that need trust, each with its place.
        claims: Vec<TrustClaim>,
        /// The digest by which they can be trusted.
        digest: Digest,
        /// The reason why they do not count.
        state: TrustState,
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
    let mut list = String::new();
    for problem in problems.iter().take(NAMED_MAX) {
        list.push_str("\n  ");
        list.push_str(&problem.to_string());
    }
    match problems.len().saturating_sub(NAMED_MAX) {
        0 => list,
        more => format!("{list}\n  and {more} more"),
    }
}

/// Returns the candidate that `word` most likely means, if one is close enough: it begins with the word, or differs in at most a
/// third of its letters.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let is_beginning = length >= 3 && candidate.starts_with(word);
        let distance = if is_beginning { 1 } else { strsim::damerau_levenshtein(word, candidate) };
        if distance <= (length / 3).max(1) && best.is_none_or(|(nearest, _)| distance < nearest) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Returns `; did you mean …?` for the nearest candidate, or an empty string.
pub(super) fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(word, candidates) {
        // A word that is a valid name elsewhere is not misspelt.
        Some(name) if name != word => format!("; did you mean `{name}`?"),
        Some(_) | None => String::new(),
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

    #[test]
    fn typo_finds_word_and_nonsense_none() {
        let names = ["writer_physicist", "solver_checker", "planner_coder"];
        assert_eq!(nearest("writer_phisicist", names), Some("writer_physicist"));
        assert_eq!(nearest("solver_cheker", names), Some("solver_checker"));
        assert_eq!(nearest("planner", names), Some("planner_coder"));
        assert_eq!(nearest("xyz", names), None);
        assert_eq!(nearest("llama3.1", ["openai", "ollama"]), None);
    }
}
