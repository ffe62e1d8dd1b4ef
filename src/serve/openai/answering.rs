//! The requests that ask for an answer, in each of the forms that clients know.
//!
//! The input is a request. The output is the answer of its run, whole or as a stream. A handler waits for its run and does nothing else.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::sse::Event;
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use futures_util::stream::{self, StreamExt as _};
use serde_json::json;

use super::chat_reply::{ChatCompletion, ChatForm};
use super::chat_request::ChatCompletionRequest;
use super::response_reply::{ResponseForm, WholeResponse};
use super::response_request::ResponseRequest;
use crate::serve::dispatch::{AppState, DEPTH_HEADER, KEYED, SubmissionOutcome};
use crate::serve::http::{ApiError, Caller, Refusals, RequestBody, SentEvent, stream_events};
use crate::serve::runs::{ReplyForm, RunEnd, RunReply, Service, Subscription};
use crypto::Hasher;

/// The longest `Idempotency-Key`, in bytes.
const KEY_BYTES_MAX: usize = 255;

/// Asks for a chat completion: several agents agree on the answer to the last message of the user.
#[utoipa::path(
    post,
    path = "/v1/chat/completions",
    tag = "answers",
    request_body = ChatCompletionRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "Requests with the same key are one run.")),
    responses(
        (status = 200, description = "The answer; a stream of chunks if `stream` is set", content(
            (ChatCompletion = "application/json"), (SentEvent = "text/event-stream"))),
        Refusals,
    )
)]
pub(in crate::serve) async fn chat(
    State(app): State<AppState>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let mut body = read_json(&app.service, caller, &headers, body).await?;
    let asked = ChatCompletionRequest::read(&body.bytes)?;
    let (stream, include_usage) = (asked.stream.unwrap_or_default(), asked.includes_usage());
    let run = asked.into_run()?;
    let memory = body.keep();
    drop(body);
    let (model, created) = (run.model.clone(), unix_seconds());
    let submitted = app.submit(caller, task_of_key(caller, &headers)?, run, Some(memory)).await?;
    let form = ChatForm { run: submitted.run().to_string(), model, created, include_usage };
    answer(&app.service, submitted, Box::new(form), stream).await
}

/// Asks for a response: the same in the newer of OpenAI's two forms.
#[utoipa::path(
    post,
    path = "/v1/responses",
    tag = "answers",
    request_body = ResponseRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "Requests with the same key are one run.")),
    responses(
        (status = 200, description = "The answer; a stream of events if `stream` is set", content(
            (WholeResponse = "application/json"), (SentEvent = "text/event-stream"))),
        Refusals,
    )
)]
pub(in crate::serve) async fn responses(
    State(app): State<AppState>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let mut body = read_json(&app.service, caller, &headers, body).await?;
    let asked = ResponseRequest::read(&body.bytes)?;
    let (stream, format) = (asked.stream.unwrap_or_default(), asked.format());
    let instructions = asked.instructions.clone();
    let metadata = asked.metadata.as_ref().map_or_else(|| json!({}), |metadata| json!(metadata));
    let run = asked.into_run()?;
    let memory = body.keep();
    drop(body);
    let (model, max_output_tokens, created) = (run.model.clone(), run.reply_tokens, unix_seconds());
    let submitted = app.submit(caller, task_of_key(caller, &headers)?, run, Some(memory)).await?;
    let form = ResponseForm {
        run: submitted.run().to_string(),
        model,
        created,
        instructions,
        max_output_tokens,
        metadata,
        format,
        sent: 0,
        story: String::new(),
    };
    answer(&app.service, submitted, Box::new(form), stream).await
}

/// Returns the present time, in seconds since 1970.
fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Reads the body of a request, which says that it is JSON.
async fn read_json(
    service: &Service,
    caller: Caller,
    headers: &HeaderMap,
    body: Body,
) -> Result<RequestBody, ApiError> {
    if headers.contains_key(DEPTH_HEADER) {
        return Err(ApiError::recursion());
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
        return Err(ApiError::not_json());
    }
    RequestBody::read(&service.memory, caller, body).await
}

/// Returns the task of a request with a key.
fn task_of_key(caller: Caller, headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        let why = format!("an `Idempotency-Key` has 1 to {KEY_BYTES_MAX} bytes");
        return Err(ApiError::bad("invalid_idempotency_key", why));
    }
    // A key of one caller is not that of another.
    let task = Hasher::default().part(caller.0.as_bytes()).part(key.as_bytes()).finish();
    Ok(Some(format!("{KEYED}{task}")))
}

/// Answers a request in this form.
async fn answer(
    service: &Service,
    submitted: SubmissionOutcome,
    form: Box<dyn ReplyForm>,
    stream: bool,
) -> Result<Response, ApiError> {
    let mut subscription = match submitted {
        SubmissionOutcome::Live(subscription) => subscription,
        SubmissionOutcome::Ended(run) => {
            let row = service.ended().line_of(run).map_err(|why| ApiError::internal(&why))?;
            let reply = RunReply::new(true, &row.unwrap_or_default())?;
            if stream {
                return Ok(stream_at_once(form, &reply));
            }
            return Ok(Json(form.whole(&reply)).into_response());
        }
    };
    if stream {
        return Ok(stream_as_it_comes(subscription, form));
    }
    let end = subscription.wait_for_end().await;
    let reply = reply_at_end(&subscription, end)?;
    Ok(Json(form.whole(&reply)).into_response())
}

/// Returns the answer of a run that has just ended.
fn reply_at_end(subscription: &Subscription, end: RunEnd) -> Result<RunReply, ApiError> {
    match end {
        RunEnd::WithResult(row) => RunReply::new(subscription.live.origin.keyed.is_some(), &row),
        RunEnd::WithoutResult(why) => Err(why),
    }
}

/// Returns the stream of an answer that is there.
fn stream_at_once(mut form: Box<dyn ReplyForm>, reply: &RunReply) -> Response {
    let mut values = form.begin();
    values.extend(form.end(reply));
    let events: Vec<Event> = values.iter().map(|value| form.event(value)).chain(form.last()).collect();
    stream_events(stream::iter(events))
}

/// Returns the stream of an answer that is to come: its beginning at once, the story of the run as it goes, and the answer once it is
/// final.
fn stream_as_it_comes(subscription: Subscription, mut form: Box<dyn ReplyForm>) -> Response {
    let begin: Vec<Event> = form.begin().iter().map(|value| form.event(value)).collect();
    let news = stream::unfold(Some((subscription, form)), |waiting| async {
        let (mut subscription, mut form) = waiting?;
        let (lines, end) = subscription.news().await;
        let mut values: Vec<_> = lines.iter().flat_map(|line| form.progress(line)).collect();
        let Some(end) = end else {
            let events: Vec<Event> = values.iter().map(|value| form.event(value)).collect();
            return Some((events, Some((subscription, form))));
        };
        values.extend(match reply_at_end(&subscription, end) {
            Ok(reply) => form.end(&reply),
            // The head of the answer is sent already.
            Err(why) => form.fail(&why),
        });
        let events: Vec<Event> = values.iter().map(|value| form.event(value)).chain(form.last()).collect();
        Some((events, None))
    });
    stream_events(stream::iter(begin).chain(news.flat_map(stream::iter)))
}
