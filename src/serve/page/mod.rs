//! The page for people: the runs as they go, each run as it is now, and a form that begins one.
//!
//! The input is requests of a browser. The output is a frame that is the same for all users, and parts that it fetches with the token of
//! its user: a list, the body of a run, and the agents at work. The frame follows the news of a run and fetches the body anew with each
//! record. All texts are put into the parts here, and none of them can run anything: the only script is that of this program.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderName, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use axum::{Extension, Router};
use minijinja::context;
use minijinja::value::Serde;

use self::listed_run::list_runs;
use super::dispatch::AppState;
use super::http::{ApiError, Caller};
use super::runs::{IdInPath, Service, all_lines, find, in_background, journal_of};
use crate::page::{LOOK_OF_PAGES, environment};
use crate::report::{PageForm, RUN_LOOK, run_page};

mod listed_run;
mod news;

pub(super) use self::news::news;

/// The rules of the frame for the browser: only the program's own script and style sheet count, and it asks this server alone.
const RULES: [(HeaderName, &str); 3] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'none'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
];

/// Returns the paths of the frame. They have no texts of runs, and need no token.
pub(super) fn shell() -> Router<AppState> {
    let style = format!("{LOOK_OF_PAGES}{RUN_LOOK}{}", include_str!("page.css"));
    Router::new()
        .route("/", get(async || (RULES, Html(include_str!("frame.html")))))
        .route("/page.js", serve_file("text/javascript; charset=utf-8", include_str!("page.js").to_owned()))
        .route("/page.css", serve_file("text/css; charset=utf-8", style))
}

fn serve_file(kind: &'static str, text: String) -> MethodRouter<AppState> {
    let about = [(header::CONTENT_TYPE, kind), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")];
    get(async move || (about, text))
}

/// Returns the runs of the caller, as a part of the page.
pub(super) async fn list(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, ApiError> {
    let runs = in_background(move || list_runs(&service, caller)).await?;
    let is_graded = runs.iter().any(|run| run.right.is_some());
    let values = context!(runs => Serde(runs), is_graded);
    let rendered = environment().render_named_str("list.html", include_str!("list.html"), values);
    Ok(page_part(rendered.expect("the template names only what it is given")))
}

/// Returns a run of the caller as it is now, as a part of the page.
pub(super) async fn run(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    IdInPath(run): IdInPath,
) -> Result<Response, ApiError> {
    let known = find(&service, caller, run).await;
    let lines = match &known {
        Err(why) if !why.is_cancelled() => Vec::new(),
        // A run that was stopped has no result, but its records can be read until the server ends.
        Ok(_) | Err(_) => all_lines(&service, run).await?,
    };
    if lines.is_empty() {
        known?;
        return Ok(page_part(include_str!("waiting.html").to_owned()));
    }
    let body = in_background(move || {
        let journal = journal_of(&lines)?;
        run_page(&journal.records, journal.head, PageForm::Body).map_err(|why| ApiError::internal(&why))
    });
    Ok(page_part(body.await?))
}

fn page_part(html: String) -> Response {
    ([(header::CACHE_CONTROL, "no-store"), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")], Html(html))
        .into_response()
}
