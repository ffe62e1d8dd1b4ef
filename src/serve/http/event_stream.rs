//! Streams of events, as a client receives them.
//!
//! The input is events. The output is an answer that says every few seconds that it is alive, until the events end.

use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::{Stream, StreamExt as _};
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use super::api_error::ApiError;

/// The time between two signs of life in a stream. Proxies and clients cut a stream that is silent for a minute.
pub(in crate::serve) const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// An event of a stream, for the description.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only the description is made of it")]
pub(in crate::serve) struct SentEvent {
    /// The number of a record in its run; absent in the stream of an answer.
    id: Option<String>,
    /// The type of the event, if it has one.
    event: Option<String>,
    /// JSON, or `[DONE]` behind the last chunk of a chat completion.
    data: String,
}

/// Returns a stream of these events.
pub(in crate::serve) fn stream_events(events: impl Stream<Item = Event> + Send + 'static) -> Response {
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE).text("keep-alive");
    Sse::new(events.map(Ok::<Event, Infallible>)).keep_alive(keep_alive).into_response()
}

/// A record, as far as the type of its event.
#[derive(Deserialize)]
struct TypedRecord {
    event: EventType,
}

/// The type of an event of a record.
#[derive(Deserialize)]
struct EventType {
    r#type: String,
}

/// Returns a record as an event, whose id is its number in the run.
pub(in crate::serve) fn record_event(number: usize, line: &[u8]) -> Event {
    let kind = match serde_json::from_slice(line) {
        Ok(TypedRecord { event }) => event.r#type,
        Err(_) => "record".to_owned(),
    };
    Event::default().id(number.to_string()).event(kind).data(String::from_utf8_lossy(line))
}

/// Returns an error as an event, once the head of an answer is sent.
pub(in crate::serve) fn error_event(why: &ApiError) -> Event {
    Event::default().event("error").data(json!(why.body()).to_string())
}
