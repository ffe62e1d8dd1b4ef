//! Posts over HTTP: a door through which those of the roster come, and connections to each of them.
//!
//! One request brings one post; the answer says only that it was heard. What cannot be brought is lost, since whoever says it
//! says it again.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use reqwest::Url;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tracing::debug;

use super::error::PeerError;
use super::party::Carrier;
use super::tls;
use crate::crypto::{PublicKey, SecretKey};
use crate::protocol::approval::{POST_BYTES_MAX, Party, Registry};

/// Where posts are brought to.
const PATH: &str = "/v1/posts";

/// How long a stranger may take to show a key, and anybody to say what it wants.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// How long one post may take.
const POST_MAX: Duration = Duration::from_mins(1);

/// How long it may take until somebody answers at all.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// So many connections of each party are heard at once.
const CONNECTIONS_EACH: usize = 4;

/// So many posts wait at most, to be read or to be sent to one party; what comes then is lost.
const WAITING_MAX: usize = 256;

/// Where each party is, by name: `host:port`.
#[derive(Clone, Debug, Default)]
pub struct Addresses(BTreeMap<String, String>);

/// Connections to all others.
#[derive(Debug)]
pub struct Connections(BTreeMap<Party, mpsc::Sender<Arc<str>>>);

impl Addresses {
    /// Reads a TOML file with a line for each party: its name and where it is.
    ///
    /// # Errors
    ///
    /// [`PeerError::Addresses`] if it cannot be read, or says something else.
    pub fn read(path: &Path) -> Result<Self, PeerError> {
        let wrong = |why: String| PeerError::Addresses { path: path.to_owned(), why };
        let text = std::fs::read_to_string(path).map_err(|why| wrong(why.to_string()))?;
        toml::from_str(&text).map(Self).map_err(|why| wrong(why.to_string()))
    }

    /// Where somebody is.
    ///
    /// # Errors
    ///
    /// [`PeerError::NoAddress`].
    pub fn of(&self, name: &str) -> Result<&str, PeerError> {
        self.0.get(name).map(String::as_str).ok_or_else(|| PeerError::NoAddress(name.to_owned()))
    }
}

impl FromIterator<(String, String)> for Addresses {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(places: I) -> Self {
        Self(places.into_iter().collect())
    }
}

impl Carrier for Connections {
    fn send(&self, to: Party, post: &Arc<str>) {
        let outbox = self.0.get(&to);
        if outbox.is_some_and(|outbox| outbox.try_send(Arc::clone(post)).is_err()) {
            debug!("a post to {to:?} is dropped: too many wait");
        }
    }
}

impl Connections {
    /// Connects whoever has this key to all others; they need not be there yet. Ends when it is dropped.
    ///
    /// # Errors
    ///
    /// [`PeerError`] if an address is missing or none.
    pub fn open(
        key: &SecretKey,
        me: Party,
        registry: &Registry,
        addresses: &Addresses,
    ) -> Result<Self, PeerError> {
        let mut outboxes = BTreeMap::new();
        for (party, seat) in registry.seats().filter(|(party, _)| *party != me) {
            let address = addresses.of(&seat.name)?;
            let no_place = || PeerError::NoPlace(address.to_owned());
            let url = Url::parse(&format!("https://{address}{PATH}")).map_err(|_| no_place())?;
            if url.port().is_none() || url.path() != PATH {
                return Err(no_place());
            }
            let client = reqwest::Client::builder()
                .tls_backend_preconfigured(tls::client(key, seat.key)?)
                .no_proxy()
                .redirect(reqwest::redirect::Policy::none())
                .connect_timeout(CONNECT_MAX)
                .timeout(POST_MAX)
                .build()
                .map_err(|why| PeerError::Tls(why.to_string()))?;
            let (outbox, posts) = mpsc::channel(WAITING_MAX);
            tokio::spawn(bring(client, url, posts));
            outboxes.insert(party, outbox);
        }
        Ok(Self(outboxes))
    }
}

/// Brings posts to one party, one after the other.
async fn bring(client: reqwest::Client, url: Url, mut posts: mpsc::Receiver<Arc<str>>) {
    while let Some(post) = posts.recv().await {
        let said = client.post(url.clone()).body(post.as_bytes().to_vec()).send().await;
        match said.and_then(reqwest::Response::error_for_status) {
            Ok(_) => {}
            Err(why) => {
                debug!("a post to {url} is lost: {why:?}");
                // Those that wait are older than what will be said again.
                while posts.try_recv().is_ok() {}
            }
        }
    }
}

/// Hears those of the roster at an address. Returns where posts come out, and the address, whose port the system chooses
/// if it is 0. Ends when nobody takes them any more.
///
/// # Errors
///
/// [`PeerError::Listen`] if the address cannot be had.
pub async fn listen(
    address: &str,
    key: &SecretKey,
    registry: &Registry,
) -> Result<(mpsc::Receiver<(Party, String)>, SocketAddr), PeerError> {
    let wrong = |source| PeerError::Listen { address: address.to_owned(), source };
    let parties: Vec<(Party, PublicKey)> = registry.seats().map(|(party, seat)| (party, seat.key)).collect();
    let keys: Vec<PublicKey> = parties.iter().map(|(_, key)| *key).collect();
    let acceptor = TlsAcceptor::from(Arc::new(tls::server(key, &keys)?));
    let listener = TcpListener::bind(address).await.map_err(wrong)?;
    let local = listener.local_addr().map_err(wrong)?;
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    let places = Arc::new(Semaphore::new(CONNECTIONS_EACH * parties.len()));
    let by_key: Arc<BTreeMap<Vec<u8>, Party>> =
        Arc::new(parties.iter().map(|(party, key)| (key.to_der(), *party)).collect());
    tokio::spawn(async move {
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = sender.closed() => return,
            };
            let Ok((stream, from)) = accepted else {
                // Too many open files, or the like: it may pass.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let (acceptor, sender, by_key) = (acceptor.clone(), sender.clone(), Arc::clone(&by_key));
            tokio::spawn(async move {
                if let Err(why) = serve(stream, &acceptor, &by_key, sender).await {
                    debug!("{from} is not heard: {why}");
                }
                drop(place);
            });
        }
    });
    Ok((receiver, local))
}

/// Hears one connection, to its end.
async fn serve(
    stream: TcpStream,
    acceptor: &TlsAcceptor,
    by_key: &BTreeMap<Vec<u8>, Party>,
    sender: mpsc::Sender<(Party, String)>,
) -> Result<(), String> {
    let shown = tokio::time::timeout(HANDSHAKE_MAX, acceptor.accept(stream)).await;
    let stream = shown.map_err(|_| "it shows no key".to_owned())?.map_err(|why| why.to_string())?;
    let shown = stream.get_ref().1.peer_certificates().and_then(|keys| keys.first());
    // The handshake has failed for all others.
    let Some(from) = shown.and_then(|key| by_key.get(key.as_ref())).copied() else {
        return Err("its key is a stranger's".to_owned());
    };
    let hear = service_fn(move |request| hear(request, from, sender.clone()));
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HANDSHAKE_MAX)
        .serve_connection(TokioIo::new(stream), hear)
        .await
        .map_err(|why| why.to_string())
}

async fn hear(
    request: Request<Incoming>,
    from: Party,
    sender: mpsc::Sender<(Party, String)>,
) -> Result<Response<Empty<Bytes>>, Infallible> {
    let status = if request.method() != Method::POST || request.uri().path() != PATH {
        StatusCode::NOT_FOUND
    } else {
        let body = Limited::new(request.into_body(), POST_BYTES_MAX).collect();
        match tokio::time::timeout(POST_MAX, body).await {
            Err(_) => StatusCode::REQUEST_TIMEOUT,
            Ok(Err(_)) => StatusCode::PAYLOAD_TOO_LARGE,
            Ok(Ok(body)) => match String::from_utf8(body.to_bytes().into()) {
                Err(_) => StatusCode::BAD_REQUEST,
                Ok(text) => match sender.try_send((from, text)) {
                    Ok(()) => StatusCode::ACCEPTED,
                    Err(_) => StatusCode::SERVICE_UNAVAILABLE,
                },
            },
        }
    };
    let mut response = Response::new(Empty::new());
    *response.status_mut() = status;
    Ok(response)
}
