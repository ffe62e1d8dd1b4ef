//! A party in a process of its own: its log, its clock and its connections to the others.
//!
//! ```text
//!  packets of others ─TLS─► inbox ─┐                       ┌─► outbox ──TLS──► the others
//!  reviews that have ended ────────┼─► log (fsync) ─► node (pure)
//!  time-outs ──────────────────────┘                       └─► reviews to make, decisions to report
//! ```
//!
//! The input is the key of one party, the roster, and the addresses of the others. The output is decisions with their proof.
//! Everything that makes a difference is durable before the node hears of it. So a process that is killed at any moment and
//! started again never contradicts itself, and asks no model twice for one opinion.
//!
//! Both ends of a connection prove who they are by the very keys of the roster (raw public keys, RFC 7250, in TLS 1.3). There
//! are no certificates, no names, and no one who could vouch for a stranger. A client that is not in the roster cannot even
//! send. Statements do not depend on that: every packet is signed for itself, no matter who brings it.
//!
//! Nothing in here knows what a change is, how it is reviewed or where it lands.

mod error;
mod http;
mod inbox;
mod log;
mod readiness;
mod runner;
mod timers;
mod tls;
mod unreached;
mod votes;

pub use error::NodeError;
pub use http::{Addresses, Connections, listen};
pub use inbox::{Inbox, ReceivedPacket};
pub use readiness::{BaseQuery, BaseState, Question, Reachability, Readiness};
pub use runner::{Carrier, Node, ReviewerNode};
pub use timers::PhaseTimeouts;
pub use unreached::{Unreached, VERSION};
pub use votes::Votes;
