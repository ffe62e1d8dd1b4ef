//! A server for clients of OpenAI's interface, as a real process.

mod answers;
mod crashes;
mod strangers;

use serde_json::{Value, json};

/// The body of a request for a chat completion.
fn body(model: &str, prompt: &str) -> Value {
    json!({"model": model, "messages": [{"role": "user", "content": prompt}]})
}
