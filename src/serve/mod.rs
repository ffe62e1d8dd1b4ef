//! Agreement as a model and as tools: a server with OpenAI's interface and that of the Model Context Protocol, where each request is a run.
//!
//! ```text
//!  request ──► router, mcp ──► app state ──► dispatcher ──► scheduler of the batch ──► runs on worker threads
//!                  ▲                             │                                          │
//!                  └───── progress, answer ◄─ live run ◄─────────────── events ─────────────┘
//! ```
//!
//! The input is requests, the rolesets of the command line, and a folder. The output is answers, and in the folder a journal and results
//! in the form of a batch, so every command that reads batches reads them too. A request with an `Idempotency-Key` is one run, however
//! often it comes and however often the program dies in between.
//!
//! Nothing here calls a model, decides anything about agreement, or has a thread for a request.
//!
//! # Wings
//!
//! A file uses its own wing and the wings of lower lines. The test `tidy` reads this block.
//!
//! ```text
//! server
//! router
//! openai  mcp  page
//! dispatch
//! runs
//! http
//! error
//! ```

mod dispatch;
mod error;
mod http;
mod mcp;
mod openai;
mod page;
mod router;
mod runs;
mod server;

pub use error::ServeError;
pub use http::{Guard, Tokens, ask_health};
pub use runs::ServedRoleset;
pub use server::{Pruning, ServeRequest, ServerEnd, WayIn, prune, serve};
