//! The paths of the server.
//!
//! The input is HTTP requests. The output is JSON, or a stream of server-sent events. Each request passes the guard first. Everything that
//! a handler waits for is a run; no handler works itself.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::{Body, Bytes};
use axum::extract::{FromRef, Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use futures_util::stream::{self, Stream, StreamExt as _};
use http_body_util::LengthLimitError;
use serde_json::{Value, json};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::api_error::ApiError;
use super::attached::Attached;
use super::chat_reply::{ChatReply, chunk, completion_id};
use super::chat_request::ChatCompletionRequest;
use super::guard::Caller;
use super::intake::{CALLER_LABEL, DEPTH_HEADER};
use super::live_run::{RunEnd, RunOrigin};
use super::service::Service;
use super::submission::{Submission, Taken};
use crate::core::VERSION;
use crate::crypto::{Digest, Hasher};

/// The time in which the body of a request must have come.
const BODY_MAX: Duration = Duration::from_mins(1);

/// The longest body of a request, in bytes.
const BODY_BYTES_MAX: usize = 8 << 20;

/// The time between two signs of life in a stream. Proxies and clients cut a stream that is silent for a minute.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// The longest `Idempotency-Key`, in bytes.
const KEY_BYTES_MAX: usize = 255;

/// The parts of the server that handlers reach.
#[derive(Clone, Debug)]
pub(super) struct Front {
    pub(super) service: Arc<Service>,
    pub(super) submissions: mpsc::Sender<Submission>,
}

impl FromRef<Front> for Arc<Service> {
    fn from_ref(front: &Front) -> Self {
        Self::clone(&front.service)
    }
}

impl FromRef<Front> for mpsc::Sender<Submission> {
    fn from_ref(front: &Front) -> Self {
        front.submissions.clone()
    }
}

/// Returns the router of a server.
pub(super) fn router(front: Front) -> Router {
    let open = Router::new().route("/health", get(health));
    let guarded = Router::new()
        .route("/v1/chat/completions", post(chat))
        .route("/v1/models", get(models))
        .route("/v1/models/{*name}", get(model))
        .route("/v1/runs/{run}", get(run).delete(cancel))
        .route_layer(middleware::from_fn_with_state(Arc::clone(&front.service), guarded));
    open.merge(guarded)
        .fallback(async || {
            ApiError::unknown("not_found", "there is no such path; /v1/chat/completions is one")
        })
        .method_not_allowed_fallback(async || ApiError::method())
        .layer(middleware::from_fn_with_state(Arc::clone(&front.service), called_by_its_name))
        .with_state(front)
}

async fn called_by_its_name(
    State(service): State<Arc<Service>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    service.rules.guard.require_host(request.headers())?;
    Ok(next.run(request).await)
}

async fn guarded(
    State(service): State<Arc<Service>>,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let caller = service.rules.guard.caller(request.headers())?;
    request.extensions_mut().insert(caller);
    Ok(next.run(request).await)
}

async fn health() -> Json<Value> {
    Json(json!({"status": "ok", "version": VERSION}))
}

async fn models(State(service): State<Arc<Service>>) -> Json<Value> {
    let models: Vec<Value> = service.rules.models.iter().map(|name| as_model(name)).collect();
    Json(json!({"object": "list", "data": models}))
}

async fn model(
    State(service): State<Arc<Service>>,
    Path(name): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let known = service.rules.models.iter().find(|known| **known == name);
    let known = known.ok_or_else(|| ApiError::unknown("model_not_found", "there is no such model"))?;
    Ok(Json(as_model(known)))
}

fn as_model(name: &str) -> Value {
    json!({"id": name, "object": "model", "created": 0, "owned_by": "consensus"})
}

async fn chat(
    State(service): State<Arc<Service>>,
    State(submissions): State<mpsc::Sender<Submission>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    if headers.contains_key(DEPTH_HEADER) {
        let why = "an agent of this program sent the request: a server cannot be the model of its own agents";
        return Err(ApiError::bad("recursion", why));
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
        return Err(ApiError::not_json());
    }
    let chat = ChatCompletionRequest::parse(&whole(body).await?)?;
    let key = task_of_key(caller, &headers)?.map(|task| (task, chat.digest()));
    let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (stream, include_usage, model) = (chat.stream, chat.include_usage, chat.model.clone());
    let (sender, taken) = oneshot::channel();
    let submission = Submission { chat, caller, key, created, taken: sender };
    submissions.try_send(submission).map_err(|why| match why {
        TrySendError::Full(_) => ApiError::full(),
        TrySendError::Closed(_) => ApiError::put_down(false),
    })?;
    let mut attached = match taken.await.map_err(|_| ApiError::put_down(false))?? {
        Taken::Live(attached) => attached,
        Taken::Ended(run) => {
            let row =
                service.ended().line_of(run).map_err(|why| ApiError::internal(&why))?.unwrap_or_default();
            let reply = ChatReply::new(&run.to_string(), &model, created, true, &row)?;
            return Ok(if stream {
                at_once(&reply, include_usage)
            } else {
                Json(reply.whole()).into_response()
            });
        }
    };
    if stream {
        return Ok(as_it_comes(attached, include_usage));
    }
    let end = attached.ended().await;
    Ok(Json(reply(&attached, end)?.whole()).into_response())
}

/// Reads a body to its end.
async fn whole(body: Body) -> Result<Bytes, ApiError> {
    let read = axum::body::to_bytes(body, BODY_BYTES_MAX);
    let read = tokio::time::timeout(BODY_MAX, read).await.map_err(|_| ApiError::slow_body())?;
    read.map_err(|why| match why.into_inner().downcast::<LengthLimitError>() {
        Ok(_) => ApiError::long_body(BODY_BYTES_MAX),
        Err(why) => ApiError::bad("broken_body", format!("the body broke off: {why}")),
    })
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
    Ok(Some(format!("key-{task}")))
}

/// Returns the answer of a run that has ended.
fn reply(attached: &Attached, end: RunEnd) -> Result<ChatReply, ApiError> {
    let RunOrigin { run, keyed, .. } = &attached.live.origin;
    let (model, created) = (&attached.model, attached.created);
    match end {
        RunEnd::WithResult(row) => ChatReply::new(&run.to_string(), model, created, keyed.is_some(), &row),
        RunEnd::WithoutResult(why) => Err(why),
    }
}

fn event(value: &Value) -> Event {
    Event::default().data(value.to_string())
}

/// Returns a stream of these events and the event that ends it.
fn sent(events: impl Stream<Item = Event> + Send + 'static) -> Response {
    let events = events.chain(stream::iter([Event::default().data("[DONE]")]));
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE).text("keep-alive");
    Sse::new(events.map(Ok::<Event, Infallible>)).keep_alive(keep_alive).into_response()
}

/// Returns the stream of an answer that is there.
fn at_once(reply: &ChatReply, include_usage: bool) -> Response {
    let chunks: Vec<Event> = reply.chunks(include_usage).iter().map(event).collect();
    sent(stream::iter(chunks))
}

/// Returns the stream of an answer that is to come: its beginning at once, the story of the run as reasoning, and the answer once it is
/// final.
fn as_it_comes(attached: Attached, include_usage: bool) -> Response {
    let id = completion_id(&attached.live.origin.run.to_string());
    let (model, created) = (attached.model.clone(), attached.created);
    let begin = event(&chunk(&id, &model, created, &json!({"role": "assistant", "content": ""})));
    let news = stream::unfold(Some(attached), move |attached| {
        let (id, model) = (id.clone(), model.clone());
        async move {
            let mut attached = attached?;
            let (lines, end) = attached.news().await;
            let thought = |line: &Arc<str>| {
                let text = format!("{line}\n");
                // Servers and clients do not agree on the name of this field.
                chunk(&id, &model, created, &json!({"reasoning": text, "reasoning_content": text}))
            };
            let mut chunks: Vec<Value> = lines.iter().map(thought).collect();
            let Some(end) = end else { return Some((chunks, Some(attached))) };
            match reply(&attached, end) {
                Ok(reply) => chunks.extend(reply.chunks(include_usage)),
                // The head of the answer is sent already.
                Err(why) => chunks.push(why.to_json()),
            }
            Some((chunks, None))
        }
    });
    let news = news.flat_map(|chunks| stream::iter(chunks.iter().map(event).collect::<Vec<_>>()));
    sent(stream::iter([begin]).chain(news))
}

async fn run(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    Path(run): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let id = run_id(&run)?;
    let live = service.live().get(&id).map(Arc::clone);
    if let Some(live) = live.filter(|live| live.origin.caller == caller) {
        let status = if live.is_stopping() { "stopping" } else { "running" };
        return Ok(Json(json!({"run": id, "status": status})));
    }
    let mut row = ended_row(&service, caller, id)?.ok_or_else(no_run)?;
    row["status"] = json!("ended");
    Ok(Json(row))
}

async fn cancel(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    Path(run): Path<String>,
) -> Result<Response, ApiError> {
    let id = run_id(&run)?;
    let live = service.live().get(&id).map(Arc::clone).filter(|live| live.origin.caller == caller);
    let Some(live) = live else {
        let has_ended = ended_row(&service, caller, id)?.is_some();
        return Err(if has_ended {
            ApiError::bad("run_ended", "the run has ended already")
        } else {
            no_run()
        });
    };
    service.cancel(&live).map_err(|why| ApiError::internal(&why))?;
    Ok((StatusCode::ACCEPTED, Json(json!({"run": id, "status": "stopping"}))).into_response())
}

/// Returns the line of results of a run of this caller, if there is one.
fn ended_row(service: &Service, caller: Caller, run: Uuid) -> Result<Option<Value>, ApiError> {
    let row = service.ended().line_of(run).map_err(|why| ApiError::internal(&why))?;
    let of = |row: &Value| row["meta"][CALLER_LABEL].as_str().map_or(Ok(Digest::ZERO), str::parse);
    Ok(row.filter(|row| of(row).is_ok_and(|of| of == caller.0)))
}

/// Returns the id of a run, with or without the beginning that it has as the id of a completion.
fn run_id(text: &str) -> Result<Uuid, ApiError> {
    text.strip_prefix("chatcmpl-").unwrap_or(text).parse().map_err(|_| no_run())
}

fn no_run() -> ApiError {
    ApiError::unknown("run_not_found", "there is no such run")
}
