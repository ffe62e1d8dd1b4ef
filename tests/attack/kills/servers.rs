//! A server is killed under load, and started again until all its clients have their answers.
//!
//! The input is clients with keys, all at once, and a moment. The output is that of all kills, and for each key one run, whose answer is
//! the same however often it is asked for.

use std::net::TcpStream;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::{CountingServer, LOOK, REPLY, asked, is_emptied, records, temp};
use crate::honest::honest;
use crate::support::{Finished, Folder, Served, answer, consensus};
use crate::sweep::{KILLED_SERVERS, sweep};

const KEYS: usize = 12;

/// The calls of one run: two agents who think, answer, and find that they agree.
const CALLS: usize = 4;

/// A server, its folder and its model server.
struct ServerCase {
    folder: Folder,
    server: CountingServer,
}

impl ServerCase {
    fn new() -> Self {
        Self { folder: Folder::new(), server: CountingServer::new(honest) }
    }

    fn serve(&self) -> Served {
        let url = self.server.server.url();
        let mut command = consensus(&self.folder);
        command.env("TMPDIR", temp(&self.folder));
        let words = [
            "--base-url",
            &url,
            "--model",
            "tiny-model",
            "--roleset",
            "solver_checker",
            "--runs-at-once",
            "6",
        ];
        Served::of(command, &words)
    }

    /// Lets all clients ask at once.
    fn ask(served: &Served) -> Vec<TcpStream> {
        let ask = |key: usize| {
            let body = json!({"model": "solver_checker", "seed": key, "messages": [{"role": "user", "content": "How much is 2+2?"}]});
            served.send_chat(&[&format!("Idempotency-Key: {key}")], &body)
        };
        (0..KEYS).map(ask).collect()
    }

    /// Returns the answers that the clients have got, by their keys.
    fn answers(streams: Vec<TcpStream>) -> Vec<Option<Value>> {
        let said = streams.into_iter().map(answer);
        said.map(|said| (said.status == 200).then(|| said.json()["consensus"].clone())).collect()
    }
}

/// The server is killed under load up to three times, and no answer changes.
#[test]
fn kill_leaves_one_result_per_key() {
    let ends = sweep("kills, servers", KILLED_SERVERS.of(usize::MAX), 2, |_, draw| {
        let case = ServerCase::new();
        let mut known: Vec<Option<Value>> = vec![None; KEYS];
        for _ in 0..draw.usize(1..=3) {
            let before = case.server.chats();
            let left = (KEYS * CALLS).saturating_sub(before).max(1);
            let (at, then) = (before + draw.usize(..left), REPLY.mul_f64(draw.f64()));
            let served = case.serve();
            let streams = ServerCase::ask(&served);
            while case.server.chats() < at {
                std::thread::sleep(LOOK);
            }
            std::thread::sleep(then);
            served.end(Signal::SIGKILL);
            for (known, said) in known.iter_mut().zip(ServerCase::answers(streams)) {
                assert!(known.is_none() || said.is_none() || *known == said, "{known:?} was {said:?}");
                *known = known.take().or(said);
            }
        }
        let had = known.iter().flatten().count();
        let served = case.serve();
        let all = ServerCase::answers(ServerCase::ask(&served));
        for (known, said) in known.iter().zip(&all) {
            assert!(said.is_some() && (known.is_none() || known == said), "{known:?} became {said:?}");
        }
        assert_eq!(served.end(Signal::SIGTERM), Some(0));
        let (asked, chats) =
            (asked(&records(&case.folder.path().join("served/journal-0.jsonl"))), case.server.chats());
        assert!(chats <= asked, "{chats} requests, and {asked} on record");
        let rows = std::fs::read_to_string(case.folder.path().join("served/results-0.jsonl")).unwrap();
        assert_eq!(rows.lines().count(), KEYS);
        Finished::of(consensus(&case.folder).args(["verify", "served"])).exits(0);
        is_emptied(&case.folder);
        if had == KEYS { "had ended" } else { "went on" }
    });
    assert!(ends.contains_key("went on"), "{ends:?}");
}
