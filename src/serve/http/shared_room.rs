//! The room that callers share: the places of runs, and the memory of requests.
//!
//! The input is callers who take room and give it back. The output is room, or that there is too little. Where there are several callers,
//! one of them gets at most half of the room that the others leave. So another caller finds room at once while one takes all that it can.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::caller::Caller;
use crypto::Digest;

/// The longest wait for room. A client that gets no answer for longer may ask again.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// Room for the requests of all callers.
#[derive(Debug)]
pub(in crate::serve) struct SharedRoom {
    most: usize,
    has_several_callers: bool,
    taken: Mutex<HashMap<Digest, usize>>,
    freed: Notify,
}

/// Room that a caller has taken. It is free again when this is dropped.
#[derive(Debug)]
pub(in crate::serve) struct HeldRoom {
    room: Arc<SharedRoom>,
    caller: Caller,
    amount: usize,
}

impl SharedRoom {
    /// Makes room for so much.
    pub(in crate::serve) fn new(most: usize, has_several_callers: bool) -> Arc<Self> {
        Arc::new(Self { most, has_several_callers, taken: Mutex::default(), freed: Notify::new() })
    }

    /// Returns the most that one caller can have.
    pub(super) fn most_of_one(&self) -> usize {
        self.share_of(self.most)
    }

    /// Takes room, if there is so much.
    pub(in crate::serve) fn take(self: &Arc<Self>, caller: Caller, amount: usize) -> Option<HeldRoom> {
        if !self.add(caller, amount) {
            return None;
        }
        Some(HeldRoom { room: Arc::clone(self), caller, amount })
    }

    /// Takes no room yet.
    pub(super) fn hold(self: &Arc<Self>, caller: Caller) -> HeldRoom {
        HeldRoom { room: Arc::clone(self), caller, amount: 0 }
    }

    /// Returns the share of one caller in what the others leave.
    fn share_of(&self, left: usize) -> usize {
        if self.has_several_callers { left.div_ceil(2) } else { left }
    }

    /// Counts more room of a caller, and returns whether there is so much.
    fn add(&self, caller: Caller, amount: usize) -> bool {
        let mut taken = self.lock_taken();
        let all: usize = taken.values().sum();
        let own = taken.get(&caller.0).copied().unwrap_or_default();
        let left = self.most.saturating_sub(all - own);
        if amount > self.share_of(left).saturating_sub(own) {
            return false;
        }
        *taken.entry(caller.0).or_default() += amount;
        true
    }

    fn give_back(&self, caller: Caller, amount: usize) {
        if let Entry::Occupied(mut own) = self.lock_taken().entry(caller.0) {
            *own.get_mut() -= amount;
            if *own.get() == 0 {
                own.remove();
            }
        }
        self.freed.notify_waiters();
    }

    fn lock_taken(&self) -> MutexGuard<'_, HashMap<Digest, usize>> {
        // No code that holds the lock panics.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeldRoom {
    /// Waits for a short while until this is so much, and returns whether it is.
    pub(super) async fn grow_to(&mut self, amount: usize) -> bool {
        let more = amount.saturating_sub(self.amount);
        let deadline = Instant::now() + WAIT_MAX;
        loop {
            // Room that becomes free from here on wakes it.
            let freed = self.room.freed.notified();
            if self.room.add(self.caller, more) {
                self.amount += more;
                return true;
            }
            if timeout_at(deadline, freed).await.is_err() {
                return false;
            }
        }
    }

    /// Gives all back but so much.
    pub(super) fn shrink_to(&mut self, amount: usize) {
        let freed = self.amount.saturating_sub(amount);
        self.amount -= freed;
        self.room.give_back(self.caller, freed);
    }

    /// Returns so much of this as room of its own.
    pub(in crate::serve) fn split(&mut self, amount: usize) -> Self {
        let amount = amount.min(self.amount);
        self.amount -= amount;
        Self { room: Arc::clone(&self.room), caller: self.caller, amount }
    }
}

impl Drop for HeldRoom {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(name: &str) -> Caller {
        Caller(Digest::new(name.as_bytes()))
    }

    /// Takes one part after another until there is no more, and returns them.
    fn take_all(room: &Arc<SharedRoom>, caller: Caller) -> Vec<HeldRoom> {
        std::iter::from_fn(|| room.take(caller, 1)).collect()
    }

    #[test]
    fn one_of_several_leaves_half() {
        let room = SharedRoom::new(8, true);
        let greedy = take_all(&room, caller("greedy"));
        assert_eq!(greedy.len(), 4);
        let other = take_all(&room, caller("other"));
        assert_eq!(other.len(), 2);
        assert_eq!(take_all(&room, caller("third")).len(), 1);
        drop(greedy);
        assert_eq!(take_all(&room, caller("other")).len(), 2, "half of what is free belongs to others");
        assert_eq!(SharedRoom::new(1, true).most_of_one(), 1, "a single place is for anyone");
    }

    #[test]
    fn single_caller_gets_all_room() {
        let room = SharedRoom::new(8, false);
        let mut all = take_all(&room, caller("one"));
        assert_eq!(all.len(), 8);
        all.pop();
        assert!(room.take(caller("one"), 1).is_some(), "room is free once it is given back");
    }

    #[test]
    fn split_room_is_given_back_once() {
        let room = SharedRoom::new(8, false);
        let mut whole = room.take(caller("one"), 6).unwrap();
        let part = whole.split(4);
        drop(whole);
        assert!(room.take(caller("one"), 5).is_none());
        assert!(room.take(caller("one"), 4).is_some());
        drop(part);
        assert!(room.take(caller("one"), 8).is_some());
    }
}
