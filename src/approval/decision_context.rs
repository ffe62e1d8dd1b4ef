//! The context of a decision: everything that it needs, the command that must succeed on its tree, and the files that show how
//! it ended.

use std::path::Path;
use std::sync::Arc;

use super::error::ApprovalError;
use super::keys::KeyFolder;
use super::ledger::{CommandVerification, VERIFICATION_LOG, VerificationResult};
use super::node::Addresses;
use super::request::ApprovalRequest;
use crate::files::{private_folder, write_whole};
use crate::repository::{Oid, Repository};
use crate::run::Reporter;
use crate::sandbox::Sandbox;
use protocol::text::escape;
use quorum::Membership;

/// The mode of proofs and findings, which everyone may read, since they are there to be shown. The folder of a run is still its
/// owner's alone.
const PUBLIC: u32 = 0o644;

/// Everything that a decision needs.
pub(super) struct DecisionContext {
    pub(super) repository: Repository,
    pub(super) branch: String,
    pub(super) keys: KeyFolder,
    pub(super) membership: Arc<Membership>,
    pub(super) addresses: Option<Addresses>,
}

impl DecisionContext {
    pub(super) fn open(request: &ApprovalRequest) -> Result<Self, ApprovalError> {
        let repository = Repository::open(&request.review.repo)?;
        let branch = repository.branch(&request.review.base)?;
        let keys = KeyFolder::open(&request.keys)?;
        let chain = repository.identity(&repository.commit_of(&branch)?)?;
        let membership = Arc::new(Membership::new(chain, keys.roster().clone())?);
        let addresses = request.peers.as_deref().map(Addresses::read).transpose()?;
        if let Some(addresses) = &addresses {
            addresses.check(&membership)?;
        }
        Ok(Self { repository, branch, keys, membership, addresses })
    }
}

/// Runs the command that must succeed on a tree, if there is one.
pub(super) async fn verify(
    request: &ApprovalRequest,
    repository: &Repository,
    tree: &Oid,
    dir: &Path,
    reporter: &dyn Reporter,
) -> Result<Option<VerificationResult>, ApprovalError> {
    let Some(command) = &request.verify else { return Ok(None) };
    private_folder(dir).map_err(ApprovalError::file("make the folder", dir))?;
    let log = dir.join(VERIFICATION_LOG);
    reporter.status(&escape::terminal(&format!("verify: {command}")));
    let sandbox = sandbox(request).await?;
    if !sandbox.is_walled() {
        reporter.warn(
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

/// Writes a file that everyone may read.
pub(super) fn write_public(path: &Path, text: &str) -> Result<(), ApprovalError> {
    write_whole(path, text, PUBLIC).map_err(ApprovalError::file("write", path))
}
