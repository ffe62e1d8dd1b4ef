//! A loopback server that says exactly what a test wants, byte for byte.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

/// One step of an answer.
pub enum Act {
    /// Send these bytes.
    Send(Vec<u8>),
    /// Say nothing for this long: what a slow server does, not a way to wait for something.
    Pause(Duration),
    /// Close the connection.
    Close,
}

/// One request as it arrived.
#[derive(Clone, Debug)]
pub struct Request {
    pub path: String,
    pub head: String,
    pub body: String,
    /// The body as it came.
    pub bytes: Vec<u8>,
    /// How many requests came before it.
    pub index: usize,
    /// How many of these came on the same connection.
    pub earlier: usize,
}

impl Request {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// Returns the value of a header, by its lower-case name.
    pub fn header(&self, name: &str) -> Option<String> {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        let mut found = lines.filter(|(n, _)| n.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.trim().to_owned())
    }
}

type Handler = dyn Fn(&Request) -> Vec<Act> + Send + Sync;

/// A server on a free loopback port.
pub struct Server {
    pub port: u16,
    log: Arc<Mutex<Vec<Request>>>,
    pub connections: Arc<AtomicUsize>,
    ended: Arc<AtomicBool>,
}

impl Server {
    pub fn start(handler: impl Fn(&Request) -> Vec<Act> + Send + Sync + 'static) -> Self {
        Self::on_port(0, handler)
    }

    pub fn on_port(port: u16, handler: impl Fn(&Request) -> Vec<Act> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = Self { port, log: Arc::default(), connections: Arc::default(), ended: Arc::default() };
        let (log, connections, ended) =
            (server.log.clone(), server.connections.clone(), server.ended.clone());
        let handler: Arc<Handler> = Arc::new(handler);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                connections.fetch_add(1, Ordering::SeqCst);
                let (log, handler) = (log.clone(), handler.clone());
                // A connection that breaks is what half of the tests are about.
                std::thread::spawn(move || drop(serve(stream.unwrap(), &log, &*handler)));
            }
        });
        server
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// Returns every request until now.
    pub fn requests(&self) -> Vec<Request> {
        self.log.lock().unwrap().clone()
    }

    /// Returns the chat requests until now.
    pub fn chats(&self) -> Vec<Request> {
        let all = self.requests();
        all.into_iter().filter(|r| r.path.ends_with("/chat/completions")).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        // Wakes the listener, which then leaves and frees the port.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

fn serve(mut stream: TcpStream, log: &Mutex<Vec<Request>>, handler: &Handler) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut pending = Vec::new();
    let mut earlier = 0;
    while let Some(mut request) = receive(&mut stream, &mut pending)? {
        {
            let mut log = log.lock().unwrap();
            (request.index, request.earlier) = (log.len(), earlier);
            earlier += 1;
            log.push(request.clone());
        }
        for act in handler(&request) {
            match act {
                Act::Send(bytes) => stream.write_all(&bytes)?,
                Act::Pause(time) => std::thread::sleep(time),
                Act::Close => return stream.shutdown(Shutdown::Both),
            }
        }
    }
    Ok(())
}

fn receive(stream: &mut TcpStream, pending: &mut Vec<u8>) -> std::io::Result<Option<Request>> {
    let mut buffer = vec![0; 65536];
    loop {
        if let Some(end) = pending.windows(4).position(|w| w == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&pending[..end]).into_owned();
            let mut request = Request {
                path: String::new(),
                head,
                body: String::new(),
                bytes: Vec::new(),
                index: 0,
                earlier: 0,
            };
            request.path = request.head.split(' ').nth(1).unwrap_or_default().to_owned();
            let length: usize = request.header("content-length").and_then(|v| v.parse().ok()).unwrap_or(0);
            if pending.len() >= end + 4 + length {
                request.bytes = pending[end + 4..end + 4 + length].to_vec();
                request.body = String::from_utf8_lossy(&request.bytes).into_owned();
                pending.drain(..end + 4 + length);
                return Ok(Some(request));
            }
        }
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Ok(None);
        }
        pending.extend_from_slice(&buffer[..count]);
    }
}

/// Returns a whole HTTP answer.
pub fn http(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut out = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{headers}\r\n",
        body.len()
    )
    .into_bytes();
    out.extend_from_slice(body);
    out
}

/// Returns a completion with this text, whole.
pub fn completion(text: &str) -> Vec<u8> {
    let body = json!({
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 60}},
    });
    http("200 OK", "", body.to_string().as_bytes())
}

/// Returns a completion with this text as a stream, `size` bytes of text in each chunk.
pub fn stream(text: &str, size: usize) -> Vec<u8> {
    let mut body = String::new();
    let mut event = |value: Value| body.extend(["data: ", &value.to_string(), "\n\n"]);
    event(json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": null}}]}));
    let characters: Vec<char> = text.chars().collect();
    for part in characters.chunks(size) {
        let part: String = part.iter().collect();
        event(json!({"choices": [{"index": 0, "delta": {"content": part}}]}));
    }
    event(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}));
    event(json!({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20}}));
    body.push_str("data: [DONE]\n\n");
    chunked("text/event-stream", body.as_bytes())
}

/// Returns an answer whose body comes in chunks that split events, lines and UTF-8 sequences: seven bytes each.
pub fn chunked(kind: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n");
    let mut out = head.into_bytes();
    for part in body.chunks(7) {
        out.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
        out.extend_from_slice(part);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}
