//! Connections: accepted, bounded in the time that their heads may take, and ended when the server ends.
//!
//! The input is a listening socket and a router. The output is answers. A connection that sends its head too slowly is closed, and earlier
//! if another one needs its place. So strangers cannot hold connections by saying nothing.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderValue, Request, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tokio_io_timeout::TimeoutStream;

use super::connection_pool::ConnectionPool;

/// The time in which the head of a request must have come, and after which an idle connection is closed.
const HEAD_MAX: Duration = Duration::from_secs(15);

/// The time after which a connection is closed whose client reads nothing of its answer.
const WRITE_MAX: Duration = Duration::from_mins(1);

/// The most connections at once, if the system allows as many files.
const CONNECTIONS_MAX: usize = 16_384;

/// The pause after an error of the system, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// The time that clients have to read their last bytes once the server has stopped.
const LAST_BYTES: Duration = Duration::from_secs(5);

/// Returns the most connections at once. Files that runs need are left over.
fn connections_max() -> usize {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((1024, 1024));
    // Where the limit cannot be raised, the present one holds.
    let files = setrlimit(Resource::RLIMIT_NOFILE, hard, hard).map_or(soft, |()| hard);
    usize::try_from(files / 2).unwrap_or(usize::MAX).clamp(16, CONNECTIONS_MAX)
}

/// Accepts connections until `stop` comes. Then idle ones are closed at once, and the others after their answers, or soon after
/// `ended`.
pub(in crate::serve) async fn listen(
    listener: TcpListener,
    router: Router,
    stop: impl Future<Output = ()>,
    ended: impl Future<Output = ()>,
) {
    let graceful = GracefulShutdown::new();
    let service = TowerToHyperService::new(router);
    let mut stop = std::pin::pin!(stop);
    let pool = ConnectionPool::new(connections_max());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(why) => {
                tracing::warn!("a connection cannot be accepted: {why}");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let place = tokio::select! {
            place = pool.place() => Arc::new(place),
            () = &mut stop => break,
        };
        // A small answer is not to wait for the rest of a packet.
        let _ = stream.set_nodelay(true);
        let mut connection = http1::Builder::new();
        connection.timer(TokioTimer::new()).header_read_timeout(HEAD_MAX);
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(WRITE_MAX));
        let (service, of_requests) = (service.clone(), Arc::clone(&place));
        let answer = service_fn(move |request: Request<Incoming>| {
            of_requests.note_head();
            let (answer, place) = (service.call(request), Arc::clone(&of_requests));
            async move {
                let mut answer = answer.await?;
                if place.is_crowded() {
                    // An idle connection would keep its place for nothing.
                    answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                }
                Ok::<_, Infallible>(answer)
            }
        });
        let connection = connection.serve_connection(TokioIo::new(Box::pin(stream)), answer);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            tokio::select! {
                biased;
                () = place.wait_until_needed() => tracing::debug!("a connection without a request made room"),
                ended = connection => {
                    if let Err(why) = ended {
                        tracing::debug!("a connection ended: {why}");
                    }
                }
            }
        });
    }
    drop(listener);
    let mut closed = std::pin::pin!(graceful.shutdown());
    tokio::select! {
        () = &mut closed => {}
        () = ended => drop(tokio::time::timeout(LAST_BYTES, closed).await),
    }
}
