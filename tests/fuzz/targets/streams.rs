//! Answers of model servers: a stream of events, or a whole completion.
//!
//! In: the body of an answer. A server on loopback sends it twice to the program's own client: in one piece, and in chunks
//! of few bytes. Out: whether the body was a completion. The reply is the same in both cases, and it is never longer than
//! the body. No request leaves this machine.

use std::cell::OnceCell;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use consensus::provider::OpenAi;
use crypto::Digest;
use protocol::core::{OpenAiEndpoint, Timeouts};
use protocol::{Ask, CallId, Message, ReplyShape, Role, Step};

/// Longer bodies only take time.
const BODY_BYTES_MAX: usize = 1 << 16;

/// So many bytes are in a chunk: it cuts words, numbers and characters.
const CHUNK: usize = 7;

/// A server that answers each request with the same bytes, until it is given others.
struct FixedServer {
    client: OpenAi,
    runtime: tokio::runtime::Runtime,
    answer: Arc<Mutex<Vec<u8>>>,
}

impl FixedServer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is there");
        let address = listener.local_addr().expect("it is bound");
        let answer = Arc::new(Mutex::new(Vec::new()));
        let given = Arc::clone(&answer);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let answer = given.lock().unwrap_or_else(PoisonError::into_inner).clone();
                // The client may be gone before all is sent.
                let _ = answer_one(stream, &answer);
            }
        });
        // A server that loads its model is not waited for. A hang is for the caller's clock.
        let timeouts = Timeouts { ready_ms: 0, ..Timeouts::default() };
        let endpoint = OpenAiEndpoint { timeouts, ..OpenAiEndpoint::bare(&format!("http://{address}/v1")) };
        Self {
            client: OpenAi::new(endpoint).expect("the URL is one"),
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime"),
            answer,
        }
    }

    /// Returns the reply that the client reads from an answer, with its length, or the error.
    fn bring(&self, answer: Vec<u8>) -> Result<(String, usize), String> {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = answer;
        let done = self.runtime.block_on(self.client.ask(&question(), &|_| {}));
        let done = done.map_err(|why| why.to_string())?;
        let reply = &done.reply;
        let length = reply.text.len() + reply.reasoning.as_ref().map_or(0, String::len);
        Ok((format!("{reply:?} {:?} {:?}", done.usage, done.receipt), length))
    }
}

fn question() -> Ask {
    let message = Message::new(Role::User, "How much is 2+2?".to_owned());
    Ask {
        refused: None,
        call: CallId { part: 0, round: 1, agent: 0, draft: 0, step: Step::Think, attempt: 0 },
        messages: vec![Arc::new(message)],
        shape: ReplyShape::Free,
        max_tokens: 100,
        temperature: 0.0,
        seed: 1,
        digest: Digest::ZERO,
    }
}

/// Reads one request, and sends the answer to it.
fn answer_one(mut stream: TcpStream, answer: &[u8]) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut lines = BufReader::new(stream.try_clone()?);
    let (mut line, mut length) = (String::new(), 0);
    while lines.read_line(&mut line)? > 2 {
        let named = line.to_ascii_lowercase();
        length = named.strip_prefix("content-length:").and_then(|n| n.trim().parse().ok()).unwrap_or(length);
        line.clear();
    }
    std::io::copy(&mut lines.take(length), &mut std::io::sink())?;
    stream.write_all(answer)
}

/// Reads the answer of a server.
pub(crate) fn stream(bytes: &[u8]) -> bool {
    thread_local! {
        static SERVER: OnceCell<FixedServer> = const { OnceCell::new() };
    }
    let bytes = &bytes[..bytes.len().min(BODY_BYTES_MAX)];
    SERVER.with(|server| {
        let server = server.get_or_init(FixedServer::start);
        let whole = server.bring(answer(bytes, bytes.len()));
        let pieces = server.bring(answer(bytes, CHUNK));
        assert_eq!(whole, pieces, "a reply is the same however its bytes are cut");
        let Ok((_, length)) = whole else { return false };
        assert!(length <= bytes.len(), "a reply of {length} bytes came out of {}", bytes.len());
        true
    })
}

/// Returns an HTTP answer with this body, in chunks of so many bytes.
fn answer(body: &[u8], chunk: usize) -> Vec<u8> {
    let kind = if body.starts_with(b"{") { "application/json" } else { "text/event-stream" };
    let mut head = String::new();
    let _ = write!(head, "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n");
    head.push_str("transfer-encoding: chunked\r\n\r\n");
    let mut answer = head.into_bytes();
    for piece in body.chunks(chunk.max(1)) {
        answer.extend(format!("{:x}\r\n", piece.len()).bytes());
        answer.extend(piece);
        answer.extend(b"\r\n");
    }
    answer.extend(b"0\r\n\r\n");
    answer
}
