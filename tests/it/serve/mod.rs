//! A server for clients of OpenAI's interface, as a real process.

mod answers;
mod crashes;
mod limits;
mod mcp;
mod page;
mod records;
mod responses;
mod strangers;

use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};

use crate::support::{Request, SENSIBLE, Server, model};

/// The body of a request for a chat completion.
fn body(model: &str, prompt: &str) -> Value {
    json!({"model": model, "messages": [{"role": "user", "content": prompt}]})
}

/// A door that a test opens.
#[derive(Default)]
struct Door {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Door {
    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    fn pass(&self) {
        drop(self.opened.wait_while(self.is_open.lock().unwrap(), |is_open| !*is_open).unwrap());
    }
}

/// A model server whose answers wait behind a door.
fn behind(door: &Arc<Door>) -> Server {
    let door = Arc::clone(door);
    Server::start(move |request: &Request| {
        if request.path.ends_with("/chat/completions") {
            door.pass();
        }
        model(SENSIBLE)(request)
    })
}
