//! The packets that have come and were not read yet: a short queue for each party. The queues are read in turn, so that a party
//! that sends a lot does not keep others from being heard.

use std::future::poll_fn;
use std::task::Poll;

use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{self, Receiver};

use quorum::NodeId;

/// A packet as it came, with the room that it takes of its party's share. The room is given back when the packet is read.
#[derive(Debug)]
pub struct ReceivedPacket {
    /// The text of the packet.
    pub text: String,
    room: Option<OwnedSemaphorePermit>,
}

/// A queue for each party.
#[derive(Debug)]
pub struct Inbox {
    queues: Vec<(NodeId, Receiver<ReceivedPacket>)>,
    /// The index of the queue that was read last.
    turn: usize,
}

impl From<String> for ReceivedPacket {
    fn from(text: String) -> Self {
        Self { text, room: None }
    }
}

impl ReceivedPacket {
    pub(super) fn with_room(text: String, room: OwnedSemaphorePermit) -> Self {
        Self { text, room: Some(room) }
    }
}

impl Inbox {
    /// Returns an inbox for these parties, each with a queue for this many packets, and the sender of each queue.
    pub fn new(
        parties: impl IntoIterator<Item = NodeId>,
        room: usize,
    ) -> (Self, Vec<(NodeId, mpsc::Sender<ReceivedPacket>)>) {
        let (mut queues, mut doors) = (Vec::new(), Vec::new());
        for party in parties {
            let (door, queue) = mpsc::channel(room);
            queues.push((party, queue));
            doors.push((party, door));
        }
        (Self { queues, turn: 0 }, doors)
    }

    /// Waits for packets, and takes up to this many, one of each party in turn. Returns none if no sender is left.
    pub async fn take(&mut self, most: usize) -> Vec<(NodeId, String)> {
        poll_fn(|context| {
            let mut taken = Vec::new();
            let (mut is_open, mut quiet) = (false, 0);
            while taken.len() < most && quiet < self.queues.len() {
                self.turn = (self.turn + 1) % self.queues.len();
                let (party, queue) = &mut self.queues[self.turn];
                match queue.poll_recv(context) {
                    Poll::Ready(Some(ReceivedPacket { text, room })) => {
                        drop(room);
                        taken.push((*party, text));
                        (is_open, quiet) = (true, 0);
                    }
                    Poll::Ready(None) => quiet += 1,
                    Poll::Pending => (is_open, quiet) = (true, quiet + 1),
                }
            }
            if taken.is_empty() && is_open { Poll::Pending } else { Poll::Ready(taken) }
        })
        .await
    }
}
