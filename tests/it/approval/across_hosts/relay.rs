//! A relay of TCP connections, which stands in for a bad line: it delays what passes, or cuts connections.
//!
//! In: for each host the address at which the others find it, and its own. Out: the bytes that came in, in their order, and
//! the count of cuts. The relay never changes, repeats or reorders a byte.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use fastrand::Rng;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use super::namespaces::{HUB, Hosts};

/// The state of the line.
#[derive(Clone, Copy)]
pub(super) struct Line {
    /// How late everything is, each way.
    pub(super) delay: Duration,
    /// In so many of a hundred cases in which one side sends something, the connection is cut instead.
    pub(super) cut_percent: u8,
    /// The start of the draws.
    pub(super) seed: u64,
}

/// How often one side sent something, and in how many of these cases its connection was cut.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) cases: AtomicUsize,
    pub(super) cuts: AtomicUsize,
}

/// A relay that runs in the hub until it is dropped.
pub(super) struct Relay {
    pub(super) counts: Arc<Counts>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Relays each pair: from the address where it listens to the one where it connects.
    pub(super) fn new(hosts: &Hosts, pairs: Vec<(SocketAddr, SocketAddr)>, line: Line) -> Self {
        let counts = Arc::new(Counts::default());
        let (stop, stopped) = oneshot::channel();
        let shared = Arc::clone(&counts);
        let thread = hosts.within(HUB, move || {
            let listen = |(at, to)| {
                let listener = TcpListener::bind(at).unwrap();
                listener.set_nonblocking(true).unwrap();
                (listener, to)
            };
            let pairs: Vec<(TcpListener, SocketAddr)> = pairs.into_iter().map(listen).collect();
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async move {
                    for (listener, to) in pairs {
                        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                        tokio::spawn(relay(listener, to, line, Arc::clone(&shared)));
                    }
                    let _ = stopped.await;
                });
            })
        });
        Self { counts, stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        drop(self.stop.take());
        // A panic in there was printed on stderr, and a second one would abort the test.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

async fn relay(listener: tokio::net::TcpListener, to: SocketAddr, line: Line, counts: Arc<Counts>) {
    let mut draws = Rng::with_seed(line.seed ^ u64::from(to.port()));
    loop {
        let Ok((near, _)) = listener.accept().await else { continue };
        let (counts, there, back) = (Arc::clone(&counts), draws.fork(), draws.fork());
        tokio::spawn(async move {
            let Ok(far) = TcpStream::connect(to).await else { return };
            let ((from_near, to_near), (from_far, to_far)) = (near.into_split(), far.into_split());
            // Where one way ends, the whole connection does.
            tokio::select! {
                () = pass(from_near, to_far, line, there, &counts) => {}
                () = pass(from_far, to_near, line, back, &counts) => {}
            }
        });
    }
}

/// Passes on what comes, until one end is gone or the connection is to be cut.
async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, line: Line, mut draws: Rng, counts: &Counts) {
    let (under_way, mut arriving) = mpsc::channel(1024);
    let read = async move {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            counts.cases.fetch_add(1, Ordering::Relaxed);
            if draws.u8(..100) < line.cut_percent {
                counts.cuts.fetch_add(1, Ordering::Relaxed);
                return;
            }
            let arrival = Instant::now() + line.delay;
            if under_way.send((arrival, buffer[..count].to_vec())).await.is_err() {
                return;
            }
        }
    };
    let write = async move {
        while let Some((arrival, bytes)) = arriving.recv().await {
            sleep_until(arrival).await;
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(read, write);
}
