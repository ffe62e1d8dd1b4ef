//! Honest ones: a mind, and the log from which it comes back.

use std::collections::BTreeMap;

use consensus::protocol::approval::{Proof, Sequence, Signer, Statement, orchestrator, replica};

/// Signatures are ideal: whoever writes a letter is who it says, since nobody here writes in another's name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name;

impl Signer for Name {
    type Signature = ();

    fn sign(&self, _: Sequence, _: &Statement) {}
}

pub(crate) type Letter = consensus::protocol::approval::Letter<()>;
pub(crate) type Post = consensus::protocol::approval::Post<()>;
pub(crate) type Signed = consensus::protocol::approval::Signed<()>;

/// What is run with a log.
pub(crate) trait Mind: Clone {
    type Input: Clone;
    type Output;

    fn step(&mut self, input: Self::Input) -> Vec<Self::Output>;
    fn resume(&self) -> Vec<Self::Output>;
}

impl Mind for replica::Replica<Name> {
    type Input = replica::Input<()>;
    type Output = replica::Output<()>;

    fn step(&mut self, input: Self::Input) -> Vec<Self::Output> {
        Self::step(self, input)
    }

    fn resume(&self) -> Vec<Self::Output> {
        Self::resume(self)
    }
}

impl Mind for orchestrator::Orchestrator<Name> {
    type Input = orchestrator::Input<()>;
    type Output = orchestrator::Output<()>;

    fn step(&mut self, input: Self::Input) -> Vec<Self::Output> {
        Self::step(self, input)
    }

    fn resume(&self) -> Vec<Self::Output> {
        Self::resume(self)
    }
}

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
pub(crate) struct Machine<M: Mind> {
    new: M,
    pub(crate) mind: M,
    log: Vec<M::Input>,
    /// The decisions that it has kept.
    pub(crate) kept: BTreeMap<Sequence, Proof<()>>,
    /// How often it has died: what was begun in an earlier life does not come any more.
    pub(crate) life: u32,
    pub(crate) is_up: bool,
    /// One that forgets all when it dies; no honest one does.
    pub(crate) forgets: bool,
    /// Its clock goes so much slower, in hundredths.
    pub(crate) clock: u64,
}

impl<M: Mind> Machine<M> {
    pub(crate) fn new(mind: M, forgets: bool, clock: u64) -> Self {
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
    pub(crate) fn step(&mut self, input: M::Input, death: Option<Death>) -> Vec<M::Output> {
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
    pub(crate) fn start(&mut self) -> (Vec<M::Output>, Vec<M::Output>) {
        if self.forgets {
            self.log.clear();
        }
        self.is_up = true;
        self.mind = self.new.clone();
        let said = self.log.iter().flat_map(|input| self.mind.step(input.clone())).collect();
        (said, self.mind.resume())
    }
}
