//! The flags of `consensus roleset` and `consensus persona`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use clap_complete::{ArgValueCandidates, ArgValueCompleter};

use super::shared::RolesetsArgs;
use crate::cli::completion;

#[derive(Args, Debug)]
pub(crate) struct RolesetArgs {
    #[command(subcommand)]
    pub(crate) action: RolesetAction,
    #[command(flatten)]
    pub(crate) rolesets: RolesetsArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RolesetAction {
    /// List every roleset that can be named, and its place.
    List,
    /// Print a roleset with its packs.
    Show {
        /// The name or path of a roleset.
        #[arg(required_unless_present = "from", add = ArgValueCompleter::new(completion::rolesets))]
        roleset: Option<String>,
        /// Print the roleset of a run: the run's id or folder, or BATCH/RUN.
        #[arg(long, value_name = "RUN", conflicts_with = "roleset", add = ArgValueCompleter::new(completion::runs))]
        from: Option<String>,
    },
    /// Copy a roleset with its packs, so that you can change it; nothing is overwritten.
    ///
    /// A copy of your own is best given a new name.
    Copy {
        /// The name or path of a roleset.
        #[arg(value_name = "ROLESET", add = ArgValueCompleter::new(completion::rolesets))]
        roleset: String,
        /// A new name, for a copy in the folder `rolesets`; or a folder: a path with a slash, or one that exists.
        #[arg(value_name = "NAME|FOLDER", default_value = "rolesets/")]
        to: String,
        /// Copy the roleset of this run; ROLESET is then the new name, or a folder.
        #[arg(long, value_name = "RUN", conflicts_with = "to", add = ArgValueCompleter::new(completion::runs))]
        from: Option<String>,
    },
    /// Report every mistake in rolesets; without a name, in all rolesets that are found.
    Check {
        /// The names or paths of rolesets.
        #[arg(add = ArgValueCompleter::new(completion::rolesets))]
        rolesets: Vec<String>,
    },
}

/// Arguments of `persona`.
#[derive(Args, Debug)]
pub(crate) struct PersonaArgs {
    #[command(subcommand)]
    pub(crate) action: PersonaAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PersonaAction {
    /// List the built-in personas.
    List,
    /// Print the instructions of a persona: a built-in one, or one that a line describes.
    Show {
        /// The name of the persona, or a line that describes it.
        #[arg(add = ArgValueCandidates::new(completion::personas))]
        persona: String,
    },
    /// Write the pack of a new persona into a folder, for your own rolesets; nothing is overwritten.
    New {
        /// A description of the persona, such as "a contrary physicist who looks at everything sideways".
        line: String,
        /// The name of the persona; without it, one is made from the line.
        #[arg(long)]
        name: Option<String>,
        /// The folder for the pack.
        #[arg(default_value = "rolesets/packs")]
        folder: PathBuf,
    },
}
