//! The paths of the server, and what every request passes on its way to a handler.
//!
//! The input is HTTP requests. The output is answers, and the description of all paths, which is made of the handlers. Each request passes
//! the guard first. A handler waits for a run, or looks something up; the work on an answer is never done here.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{MatchedPath, Path, Request, State};
use axum::http::header;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use tokio::time::Instant;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::{OpenApi, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::dispatch::AppState;
use super::http::{ApiError, Caller, ErrorBody, Refusals, RequestBody};
use super::mcp::over_http;
use super::openai::answering;
use super::page;
use super::runs::{ServedRoleset, Service, handlers};
use crate::program::VERSION;

/// Returns the router of a server.
pub(super) fn router(app: AppState) -> Router {
    let (guarded, mut description) = describe_paths().split_for_parts();
    let (open, of_open) = OpenApiRouter::<AppState>::new().routes(routes!(health)).split_for_parts();
    description.merge(of_open);
    let paths = std::mem::take(&mut description.paths.paths);
    // OpenAPI does not know the router's form of a name with slashes.
    description.paths.paths = paths.into_iter().map(|(path, item)| (path.replace("{*", "{"), item)).collect();
    // It is the same for every request.
    let description = Bytes::from(serde_json::to_vec(&description).unwrap_or_default());
    let as_json = [(header::CONTENT_TYPE, "application/json")];
    let tools = Router::new().route_service("/mcp", over_http(app.clone()));
    let with_body = middleware::from_fn_with_state(Arc::clone(&app.service), read_whole_body);
    let tools = tools.layer(with_body);
    let with_guard = middleware::from_fn_with_state(Arc::clone(&app.service), require_token);
    let guarded = guarded
        .route("/openapi.json", get(async move || (as_json, description.clone())))
        .merge(tools)
        .route("/page/runs", get(page::list))
        .route("/page/runs/{run}", get(page::run))
        .route("/page/runs/{run}/news", get(page::news))
        .route_layer(with_guard);
    open.merge(guarded)
        .merge(page::shell())
        .fallback(async || {
            ApiError::unknown("not_found", "there is no such path; /openapi.json describes all")
        })
        .method_not_allowed_fallback(async || ApiError::method())
        .layer(middleware::from_fn_with_state(Arc::clone(&app.service), require_own_name))
        .layer(middleware::from_fn_with_state(Arc::clone(&app.service), count_request))
        .with_state(app)
}

/// Returns the paths that ask for a token, with their description.
fn describe_paths() -> OpenApiRouter<AppState> {
    let mut description = Description::openapi();
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    let components = description.components.get_or_insert_default();
    components.add_security_scheme("token", SecurityScheme::Http(bearer));
    // A server without tokens wants none.
    let by_token = SecurityRequirement::new::<_, [&str; 0], &str>("token", []);
    description.security = Some(vec![by_token, SecurityRequirement::default()]);
    OpenApiRouter::with_openapi(description)
        .routes(routes!(answering::chat))
        .routes(routes!(answering::responses))
        .routes(routes!(models))
        .routes(routes!(model))
        .routes(routes!(handlers::list))
        .routes(routes!(handlers::one, handlers::cancel))
        .routes(routes!(handlers::journal))
        .routes(routes!(handlers::events))
        .routes(routes!(metrics))
}

/// The description of the server, to which each handler adds its path.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "consensus",
        version = VERSION,
        description = "Agreement as a model: each request is a run of several agents, behind OpenAI's interface.",
    ),
    components(schemas(ErrorBody))
)]
struct Description;

async fn count_request(State(service): State<Arc<Service>>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    // A path that a stranger made up is no name of a figure.
    let path = request.extensions().get::<MatchedPath>().map_or("other", MatchedPath::as_str).to_owned();
    let method = request.method().clone();
    let response = next.run(request).await;
    let (status, took) = (response.status().as_u16(), began.elapsed());
    tracing::info!(%method, path, status, seconds = took.as_secs_f64(), "request");
    service.figures.count_request(&path, status, took);
    response
}

async fn require_own_name(
    State(service): State<Arc<Service>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    service.rules.guard.require_host(request.headers())?;
    Ok(next.run(request).await)
}

/// Reads the body of a request before the request goes on, within a time, a length, and the memory for requests. The memory of what is kept
/// of it goes with the request.
async fn read_whole_body(
    State(service): State<Arc<Service>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let (mut head, body) = request.into_parts();
    // The guard has put the caller there.
    let caller = head.extensions.get::<Caller>().copied().unwrap_or(Caller::ANYONE);
    let mut body = RequestBody::read(&service.memory, caller, body).await?;
    head.extensions.insert(body.keep());
    let text = std::mem::take(&mut body.bytes);
    let answer = next.run(Request::from_parts(head, text.into())).await;
    // It is parsed by now.
    drop(body);
    Ok(answer)
}

async fn require_token(
    State(service): State<Arc<Service>>,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let caller = service.rules.guard.caller(request.headers())?;
    request.extensions_mut().insert(caller);
    Ok(next.run(request).await)
}

/// The health of the server.
#[derive(Serialize, ToSchema)]
struct Health {
    status: &'static str,
    version: &'static str,
}

/// Says that the server is there. It needs no token.
#[utoipa::path(
    get,
    path = "/health",
    tag = "server",
    security(()),
    responses((status = 200, body = Health), (status = 403, body = ErrorBody))
)]
async fn health() -> Json<Health> {
    Json(Health { status: "ok", version: VERSION })
}

/// A model, which is a roleset.
#[derive(Serialize, ToSchema)]
#[schema(as = Model)]
struct ModelEntry {
    id: String,
    object: &'static str,
    created: u64,
    owned_by: &'static str,
    /// The description of the roleset, by its author.
    description: String,
}

impl ModelEntry {
    fn new(id: String, served: &ServedRoleset) -> Self {
        let description = served.description.clone();
        Self { id, object: "model", created: 0, owned_by: "consensus", description }
    }
}

/// A list of models.
#[derive(Serialize, ToSchema)]
struct ModelList {
    object: &'static str,
    data: Vec<ModelEntry>,
}

/// Lists the models.
#[utoipa::path(get, path = "/v1/models", tag = "models", responses((status = 200, body = ModelList), Refusals))]
async fn models(State(service): State<Arc<Service>>) -> Json<ModelList> {
    let data = service.rules.models().map(|(id, served)| ModelEntry::new(id, served)).collect();
    Json(ModelList { object: "list", data })
}

/// Describes a model. Its name may have a slash.
#[utoipa::path(
    get,
    path = "/v1/models/{*name}",
    tag = "models",
    params(("name" = String, Path, description = "The name of the model, such as `consensus/vote_number`")),
    responses((status = 200, body = ModelEntry), Refusals)
)]
async fn model(
    State(service): State<Arc<Service>>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<ModelEntry>, ApiError> {
    if let Ok(Path(name)) = name
        && let Some((id, served)) = service.rules.models().find(|(id, _)| *id == name)
    {
        return Ok(Json(ModelEntry::new(id, served)));
    }
    Err(ApiError::unknown("model_not_found", "there is no such model"))
}

/// Returns the figures of all runs and of the server, for Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "server",
    responses((status = 200, description = "The figures", content_type = "text/plain", body = String), Refusals)
)]
async fn metrics(State(service): State<Arc<Service>>) -> Result<Response, ApiError> {
    let text = service.figures_text().map_err(|why| ApiError::internal(&why))?;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}
