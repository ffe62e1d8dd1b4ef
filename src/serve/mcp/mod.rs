//! Agreement as tools, for agents that speak the Model Context Protocol.
//!
//! ```text
//!  client ──► transport ──► mcp server ──► calls ──► app state ──► run
//!                ▲                           │
//!                └───── report, link ◄── waiting, resources
//! ```
//!
//! The input is calls of tools, reads of resources and requests for prompts, on standard input or at `/mcp`. The output is reports about
//! runs. Most clients give up a call after a minute, so a call waits for less than that and then names the run, which goes on. Its result
//! is read by a further call, also after the server was started again. A client that knows tasks then gets a task, whose id is that of the
//! run.
//!
//! Nothing here decides about agreement or calls a model: a tool asks for a run as a request over HTTP does.

mod arguments;
mod calls;
mod evidence;
mod lines;
mod mcp_server;
mod reports;
mod resources;
mod results;
mod run_part;
mod tasks;
mod tools;
mod transport;
mod waiting;

pub(super) use transport::{over_http, over_stdio};
