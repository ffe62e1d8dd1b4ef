//! `ConverseStream`: a reply in the frames of AWS's event streams.

use aws_smithy_eventstream::frame::{DecodedFrame, MessageFrameDecoder};
use aws_smithy_types::event_stream::Message;
use bytes::BytesMut;
use futures_util::StreamExt;
use reqwest::Response;

use super::answer::ConverseReply;
use crate::provider::ProviderError;
use crate::provider::completion::{CallProgress, OnProgress, PartialText};
use crate::provider::failure::ServerFailure;
use crate::provider::http::{Http, StreamFault};
use crate::provider::receipt::ReceiptParts;

/// The header in which the service names a request.
pub(super) const REQUEST_ID: &str = "x-amzn-requestid";

/// Reads a whole stream, and checks the checksums of each frame.
pub(super) async fn collect(
    http: &Http,
    response: Response,
    progress: OnProgress<'_>,
) -> Result<ConverseReply, ProviderError> {
    let mut collected = ConverseReply::new(ReceiptParts::new(&response, REQUEST_ID));
    let (mut decoder, mut buffer) = (MessageFrameDecoder::new(), BytesMut::new());
    let mut parts = std::pin::pin!(http.parts(response));
    while let Some(part) = parts.next().await {
        buffer.extend_from_slice(&part.map_err(|fault| http.stream_error(&fault))?);
        loop {
            let frame = decoder.decode_frame(&mut buffer);
            match frame.map_err(|e| http.bad_answer(format!("a frame of its stream is damaged: {e}")))? {
                DecodedFrame::Incomplete => break,
                DecodedFrame::Complete(message) => {
                    read_message(http, &message, &mut collected)?;
                    let secrets = http.secrets();
                    progress(CallProgress::Received {
                        tokens: collected.parts,
                        text: PartialText::new(&|| collected.visible_text(&secrets), &secrets),
                    });
                }
            }
        }
    }
    if !collected.is_complete() {
        let why = "the stream ended in the middle of a reply".to_owned();
        return Err(http.stream_error(&StreamFault::Broken(why)));
    }
    Ok(collected)
}

fn read_message(http: &Http, message: &Message, collected: &mut ConverseReply) -> Result<(), ProviderError> {
    let secrets = http.secrets();
    let (status, text) = match header(message, ":message-type") {
        "event" => return collected.add(message.payload(), &secrets).map_err(|why| http.bad_answer(why)),
        "exception" => {
            let payload = String::from_utf8_lossy(message.payload()).into_owned();
            (status(header(message, ":exception-type")), payload)
        }
        _ => (500, format!("{} {}", header(message, ":error-code"), header(message, ":error-message"))),
    };
    let failure = ServerFailure::of_text(&secrets.in_message(&text));
    Err(http.failure_error(ServerFailure { status: Some(status), ..failure }))
}

/// Returns a header of a message, or an empty text.
fn header<'m>(message: &'m Message, name: &str) -> &'m str {
    let found = message.headers().iter().find(|header| header.name().as_str() == name);
    found.and_then(|header| header.value().as_string().ok()).map_or("", |value| value.as_str())
}

/// Returns the HTTP status that an exception has if it comes before a stream.
fn status(exception: &str) -> u16 {
    match exception {
        "throttlingException" => 429,
        "validationException" => 400,
        "serviceUnavailableException" => 503,
        // These are `internalServerException`, `modelStreamErrorException`, and exceptions that are added later.
        _ => 500,
    }
}
