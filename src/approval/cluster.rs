//! The cluster that decides: its nodes are all in this process, or each in a process of its own.

use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::awaiting::Awaited;
use super::error::ApprovalError;
use super::keys::{KeyFolder, ORCHESTRATOR};
use super::log::{DecisionLog, Placement};
use super::node::{Addresses, Connections, Patience};
use super::preflight::{Place, quorum_ready};
use super::seat::{Seated, tell_missing};
use crate::repository::Oid;
use crate::run::{Notices, Waiting};
use crypto::Signature;
use quorum::local_cluster::{DecisionProof, LocalCluster};
use quorum::node_machine::NodeAction;
use quorum::{Change, Membership, ModelOpinion, NodeId, Reviewer, Seal};

/// The nodes that decide.
pub(super) enum Cluster {
    /// All nodes are in this process.
    Local(Box<LocalCluster<Seal>>),
    /// Each node is in a process of its own, and this process is the orchestrator's.
    Distributed(Box<ProposerSeat>),
}

/// The orchestrator, among nodes in other processes.
pub(super) struct ProposerSeat {
    seat: Seated,
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
        notices: &dyn Notices,
    ) -> Result<Self, ApprovalError> {
        let Some(addresses) = addresses else {
            notices.status("keys: all are held here, so the signatures do not protect against you");
            return Ok(Self::Local(Box::new(log.cluster(keys)?)));
        };
        let seat = Seated::take(ORCHESTRATOR, keys, membership, addresses, listen_at).await?;
        let (membership, addresses) = (Arc::clone(membership), addresses.clone());
        Ok(Self::Distributed(Box::new(ProposerSeat { seat, membership, addresses, review_max: None })))
    }

    /// Waits until a quorum could vote on a change of this base. Returns whether each quorum has a reviewer that runs a command
    /// before it approves, by the reviewers' own account.
    pub(super) async fn ready(
        &mut self,
        base: &Oid,
        branch: &str,
        notices: &dyn Notices,
    ) -> Result<bool, ApprovalError> {
        let Self::Distributed(proposer) = self else { return Ok(false) };
        let ProposerSeat { seat, membership, addresses, review_max } = &mut **proposer;
        let place = Place { membership, addresses, base, branch };
        let ready = quorum_ready(&seat.connections, place, notices).await?;
        *review_max = ready.review_max;
        Ok(ready.verifies)
    }

    /// Has a change decided on. The same decision continues if it was begun before.
    pub(super) async fn decide(
        &mut self,
        change: Change,
        opinions: Vec<ModelOpinion>,
        notices: &dyn Notices,
    ) -> Result<DecisionProof<Signature>, ApprovalError> {
        match self {
            Self::Local(cluster) => Ok(cluster.decide(change, opinions)?),
            Self::Distributed(proposer) => proposer.decide(change, notices).await,
        }
    }
}

impl ProposerSeat {
    async fn decide(
        &mut self,
        change: Change,
        notices: &dyn Notices,
    ) -> Result<DecisionProof<Signature>, ApprovalError> {
        let value = change.value();
        if !self.seat.node.has_submitted(change.digest()) {
            self.seat.node.submit(change.clone())?;
        }
        let reviewers = self.membership.roster().reviewers.iter().map(|seat| seat.name.clone()).collect();
        let until = self.review_max.map(|time| SystemTime::now() + time);
        let awaited = Awaited { reviewers, value, until };
        let heard = self.seat.node.votes();
        let waiting = notices.wait_for(&awaited.in_words(&heard.borrow()));
        self.until_ended(&change, &awaited, &*waiting).await?;
        let Self { seat: Seated { node, inbox, connections, .. }, membership, .. } = self;
        let reached = reviewers_in_reach(connections, membership);
        let votes = node.hear_votes(&change, &reached, inbox, connections);
        // The record lacks the votes that have not come by then.
        if let Ok(ended) = tokio::time::timeout(LATE_VOTES_MAX, votes).await {
            ended?;
        }
        waiting.done(&awaited.at_last(&heard.borrow()));
        let ended = node.ended(change.digest()).and_then(|sequence| node.proof_of(sequence, value));
        ended.ok_or(ApprovalError::Internal("a decision has ended without a proof"))
    }

    /// Takes part until a submitted change has ended.
    async fn until_ended(
        &mut self,
        change: &Change,
        awaited: &Awaited,
        waiting: &dyn Waiting,
    ) -> Result<(), ApprovalError> {
        let Self { seat: Seated { node, inbox, connections, .. }, membership, .. } = self;
        let mut tell_votes = pin!(awaited.tell(node.votes(), waiting));
        while node.ended(change.digest()).is_none() {
            let tell = |action: &NodeAction<Signature>| {
                match action {
                    NodeAction::Late(sequence, _, late) => {
                        let names: Vec<&str> =
                            late.iter().filter_map(|at| membership.name(NodeId::Reviewer(*at))).collect();
                        waiting.tell(&format!(
                            "decision {sequence}: {} did not acknowledge it in time; it is sent again",
                            names.join(", ")
                        ));
                    }
                    NodeAction::Tell(..) | NodeAction::Return(..) => return ControlFlow::Break(()),
                    NodeAction::Send(..)
                    | NodeAction::Review(..)
                    | NodeAction::Wait(..)
                    | NodeAction::Decide(..)
                    | NodeAction::Recall(..)
                    | NodeAction::Stable(..)
                    | NodeAction::Accuse(_) => {}
                }
                ControlFlow::Continue(())
            };
            let running = pin!(node.run(inbox, connections, &(), Patience::default(), tell));
            tokio::select! {
                ended = running => ended?,
                () = tell_missing(connections, membership, |_| true, |line| waiting.tell(line)) => {}
                () = &mut tell_votes => {}
            }
        }
        Ok(())
    }
}

/// Returns the reviewers that packets can reach. The votes of others cannot be awaited.
fn reviewers_in_reach(connections: &Connections, membership: &Membership) -> Vec<Reviewer> {
    let missing: Vec<NodeId> = connections.unreachable().into_iter().map(|(party, _)| party).collect();
    let reviewers = 0..membership.quorum().reviewers();
    reviewers.filter(|by| !missing.contains(&NodeId::Reviewer(*by))).collect()
}
