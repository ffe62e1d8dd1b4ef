//! A fake model server that speaks the OpenAI protocol, as a process that tests start and end.
//!
//! Usage: `fake_llm PORT [BEHAVIOUR...]`. It says who it is on stdout, and answers as the tests'
//! sensible model does, except for what its behaviours say:
//!
//! - `refuses` ends at once, with a reason;
//! - `loads=N` says 503 to the first N looks at its health;
//! - `dies=N` ends at chat number N, each time it is started;
//! - `dies_once=FILE` ends at the first chat of its first life, and remembers that in FILE;
//! - `hangs` never answers a chat;
//! - `takes=N` takes N milliseconds for a chat;
//! - `worker` starts another process, as servers with workers do.

#![allow(clippy::unwrap_used, unreachable_pub, reason = "the tests' support is shared")]

#[path = "../it/support/model.rs"]
mod model;
#[allow(dead_code, reason = "the tests that share it use the rest")]
#[path = "../it/support/server.rs"]
mod server;

use std::path::Path;
use std::process::{Command, exit};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use model::{SENSIBLE, model};
use server::{Act, Request, Server, http};

/// Returns the text behind `name=`.
fn value<'a>(words: &'a [String], name: &str) -> Option<&'a str> {
    words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

fn number(words: &[String], name: &str) -> Option<usize> {
    value(words, name).map(|number| number.parse().expect("a number"))
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let port: u16 = words.first().and_then(|word| word.parse().ok()).expect("the first word is a port");
    let says = |name: &str| words.iter().any(|word| word == name);
    println!("serving as process {}", std::process::id());
    if says("refuses") {
        eprintln!("there is no such model");
        exit(3);
    }
    #[expect(clippy::zombie_processes, reason = "it outlives this process on purpose")]
    if says("worker") {
        let worker = Command::new("sleep").arg("1000").spawn().expect("there is a program `sleep`");
        println!("with worker process {}", worker.id());
    }
    let (loads, hangs) = (number(&words, "loads").unwrap_or(0), says("hangs"));
    let takes = Duration::from_millis(number(&words, "takes").unwrap_or(0) as u64);
    let dies = number(&words, "dies").unwrap_or(usize::MAX);
    let dies_once = value(&words, "dies_once").map(str::to_owned);
    let (looks, chats) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let _server = Server::on_port(port, move |request: &Request| {
        if request.path == "/health" {
            let loaded = looks.fetch_add(1, Ordering::SeqCst) >= loads;
            return vec![Act::Send(http(
                if loaded { "200 OK" } else { "503 Service Unavailable" },
                "",
                b"{}",
            ))];
        }
        if request.path.ends_with("/chat/completions") {
            let chat = chats.fetch_add(1, Ordering::SeqCst) + 1;
            if let Some(file) = &dies_once
                && !Path::new(file).exists()
            {
                std::fs::write(file, "died once").expect("the file can be written");
                exit(9);
            }
            if chat >= dies {
                exit(9);
            }
            if hangs {
                std::thread::sleep(Duration::from_secs(1000));
            }
            std::thread::sleep(takes);
        }
        model(SENSIBLE)(request)
    });
    loop {
        std::thread::park();
    }
}
