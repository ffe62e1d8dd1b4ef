//! The bodies of requests, and the memory that they need.
//!
//! The input is a body that comes in parts. The output is the whole body, or a refusal: a body has a time and a length, and the memory for
//! it must be free. The length says little about that memory. `[[0]],` has 6 bytes as text and about 700 once it is parsed, so the brackets
//! and commas of a body are counted before it is parsed.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http_body_util::BodyExt as _;

use super::api_error::ApiError;
use super::caller::Caller;
use super::shared_room::{HeldRoom, SharedRoom};

/// The time in which the body of a request must have come.
const BODY_MAX: Duration = Duration::from_mins(1);

/// The longest body of a request, in bytes.
pub(in crate::serve) const BODY_BYTES_MAX: usize = 8 << 20;

/// The memory for each byte of a body while it comes. A buffer that grows has up to twice the length of its content.
const READ_BYTES: usize = 2;

/// The memory for each byte of a body while it is parsed. Its texts go from one form into the next.
const PARSED_BYTES: usize = 6;

/// The memory for each list or object of a body while it is parsed. Each is made twice, first as it is and then as a field takes it.
const LIST_BYTES: usize = 1024;

/// The memory for each value of a body while it is parsed. A list that grows has up to twice the length of its content.
const VALUE_BYTES: usize = 256;

/// The memory for each byte of a body in what is kept of it until the end of its run: the task, and what the answer repeats.
const KEPT_BYTES: usize = 2;

/// A whole body, with the memory that it takes until it is parsed.
#[derive(Debug)]
pub(in crate::serve) struct RequestBody {
    pub(in crate::serve) bytes: Vec<u8>,
    room: HeldRoom,
}

impl RequestBody {
    /// Reads the body of a request, and takes the memory in which it can be parsed.
    pub(in crate::serve) async fn read(
        memory: &Arc<SharedRoom>,
        caller: Caller,
        body: Body,
    ) -> Result<Self, ApiError> {
        let mut whole = Self { bytes: Vec::new(), room: memory.hold(caller) };
        let read = tokio::time::timeout(BODY_MAX, whole.receive(body)).await;
        read.map_err(|_| ApiError::slow_body())??;
        let needed = memory_to_parse(&whole.bytes);
        if needed > memory.most_of_one() {
            return Err(ApiError::dense_body());
        }
        if !whole.room.grow_to(needed).await {
            return Err(ApiError::no_memory());
        }
        Ok(whole)
    }

    /// Receives all parts of a body. Without memory for them they are dropped, since a client reads the refusal once it has sent all.
    async fn receive(&mut self, mut body: Body) -> Result<(), ApiError> {
        let (mut length, mut has_room) = (0, true);
        while let Some(frame) = body.frame().await {
            let frame =
                frame.map_err(|why| ApiError::bad("broken_body", format!("the body broke off: {why}")))?;
            // The lines behind a body mean nothing here.
            let Ok(part) = frame.into_data() else { continue };
            length += part.len();
            if length > BODY_BYTES_MAX {
                return Err(ApiError::long_body(BODY_BYTES_MAX));
            }
            if has_room && !self.room.grow_to(length * READ_BYTES).await {
                has_room = false;
                self.bytes = Vec::new();
                self.room.shrink_to(0);
            }
            if has_room {
                self.bytes.extend_from_slice(&part);
            }
        }
        if has_room { Ok(()) } else { Err(ApiError::no_memory()) }
    }

    /// Returns the memory of what is kept of the body once it is parsed. The rest is free when the body is dropped.
    pub(in crate::serve) fn keep(&mut self) -> Arc<HeldRoom> {
        Arc::new(self.room.split(self.bytes.len() * KEPT_BYTES))
    }
}

/// Returns the memory in which a body of JSON can be parsed, in bytes. It is estimated from above.
fn memory_to_parse(body: &[u8]) -> usize {
    let (mut lists, mut values) = (0, 0);
    let (mut is_text, mut is_escaped) = (false, false);
    for byte in body {
        if is_text {
            is_text = is_escaped || *byte != b'"';
            is_escaped = !is_escaped && *byte == b'\\';
            continue;
        }
        match byte {
            b'"' => is_text = true,
            b'[' | b'{' => lists += 1,
            b',' | b':' => values += 1,
            _ => {}
        }
    }
    body.len() * PARSED_BYTES + lists * LIST_BYTES + values * VALUE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_outside_of_texts_need_memory() {
        for (body, lists, values) in [
            ("", 0, 0),
            (r#"{"a":"[[,]]"}"#, 1, 1),
            (r#"["\"[","\\",[]]"#, 2, 2),
            ("[[0]],[[0]]", 4, 1),
            (r#""[[["#, 0, 0),
        ] {
            let wanted = body.len() * PARSED_BYTES + lists * LIST_BYTES + values * VALUE_BYTES;
            assert_eq!(memory_to_parse(body.as_bytes()), wanted, "{body}");
        }
    }
}
