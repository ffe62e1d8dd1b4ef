//! Who decides: all in this process, or each in a process of its own.

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;

use super::output::Output;
use crate::bft::local_cluster::{DecisionProof, LocalCluster};
use crate::bft::node_machine::NodeAction;
use crate::bft::{Change, ModelOpinion, NodeId, Registry, Seal};
use crate::crypto::Signature;
use crate::decision::{DecisionLog, KeyFolder, ORCHESTRATOR, Sitting};
use crate::peer::{Addresses, Connections, Inbox, Patience, Peer, Unreached, listen};
use crate::text::escape;

/// How often it is looked who cannot be reached.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// Who decides.
pub(super) enum Bench {
    /// All are here.
    Together(Box<LocalCluster<Seal>>),
    /// Each is in a process of its own, and this is the one who proposes.
    Apart(Box<Assembly>),
}

/// The one who proposes, among the others.
pub(super) struct Assembly {
    seat: Seated,
    registry: Arc<Registry>,
    output: Output,
}

/// One who takes part in a process of its own, and can be heard.
pub(super) struct Seated {
    pub(super) peer: Peer,
    pub(super) inbox: Inbox,
    pub(super) connections: Connections,
    /// Where its log is.
    pub(super) folder: PathBuf,
    /// Where it is heard.
    pub(super) heard_at: SocketAddr,
}

impl Seated {
    /// Takes the seat of this name, as it was left. `listen_at` is where it is heard, if not where the addresses say.
    pub(super) async fn take(
        name: &str,
        keys: &KeyFolder,
        registry: &Arc<Registry>,
        addresses: &Addresses,
        listen_at: Option<&str>,
    ) -> anyhow::Result<Self> {
        let (key, me, seal, folder) = keys.apart_as(name, registry)?;
        let connections = Connections::open(&key, me, registry, addresses)?;
        let address = listen_at.map_or_else(|| addresses.of(name), Ok)?;
        let (inbox, heard_at) = listen(address, &key, registry).await?;
        let peer = Peer::open(&folder, registry, (me, seal))?;
        // Somebody may have begun in one process meanwhile: whoever comes second sees it.
        keys.apart(registry)?;
        Ok(Self { peer, inbox, connections, folder, heard_at })
    }
}

impl Bench {
    pub(super) fn sitting(addresses: Option<&Addresses>) -> Sitting {
        if addresses.is_some() { Sitting::Apart } else { Sitting::Together }
    }

    /// Opens the bench of a ledger. `listen` is where the one who proposes is heard, if not where the addresses say.
    pub(super) async fn open(
        ledger: &DecisionLog,
        keys: &KeyFolder,
        registry: &Arc<Registry>,
        addresses: Option<&Addresses>,
        listen_at: Option<&str>,
        output: &Output,
    ) -> anyhow::Result<Self> {
        let Some(addresses) = addresses else {
            output.tell("keys: all are in this process, so that this proves nothing against whoever runs it");
            return Ok(Self::Together(Box::new(ledger.court(keys)?)));
        };
        let seat = Seated::take(ORCHESTRATOR, keys, registry, addresses, listen_at).await?;
        let (registry, output) = (Arc::clone(registry), *output);
        Ok(Self::Apart(Box::new(Assembly { seat, registry, output })))
    }

    /// Has a change decided on; the same again, if that was begun before.
    pub(super) async fn decide(
        &mut self,
        change: Change,
        opinions: Vec<ModelOpinion>,
    ) -> anyhow::Result<DecisionProof<Signature>> {
        match self {
            Self::Together(court) => Ok(court.decide(change, opinions)?),
            Self::Apart(assembly) => assembly.decide(change).await,
        }
    }
}

/// Says of others, those of `is_told`, why they do not hear, whenever that changes; never ends.
pub(super) async fn tell_missing(
    connections: &Connections,
    registry: &Registry,
    is_told: impl Fn(&Unreached) -> bool,
    output: &Output,
) {
    let mut told = Vec::new();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let mut missing = connections.unreachable();
        missing.retain(|(_, why)| is_told(why));
        if missing == told {
            continue;
        }
        for (party, why) in &missing {
            let name = registry.name(*party).unwrap_or_default();
            output.insist(&escape::terminal(&format!("{name} {why}")));
        }
        told = missing;
    }
}

impl Assembly {
    async fn decide(&mut self, change: Change) -> anyhow::Result<DecisionProof<Signature>> {
        let value = change.value();
        let Seated { peer, inbox, connections, .. } = &mut self.seat;
        if !peer.has_submitted(change.digest()) {
            peer.submit(change.clone())?;
        }
        while peer.ended(change.digest()).is_none() {
            let (registry, output) = (&self.registry, self.output);
            let tell = |want: &NodeAction<Signature>| {
                match want {
                    NodeAction::Late(sequence, _, late) => {
                        let names: Vec<&str> =
                            late.iter().filter_map(|at| registry.name(NodeId::Reviewer(*at))).collect();
                        output.tell(&format!(
                            "decision {sequence}: not heard of yet by {}; it is sent again",
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
            let running = pin!(peer.run(inbox, connections, &(), Patience::default(), tell));
            tokio::select! {
                ended = running => ended?,
                () = tell_missing(connections, registry, |_| true, &output) => {}
            }
        }
        let ended = peer.ended(change.digest()).and_then(|sequence| peer.ruling(sequence, value));
        ended.context("a decision that was told has a proof; that is an error of this program")
    }
}
