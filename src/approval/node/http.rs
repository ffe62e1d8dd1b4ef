//! Packets over HTTP: a listener for the parties of the roster, and connections to each of them.
//!
//! One request brings one packet; the answer says only that it was received. A packet that cannot be delivered is lost, since
//! its sender repeats it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use reqwest::Url;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio_rustls::TlsAcceptor;
use tracing::debug;

use super::error::NodeError;
use super::inbox::{Inbox, ReceivedPacket};
use super::readiness::{self, BaseQuery, QUESTION_BYTES_MAX, QUESTIONS_MAX, Question, Reachability};
use super::runner::Carrier;
use super::tls;
use super::unreached::{Unreached, VERSION, VERSION_HEADER, innermost, other_version};
use crate::files::{SMALL_BYTES_MAX, read_text};
use crypto::{PublicKey, SecretKey};
use quorum::{Membership, NodeId, PACKET_BYTES_MAX};

/// The path to which packets are sent. Another version has another path, and answers that it knows nothing of this one.
const PATH: &str = "/v2/posts";

/// The path at which a party is asked whether it can take part.
const READY_PATH: &str = "/v2/ready";

/// The time in which a client must show its key.
const HANDSHAKE_MAX: Duration = Duration::from_secs(5);

/// The time limit for one packet, and for an idle connection.
const PACKET_MAX: Duration = Duration::from_mins(1);

/// The time for which a client keeps an idle connection, less than the time for which the server keeps it.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// The time limit for opening a connection.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// The number of connections that may show their keys at once; further ones wait.
const HANDSHAKES_MAX: usize = 512;

/// The number of connections of each party that are served at once; further ones are closed.
const CONNECTIONS_EACH: usize = 4;

/// The most packets that wait: to be read from one party, or to be sent to one party.
const WAITING_MAX: usize = 256;

/// The same limit in KiB: two of the longest packets.
const WAITING_KIB_MAX: usize = 2 * PACKET_BYTES_MAX / 1024;

/// The address of each party, by name: `host:port`.
#[derive(Clone, Debug, Default)]
pub struct Addresses(BTreeMap<String, String>);

/// The connections to all other parties.
#[derive(Debug)]
pub struct Connections(BTreeMap<NodeId, Outbox>);

/// The packets that wait for one party, and the way to it.
#[derive(Debug)]
struct Outbox {
    packets: mpsc::Sender<(Arc<str>, OwnedSemaphorePermit)>,
    room: Arc<Semaphore>,
    /// The reason why the last packet did not reach it, if it did not.
    failure: watch::Receiver<Option<Unreached>>,
    client: reqwest::Client,
    /// The URL for questions.
    ready: Url,
}

/// The entrance for the packets and questions of one party.
#[derive(Clone, Debug)]
struct Door {
    party: NodeId,
    packets: mpsc::Sender<ReceivedPacket>,
    questions: mpsc::Sender<Question>,
    room: Arc<Semaphore>,
    connections: Arc<Semaphore>,
}

impl Addresses {
    /// Reads a TOML file with a line for each party: its name and its address.
    ///
    /// Returns [`NodeError::Addresses`] if the file cannot be read, or has other content.
    pub fn read(path: &Path) -> Result<Self, NodeError> {
        let read = match read_text(path, SMALL_BYTES_MAX) {
            Ok(text) => toml::from_str(&text).map(Self).map_err(|why| why.to_string()),
            Err(why) => Err(why.to_string()),
        };
        read.map_err(|why| NodeError::Addresses { path: path.to_owned(), why })
    }

    /// Checks that the addresses fit a roster: each of its parties has an address of its own, and there are no others.
    ///
    /// Returns [`NodeError::NoAddress`], [`NodeError::Unknown`] or [`NodeError::SamePlace`].
    pub fn check(&self, membership: &Membership) -> Result<(), NodeError> {
        let mut known: BTreeMap<&str, &str> = BTreeMap::new();
        for (_, seat) in membership.seats() {
            if let Some(other) = known.insert(self.of(&seat.name)?, &seat.name) {
                return Err(NodeError::SamePlace(other.to_owned(), seat.name.clone()));
            }
        }
        for name in self.0.keys() {
            if !membership.seats().any(|(_, seat)| seat.name == *name) {
                return Err(NodeError::Unknown(name.clone()));
            }
        }
        Ok(())
    }

    /// Returns the address of a party.
    pub fn of(&self, name: &str) -> Result<&str, NodeError> {
        self.0.get(name).map(String::as_str).ok_or_else(|| NodeError::NoAddress(name.to_owned()))
    }
}

impl FromIterator<(String, String)> for Addresses {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(places: I) -> Self {
        Self(places.into_iter().collect())
    }
}

impl Carrier for Connections {
    fn send(&self, to: NodeId, packet: &Arc<str>) {
        let Some(Outbox { packets, room, .. }) = self.0.get(&to) else { return };
        let place = Arc::clone(room).try_acquire_many_owned(kib(packet.len()));
        let sent = place.ok().and_then(|place| packets.try_send((Arc::clone(packet), place)).ok());
        if sent.is_none() {
            debug!("a packet to {to:?} is dropped: too many packets wait");
        }
    }
}

impl Connections {
    /// Connects the owner of this key to all other parties, which need not be there yet. The connections end when the value is
    /// dropped.
    ///
    /// Returns [`NodeError`] if an address is missing or is not one.
    pub fn open(
        key: &SecretKey,
        me: NodeId,
        membership: &Membership,
        addresses: &Addresses,
    ) -> Result<Self, NodeError> {
        let own = tls::certified_key(key)?;
        let mut outboxes = BTreeMap::new();
        for (party, seat) in membership.seats().filter(|(party, _)| *party != me) {
            let address = addresses.of(&seat.name)?;
            let url = match Url::parse(&format!("https://{address}{PATH}")) {
                Ok(url)
                    if url.port_or_known_default().is_some()
                        && url.path() == PATH
                        && address.contains(':') =>
                {
                    url
                }
                Ok(_) | Err(_) => return Err(NodeError::NoPlace(address.to_owned())),
            };
            let client = reqwest::Client::builder()
                .tls_backend_preconfigured(tls::client(&own, seat.key)?)
                .no_proxy()
                .redirect(reqwest::redirect::Policy::none())
                .connect_timeout(CONNECT_MAX)
                .pool_idle_timeout(IDLE_MAX)
                .timeout(PACKET_MAX)
                .build()
                .map_err(|why| NodeError::Tls(why.to_string()))?;
            let (packets, waiting) = mpsc::channel(WAITING_MAX);
            let (state, failure) = watch::channel(None);
            let mut ready = url.clone();
            ready.set_path(READY_PATH);
            tokio::spawn(bring(client.clone(), url, waiting, state));
            let room = Arc::new(Semaphore::new(WAITING_KIB_MAX));
            outboxes.insert(party, Outbox { packets, room, failure, client, ready });
        }
        Ok(Self(outboxes))
    }

    /// Returns the parties that cannot be reached at the moment, each with the reason.
    pub fn unreachable(&self) -> Vec<(NodeId, Unreached)> {
        let outboxes = self.0.iter();
        outboxes.filter_map(|(party, outbox)| Some((*party, outbox.failure.borrow().clone()?))).collect()
    }

    /// Asks a party whether it could take part in a decision that starts from this base.
    pub async fn ask(&self, party: NodeId, about: &BaseQuery) -> Reachability {
        match self.0.get(&party) {
            Some(Outbox { client, ready, .. }) => readiness::ask(client, ready, about).await,
            None => Reachability::Silent,
        }
    }
}

/// Returns the room that this many bytes take, in KiB.
fn kib(bytes: usize) -> u32 {
    u32::try_from(bytes / 1024 + 1).unwrap_or(u32::MAX)
}

/// Sends packets to one party, one after the other.
async fn bring(
    client: reqwest::Client,
    url: Url,
    mut packets: mpsc::Receiver<(Arc<str>, OwnedSemaphorePermit)>,
    state: watch::Sender<Option<Unreached>>,
) {
    while let Some((packet, _place)) = packets.recv().await {
        let sent = readiness::send(client.post(url.clone()).body(packet.as_bytes().to_vec())).await;
        let other = sent.as_ref().ok().and_then(other_version);
        let failure = sent.and_then(reqwest::Response::error_for_status).err().map(|why| {
            debug!("a packet to {url} is lost: {why:?}");
            // The party is not there, and the packets that wait are older than those that will be repeated.
            while why.is_connect() && packets.try_recv().is_ok() {}
            other.map_or_else(|| Unreached::Lost(innermost(&why)), Unreached::OtherVersion)
        });
        let _ = state.send(failure);
    }
}

/// Listens for the parties of the roster at an address. Returns the inbox of packets, the questions, and the address, whose
/// port the system chooses if it is 0. Listening ends when the inbox is dropped.
///
/// Returns [`NodeError::Listen`] if the address cannot be used.
pub async fn listen(
    address: &str,
    key: &SecretKey,
    membership: &Membership,
) -> Result<(Inbox, mpsc::Receiver<Question>, SocketAddr), NodeError> {
    let keys: BTreeMap<NodeId, PublicKey> =
        membership.seats().map(|(party, seat)| (party, seat.key)).collect();
    let known: Vec<PublicKey> = keys.values().copied().collect();
    let acceptor = TlsAcceptor::from(Arc::new(tls::server(&tls::certified_key(key)?, &known)?));
    let listener = TcpListener::bind(address).await.map_err(|source| cannot_listen(address, source))?;
    let local = listener.local_addr().map_err(|source| cannot_listen(address, source))?;
    let (inbox, doors) = Inbox::new(keys.keys().copied(), WAITING_MAX);
    let (ask, questions) = mpsc::channel(QUESTIONS_MAX);
    let mut by_key = BTreeMap::new();
    for (party, packets) in doors {
        let room = Arc::new(Semaphore::new(WAITING_KIB_MAX));
        let connections = Arc::new(Semaphore::new(CONNECTIONS_EACH));
        let door = Door { party, packets, questions: ask.clone(), room, connections };
        if let Some(key) = keys.get(&party) {
            by_key.insert(key.to_der(), door);
        }
    }
    let handshakes = Arc::new(Semaphore::new(HANDSHAKES_MAX));
    let by_key = Arc::new(by_key);
    let is_over = by_key.values().next().map(|door| door.packets.clone());
    tokio::spawn(async move {
        loop {
            let Ok(place) = Arc::clone(&handshakes).acquire_owned().await else { return };
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = wait_for_close(is_over.as_ref()) => return,
            };
            let Ok((stream, from)) = accepted else {
                // A fault such as too many open files may pass.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let (acceptor, by_key) = (acceptor.clone(), Arc::clone(&by_key));
            tokio::spawn(async move {
                if let Err(why) = serve(stream, &acceptor, &by_key, place).await {
                    debug!("the connection from {from} ended: {why}");
                }
            });
        }
    });
    Ok((inbox, questions, local))
}

fn cannot_listen(address: &str, source: std::io::Error) -> NodeError {
    NodeError::Listen { address: address.to_owned(), source }
}

/// Resolves when packets are no longer taken.
async fn wait_for_close(packets: Option<&mpsc::Sender<ReceivedPacket>>) {
    match packets {
        Some(packets) => packets.closed().await,
        None => std::future::pending().await,
    }
}

/// Serves one connection until it ends.
async fn serve(
    stream: TcpStream,
    acceptor: &TlsAcceptor,
    by_key: &BTreeMap<Vec<u8>, Door>,
    handshake: OwnedSemaphorePermit,
) -> Result<(), String> {
    let shown = tokio::time::timeout(HANDSHAKE_MAX, acceptor.accept(stream)).await;
    let stream = shown.map_err(|_| "it showed no key in time".to_owned())?.map_err(|why| why.to_string())?;
    drop(handshake);
    let shown = stream.get_ref().1.peer_certificates().and_then(|keys| keys.first());
    // The handshake has failed for all other keys.
    let Some(door) = shown.and_then(|key| by_key.get(key.as_ref())).cloned() else {
        return Err("its key is not in the roster".to_owned());
    };
    let place = Arc::clone(&door.connections).try_acquire_owned();
    let _place = place.map_err(|_| format!("{:?} has too many connections", door.party))?;
    let hear = service_fn(move |request| hear(request, door.clone()));
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PACKET_MAX)
        .serve_connection(TokioIo::new(stream), hear)
        .await
        .map_err(|why| why.to_string())
}

async fn hear(request: Request<Incoming>, door: Door) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::default());
    let status = match request.uri().path() {
        PATH if request.method() == Method::POST => {
            let taken = tokio::time::timeout(PACKET_MAX, take(request.into_body(), &door)).await;
            taken.unwrap_or(StatusCode::REQUEST_TIMEOUT)
        }
        READY_PATH if request.method() == Method::POST => {
            let answer = answer_question(request.into_body(), &door).await;
            *response.body_mut() = answer.clone().unwrap_or_default().into();
            answer.map_or(StatusCode::SERVICE_UNAVAILABLE, |_| StatusCode::OK)
        }
        _ => StatusCode::NOT_FOUND,
    };
    *response.status_mut() = status;
    response.headers_mut().insert(VERSION_HEADER, HeaderValue::from(VERSION));
    Ok(response)
}

/// Returns the answer to a question, if the owner of the door gives one.
async fn answer_question(body: Incoming, door: &Door) -> Option<String> {
    let asked = Limited::new(body, QUESTION_BYTES_MAX).collect();
    let asked = tokio::time::timeout(PACKET_MAX, asked).await.ok()?.ok()?.to_bytes();
    let answer = readiness::put_question(&door.questions, &asked).await?;
    serde_json::to_string(&answer).ok()
}

/// Takes one packet. A party that has too many packets waiting must wait, and no other party does.
async fn take(body: Incoming, door: &Door) -> StatusCode {
    let Some(length) = body.size_hint().exact().and_then(|length| usize::try_from(length).ok()) else {
        return StatusCode::LENGTH_REQUIRED;
    };
    if length > PACKET_BYTES_MAX {
        return StatusCode::PAYLOAD_TOO_LARGE;
    }
    let Ok(room) = Arc::clone(&door.room).acquire_many_owned(kib(length)).await else {
        return StatusCode::SERVICE_UNAVAILABLE;
    };
    let Ok(body) = body.collect().await else { return StatusCode::BAD_REQUEST };
    let Ok(text) = String::from_utf8(body.to_bytes().into()) else { return StatusCode::BAD_REQUEST };
    match door.packets.send(ReceivedPacket::with_room(text, room)).await {
        Ok(()) => StatusCode::ACCEPTED,
        Err(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Empty;

    use super::*;
    use crypto::Digest;
    use quorum::Roster;
    use quorum::RosterEntry;

    /// Answers every request like a program that does not know the path.
    async fn answer_as(version: Option<&'static str>, listener: TcpListener, acceptor: TlsAcceptor) {
        let nothing = move |_: Request<Incoming>| async move {
            let mut response = Response::new(Empty::<Bytes>::new());
            *response.status_mut() = StatusCode::NOT_FOUND;
            if let Some(version) = version {
                response.headers_mut().insert(VERSION_HEADER, HeaderValue::from_static(version));
            }
            Ok::<_, Infallible>(response)
        };
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let stream = acceptor.accept(stream).await.unwrap();
            let served = http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(nothing));
            let _ = served.await;
        }
    }

    fn key(seed: u8) -> SecretKey {
        SecretKey::from_seed(&[seed; 32])
    }

    fn roster_entry(name: &str, seed: u8) -> RosterEntry {
        RosterEntry { name: name.to_owned(), key: key(seed).public(), domain: "a model".to_owned() }
    }

    #[test]
    fn other_version_is_distinguished_from_lost_connection() {
        let (me, other) = (NodeId::Orchestrator(0), NodeId::Reviewer(0));
        let roster = Roster {
            reviewers: vec![roster_entry("Quality", 1)],
            orchestrators: vec![roster_entry("me", 2)],
        };
        let membership = Membership::new(Digest::ZERO, roster).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let said = |version| {
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let address = listener.local_addr().unwrap().to_string();
                let own = tls::certified_key(&key(1)).unwrap();
                let server = tls::server(&own, &[key(2).public()]).unwrap();
                tokio::spawn(answer_as(version, listener, TlsAcceptor::from(Arc::new(server))));
                let places = [("Quality", address), ("me", "127.0.0.1:1".to_owned())];
                let places = places.into_iter().map(|(name, place)| (name.to_owned(), place)).collect();
                let connections = Connections::open(&key(2), me, &membership, &places).unwrap();
                connections.send(other, &"{\"have\":1}".into());
                let mut failure = connections.0[&other].failure.clone();
                failure.changed().await.unwrap();
                connections.unreachable()
            })
        };
        assert_eq!(said(None), [(other, Unreached::OtherVersion(1))]);
        assert_eq!(said(Some("3")), [(other, Unreached::OtherVersion(3))]);
        assert!(matches!(said(Some("2")).as_slice(), [(_, Unreached::Lost(_))]), "it is no other version");
        let old = Unreached::OtherVersion(1).to_string();
        assert_eq!(old, "speaks version 1 of the protocol, this program speaks 2: update it");
    }
}
