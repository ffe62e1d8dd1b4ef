//! What may be typed about rolesets and personas.

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
    /// List every roleset that can be named, and where it is.
    List,
    /// Print a roleset with its packs.
    Show {
        /// Name or path.
        #[arg(required_unless_present = "from", add = ArgValueCompleter::new(completion::rolesets))]
        roleset: Option<String>,
        /// The roleset that a run was made by: the run's id or folder, or BATCH/RUN.
        #[arg(long, value_name = "RUN", conflicts_with = "roleset", add = ArgValueCompleter::new(completion::runs))]
        from: Option<String>,
    },
    /// Copy a roleset with its packs, to be changed there; overwrites nothing. A roleset of your own is best given a name of its own.
    Copy {
        /// Name or path.
        #[arg(value_name = "ROLESET", add = ArgValueCompleter::new(completion::rolesets))]
        roleset: String,
        /// The new name, which is put into the folder `rolesets`; or a folder, by a path with a slash or one that is there.
        #[arg(value_name = "NAME|FOLDER", default_value = "rolesets/")]
        to: String,
        /// Copy the roleset that this run was made by: ROLESET is then the new name, or a folder.
        #[arg(long, value_name = "RUN", conflicts_with = "to", add = ArgValueCompleter::new(completion::runs))]
        from: Option<String>,
    },
    /// Report every mistake in rolesets; all that are found, if none is named.
    Check {
        /// Names or paths.
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
    /// Print the instructions of a persona: a built-in one, or the one that a line makes.
    Show {
        /// Its name, or a line.
        #[arg(add = ArgValueCandidates::new(completion::personas))]
        persona: String,
    },
    /// Write the pack of a new persona into a folder, for rolesets of your own; overwrites nothing.
    New {
        /// Who it is, such as "a contrary physicist who looks at everything sideways".
        line: String,
        /// Its name; made from the line if absent.
        #[arg(long)]
        name: Option<String>,
        /// The folder.
        #[arg(default_value = "rolesets/packs")]
        folder: PathBuf,
    },
}
