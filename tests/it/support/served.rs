//! A server of this program, and a client of it.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::process::{Folder, consensus};

/// A running `consensus serve`. It is killed when this is dropped.
pub struct Served {
    child: Child,
    /// The host and the port.
    pub place: String,
}

/// An answer to a request.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|why| panic!("{why}: {self:?}"))
    }

    /// Returns the events of a stream, without the one that ends it.
    #[track_caller]
    pub fn events(&self) -> Vec<Value> {
        let data = |event: &str| event.strip_prefix("data: ").map(str::to_owned);
        let mut data: Vec<String> = self.body.split("\n\n").filter_map(data).collect();
        assert_eq!(data.pop().as_deref(), Some("[DONE]"), "{self:?}");
        data.iter().map(|event| serde_json::from_str(event).unwrap()).collect()
    }
}

impl Served {
    /// Starts a server in `folder` with its runs in `served`, and waits until it listens.
    #[track_caller]
    pub fn start(folder: &Folder, words: &[&str]) -> Self {
        Self::of(consensus(folder), words)
    }

    /// Starts a server by this command, which runs the program, and waits until it listens.
    #[track_caller]
    pub fn of(mut command: Command, words: &[&str]) -> Self {
        command.args(["serve", "--quiet", "--listen", "127.0.0.1:0", "--output", "served"]).args(words);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let place = line.trim().strip_prefix("http://").and_then(|url| url.strip_suffix("/v1"));
        let place = place.unwrap_or_else(|| panic!("it says where it listens: {line:?}")).to_owned();
        Self { child, place }
    }

    pub fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap())
    }

    /// Waits until the server ends by itself, and returns its exit code.
    pub fn ended(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// Ends the server by a signal, and returns its exit code.
    #[track_caller]
    pub fn end(mut self, signal: Signal) -> Option<i32> {
        kill(self.pid(), signal).unwrap();
        self.child.wait().unwrap().code()
    }

    /// Asks for a chat completion, and does not wait for it.
    #[track_caller]
    pub fn send_chat(&self, headers: &[&str], body: &Value) -> TcpStream {
        let headers = [headers, &["Content-Type: application/json"]].concat();
        self.send("POST /v1/chat/completions", &headers, &body.to_string())
    }

    /// Opens a connection and sends a request on it.
    #[track_caller]
    pub fn send(&self, line: &str, headers: &[&str], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.place).unwrap();
        let host = format!("Host: {}", self.place);
        let has_host = headers.iter().any(|header| header.starts_with("Host:"));
        let mut head = format!("{line} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        for header in headers.iter().copied().chain((!has_host).then_some(host.as_str())) {
            let _ = write!(head, "{header}\r\n");
        }
        // A server that refuses the head need not read the body.
        let _ = stream.write_all(format!("{head}\r\n{body}").as_bytes());
        stream
    }

    /// Sends a request and reads the answer to its end.
    #[track_caller]
    pub fn ask(&self, line: &str, headers: &[&str], body: &str) -> Answer {
        answer(self.send(line, headers, body))
    }

    /// Asks for a chat completion.
    #[track_caller]
    pub fn chat(&self, headers: &[&str], body: &Value) -> Answer {
        answer(self.send_chat(headers, body))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads an answer to its end.
#[track_caller]
pub fn answer(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    // A server that was killed leaves what it has sent.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = if is_chunked { unchunked(body) } else { body.to_owned() };
    Answer { status, head: head.to_owned(), body }
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 {
            break;
        }
        let Some(chunk) = rest.get(..size) else { break };
        whole += chunk;
        body = rest.get(size + 2..).unwrap_or("");
    }
    whole
}
