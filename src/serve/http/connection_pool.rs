//! The places of connections.
//!
//! The input is connections that come, and the heads of their requests. The output is places. If all are taken, the connection that has
//! waited longest without a head loses its place, so that connections which say nothing keep no one out. While more than half of the
//! places are taken, a connection is closed after its answer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The places of all connections.
#[derive(Debug)]
pub(super) struct ConnectionPool {
    most: usize,
    open: Mutex<OpenPlaces>,
    freed: Notify,
}

/// The places that are taken.
#[derive(Debug, Default)]
struct OpenPlaces {
    count: usize,
    /// The number of the next connection.
    next: u64,
    /// The connections without a head, by their numbers, each with the means to end it.
    silent: BTreeMap<u64, Arc<Notify>>,
}

/// The place of a connection. It is free again when this is dropped.
#[derive(Debug)]
pub(super) struct ConnectionPlace {
    pool: Arc<ConnectionPool>,
    number: u64,
    needed: Arc<Notify>,
}

impl ConnectionPool {
    /// Makes a pool with so many places.
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, open: Mutex::default(), freed: Notify::new() })
    }

    /// Waits for a place. If all are taken, the connection that has waited longest without a head is asked for its place.
    pub(super) async fn place(self: &Arc<Self>) -> ConnectionPlace {
        loop {
            // A place that becomes free from here on wakes it.
            let freed = self.freed.notified();
            if let Some(place) = self.take_or_ask() {
                return place;
            }
            freed.await;
        }
    }

    fn take_or_ask(self: &Arc<Self>) -> Option<ConnectionPlace> {
        let mut open = self.open();
        if open.count == self.most {
            if let Some((_, needed)) = open.silent.pop_first() {
                needed.notify_one();
            }
            return None;
        }
        let (number, needed) = (open.next, Arc::new(Notify::new()));
        open.count += 1;
        open.next += 1;
        open.silent.insert(number, Arc::clone(&needed));
        Some(ConnectionPlace { pool: Arc::clone(self), number, needed })
    }

    fn open(&self) -> MutexGuard<'_, OpenPlaces> {
        // No code that holds the lock panics.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionPlace {
    /// Notes that a head has come. From here on the place belongs to the connection until its end.
    pub(super) fn note_head(&self) {
        self.pool.open().silent.remove(&self.number);
    }

    /// Returns whether more than half of the places are taken.
    pub(super) fn is_crowded(&self) -> bool {
        self.pool.open().count > self.pool.most / 2
    }

    /// Waits until another connection needs the place.
    pub(super) async fn wait_until_needed(&self) {
        self.needed.notified().await;
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        let mut open = self.pool.open();
        open.count -= 1;
        open.silent.remove(&self.number);
        drop(open);
        self.pool.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn oldest_silent_connection_makes_room() {
        let pool = ConnectionPool::new(3);
        let [speaks, old, young] = [(); 3].map(|()| pool.place().now_or_never().unwrap());
        speaks.note_head();
        assert!(speaks.is_crowded());
        assert!(pool.place().now_or_never().is_none(), "all places are taken");
        assert!(old.wait_until_needed().now_or_never().is_some());
        for stays in [&speaks, &young] {
            assert!(stays.wait_until_needed().now_or_never().is_none());
        }
        drop(old);
        assert!(pool.place().now_or_never().is_some());
        assert!(young.wait_until_needed().now_or_never().is_none(), "a free place needs no other");
    }
}
