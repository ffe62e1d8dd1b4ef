//! What may be typed about sessions: a chat, and what is kept of it.

use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;

use super::run::RunArgs;
use super::shared::RunsDirArgs;
use crate::cli::completion;

const AFTER_HELP: &str = "\
Each line is a question for a run of its own, with the flags of `consensus run`; the agents know what was asked and agreed on before.
`help` says more. The arrow keys bring back earlier lines. Ctrl-D or `exit` ends the chat, and Ctrl-C stops the question that is open.

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
    /// List the sessions: the one that was used last comes first.
    List,
    /// Print what was asked and answered in a session.
    Show {
        /// The session.
        #[arg(value_name = "NAME", add = ArgValueCandidates::new(completion::sessions))]
        name: String,
    },
    /// Forget what was asked and answered in a session; its runs stay.
    Delete {
        /// The session.
        #[arg(value_name = "NAME", add = ArgValueCandidates::new(completion::sessions))]
        name: String,
    },
}
