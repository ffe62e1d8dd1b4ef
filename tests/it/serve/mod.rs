//! A server for clients of OpenAI's interface, as a real process.

mod answers;
mod crashes;
mod limits;
mod mcp;
mod page;
mod records;
mod responses;
mod strangers;

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, SystemTime};

use consensus::serve::{Pruning, prune};
use serde_json::{Value, json};

use crate::support::{Folder, Request, SENSIBLE, Served, Server, consensus, model};

/// The body of a request for a chat completion.
fn body(model: &str, prompt: &str) -> Value {
    json!({"model": model, "messages": [{"role": "user", "content": prompt}]})
}

/// Returns what the list of runs of this caller has.
fn listed(served: &Served, headers: &[&str]) -> Vec<Value> {
    served.ask("GET /v1/runs", headers, "").json()["data"].as_array().unwrap().clone()
}

/// Removes the runs whose last record is older than this time, and returns their number.
#[track_caller]
fn removed_before(folder: &Path, before: SystemTime) -> usize {
    match prune(folder, before, Duration::ZERO).unwrap() {
        Pruning::Done(pruned) => pruned.runs,
        Pruning::ClockAhead { newest } => panic!("the newest record is of {newest:?}"),
    }
}

/// Returns the program, to be run in `folder` after a command of the shell, such as one that limits what a process may use.
fn after(folder: &Folder, shell: &str) -> Command {
    let script = format!("{shell}; exec '{}' \"$@\"", env!("CARGO_BIN_EXE_consensus"));
    let like = consensus(folder);
    let mut command = Command::new("bash");
    command.current_dir(folder.path()).args(["-c", &script, "bash"]);
    for (name, value) in like.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// A door that a test opens.
#[derive(Default)]
struct ReplyDoor {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl ReplyDoor {
    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    fn pass(&self) {
        drop(self.opened.wait_while(self.is_open.lock().unwrap(), |is_open| !*is_open).unwrap());
    }
}

/// A model server whose answers wait behind a door.
fn behind(door: &Arc<ReplyDoor>) -> Server {
    let door = Arc::clone(door);
    Server::start(move |request: &Request| {
        if request.path.ends_with("/chat/completions") {
            door.pass();
        }
        model(SENSIBLE)(request)
    })
}
