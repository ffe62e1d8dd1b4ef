//! The table of faults.
//!
//! In: nothing. Out: all faults with their names, each a function from an honest reply to what the server sends in its place.
//! A fault does not know who asks or how often.

use super::{broken, misshapen};
use crate::support::Act;

/// From an honest reply to what the server sends in its place.
pub(super) type Acts = Box<dyn Fn(&str) -> Vec<Act> + Send + Sync>;

/// What a server does in place of an honest answer.
pub(super) struct Fault {
    pub(super) name: String,
    /// Whether all of the honest reply is in what it sends, so that a run may well agree.
    pub(super) holds_the_reply: bool,
    acts: Acts,
}

impl Fault {
    /// A fault that leaves the honest reply out, or cuts or garbles it.
    pub(super) fn new(
        name: impl Into<String>,
        acts: impl Fn(&str) -> Vec<Act> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), holds_the_reply: false, acts: Box::new(acts) }
    }

    /// A fault in how the honest reply is written or sent.
    pub(super) fn around(
        name: impl Into<String>,
        acts: impl Fn(&str) -> Vec<Act> + Send + Sync + 'static,
    ) -> Self {
        Self { holds_the_reply: true, ..Self::new(name, acts) }
    }

    /// Returns what is sent in place of this honest reply.
    pub(super) fn answer(&self, reply: &str) -> Vec<Act> {
        (self.acts)(reply)
    }
}

/// Returns all faults.
pub(super) fn faults() -> Vec<Fault> {
    let parts = [
        broken::statuses(),
        broken::connections(),
        broken::framing(),
        broken::sizes(),
        broken::disconnects(),
        misshapen::bodies(),
        misshapen::errors(),
        misshapen::types(),
        misshapen::streams(),
        misshapen::usages(),
    ];
    let all: Vec<Fault> = parts.into_iter().flatten().collect();
    let mut names: Vec<&str> = all.iter().map(|fault| fault.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all.len(), "two faults have one name");
    all
}
