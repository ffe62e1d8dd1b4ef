//! Where everything is that a decision needs, and the command that must succeed on its tree.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;

use super::approve_args::ApproveArgs;
use super::output::Output;
use super::settings;
use crate::bft::Registry;
use crate::decision::{Checked, CommandVerification, KeyFolder};
use crate::peer::Addresses;
use crate::repository::{Oid, Repository};
use crate::text::escape;

/// What the command that verifies a change has said, inside a run folder.
pub(super) const VERIFICATION_LOG: &str = "verification.log";

/// Where everything is that a decision needs.
pub(super) struct DecisionPlace {
    pub(super) repository: Repository,
    pub(super) branch: String,
    pub(super) keys: KeyFolder,
    pub(super) registry: Arc<Registry>,
    pub(super) addresses: Option<Addresses>,
}

impl DecisionPlace {
    pub(super) fn open(args: &ApproveArgs) -> anyhow::Result<Self> {
        let repository = Repository::open(&args.repo)?;
        let branch = repository.branch(&args.base)?;
        let keys = KeyFolder::open(&args.keys)?;
        let chain = repository.identity(&repository.commit_of(&branch)?)?;
        let registry = Arc::new(Registry::new(chain, keys.roster().clone())?);
        let addresses = args.peers.as_deref().map(Addresses::read).transpose()?;
        addresses.iter().try_for_each(|addresses| addresses.check(&registry))?;
        Ok(Self { repository, branch, keys, registry, addresses })
    }
}

/// Runs the command that must succeed on a tree, if there is one.
pub(super) async fn verified(
    args: &ApproveArgs,
    repository: &Repository,
    tree: &Oid,
    dir: &Path,
    output: &Output,
) -> anyhow::Result<Option<Checked>> {
    let Some(command) = &args.verify else { return Ok(None) };
    settings::private_folder(dir)?;
    let log = dir.join(VERIFICATION_LOG);
    output.tell(&escape::terminal(&format!("verify: {command}")));
    let guard = std::env::current_exe().context("this program cannot be found")?;
    Ok(Some(CommandVerification::run(&guard, command, repository, tree, args.verify_timeout, &log).await?))
}
