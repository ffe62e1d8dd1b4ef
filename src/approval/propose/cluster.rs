//! The cluster that decides: its nodes are all in this process, or each in a process of its own.

use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::preflight::wait_for_quorum;
use super::vote_status::VoteStatus;
use crate::approval::connected_node::{ConnectedNode, report_unreachable};
use crate::approval::error::ApprovalError;
use crate::approval::keys::{KeyFolder, ORCHESTRATOR};
use crate::approval::ledger::{DecisionLog, Placement};
use crate::approval::node::{Addresses, Connections, PhaseTimeouts};
use crate::repository::Oid;
use crate::run::Reporter;
use crypto::Signature;
use quorum::local_cluster::{DecisionProof, LocalCluster};
use quorum::node_machine::NodeAction;
use quorum::{Change, Membership, ModelOpinion, NodeId, Reviewer, RosterSigner};

/// The nodes that decide.
pub(super) enum Cluster {
    /// All nodes are in this process.
    Local(Box<LocalCluster<RosterSigner>>),
    /// Each node is in a process of its own, and this process is the orchestrator's.
    Distributed(Box<ProposerSeat>),
}

/// The orchestrator, among nodes in other processes.
pub(super) struct ProposerSeat {
    seat: ConnectedNode,
    membership: Arc<Membership>,
    addresses: Addresses,
    /// The longest time that reviewers give a review, as far as they have reported it.
    review_max: Option<Duration>,
}

/// The time for which the votes on a change are awaited after its decision, since a record shows them.
const LATE_VOTES_MAX: Duration = Duration::from_secs(2);

impl Cluster {
    pub(super) fn placement(addresses: Option<&Addresses>) -> Placement {
        if addresses.is_some() { Placement::Distributed } else { Placement::Local }
    }

    /// Opens the cluster of a log of decisions. The orchestrator listens at `listen_at` if that is given, and otherwise at its
    /// address in `addresses`.
    pub(super) async fn open(
        log: &DecisionLog,
        keys: &KeyFolder,
        membership: &Arc<Membership>,
        addresses: Option<&Addresses>,
        listen_at: Option<&str>,
        reporter: &dyn Reporter,
    ) -> Result<Self, ApprovalError> {
        let Some(addresses) = addresses else {
            reporter.status("keys: all are held here, so the signatures do not protect against you");
            return Ok(Self::Local(Box::new(log.cluster(keys)?)));
        };
        let seat = ConnectedNode::open(ORCHESTRATOR, keys, membership, addresses, listen_at).await?;
        let (membership, addresses) = (Arc::clone(membership), addresses.clone());
        Ok(Self::Distributed(Box::new(ProposerSeat { seat, membership, addresses, review_max: None })))
    }

    /// Waits until a quorum could vote on a change of this base. Returns whether each quorum has a reviewer that runs a command
    /// before it approves, by the reviewers' own account.
    pub(super) async fn wait_for_quorum(
        &mut self,
        base: &Oid,
        branch: &str,
        reporter: &dyn Reporter,
    ) -> Result<bool, ApprovalError> {
        let Self::Distributed(proposer) = self else { return Ok(false) };
        let ProposerSeat { seat, membership, addresses, review_max } = &mut **proposer;
        let report =
            wait_for_quorum(&seat.connections, membership, addresses, base, branch, reporter).await?;
        *review_max = report.review_max();
        Ok(report.is_verifying())
    }

    /// Has a change decided on. The same decision continues if it was begun before.
    pub(super) async fn decide(
        &mut self,
        change: Change,
        opinions: Vec<ModelOpinion>,
        reporter: &dyn Reporter,
    ) -> Result<DecisionProof<Signature>, ApprovalError> {
        match self {
            Self::Local(cluster) => Ok(cluster.decide(change, opinions)?),
            Self::Distributed(proposer) => proposer.decide(change, reporter).await,
        }
    }
}

impl ProposerSeat {
    async fn decide(
        &mut self,
        change: Change,
        reporter: &dyn Reporter,
    ) -> Result<DecisionProof<Signature>, ApprovalError> {
        let value = change.value();
        if !self.seat.node.has_submitted(change.digest()) {
            self.seat.node.submit(change.clone())?;
        }
        let reviewers = self.membership.roster().reviewers.iter().map(|seat| seat.name.clone()).collect();
        let until = self.review_max.map(|time| SystemTime::now() + time);
        let status = VoteStatus { reviewers, value, until };
        let heard = self.seat.node.votes();
        let waiting = reporter.wait_for(&status.summary(&heard.borrow()));
        self.run_until_end(&change, &status, &*waiting).await?;
        let Self { seat: ConnectedNode { node, inbox, connections, .. }, membership, .. } = self;
        let reached = reviewers_in_reach(connections, membership);
        let votes = node.hear_votes(&change, &reached, inbox, connections);
        // The record lacks the votes that have not come by then.
        if let Ok(ended) = tokio::time::timeout(LATE_VOTES_MAX, votes).await {
            ended?;
        }
        waiting.finish(&status.final_summary(&heard.borrow()));
        let ended = node.ended(change.digest()).and_then(|sequence| node.proof_of(sequence, value));
        ended.ok_or(ApprovalError::Internal("a decision has ended without a proof"))
    }

    /// Takes part until a submitted change has ended.
    async fn run_until_end(
        &mut self,
        change: &Change,
        status: &VoteStatus,
        waiting: &dyn Reporter,
    ) -> Result<(), ApprovalError> {
        let Self { seat: ConnectedNode { node, inbox, connections, .. }, membership, .. } = self;
        let mut reporting = pin!(status.report_votes(node.votes(), waiting));
        while node.ended(change.digest()).is_none() {
            let running = pin!(node.run(inbox, connections, &(), PhaseTimeouts::default(), |action| {
                report_late(action, membership, waiting);
                match action {
                    NodeAction::Tell(..) | NodeAction::Return(..) => ControlFlow::Break(()),
                    NodeAction::Send(..)
                    | NodeAction::Review(..)
                    | NodeAction::Wait(..)
                    | NodeAction::Decide(..)
                    | NodeAction::Late(..)
                    | NodeAction::Recall(..)
                    | NodeAction::Stable(..)
                    | NodeAction::Accuse(_) => ControlFlow::Continue(()),
                }
            }));
            tokio::select! {
                ended = running => ended?,
                () = report_unreachable(connections, membership, |_| true, |line| waiting.warn(line)) => {}
                () = &mut reporting => {}
            }
        }
        Ok(())
    }
}

/// Prints the reviewers that did not acknowledge a proposal in time.
fn report_late(action: &NodeAction<Signature>, membership: &Membership, waiting: &dyn Reporter) {
    if let NodeAction::Late(sequence, _, late) = action {
        let names = late.iter().filter_map(|at| membership.name(NodeId::Reviewer(*at)));
        let names = names.collect::<Vec<_>>().join(", ");
        waiting
            .warn(&format!("decision {sequence}: {names} did not acknowledge it in time; it is sent again"));
    }
}

/// Returns the reviewers that packets can reach. The votes of others cannot be awaited.
fn reviewers_in_reach(connections: &Connections, membership: &Membership) -> Vec<Reviewer> {
    let missing: Vec<NodeId> = connections.unreachable().into_iter().map(|(party, _)| party).collect();
    let reviewers = 0..membership.quorum().reviewers();
    reviewers.filter(|by| !missing.contains(&NodeId::Reviewer(*by))).collect()
}
