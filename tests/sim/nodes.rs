//! Machines: the program's own reviewers and orchestrators, each with the log from which it comes back.

use std::collections::BTreeMap;
use std::sync::Arc;

use consensus::crypto::Digest;
use consensus::protocol::approval::orchestrator::{self, Orchestrator, Why};
use consensus::protocol::approval::replica::{self, Replica};
use consensus::protocol::approval::{
    Change, Opinion, PROOFS_AT_ONCE, Party, Phase, Sequence, Signer, Statement, To, Value, View,
};

/// Signatures are ideal: whoever writes a letter is who it says, since nobody here writes in another's name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name;

impl Signer for Name {
    type Signature = ();

    fn sign(&self, _: Sequence, _: &Statement) {}
}

pub(crate) type Letter = consensus::protocol::approval::Letter<()>;
pub(crate) type Post = consensus::protocol::approval::Post<()>;
pub(crate) type Proof = consensus::protocol::approval::Proof<()>;
pub(crate) type Signed = consensus::protocol::approval::Signed<()>;

/// What is run: a reviewer or an orchestrator.
#[derive(Clone, Debug)]
pub(crate) enum Mind {
    Reviewer(Replica<Name>),
    Orchestrator(Orchestrator<Name>),
}

/// What happens to one.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    Heard(Party, Post),
    Submit(Change),
    Reviewed(Sequence, Digest, Arc<Opinion>),
    Expired(Sequence, View, Phase),
    Again,
}

/// What one wants.
#[derive(Clone, Debug)]
pub(crate) enum Want {
    Send(To, Post),
    Review(Sequence, Digest),
    Wait(Sequence, View, Phase),
    Decide(Sequence, Proof),
    /// An orchestrator does, in order.
    Tell(Sequence, Value, Proof),
    Recall(Party, Sequence),
    /// An orchestrator gives a change back.
    Return(Change, Why),
    Accuse(Box<(Signed, Signed)>),
    Checkpoint,
}

impl Mind {
    fn step(&mut self, input: Input) -> Vec<Want> {
        match self {
            Self::Reviewer(replica) => {
                let input = match input {
                    Input::Heard(from, post) => replica::Input::Heard(from, post),
                    Input::Reviewed(sequence, digest, opinion) => {
                        replica::Input::Reviewed(sequence, digest, opinion)
                    }
                    Input::Expired(sequence, view, phase) => replica::Input::Expired(sequence, view, phase),
                    Input::Again => replica::Input::Again,
                    Input::Submit(_) => return Vec::new(),
                };
                replica.step(input).into_iter().map(Want::from).collect()
            }
            Self::Orchestrator(orchestrator) => {
                let input = match input {
                    Input::Heard(from, post) => orchestrator::Input::Heard(from, post),
                    Input::Submit(change) => orchestrator::Input::Submit(change),
                    Input::Expired(sequence, view, _) => orchestrator::Input::Expired(sequence, view),
                    Input::Again => orchestrator::Input::Again,
                    Input::Reviewed(..) => return Vec::new(),
                };
                orchestrator.step(input).into_iter().filter_map(want).collect()
            }
        }
    }

    fn resume(&self) -> Vec<Want> {
        match self {
            Self::Reviewer(replica) => replica.resume().into_iter().map(Want::from).collect(),
            Self::Orchestrator(orchestrator) => orchestrator.resume().into_iter().filter_map(want).collect(),
        }
    }

    /// What is sent to whoever knows all decisions up to one.
    pub(crate) fn answer(&self, to: Party, known: Sequence) -> Vec<Want> {
        match self {
            Self::Reviewer(replica) => replica.answer(to, known).into_iter().map(Want::from).collect(),
            Self::Orchestrator(orchestrator) => {
                orchestrator.answer(to, known).into_iter().filter_map(want).collect()
            }
        }
    }

    /// All decisions up to this one are known.
    pub(crate) fn known(&self) -> Sequence {
        match self {
            Self::Reviewer(replica) => replica.known().0,
            Self::Orchestrator(orchestrator) => orchestrator.told(),
        }
    }

    /// Whether something that it was given is not decided.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self, Self::Orchestrator(orchestrator) if orchestrator.pending() > 0)
    }
}

impl From<replica::Output<()>> for Want {
    fn from(output: replica::Output<()>) -> Self {
        match output {
            replica::Output::Send(to, post) => Self::Send(to, post),
            replica::Output::Review(sequence, change) => Self::Review(sequence, change.digest()),
            replica::Output::Wait(sequence, view, phase) => Self::Wait(sequence, view, phase),
            replica::Output::Decide(sequence, proof) => Self::Decide(sequence, proof),
            replica::Output::Recall(to, after) => Self::Recall(to, after),
            replica::Output::Accuse(pair) => Self::Accuse(pair),
            replica::Output::Stable(..) => Self::Checkpoint,
        }
    }
}

fn want(output: orchestrator::Output<()>) -> Option<Want> {
    match output {
        orchestrator::Output::Send(to, post) => Some(Want::Send(to, post)),
        orchestrator::Output::Wait(sequence, view) => Some(Want::Wait(sequence, view, Phase::PrePrepare)),
        orchestrator::Output::Decide(sequence, value, proof) => Some(Want::Tell(sequence, value, proof)),
        orchestrator::Output::Recall(to, after) => Some(Want::Recall(to, after)),
        orchestrator::Output::Return(_, change, why) => Some(Want::Return(change, why)),
        orchestrator::Output::Late(..) => None,
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

    /// Decisions after one that it has kept, as posts.
    pub(crate) fn recall(&self, after: Sequence) -> Vec<Post> {
        let kept = self.kept.range(after.saturating_add(1)..).take(PROOFS_AT_ONCE);
        kept.map(|(_, proof)| Post::Proof(proof.clone())).collect()
    }
}
