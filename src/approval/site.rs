//! The site of a decision: everything that it needs, and the command that must succeed on its tree.

use std::path::Path;
use std::sync::Arc;

use super::error::ApprovalError;
use super::keys::KeyFolder;
use super::node::Addresses;
use super::request::ApprovalRequest;
use super::verification::{Checked, CommandVerification, VERIFICATION_LOG};
use crate::files::private_folder;
use crate::repository::{Oid, Repository};
use crate::run::Notices;
use crate::sandbox::Sandbox;
use protocol::text::escape;
use quorum::Membership;

/// Everything that a decision needs.
pub(super) struct DecisionSite {
    pub(super) repository: Repository,
    pub(super) branch: String,
    pub(super) keys: KeyFolder,
    pub(super) membership: Arc<Membership>,
    pub(super) addresses: Option<Addresses>,
}

impl DecisionSite {
    pub(super) fn open(request: &ApprovalRequest) -> Result<Self, ApprovalError> {
        let repository = Repository::open(&request.repo)?;
        let branch = repository.branch(&request.base)?;
        let keys = KeyFolder::open(&request.keys)?;
        let chain = repository.identity(&repository.commit_of(&branch)?)?;
        let membership = Arc::new(Membership::new(chain, keys.roster().clone())?);
        let addresses = request.peers.as_deref().map(Addresses::read).transpose()?;
        addresses.iter().try_for_each(|addresses| addresses.check(&membership))?;
        Ok(Self { repository, branch, keys, membership, addresses })
    }
}

/// Runs the command that must succeed on a tree, if there is one.
pub(super) async fn verified(
    request: &ApprovalRequest,
    repository: &Repository,
    tree: &Oid,
    dir: &Path,
    notices: &dyn Notices,
) -> Result<Option<Checked>, ApprovalError> {
    let Some(command) = &request.verify else { return Ok(None) };
    private_folder(dir).map_err(ApprovalError::file("make the folder", dir))?;
    let log = dir.join(VERIFICATION_LOG);
    notices.status(&escape::terminal(&format!("verify: {command}")));
    let sandbox = sandbox(request).await?;
    if !sandbox.is_walled() {
        notices.warn(
            "the command runs without a sandbox, with all your rights; the record of the decision says so",
        );
    }
    let time = request.verify_timeout;
    Ok(Some(CommandVerification::run(&sandbox, command, repository, tree, time, &log).await?))
}

/// Returns the way in which the command of a request is run, if this machine can run it so.
pub(super) async fn sandbox(request: &ApprovalRequest) -> Result<Sandbox, ApprovalError> {
    let sandbox = Sandbox::new(request.confinement.clone())?;
    sandbox.probe().await?;
    Ok(sandbox)
}
