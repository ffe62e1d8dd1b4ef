//! Machines: the program's own reviewers and orchestrators, each with the log from which it comes back.

use std::collections::BTreeMap;

use quorum::node_machine::NodeMachine;
use quorum::{PROOFS_AT_ONCE, Sequence, Signer, Statement};

/// Signatures are ideal: the author of a message is who it says, since no node here writes in another's name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name;

impl Signer for Name {
    type Signature = ();

    fn sign(&self, _: Sequence, _: &Statement) {}
}

pub(crate) type SignedMessage = quorum::SignedMessage<()>;
pub(crate) type Packet = quorum::Packet<()>;
pub(crate) type Proof = quorum::Proof<()>;
pub(crate) type Signed = quorum::Signed<()>;

pub(crate) type Mind = NodeMachine<Name>;
pub(crate) type Input = quorum::node_machine::NodeInput<()>;
pub(crate) type Want = quorum::node_machine::NodeAction<()>;

/// How a machine dies at an input.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Death {
    /// Before the input is durable: its line is torn, and cut off.
    Torn,
    /// After that, before anything is sent.
    Written,
}

/// A machine with a mind and a log.
#[derive(Clone)]
pub(crate) struct Machine {
    new: Mind,
    pub(crate) mind: Mind,
    log: Vec<Input>,
    /// The decisions that it has kept.
    pub(crate) kept: BTreeMap<Sequence, Proof>,
    /// How often it has died: what was begun in an earlier life does not come any more.
    pub(crate) life: u32,
    pub(crate) is_up: bool,
    /// One that forgets all when it dies; no honest one does.
    forgets: bool,
    /// Its clock goes so much slower, in hundredths.
    pub(crate) clock: u64,
}

impl Machine {
    pub(crate) fn new(mind: Mind, forgets: bool, clock: u64) -> Self {
        Self {
            new: mind.clone(),
            mind,
            log: Vec::new(),
            kept: BTreeMap::new(),
            life: 0,
            is_up: true,
            forgets,
            clock,
        }
    }

    /// Writes down, then goes on. `death` may come in between, or before; there is nothing to send then.
    pub(crate) fn step(&mut self, input: Input, death: Option<Death>) -> Vec<Want> {
        if death != Some(Death::Torn) {
            self.log.push(input.clone());
        }
        if death.is_some() {
            self.is_up = false;
            self.life += 1;
            return Vec::new();
        }
        self.mind.step(input)
    }

    /// Starts again. Returns what it has said in its former lives, for the checks alone, and what it waits for.
    pub(crate) fn start(&mut self) -> (Vec<Want>, Vec<Want>) {
        if self.forgets {
            self.log.clear();
        }
        self.is_up = true;
        self.mind = self.new.clone();
        let said = self.log.iter().flat_map(|input| self.mind.step(input.clone())).collect();
        (said, self.mind.resume())
    }

    /// Decisions after one that it has kept, as packets.
    pub(crate) fn recall(&self, after: Sequence) -> Vec<Packet> {
        let kept = self.kept.range(after.saturating_add(1)..).take(PROOFS_AT_ONCE);
        kept.map(|(_, proof)| Packet::Proof(proof.clone())).collect()
    }
}
