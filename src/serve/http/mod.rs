//! The way of every request before it is read: its connection, the guard, and the room for it.
//!
//! The input is connections and requests. The output is the caller of a request and its body, or a refusal. Nothing here knows the state
//! of a run. The forms of errors and streams are here too.

mod api_error;
mod caller;
mod connection_pool;
mod event_stream;
mod guard;
mod health;
mod listen;
mod request_body;
mod shared_room;

pub(super) use api_error::{ApiError, ErrorBody, Refusals};
pub(super) use caller::{CALLER_LABEL, Caller};
pub(super) use event_stream::{KEEP_ALIVE, SentEvent, error_event, record_event, stream_events};
pub(super) use guard::Allowance;
pub use guard::{Guard, Tokens};
pub use health::ask_health;
pub(super) use listen::listen;
pub(super) use request_body::{BODY_BYTES_MAX, RequestBody};
pub(super) use shared_room::{HeldRoom, SharedRoom};
