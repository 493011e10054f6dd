//! The HTTP API: who may ask what, how bodies are read, and the document that describes it all.
//!
//! A handler says by the types of its arguments who may call it: [`Administrator`], [`Reporter`] or
//! [`ReaderOf`]. Each of these is made only from a valid token, so a handler without one reaches
//! nothing; the one handler that needs none is that of health.

mod body;
mod document;
mod handlers;
mod who;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{delete, get, post, put};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use tomo_protocol::paths;

pub use document::document;
pub(crate) use who::{Administrator, ReaderOf, Reporter};

use crate::{Collector, Denial};
use body::gather;

/// What handlers work on.
pub(crate) type Shared = State<Arc<Collector>>;

/// All paths, for a [`Server`](crate::Server), or for anything else that serves axum's routers.
pub fn router(collector: &Arc<Collector>) -> Router {
    Router::new()
        .route(paths::HEALTH, get(handlers::health))
        .route(paths::REPORTS, post(handlers::reports))
        .route(paths::ASSIGNMENT, get(handlers::assignment))
        .route(paths::PROGRAMS, get(handlers::programs))
        .route(
            paths::PROGRAM,
            put(handlers::put_program).get(handlers::program),
        )
        .route(paths::MODEL, put(handlers::put_model).get(handlers::model))
        .route(paths::FILE, put(handlers::put_file).get(handlers::file))
        .route(paths::PLAN, put(handlers::put_plan).get(handlers::plan))
        .route(paths::TERRAIN, put(handlers::put_terrain))
        .route(
            paths::CAMPAIGNS,
            post(handlers::new_campaign).get(handlers::campaigns),
        )
        .route(paths::CAMPAIGN, get(handlers::campaign))
        .route(paths::STATUS, get(handlers::status))
        .route(paths::PROFILE, get(handlers::profile))
        .route(paths::GROWTH, get(handlers::growth))
        .route(paths::SEARCH, get(handlers::search))
        .route(
            paths::TOKENS,
            post(handlers::new_token).get(handlers::tokens),
        )
        .route(paths::RETIRE, post(handlers::retire))
        .route(paths::TOKEN, delete(handlers::withdraw))
        .route(paths::METRICS, get(handlers::metrics))
        .fallback(|| async {
            Denial::unknown("such path", "see docs/openapi.json for those there are")
        })
        .method_not_allowed_fallback(|| async {
            let status = StatusCode::METHOD_NOT_ALLOWED;
            Denial::new(
                status,
                "this path has no such method",
                "see docs/openapi.json",
            )
        })
        .layer(from_fn_with_state(Arc::clone(collector), observe))
        .with_state(Arc::clone(collector))
}

/// Counts and logs each answer.
async fn observe(State(collector): Shared, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let method = request.method().clone();
    let path = request.extensions().get::<MatchedPath>();
    // Paths that do not exist are one, so that nobody can make up names of metrics.
    let path = path.map_or("none", MatchedPath::as_str).to_owned();
    let response = next.run(request).await;
    let (status, took) = (response.status(), begun.elapsed());
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    match status.is_server_error() {
        true => tracing::warn!(%method, path, status = status.as_u16(), micros, "answered"),
        false => tracing::debug!(%method, path, status = status.as_u16(), micros, "answered"),
    }
    collector
        .shared
        .metrics
        .answered(path, status.as_u16(), took);
    response
}

/// A body of so many bytes at most, which may not stop coming.
pub(crate) async fn read(collector: &Collector, body: Body, most: usize) -> Result<Bytes, Denial> {
    gather(body, most, collector.shared.options.limits.patience, None).await
}

/// A body of reports: anybody's, so that all of them together may hold so much memory and no more.
pub(crate) async fn read_reports(collector: &Collector, body: Body) -> Result<Bytes, Denial> {
    let limits = &collector.shared.options.limits;
    let room = Some(&collector.shared.bodies);
    gather(body, limits.report_body, limits.patience, room).await
}

/// A body in JSON.
pub(crate) async fn read_json<T: DeserializeOwned>(
    collector: &Collector,
    body: Body,
) -> Result<T, Denial> {
    let bytes = read(collector, body, collector.shared.options.limits.upload).await?;
    parse(&bytes)
}

/// What a body in JSON says.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Denial> {
    let parsed = serde_json::from_slice(bytes);
    parsed.map_err(|error| Denial::malformed(format!("the body is not as expected: {error}")))
}

/// Bytes as an answer.
pub(crate) fn bytes(bytes: Bytes) -> Response {
    let kind = [("content-type", "application/octet-stream")];
    (kind, bytes).into_response()
}
