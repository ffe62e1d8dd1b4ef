//! The ways in which a decision of `approval` can go, tried with the program's own step function.
//!
//! The honest reviewers are [`Slot`]s. The network is reduced to what matters: whatever a party has said can reach
//! anybody at any later time, or never. Every orchestrator is Byzantine and proposes anything to anybody, on any grounds
//! that it can put together; the Byzantine reviewers approve everything to everybody, as often as they like, commit to
//! everything, and claim whatever can be shown to have been approved. Which reviewer approves which of two changes is tried in every way.
//!
//! States that differ only in who is who count once, and so do states that differ only in which of the delivered messages
//! a reviewer remembers: what it says next depends on them through what it has said alone. Reviews come at once. Not tried
//! here, and left to the tests of the slot: being pulled along by others who have left a view, votes that come before
//! their proposal, what a reviewer does after a decision, and whether there is one in the end.
//!
//! In this crate, `cargo test --test modelcheck` tries one view; `cargo test --release --test modelcheck -- --include-ignored
//! --nocapture --test-threads 1` tries up to three, and prints how many states there are.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::time::Instant;

use crypto::Digest;
use quorum::{
    Commit, Grounds, LeaderProposal, Lock, Prepare, Quorum, Reviewer, Slot, SlotAction, SlotInput,
    SlotMessage, Value, View, ViewChange, Vote,
};
use stateright::{Checker, HasDiscoveries, Model, Property};

/// What one honest reviewer has said, by view.
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
struct Said {
    prepared: Vec<Option<(usize, Vote)>>,
    committed: Vec<Option<usize>>,
    left: Vec<Option<Left>>,
}

/// That it has left all views before one, and what it said was approved before: a value and its view.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
struct Left {
    lock: Option<(View, usize)>,
}

/// What an honest reviewer is, as far as it matters for what comes: it approves these, takes part in this view, and has said
/// this.
type Key<'a> = ([bool; 2], View, &'a Said);

#[derive(Clone, Debug)]
struct ModelState {
    slots: Vec<Slot>,
    said: Vec<Said>,
    approves: Vec<[bool; 2]>,
    /// Follows from what was said.
    decided: BTreeSet<Value>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum ModelStep {
    /// A proposal reaches a reviewer.
    Propose(Reviewer, LeaderProposal),
    /// All votes of a view that it has voted in reach a reviewer: those for its value, or all.
    Votes(Reviewer, View, bool),
    /// The time for a view is over.
    Expire(Reviewer, View),
}

struct Approval {
    quorum: Quorum,
    views: View,
    /// Whether steps are taken, too, without which no disagreement is lost: a reviewer is called into a later view that
    /// it has not gone to by itself (where it has, others have heard more from it), one uses up its vote in a rejection
    /// (where it has not been asked, it can still approve something), and what is over comes again.
    is_whole: bool,
}

impl ModelState {
    fn key(&self) -> Vec<Key<'_>> {
        let of_one = |i: usize| (self.approves[i], self.slots[i].view(), &self.said[i]);
        let mut key: Vec<Key<'_>> = (0..self.slots.len()).map(of_one).collect();
        key.sort_unstable();
        key
    }

    /// Whether everybody is as it was.
    fn is_still(&self, last: &Self) -> bool {
        let mut slots = self.slots.iter().zip(&last.slots);
        self.said == last.said && slots.all(|(slot, before)| slot.view() == before.view())
    }
}

impl Hash for ModelState {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl PartialEq for ModelState {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

fn values() -> [Value; 3] {
    [Value::Change(Digest::new(b"a")), Value::Change(Digest::new(b"b")), Value::Nothing]
}

fn index(value: Value) -> usize {
    values().iter().position(|other| *other == value).expect("it is one of three")
}

impl Approval {
    fn honest(&self) -> usize {
        self.quorum.reviewers() - self.quorum.faults()
    }

    fn liars(&self) -> impl Iterator<Item = Reviewer> + use<> {
        self.honest()..self.quorum.reviewers()
    }

    /// Gives a reviewer an input, reviews for it at once, and notes what it says.
    fn give(&self, world: &mut ModelState, reviewer: Reviewer, input: SlotInput) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            for output in world.slots[reviewer].step(input) {
                match output {
                    SlotAction::Review(digest) => {
                        let approves = world.approves[reviewer][index(Value::Change(digest))];
                        let vote = if approves { Vote::Approve } else { Vote::Reject };
                        inputs.push(SlotInput::Reviewed(digest, vote));
                    }
                    SlotAction::Say(message) => self.note(&mut world.said[reviewer], &message),
                    SlotAction::Acknowledge(..) | SlotAction::Decide(_) | SlotAction::Accuse(_) => {}
                }
            }
        }
    }

    fn note(&self, said: &mut Said, message: &SlotMessage) {
        match message {
            SlotMessage::Prepare(Prepare { view, value, vote }) => {
                assert!(said.prepared[*view as usize].is_none(), "it votes twice in one view");
                said.prepared[*view as usize] = Some((index(*value), *vote));
            }
            SlotMessage::Commit(Commit { view, value }) => {
                assert!(said.committed[*view as usize].is_none(), "it commits twice in one view");
                said.committed[*view as usize] = Some(index(*value));
            }
            SlotMessage::ViewChange(ViewChange { view, lock }) if *view < self.views => {
                assert!(said.left[*view as usize].is_none(), "it goes to one view twice");
                said.left[*view as usize] =
                    Some(Left { lock: lock.as_ref().map(|lock| (lock.view, index(lock.value))) });
            }
            SlotMessage::ViewChange(_) => {}
        }
    }

    /// Those whose approval of a value in a view can be shown.
    fn approvers(&self, world: &ModelState, view: View, value: usize) -> BTreeSet<Reviewer> {
        let approves = |i: &Reviewer| matches!(world.said[*i].prepared[view as usize], Some((x, Vote::Approve | Vote::Follow)) if x == value);
        (0..self.honest()).filter(approves).chain(self.liars()).collect()
    }

    fn lock(&self, world: &ModelState, view: View, value: usize) -> Lock {
        Lock { view, value: values()[value], approvers: self.approvers(world, view, value) }
    }

    /// Grounds for a proposal in this view, one for each way in which they bind it, and some that are none.
    fn grounds(&self, world: &ModelState, view: View) -> Vec<Grounds> {
        if view == 0 {
            return vec![Grounds::First];
        }
        let left = |i: Reviewer| {
            let lock =
                world.said[i].left[view as usize]?.lock.map(|(view, value)| self.lock(world, view, value));
            Some((i, ViewChange { view, lock }))
        };
        let honest: Vec<(Reviewer, ViewChange)> = (0..self.honest()).filter_map(left).collect();
        // What liars claim to have seen: nothing, whatever can be shown, and one thing that cannot.
        let all = (0..view).flat_map(|view| (0..3).map(move |value| self.lock(world, view, value)));
        let (shown, forged): (Vec<Lock>, Vec<Lock>) =
            all.partition(|lock| lock.approvers.len() >= self.quorum.size());
        let claims: Vec<Option<Lock>> = [None]
            .into_iter()
            .chain(shown.into_iter().chain(forged.into_iter().next_back()).map(Some))
            .collect();
        let (mut ways, mut found) = (Vec::new(), Vec::new());
        let needed = self.quorum.size() - self.quorum.faults();
        for chosen in 0_usize..1 << honest.len() {
            // Of those that are too few, one.
            let count = chosen.count_ones() as usize;
            if count + 1 < needed || count + 1 == needed && chosen != (1 << count) - 1 {
                continue;
            }
            let some =
                honest.iter().enumerate().filter(|(i, _)| chosen >> i & 1 == 1).map(|(_, said)| said.clone());
            let some: Vec<(Reviewer, ViewChange)> = some.collect();
            for claim in &claims {
                let lies = self.liars().flat_map(|liar| {
                    std::iter::repeat_n((liar, ViewChange { view, lock: claim.clone() }), self.quorum.size())
                });
                let said: Vec<(Reviewer, ViewChange)> = some.iter().cloned().chain(lies).collect();
                // What it comes to, whatever the orchestrator wishes.
                let way = values().map(|wish| {
                    LeaderProposal::after(view, said.clone(), wish, self.quorum).map(|p| p.value)
                });
                if !ways.contains(&way) {
                    ways.push(way);
                    found.push(Grounds::Left(said));
                }
            }
        }
        found
    }

    /// Returns the values that are decided in some view, by a reviewer who hears all.
    fn decide(&self, world: &ModelState) -> BTreeSet<Value> {
        let mut decided = BTreeSet::new();
        for view in 0..self.views {
            for value in values() {
                let commits =
                    |i: Reviewer| world.said[i].committed[view as usize].map(|value| (i, values()[value]));
                let honest: Vec<(Reviewer, Value)> = (0..self.honest()).filter_map(commits).collect();
                let mut slot = Slot::new(self.quorum);
                let lies =
                    self.liars().flat_map(|liar| std::iter::repeat_n((liar, value), self.quorum.size()));
                for (from, value) in honest.into_iter().chain(lies) {
                    slot.step(SlotInput::Said(from, SlotMessage::Commit(Commit { view, value })));
                }
                decided.extend(slot.decision().map(|decision| decision.value));
            }
        }
        decided
    }
}

impl Model for Approval {
    type State = ModelState;
    type Action = ModelStep;

    fn init_states(&self) -> Vec<ModelState> {
        let count = self.honest();
        let opinions = (0..1_usize << (2 * count))
            .map(|code| (0..count).map(|i| code >> (2 * i) & 3).collect::<Vec<usize>>())
            .filter(|codes| codes.is_sorted());
        let said = Said {
            prepared: vec![None; self.views as usize],
            committed: vec![None; self.views as usize],
            left: vec![None; self.views as usize],
        };
        let world = |codes: Vec<usize>| ModelState {
            slots: vec![Slot::new(self.quorum); count],
            said: vec![said.clone(); count],
            approves: codes.iter().map(|code| [code & 1 == 1, code & 2 == 2]).collect(),
            decided: BTreeSet::new(),
        };
        opinions.map(world).collect()
    }

    fn actions(&self, world: &ModelState, steps: &mut Vec<ModelStep>) {
        for view in 0..self.views {
            let takes_part = |i: &Reviewer| {
                let is_open = world.said[*i].prepared[view as usize].is_none();
                self.is_whole || is_open && world.slots[*i].view() == view
            };
            let there: Vec<Reviewer> = (0..self.honest()).filter(takes_part).collect();
            let grounds = if there.is_empty() { Vec::new() } else { self.grounds(world, view) };
            for i in there {
                for grounds in &grounds {
                    let proposals =
                        values().map(|value| LeaderProposal { view, value, grounds: grounds.clone() });
                    steps.extend(proposals.map(|proposal| ModelStep::Propose(i, proposal)));
                }
            }
        }
        for i in 0..self.honest() {
            let view = world.slots[i].view();
            let said = &world.said[i];
            for view in 0..=view {
                if said.prepared[view as usize].is_some() && said.committed[view as usize].is_none() {
                    steps.extend([ModelStep::Votes(i, view, false), ModelStep::Votes(i, view, true)]);
                }
            }
            let over = if self.is_whole { 0..=view } else { view..=view };
            steps.extend(over.map(|view| ModelStep::Expire(i, view)));
        }
    }

    fn next_state(&self, last: &ModelState, step: ModelStep) -> Option<ModelState> {
        let mut world = last.clone();
        match step {
            ModelStep::Propose(i, proposal) => {
                let view = proposal.view as usize;
                self.give(&mut world, i, SlotInput::Proposed(proposal));
                if !self.is_whole && matches!(world.said[i].prepared[view], Some((_, Vote::Reject))) {
                    return None;
                }
            }
            ModelStep::Expire(i, view) => self.give(&mut world, i, SlotInput::Expired(view)),
            ModelStep::Votes(i, view, all) => {
                let (value, vote) = world.said[i].prepared[view as usize]?;
                let lie = if vote == Vote::Follow { Vote::Follow } else { Vote::Approve };
                let mut votes = Vec::new();
                for from in 0..self.honest() {
                    let Some((of, vote)) = last.said[from].prepared[view as usize] else { continue };
                    if all || of == value && matches!(vote, Vote::Approve | Vote::Follow) {
                        votes.push((from, of, vote));
                    }
                }
                votes.extend(
                    self.liars().flat_map(|liar| std::iter::repeat_n((liar, value, lie), self.quorum.size())),
                );
                for (from, of, vote) in votes {
                    // It may have gone on meanwhile; then this view is over for it.
                    let prepare = Prepare { view, value: values()[of], vote };
                    self.give(&mut world, i, SlotInput::Said(from, SlotMessage::Prepare(prepare)));
                }
            }
        }
        if world.said.iter().zip(&last.said).any(|(said, before)| said.committed != before.committed) {
            world.decided = self.decide(&world);
        }
        let is_inside = world.slots.iter().all(|slot| slot.view() < self.views);
        (is_inside && !world.is_still(last)).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("agreement: one value is decided at most", |_: &Self, world: &ModelState| {
                world.decided.len() <= 1
            }),
            Property::always(
                "validity: a quorum approves what is decided",
                |model: &Self, world: &ModelState| {
                    world.decided.iter().all(|value| {
                        let approves =
                            |opinion: &&[bool; 2]| *value == Value::Nothing || opinion[index(*value)];
                        let honest = world.approves.iter().filter(approves).count();
                        honest + model.quorum.faults() >= model.quorum.size()
                    })
                },
            ),
            Property::always(
                "one value is prepared in a view at most",
                |model: &Self, world: &ModelState| {
                    (0..model.views).all(|view| {
                        let size = model.quorum.size();
                        (0..3).filter(|value| model.approvers(world, view, *value).len() >= size).count() <= 1
                    })
                },
            ),
            Property::sometimes("a change is decided", |_: &Self, world: &ModelState| {
                world.decided.contains(&values()[0])
            }),
            Property::sometimes("nothing is decided, in a later view", |model: &Self, world: &ModelState| {
                model.views == 1 || world.decided.contains(&Value::Nothing)
            }),
            Property::sometimes(
                "whoever rejects a change that a quorum approves, says so too",
                |model: &Self, world: &ModelState| {
                    let mut said = world.approves.iter().zip(&world.said);
                    !model.is_whole || said.any(|(opinion, said)| !opinion[0] && said.committed[0] == Some(0))
                },
            ),
        ]
    }
}

/// Tries everything, and prints how much that was.
fn check(reviewers: usize, views: View, is_whole: bool) {
    let quorum = Quorum::new(reviewers).expect("there are some");
    let began = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let checker = Approval { quorum, views, is_whole }
        .checker()
        .threads(threads)
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_dfs()
        .join();
    println!(
        "n = {reviewers}, f = {}, q = {}, {views} views: {} states, {} steps, {:.1} s",
        quorum.faults(),
        quorum.size(),
        checker.unique_state_count(),
        checker.state_count(),
        began.elapsed().as_secs_f64()
    );
    checker.assert_properties();
}

/// Both numbers of reviewers are tried in one view.
#[test]
fn four_and_five_reviewers_decide_one_thing() {
    check(4, 1, true);
    check(5, 1, true);
}

#[test]
#[ignore = "see the head of this file"]
fn seven_reviewers_decide_one_thing_in_one_view() {
    check(7, 1, true);
}

#[test]
#[ignore = "see the head of this file"]
fn four_reviewers_decide_one_thing_in_two_views() {
    check(4, 2, true);
}

#[test]
#[ignore = "see the head of this file"]
fn four_reviewers_decide_one_thing_in_three_views() {
    check(4, 3, false);
}

#[test]
#[ignore = "see the head of this file"]
fn five_reviewers_decide_one_thing_in_two_views() {
    check(5, 2, false);
}
