//! A reviewer in a process of its own: it examines each proposal in its own copy of the repository, reads it, and votes.

mod recheck;
mod reviewing_node;
mod upstream;

pub use recheck::Examination;
pub use reviewing_node::ReviewingNode;
