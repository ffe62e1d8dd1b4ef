//! The flags of `consensus chat` and `consensus sessions`.

use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;

use super::run::RunArgs;
use super::shared::RunsDirArgs;
use crate::cli::completion;

const AFTER_HELP: &str = "\
Each line is a question with a run of its own, which takes the flags of `consensus run`. The agents know the earlier questions and
agreed answers. Type `help` for more. The arrow keys bring back earlier lines. Ctrl-D or `exit` ends the chat, and Ctrl-C stops the
open question.

Examples:
  consensus chat --model ollama:llama3.1
  consensus chat --session physics \"Why is the sky blue?\"
  consensus sessions show physics";

/// Arguments of `chat`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP, after_long_help = AFTER_HELP, mut_arg("dry_run", |arg| arg.hide(true)))]
pub(crate) struct ChatArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// The session of the one question that this process reads.
    #[arg(long = "in", value_name = "NAME", hide = true)]
    pub(crate) session_name: Option<String>,
}

/// Arguments of `sessions`.
#[derive(Args, Debug)]
pub(crate) struct SessionsArgs {
    #[command(subcommand)]
    pub(crate) action: Option<SessionsAction>,
    #[command(flatten)]
    pub(crate) runs: RunsDirArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsAction {
    /// List the sessions, most recently used first.
    List,
    /// Print the questions and answers of a session.
    Show {
        /// The session.
        #[arg(value_name = "NAME", add = ArgValueCandidates::new(completion::sessions))]
        name: String,
    },
    /// Delete the questions and answers of a session; its runs remain.
    Delete {
        /// The session.
        #[arg(value_name = "NAME", add = ArgValueCandidates::new(completion::sessions))]
        name: String,
    },
}
