//! What every form of an answer can do: be sent whole, or in events.

use axum::response::sse::Event;
use serde_json::Value;

use super::api_error::ApiError;
use super::run_reply::RunReply;

/// A form in which an answer is sent.
pub(super) trait ReplyForm: Send {
    /// Returns the whole answer.
    fn whole(&self, reply: &RunReply) -> Value;

    /// Returns the events that begin a stream, before the run has said anything.
    fn begin(&mut self) -> Vec<Value>;

    /// Returns the events for a line of the run's story.
    fn progress(&mut self, line: &str) -> Vec<Value>;

    /// Returns the events for an answer, and those that end the stream.
    fn end(&mut self, reply: &RunReply) -> Vec<Value>;

    /// Returns the events for a failure after the beginning of the stream.
    fn failed(&mut self, why: &ApiError) -> Vec<Value>;

    /// Returns an event as it is sent.
    fn event(&self, value: &Value) -> Event;

    /// Returns the event that ends every stream of this form, if there is one.
    fn last(&self) -> Option<Event>;
}
