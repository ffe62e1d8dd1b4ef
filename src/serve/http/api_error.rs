//! An error in the form of OpenAI's interface.

use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::{IntoResponses, ToSchema};

/// The seconds after which a client may ask again when there is no place or no memory.
const QUEUE_SECONDS: u64 = 5;

/// The body of a refusal.
#[derive(Serialize, ToSchema)]
pub(in crate::serve) struct ErrorBody {
    error: ErrorDetail,
}

/// The reason of a refusal.
#[derive(Serialize, ToSchema)]
struct ErrorDetail {
    /// The reason in words.
    message: String,
    /// The kind, as OpenAI's clients know it.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The field of the request that is to blame, if one is.
    param: Option<String>,
    /// A word by which a program tells the error from others.
    code: &'static str,
}

/// The refusals of the server, for its description.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "only the description is made of it")]
pub(in crate::serve) enum Refusals {
    /// The request makes no sense.
    #[response(status = 400)]
    Bad(ErrorBody),
    /// A token is wanted.
    #[response(status = 401)]
    Unauthorized(ErrorBody),
    /// The server is called by a strange name, or by a page of another site.
    #[response(status = 403)]
    Foreign(ErrorBody),
    /// There is no such model, run or path.
    #[response(status = 404)]
    Unknown(ErrorBody),
    /// The path does not know the method.
    #[response(status = 405)]
    Method(ErrorBody),
    /// The body took too long to come.
    #[response(status = 408)]
    SlowBody(ErrorBody),
    /// The run was cancelled.
    #[response(status = 410)]
    Cancelled(ErrorBody),
    /// The body is too long, or has too many values.
    #[response(status = 413)]
    LongBody(ErrorBody),
    /// The body does not say that it is JSON.
    #[response(status = 415)]
    NotJson(ErrorBody),
    /// The `Idempotency-Key` belongs to another request.
    #[response(status = 422)]
    OtherRequest(ErrorBody),
    /// The run could not go on.
    #[response(status = 424)]
    Broken(ErrorBody),
    /// Too many runs wait, their requests take all memory, or the day's allowance is used up.
    #[response(status = 429)]
    Full(ErrorBody),
    /// The server cannot read or write its own files.
    #[response(status = 500)]
    Internal(ErrorBody),
    /// The models could not be called at all.
    #[response(status = 502)]
    Provider(ErrorBody),
    /// The server stops.
    #[response(status = 503)]
    Stopped(ErrorBody),
}

/// A refusal of a request.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub(in crate::serve) struct ApiError {
    status: StatusCode,
    /// The kind, as OpenAI's clients know it.
    kind: &'static str,
    /// A word by which a program tells the error from others.
    code: &'static str,
    /// The field of the request that is to blame, if one is.
    param: Option<String>,
    message: String,
    /// The seconds after which the client may ask again, if it may.
    retry_seconds: Option<u64>,
}

impl ApiError {
    /// A request that makes no sense, because of this field.
    pub(in crate::serve) fn field(param: &str, message: impl Into<String>) -> Self {
        Self { param: Some(param.to_owned()), ..Self::bad("invalid_value", message) }
    }

    /// A request that makes no sense.
    pub(in crate::serve) fn bad(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", code, message)
    }

    /// A method that a path does not know.
    pub(in crate::serve) fn method() -> Self {
        let why = "the path does not know this method";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "invalid_request_error", "method_not_allowed", why)
    }

    /// A thing that is not there.
    pub(in crate::serve) fn unknown(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "invalid_request_error", code, message)
    }

    /// A caller without a valid token.
    pub(super) fn unauthorized() -> Self {
        let why = "this server wants a token: send it as `Authorization: Bearer TOKEN`";
        Self::new(StatusCode::UNAUTHORIZED, "authentication_error", "invalid_api_key", why)
    }

    /// A `Host` header that names another machine.
    pub(super) fn foreign_host() -> Self {
        let why = "the `Host` of the request is not this server's; start it with --allow-host NAME to serve that name";
        Self::new(StatusCode::FORBIDDEN, "invalid_request_error", "host_not_allowed", why)
    }

    /// A page of another site, in a browser.
    pub(super) fn foreign_page() -> Self {
        let why = "pages of other sites may not call this server";
        Self::new(StatusCode::FORBIDDEN, "invalid_request_error", "origin_not_allowed", why)
    }

    /// A body that does not say that it is JSON. A page of another site can send such a body without asking first.
    pub(in crate::serve) fn not_json() -> Self {
        let why = "send the body with the header `Content-Type: application/json`";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid_request_error", "not_json", why)
    }

    /// A key that has come before with another request.
    pub(in crate::serve) fn other_request() -> Self {
        let why = "this `Idempotency-Key` belongs to another request; send a new key";
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_request_error", "idempotency_key_reused", why)
    }

    /// A body that took too long to come. Clients repeat the status 408, and no run has begun.
    pub(super) fn slow_body() -> Self {
        let why = "the body took too long to come";
        Self::new(StatusCode::REQUEST_TIMEOUT, "invalid_request_error", "slow_body", why)
    }

    /// A body that is too long.
    pub(super) fn long_body(max: usize) -> Self {
        let why = format!("the body is longer than {} MiB", max >> 20);
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "invalid_request_error", "body_too_long", why)
    }

    /// A body with more lists, objects and values than the server has memory for.
    pub(super) fn dense_body() -> Self {
        let why = "the body has too many lists, objects and values to be read; send fewer in a request";
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "invalid_request_error", "body_too_long", why)
    }

    /// A request for which there is no memory, because other requests have it.
    pub(super) fn no_memory() -> Self {
        let why = "other requests take the memory that the server has for them; ask again later";
        let full = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", "no_memory", why);
        Self { retry_seconds: Some(QUEUE_SECONDS), ..full }
    }

    /// More requests than may wait.
    pub(in crate::serve) fn full() -> Self {
        let why = "too many requests wait already; ask again later";
        let full = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", "queue_full", why);
        Self { retry_seconds: Some(QUEUE_SECONDS), ..full }
    }

    /// A caller that has used up its allowance for the day, of which `seconds` are left.
    pub(in crate::serve) fn used_up(what: &str, seconds: u64) -> Self {
        let why = format!("the caller may use no more {what} today; the next day begins at midnight UTC");
        let used_up = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", "allowance_used_up", why);
        Self { retry_seconds: Some(seconds), ..used_up }
    }

    /// A run whose models could not be called. Clients repeat 408, 409, 429 and 5xx by themselves and would pay twice, so only a run that
    /// got no reply may be repeated.
    pub(in crate::serve) fn provider(reason: &str, is_repeatable: bool) -> Self {
        let status = if is_repeatable { StatusCode::BAD_GATEWAY } else { StatusCode::FAILED_DEPENDENCY };
        Self::new(status, "api_error", "provider_failed", reason)
    }

    /// A run that would only wait for a model server, which is tried again after this time.
    pub(in crate::serve) fn outage(wait: Duration) -> Self {
        let why = "no server of the models answers at present; ask again later";
        // A second that has begun counts as a whole one.
        Self { retry_seconds: Some(wait.as_secs() + 1), ..Self::provider(why, true) }
    }

    /// A request of an agent of such a server.
    pub(in crate::serve) fn recursion() -> Self {
        let why = "an agent of this program sent the request: a server cannot be the model of its own agents";
        Self::bad("recursion", why)
    }

    /// A run that was put down before its end, because the server stops.
    pub(in crate::serve) fn put_down(has_key: bool) -> Self {
        let why = if has_key {
            "the server stops; the same `Idempotency-Key` finds the run again once the server is back"
        } else {
            "the server stops, and has put the run down; send the request again once the server is back"
        };
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "api_error", "stopped", why)
    }

    /// A run that only the next server continues.
    pub(in crate::serve) fn left() -> Self {
        let why = "the run of this key was stopped, and goes on when the server is started again";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "api_error", "stopped", why)
    }

    /// A run that cannot go on after calls that may have been paid for.
    pub(in crate::serve) fn broken() -> Self {
        let why = "the run cannot go on, and the log of the server says why; a new `Idempotency-Key` begins another";
        Self::new(StatusCode::FAILED_DEPENDENCY, "api_error", "run_broken", why)
    }

    /// A run that a client has cancelled.
    pub(in crate::serve) fn cancelled() -> Self {
        let why =
            "the run was cancelled; send the request anew, with another `Idempotency-Key` or without one";
        Self::new(StatusCode::GONE, "invalid_request_error", "cancelled", why)
    }

    /// Returns whether it is about a run that a client has cancelled.
    pub(in crate::serve) fn is_cancelled(&self) -> bool {
        self.status == StatusCode::GONE
    }

    /// Returns whether it is about a run that goes on when the server is started again.
    pub(in crate::serve) fn is_put_down(&self) -> bool {
        self.status == StatusCode::SERVICE_UNAVAILABLE
    }

    /// A fault of this program or its disk. Files are of no concern to a caller, so the log alone names them.
    pub(in crate::serve) fn internal(cause: &dyn std::fmt::Display) -> Self {
        tracing::error!("{cause}");
        let why = "the server has met a fault of its own, and its log says which";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "api_error", "internal", why)
    }

    fn new(status: StatusCode, kind: &'static str, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, kind, code, param: None, message: message.into(), retry_seconds: None }
    }

    /// Returns the body of the answer.
    pub(in crate::serve) fn body(&self) -> ErrorBody {
        let Self { kind, code, param, message, .. } = self;
        ErrorBody { error: ErrorDetail { message: message.clone(), kind, param: param.clone(), code } }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        let headers = response.headers_mut();
        headers.extend(self.retry_seconds.map(|seconds| (header::RETRY_AFTER, seconds.into())));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
