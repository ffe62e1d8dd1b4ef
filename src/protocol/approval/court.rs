//! All parties in one process: the same reviewers and orchestrator as anywhere, with a queue in place of a network.
//!
//! In come decisions that were made before, then a change and what each reviewer thinks of it; out comes a ruling with its
//! proof. There is no time in here: when nothing is on its way any more, the oldest time-out that is awaited comes. The same
//! inputs give the same signatures, so that whoever has written them down first can begin again after a crash and says
//! nothing else.
//!
//! Whoever holds all keys can make any ruling. What this is worth against reviewers who err or were talked into something is
//! the same as anywhere; against this very process it is worth nothing.

use std::collections::VecDeque;

use thiserror::Error;

use super::event::Phase;
use super::message::{Reviewer, Value, View};
use super::orchestrator::{self, Orchestrator};
use super::post::{Party, Post, Proof, To};
use super::quorum::Quorum;
use super::replica::{self, Replica};
use super::statement::{Change, Letter, Opinion, Sequence, Signer, Statement};

/// A decision takes a few dozen posts for each pair of reviewers; far more than that is an error of this program.
const STEPS_MAX: usize = 4_000_000;

/// All parties.
#[derive(Debug)]
pub struct Court<K: Signer> {
    orchestrator: Orchestrator<K>,
    reviewers: Vec<Replica<K>>,
    inbox: VecDeque<(Party, Party, Post<K::Signature>)>,
    waits: VecDeque<Wait>,
    /// What each thinks of the change that is being decided on.
    opinions: Vec<Opinion>,
    votes: Vec<Letter<K::Signature>>,
    told: Option<(Sequence, Value, Proof<K::Signature>)>,
}

/// A time-out that is awaited.
#[derive(Clone, Copy, Debug)]
enum Wait {
    Orchestrator(Sequence, View),
    Reviewer(Reviewer, Sequence, View, Phase),
}

/// What was decided, and what proves it.
#[derive(Clone, Debug)]
pub struct Ruling<S> {
    /// At this place.
    pub sequence: Sequence,
    /// This.
    pub value: Value,
    /// The commits of a quorum.
    pub proof: Proof<S>,
    /// The votes on the change, each with its opinion, in the order of the reviewers.
    pub votes: Vec<Letter<S>>,
}

/// The parties do not come to a decision, or not to the one that was made before.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum Mistrial {
    /// There are not as many opinions as reviewers.
    #[error("there are {0} opinions, and every reviewer has one")]
    Opinions(usize),
    /// Nothing is decided.
    #[error("the reviewers come to no decision; that is an error of this program")]
    Endless,
    /// A decision that was made before does not fit.
    #[error("the decision {0} is not the next one, or its proof is none")]
    OutOfOrder(Sequence),
}

impl<K: Signer> Court<K> {
    /// A court with these keys, the reviewers' in the order of the roster; nothing has been decided yet.
    #[must_use]
    pub fn new(quorum: Quorum, orchestrator: K, reviewers: Vec<K>) -> Self {
        let reviewers = reviewers.into_iter().enumerate();
        Self {
            orchestrator: Orchestrator::new(orchestrator, 0, quorum, 1),
            reviewers: reviewers.map(|(at, key)| Replica::new(key, at, quorum, 1)).collect(),
            inbox: VecDeque::new(),
            waits: VecDeque::new(),
            opinions: Vec::new(),
            votes: Vec::new(),
            told: None,
        }
    }

    /// The place of the next decision.
    #[must_use]
    pub fn next(&self) -> Sequence {
        self.orchestrator.told() + 1
    }

    /// Takes note of a decision that was made before; all of them are to be given, in their order. The signatures in its
    /// proof must have been checked.
    ///
    /// # Errors
    ///
    /// [`Mistrial::OutOfOrder`] if it is not the next one.
    pub fn recall(&mut self, sequence: Sequence, proof: &Proof<K::Signature>) -> Result<(), Mistrial> {
        if sequence != self.next() {
            return Err(Mistrial::OutOfOrder(sequence));
        }
        let (from, post) = (Party::Orchestrator(0), Post::Proof(proof.clone()));
        for at in 0..self.reviewers.len() {
            self.inbox.push_back((from, Party::Reviewer(at), post.clone()));
        }
        self.inbox.push_back((from, from, post));
        self.run()?;
        if self.told.take().is_some_and(|(told, ..)| told == sequence) {
            Ok(())
        } else {
            Err(Mistrial::OutOfOrder(sequence))
        }
    }

    /// Decides on a change, of which each reviewer thinks this.
    ///
    /// # Errors
    ///
    /// [`Mistrial`].
    pub fn decide(
        &mut self,
        change: Change,
        opinions: Vec<Opinion>,
    ) -> Result<Ruling<K::Signature>, Mistrial> {
        if opinions.len() != self.reviewers.len() {
            return Err(Mistrial::Opinions(opinions.len()));
        }
        self.opinions = opinions;
        self.votes.clear();
        let value = change.value();
        let out = self.orchestrator.step(orchestrator::Input::Submit(change));
        self.lead(out);
        self.run()?;
        let (sequence, decided, proof) = self.told.take().ok_or(Mistrial::Endless)?;
        let is_on_it = |letter: &&Letter<K::Signature>| {
            letter.opinion.is_some()
                && matches!(letter.signed.statement, Statement::Prepare { value: on, .. } if on == value)
        };
        let mut votes: Vec<Letter<K::Signature>> = self.votes.iter().filter(is_on_it).cloned().collect();
        votes.sort_by_key(|letter| letter.signed.by);
        votes.dedup_by_key(|letter| letter.signed.by);
        self.waits.clear();
        Ok(Ruling { sequence, value: decided, proof, votes })
    }

    /// Delivers until something is told and nothing is on its way.
    fn run(&mut self) -> Result<(), Mistrial> {
        for _ in 0..STEPS_MAX {
            if let Some((from, to, post)) = self.inbox.pop_front() {
                self.deliver(from, to, post);
            } else if self.told.is_some() {
                return Ok(());
            } else {
                match self.waits.pop_front().ok_or(Mistrial::Endless)? {
                    Wait::Orchestrator(sequence, view) => {
                        let out = self.orchestrator.step(orchestrator::Input::Expired(sequence, view));
                        self.lead(out);
                    }
                    Wait::Reviewer(at, sequence, view, phase) => {
                        self.step(at, replica::Input::Expired(sequence, view, phase));
                    }
                }
            }
        }
        Err(Mistrial::Endless)
    }

    fn deliver(&mut self, from: Party, to: Party, post: Post<K::Signature>) {
        match (to, post) {
            (Party::Reviewer(at), Post::Have(known)) => {
                let out = self.reviewers[at].answer(from, known);
                self.take(at, out);
            }
            (Party::Orchestrator(_), Post::Have(known)) => {
                let out = self.orchestrator.answer(from, known);
                self.lead(out);
            }
            (Party::Reviewer(at), post) => self.step(at, replica::Input::Heard(from, post)),
            (Party::Orchestrator(_), post) => {
                let out = self.orchestrator.step(orchestrator::Input::Heard(from, post));
                self.lead(out);
            }
        }
    }

    fn step(&mut self, at: Reviewer, input: replica::Input<K::Signature>) {
        let out = self.reviewers[at].step(input);
        self.take(at, out);
    }

    /// Does what a reviewer wants.
    fn take(&mut self, at: Reviewer, wanted: Vec<replica::Output<K::Signature>>) {
        for want in wanted {
            match want {
                replica::Output::Send(to, post) => {
                    if let Post::Letter(letter) = &post {
                        self.votes.extend(letter.opinion.is_some().then(|| letter.clone()));
                    }
                    self.send(Party::Reviewer(at), to, &post);
                }
                replica::Output::Review(sequence, change) => {
                    if let Some(opinion) = self.opinions.get(at) {
                        let opinion = opinion.clone().into();
                        self.step(at, replica::Input::Reviewed(sequence, change.digest(), opinion));
                    }
                }
                replica::Output::Wait(sequence, view, phase) => {
                    self.waits.push_back(Wait::Reviewer(at, sequence, view, phase));
                }
                // Nobody says two things in here, and whoever has kept the decisions has told them to all.
                replica::Output::Accuse(_)
                | replica::Output::Decide(..)
                | replica::Output::Recall(..)
                | replica::Output::Stable(..) => {}
            }
        }
    }

    /// Does what the orchestrator wants.
    fn lead(&mut self, wanted: Vec<orchestrator::Output<K::Signature>>) {
        for want in wanted {
            match want {
                orchestrator::Output::Send(to, post) => self.send(Party::Orchestrator(0), to, &post),
                orchestrator::Output::Wait(sequence, view) => {
                    self.waits.push_back(Wait::Orchestrator(sequence, view));
                }
                orchestrator::Output::Decide(sequence, value, proof) => {
                    self.told = Some((sequence, value, proof));
                }
                orchestrator::Output::Late(..)
                | orchestrator::Output::Return(..)
                | orchestrator::Output::Recall(..) => {}
            }
        }
    }

    fn send(&mut self, from: Party, to: To, post: &Post<K::Signature>) {
        let reviewers = (0..self.reviewers.len()).map(Party::Reviewer);
        let all: Vec<Party> = match to {
            To::All => reviewers.chain([Party::Orchestrator(0)]).filter(|party| *party != from).collect(),
            To::Reviewers => reviewers.filter(|party| *party != from).collect(),
            To::One(party) => vec![party],
        };
        self.inbox.extend(all.into_iter().map(|to| (from, to, post.clone())));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{CHECKPOINT_EVERY, Registry, Roster, Seal, Seat, Severity};
    use super::*;
    use crate::crypto::{Digest, SecretKey};

    fn registry(reviewers: u8) -> Arc<Registry> {
        let seat = |seed: u8| Seat {
            name: format!("seat {seed}"),
            key: SecretKey::from_seed(&[seed; 32]).public(),
            domain: "a model".to_owned(),
        };
        let roster =
            Roster { reviewers: (1..=reviewers).map(seat).collect(), orchestrators: vec![seat(200)] };
        Arc::new(Registry::new(Digest::of(b"a repository"), roster).unwrap())
    }

    fn court(reviewers: u8) -> Court<Seal> {
        let registry = registry(reviewers);
        let seal = |seed: u8| Seal::new(SecretKey::from_seed(&[seed; 32]), Arc::clone(&registry)).unwrap().1;
        Court::new(registry.quorum(), seal(200), (1..=reviewers).map(seal).collect())
    }

    fn yes() -> Opinion {
        Opinion::Approve { confidence: 9000, notes: "fine".to_owned() }
    }

    fn no() -> Opinion {
        Opinion::Reject { reason: "wrong".to_owned(), severity: Severity::High }
    }

    fn change(number: u64) -> Change {
        Change::new(&format!("change {number}")).unwrap()
    }

    #[test]
    fn what_a_quorum_approves_is_decided_and_what_none_does_is_decided_not_to_be() {
        for (reviewers, rejecting, is_approved) in [
            (4, 0, true),
            (4, 1, true),
            (4, 2, false),
            (7, 2, true),
            (7, 3, false),
            (1, 1, false),
            (3, 1, false),
            (31, 10, true),
        ] {
            let mut court = court(reviewers);
            let opinions = (0..reviewers).map(|at| if at < rejecting { no() } else { yes() }).collect();
            let Ruling { sequence, value, votes, proof } = court.decide(change(1), opinions).unwrap();
            let expected = if is_approved { change(1).value() } else { Value::Nothing };
            assert_eq!((sequence, value), (1, expected), "{rejecting} of {reviewers}");
            assert_eq!(votes.len(), usize::from(reviewers), "every vote is kept, dissent too");
            let registry = registry(reviewers);
            assert_eq!(proof.check(registry.quorum()).unwrap().value, value);
            let envelope = registry.envelope(&proof.commits).unwrap();
            assert!(registry.open(&envelope).is_ok(), "whoever has the public keys can check it");
        }
    }

    #[test]
    fn decisions_are_numbered_and_whoever_begins_again_says_nothing_else() {
        let mut court = court(4);
        let mut proofs = Vec::new();
        // Past several checkpoints, so that what lies before is forgotten.
        for number in 1..=3 * CHECKPOINT_EVERY {
            let opinions = if number % 5 == 0 { vec![no(), yes(), no(), yes()] } else { vec![yes(); 4] };
            let ruling = court.decide(change(number), opinions).unwrap();
            assert_eq!(ruling.sequence, number);
            proofs.push(ruling.proof);
        }
        let last = proofs.pop().unwrap();
        let mut again = self::court(4);
        for (sequence, proof) in (1..).zip(&proofs) {
            again.recall(sequence, proof).unwrap();
        }
        let ruling = again.decide(change(3 * CHECKPOINT_EVERY), vec![yes(); 4]).unwrap();
        assert_eq!(ruling.proof.commits, last.commits, "the same signatures");
        assert_eq!(again.recall(3, &proofs[2]), Err(Mistrial::OutOfOrder(3)));
    }
}
