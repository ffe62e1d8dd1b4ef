//! A party of the roster in a process of its own, with its log and its connections.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::error::ApprovalError;
use super::keys::KeyFolder;
use super::node::{Addresses, Connections, Inbox, Node, Question, Unreached, listen};
use protocol::text::escape;
use quorum::Membership;

/// The interval at which parties that cannot be reached are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// A party that takes part in a process of its own, and can be heard.
pub(super) struct ConnectedNode {
    pub(super) node: Node,
    pub(super) inbox: Inbox,
    pub(super) connections: Connections,
    /// The questions of others, whether it could take part.
    pub(super) questions: mpsc::Receiver<Question>,
    /// The folder of its log.
    pub(super) folder: PathBuf,
    /// The address on which it listens.
    pub(super) heard_at: SocketAddr,
}

impl ConnectedNode {
    /// Opens the party of this name, as it was left. It listens at `listen_at` if that is given, and otherwise at its
    /// address in `addresses`.
    pub(super) async fn open(
        name: &str,
        keys: &KeyFolder,
        membership: &Arc<Membership>,
        addresses: &Addresses,
        listen_at: Option<&str>,
    ) -> Result<Self, ApprovalError> {
        let (key, me, signer, folder) = keys.seat(name, membership)?;
        let connections = Connections::open(&key, me, membership, addresses)?;
        let address = listen_at.map_or_else(|| addresses.of(name), Ok)?;
        let (inbox, questions, heard_at) = listen(address, &key, membership).await?;
        let node = Node::open(&folder, membership, me, signer)?;
        // Another process may have begun with all keys meanwhile: the second of the two notices it here.
        keys.distributed_folder(membership)?;
        Ok(Self { node, inbox, connections, questions, folder, heard_at })
    }
}

/// Prints the other parties that do not hear, each with its reason, whenever that changes. Reasons that `is_shown` refuses are
/// left out. Never ends.
pub(super) async fn report_unreachable(
    connections: &Connections,
    membership: &Membership,
    is_shown: impl Fn(&Unreached) -> bool,
    print: impl Fn(&str),
) {
    let mut printed = Vec::new();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let mut missing = connections.unreachable();
        missing.retain(|(_, why)| is_shown(why));
        if missing == printed {
            continue;
        }
        for (party, why) in &missing {
            let name = membership.name(*party).unwrap_or_default();
            print(&escape::terminal(&format!("{name} {why}")));
        }
        printed = missing;
    }
}
