//! Agreement as a model and as tools: a server with OpenAI's interface and that of the Model Context Protocol, where each request is a run.
//!
//! ```text
//!  request ──► http, mcp ──► app state ──► dispatcher ──► scheduler of the batch ──► runs on worker threads
//!                  ▲                           │                                          │
//!                  └──── progress, answer ◄─ live run ◄────────────── events ─────────────┘
//! ```
//!
//! The input is requests, the rolesets of the command line, and a folder. The output is answers, and in the folder a journal and results
//! in the form of a batch, so every command that reads batches reads them too. A request with an `Idempotency-Key` is one run, however
//! often it comes and however often the program dies in between.
//!
//! Nothing here calls a model, decides anything about agreement, or has a thread for a request.

mod allowances;
mod answering;
mod api_error;
mod app_state;
mod caller;
mod cancelled;
mod chat_reply;
mod chat_request;
mod connection_pool;
mod dispatcher;
mod error;
mod figures;
mod guard;
mod health;
mod http;
mod known_run;
mod listen;
mod live_run;
mod mcp;
mod open_calls;
mod page;
mod past_run;
mod request_body;
mod requested_run;
mod response_reply;
mod response_request;
mod rules;
mod run_reply;
mod runs;
mod served_variant;
mod server;
mod service;
mod shared_room;
mod submission;
mod subscription;

pub use error::ServeError;
pub use guard::{Guard, Tokens};
pub use health::ask_health;
pub use rules::ServedRoleset;
pub use server::{Pruning, ServeRequest, ServerEnd, WayIn, prune, serve};
