//! An orchestrator: it numbers changes, proposes them in the views that are its own, and hears what is decided.
//!
//! In come changes, posts of reviewers and time-outs; out go proposals, and decisions in their order, each once. It has no
//! vote. Like a reviewer it is what was put in: put in again, in the same order, it proposes nothing else.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::message::{Commit, Proposal, Reviewer, Value, View, Vote};
use super::post::{Commits, Party, Post, Proof, To, WINDOW};
use super::quorum::Quorum;
use super::statement::{Change, Letter, Sequence, Signed, Signer, Statement};
use crate::crypto::Digest;

/// So many decisions are under way at once. Half of what reviewers allow: their checkpoints may be late.
pub const IN_FLIGHT: Sequence = WINDOW / 2;

/// A change is proposed again in so many views at most, if nobody says why it is not approved.
const TRIES_MAX: u32 = 3;

/// So many changes of others are kept for each decision; there is one for each view at most.
const CHANGES_MAX: usize = 8;

/// What happens to an orchestrator.
#[derive(Clone, Debug)]
pub enum Input<S> {
    /// A change is to be decided on.
    Submit(Change),
    /// Something has come from somebody.
    Heard(Party, Post<S>),
    /// The time to acknowledge the proposal of a view is over.
    Expired(Sequence, View),
    /// What was said may be lost: it is time to say it again.
    Again,
}

/// What an orchestrator wants.
#[derive(Clone, Debug)]
pub enum Output<S> {
    /// To be sent.
    Send(To, Post<S>),
    /// The time to acknowledge the proposal of a view begins.
    Wait(Sequence, View),
    /// These reviewers have not acknowledged the proposal of a view in time; it has been sent to them again.
    Late(Sequence, View, Vec<Reviewer>),
    /// This is decided, and so is all before it; once for each place, in order. To be kept: it is forgotten here.
    Decide(Sequence, Value, Proof<S>),
    /// Somebody wants some of the decisions after this one, which have been told.
    Recall(Party, Sequence),
}

/// One decision.
#[derive(Clone, Debug)]
struct Job<S> {
    /// The change that it wants to be decided on here, and in how many views it has been proposed.
    wish: Option<Change>,
    tries: u32,
    changes: BTreeMap<Digest, Change>,
    /// Who does not approve of its wish.
    against: BTreeSet<Reviewer>,
    /// The last view that each reviewer has gone to.
    left: BTreeMap<Reviewer, (View, Letter<S>)>,
    commits: Commits<S>,
    /// The last of its proposals, and who has it.
    proposal: Option<(View, Letter<S>)>,
    acknowledged: BTreeSet<Reviewer>,
    decision: Option<(Value, Proof<S>)>,
}

/// An orchestrator.
#[derive(Clone, Debug)]
pub struct Orchestrator<K: Signer> {
    key: K,
    me: usize,
    quorum: Quorum,
    orchestrators: usize,
    /// All decisions up to this one have been told.
    told: Sequence,
    waiting: VecDeque<Change>,
    jobs: BTreeMap<Sequence, Job<K::Signature>>,
}

impl<S> Default for Job<S> {
    fn default() -> Self {
        Self {
            wish: None,
            tries: 0,
            changes: BTreeMap::new(),
            against: BTreeSet::new(),
            left: BTreeMap::new(),
            commits: Commits::default(),
            proposal: None,
            acknowledged: BTreeSet::new(),
            decision: None,
        }
    }
}

impl<S: Clone> Job<S> {
    fn learn(&mut self, change: Option<&Change>) {
        if let Some(change) = change.filter(|_| self.changes.len() < CHANGES_MAX) {
            self.changes.entry(change.digest()).or_insert_with(|| change.clone());
        }
    }

    fn change(&self, value: Value) -> Option<&Change> {
        let Value::Change(digest) = value else { return None };
        self.wish.iter().chain(self.changes.values()).find(|change| change.digest() == digest)
    }
}

impl<K: Signer> Orchestrator<K> {
    /// The orchestrator at place `me` of so many, for these reviewers; it has proposed nothing yet.
    #[must_use]
    pub fn new(key: K, me: usize, quorum: Quorum, orchestrators: usize) -> Self {
        Self { key, me, quorum, orchestrators, told: 0, waiting: VecDeque::new(), jobs: BTreeMap::new() }
    }

    /// All decisions up to this one have been told.
    #[must_use]
    pub fn told(&self) -> Sequence {
        self.told
    }

    /// So many changes that were submitted are not decided, or not told yet.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.waiting.len() + self.jobs.values().filter(|job| job.wish.is_some()).count()
    }

    /// Goes on. The same inputs give the same outputs; what makes no sense is dropped.
    pub fn step(&mut self, input: Input<K::Signature>) -> Vec<Output<K::Signature>> {
        let mut out = Vec::new();
        match input {
            Input::Submit(change) => self.waiting.push_back(change),
            Input::Heard(_, Post::Letter(letter)) => self.letter(&letter, &mut out),
            Input::Heard(_, Post::Proof(proof)) => self.proof(proof),
            Input::Heard(from, Post::Have(known)) => self.recall(from, known, &mut out),
            Input::Heard(_, Post::Stable(_)) => {}
            Input::Expired(sequence, view) => self.late(sequence, view, &mut out),
            Input::Again => self.again(&mut out),
        }
        self.tell(&mut out);
        self.begin(&mut out);
        out
    }

    /// Whether a letter about this place can make a difference here. Its signature need not be checked if not.
    #[must_use]
    pub fn wants(&self, sequence: Sequence) -> bool {
        let is_open = |job: &Job<K::Signature>| job.decision.is_none();
        self.is_near(sequence) && self.jobs.get(&sequence).is_none_or(is_open)
    }

    fn is_near(&self, sequence: Sequence) -> bool {
        sequence > self.told && sequence <= self.told + WINDOW
    }

    /// Returns what is waited for: for whoever has put in again all that was put in before.
    #[must_use]
    pub fn resume(&self) -> Vec<Output<K::Signature>> {
        let open = self.jobs.iter().filter(|(_, job)| job.decision.is_none());
        open.filter_map(|(sequence, job)| Some(Output::Wait(*sequence, job.proposal.as_ref()?.0))).collect()
    }

    fn is_mine(&self, view: View) -> bool {
        view as usize % self.orchestrators == self.me
    }

    fn job(&mut self, sequence: Sequence) -> Option<&mut Job<K::Signature>> {
        self.wants(sequence).then(|| self.jobs.entry(sequence).or_default())
    }

    fn sign(&self, sequence: Sequence, statement: Statement) -> Signed<K::Signature> {
        let signature = self.key.sign(sequence, &statement);
        Signed { by: self.me, sequence, statement, signature }
    }

    fn letter(&mut self, letter: &Letter<K::Signature>, out: &mut Vec<Output<K::Signature>>) {
        let Letter { signed, change, .. } = letter;
        let (sequence, by, quorum) = (signed.sequence, signed.by, self.quorum);
        let Some(job) = self.job(sequence) else { return };
        if !matches!(signed.statement, Statement::PrePrepare { .. } | Statement::Want)
            && by >= quorum.reviewers()
        {
            return;
        }
        match &signed.statement {
            Statement::PrePrepare { .. } => job.learn(change.as_ref()),
            Statement::Acknowledge { view, .. } => {
                if job.proposal.as_ref().is_some_and(|(own, _)| own == view) {
                    job.acknowledged.insert(by);
                }
            }
            Statement::Prepare { view, value, opinion } => {
                if job.proposal.as_ref().is_some_and(|(own, _)| own == view) {
                    job.acknowledged.insert(by);
                }
                let is_wish = job.wish.as_ref().is_some_and(|wish| wish.value() == *value);
                if is_wish && opinion.as_ref().is_some_and(|opinion| opinion.vote() != Vote::Approve) {
                    job.against.insert(by);
                }
            }
            Statement::Commit(commit) => {
                job.commits.keep(commit.view, signed);
                let commits = job.commits.to(*commit);
                if commits.len() >= quorum.size() {
                    let Commit { value, .. } = *commit;
                    let change = job.change(value).cloned();
                    job.decision = Some((value, Proof { change, commits }));
                }
            }
            Statement::ViewChange { view, .. } => {
                let view = *view;
                if job.left.get(&by).is_none_or(|(last, _)| *last < view) {
                    job.left.insert(by, (view, letter.clone()));
                    self.lead(sequence, view, out);
                }
            }
            Statement::Want | Statement::Checkpoint { .. } => {}
        }
    }

    /// Takes a quorum's word for a decision.
    fn proof(&mut self, proof: Proof<K::Signature>) {
        let Some(proven) = proof.check(self.quorum) else { return };
        if !self.is_near(proven.sequence) {
            return;
        }
        let job = self.jobs.entry(proven.sequence).or_default();
        let change = proof.change.filter(|change| change.value() == proven.value);
        // A decision whose change is not known yet can be told when somebody sends it.
        if job.decision.as_ref().is_none_or(|(_, known)| known.change.is_none()) {
            let change = change.or_else(|| job.change(proven.value).cloned());
            job.decision = Some((proven.value, Proof { change, commits: proof.commits }));
        }
    }

    /// Proposes a value in a view of its own to which a quorum has gone.
    fn lead(&mut self, sequence: Sequence, view: View, out: &mut Vec<Output<K::Signature>>) {
        let (is_mine, quorum) = (self.is_mine(view), self.quorum);
        let Some(job) = self.jobs.get_mut(&sequence).filter(|_| is_mine) else { return };
        if job.proposal.as_ref().is_some_and(|(own, _)| *own >= view) {
            return;
        }
        let grounds: Vec<Letter<K::Signature>> =
            job.left.values().filter(|(other, _)| *other == view).map(|(_, letter)| letter.clone()).collect();
        let said = grounds.iter().filter_map(|letter| letter.view_change(sequence)).collect();
        let can_pass = job.against.len() < quorum.blocking() && job.tries < TRIES_MAX;
        let wish = job.wish.as_ref().filter(|_| can_pass).map_or(Value::Nothing, Change::value);
        let Some(proposal) = Proposal::after(view, said, wish, quorum) else { return };
        let locked = grounds.iter().filter_map(|letter| letter.change.clone());
        job.changes.extend(
            locked.filter(|change| change.value() == proposal.value).map(|change| (change.digest(), change)),
        );
        if proposal.value == wish && wish != Value::Nothing {
            job.tries += 1;
        }
        let change = job.change(proposal.value).cloned();
        self.propose(sequence, view, proposal.value, change, grounds.into(), out);
    }

    fn propose(
        &mut self,
        sequence: Sequence,
        view: View,
        value: Value,
        change: Option<Change>,
        grounds: Arc<[Letter<K::Signature>]>,
        out: &mut Vec<Output<K::Signature>>,
    ) {
        let signed = self.sign(sequence, Statement::PrePrepare { view, value });
        let letter = Letter { signed, change, grounds };
        let Some(job) = self.jobs.get_mut(&sequence) else { return };
        job.proposal = Some((view, letter.clone()));
        job.acknowledged.clear();
        out.push(Output::Send(To::All, Post::Letter(letter)));
        out.push(Output::Wait(sequence, view));
    }

    /// Tells decisions in order, as far as they and their changes are known.
    fn tell(&mut self, out: &mut Vec<Output<K::Signature>>) {
        while let Some(job) = self.jobs.get(&(self.told + 1)) {
            let Some((value, proof)) = &job.decision else { return };
            if *value != Value::Nothing && proof.change.is_none() {
                return;
            }
            self.told += 1;
            out.push(Output::Decide(self.told, *value, proof.clone()));
            // Another orchestrator's change came to this place: its own gets the next one.
            let is_lost = |wish: &&Change| *value != Value::Nothing && wish.value() != *value;
            self.waiting.extend(job.wish.iter().filter(is_lost).cloned());
            self.jobs.remove(&self.told);
        }
    }

    /// Gives the changes that wait their places.
    fn begin(&mut self, out: &mut Vec<Output<K::Signature>>) {
        let is_first = self.is_mine(0);
        while !self.waiting.is_empty() {
            let mut places = self.told + 1..=self.told + IN_FLIGHT;
            let is_free = |sequence: &Sequence| {
                self.jobs.get(sequence).is_none_or(|job| job.wish.is_none() && job.decision.is_none())
            };
            let Some(sequence) = places.find(is_free) else { return };
            let Some(change) = self.waiting.pop_front() else { return };
            let job = self.jobs.entry(sequence).or_default();
            job.wish = Some(change.clone());
            if is_first {
                job.tries = 1;
                let value = change.value();
                self.propose(sequence, 0, value, Some(change), Arc::new([]), out);
            } else {
                let wanted = self.sign(sequence, Statement::Want);
                out.push(Output::Send(To::Reviewers, Post::Letter(Letter::alone(wanted))));
            }
        }
    }

    /// It may be the only one who has heard a quorum: liars tell it what they tell nobody else.
    fn recall(&self, from: Party, known: Sequence, out: &mut Vec<Output<K::Signature>>) {
        if known < self.told {
            out.push(Output::Recall(from, known));
        }
        let decided = self.jobs.values().filter_map(|job| job.decision.as_ref());
        let posts = decided.map(|(_, proof)| Post::Proof(proof.clone()));
        out.extend(posts.map(|post| Output::Send(To::One(from), post)));
    }

    fn late(&mut self, sequence: Sequence, view: View, out: &mut Vec<Output<K::Signature>>) {
        let reviewers = self.quorum.reviewers();
        let Some(job) = self.jobs.get(&sequence).filter(|job| job.decision.is_none()) else { return };
        let Some((_, letter)) = job.proposal.as_ref().filter(|(own, _)| *own == view) else { return };
        let late: Vec<Reviewer> = (0..reviewers).filter(|by| !job.acknowledged.contains(by)).collect();
        if late.is_empty() {
            return;
        }
        let post = |by: &Reviewer| Output::Send(To::One(Party::Reviewer(*by)), Post::Letter(letter.clone()));
        out.extend(late.iter().map(post));
        out.push(Output::Late(sequence, view, late));
    }

    fn again(&self, out: &mut Vec<Output<K::Signature>>) {
        for (sequence, job) in self.jobs.iter().filter(|(_, job)| job.decision.is_none()) {
            if let Some((_, letter)) = &job.proposal {
                out.push(Output::Send(To::All, Post::Letter(letter.clone())));
            } else if job.wish.is_some() {
                let wanted = Letter::alone(self.sign(*sequence, Statement::Want));
                out.push(Output::Send(To::Reviewers, Post::Letter(wanted)));
            }
        }
        out.push(Output::Send(To::Reviewers, Post::Have(self.told)));
    }
}
