//! Taking part from a process of one's own: a seat of the roster, with its log and its connections.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::error::ApprovalError;
use super::keys::KeyFolder;
use super::node::{Addresses, Connections, Inbox, Node, Questions, Unreached, listen};
use crate::bft::Membership;
use crate::text::escape;

/// How often it is looked who cannot be reached.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// One who takes part in a process of its own, and can be heard.
pub(super) struct Seated {
    pub(super) node: Node,
    pub(super) inbox: Inbox,
    pub(super) connections: Connections,
    /// Where others ask whether it could take part.
    pub(super) questions: Questions,
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
        membership: &Arc<Membership>,
        addresses: &Addresses,
        listen_at: Option<&str>,
    ) -> Result<Self, ApprovalError> {
        let (key, me, seal, folder) = keys.seat(name, membership)?;
        let connections = Connections::open(&key, me, membership, addresses)?;
        let address = listen_at.map_or_else(|| addresses.of(name), Ok)?;
        let (inbox, questions, heard_at) = listen(address, &key, membership).await?;
        let node = Node::open(&folder, membership, (me, seal))?;
        // Another process may have begun with all keys meanwhile: the second of the two sees it.
        keys.distributed_folder(membership)?;
        Ok(Self { node, inbox, connections, questions, folder, heard_at })
    }
}

/// Says of others, those of `is_told`, why they do not hear, whenever that changes; never ends.
pub(super) async fn tell_missing(
    connections: &Connections,
    membership: &Membership,
    is_told: impl Fn(&Unreached) -> bool,
    tell: impl Fn(&str),
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
            let name = membership.name(*party).unwrap_or_default();
            tell(&escape::terminal(&format!("{name} {why}")));
        }
        told = missing;
    }
}
