//! The HTTP API: who may ask what, how bodies are read, and the document that describes it all.
//!
//! A handler says by the types of its arguments who may call it: [`Administrator`], [`Reporter`] or
//! [`ReaderOf`]. Each of these is made only from a valid token, so a handler without one reaches
//! nothing; the one handler that needs none is that of health.

mod document;
mod handlers;
mod who;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{delete, get, post, put};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout_at};
use tomo_protocol::paths;

pub use document::document;
pub(crate) use who::{Administrator, ReaderOf, Reporter};

use crate::{Collector, Denial};

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

/// Bytes of a body that a second gives it more time: who sends fewer holds memory and a connection for nothing.
const LEAST_A_SECOND: u32 = 4 << 10;

/// A body of so many bytes at most, which may not stop coming.
pub(crate) async fn read(collector: &Collector, body: Body, most: usize) -> Result<Bytes, Denial> {
    gather(body, most, collector.shared.options.limits.patience).await
}

/// How much more than is taken is read and forgotten: who still sends when the connection ends does not hear why.
const HEARD_OUT: usize = 16;

/// All of a body. It may take as long as `patience` and what it has sent allow, however it is cut into frames.
async fn gather(mut body: Body, most: usize, patience: Duration) -> Result<Bytes, Denial> {
    let begun = Instant::now();
    let mut bytes = BytesMut::new();
    let mut read = 0usize;
    while read / HEARD_OUT <= most {
        let sent = Duration::from_secs(read as u64) / LEAST_A_SECOND;
        let until = (begun + patience + sent).min(Instant::now() + patience);
        let frame = timeout_at(until, body.frame()).await;
        let frame = frame.map_err(|_| {
            let status = StatusCode::REQUEST_TIMEOUT;
            Denial::new(status, "the body stopped coming", "send it without a pause")
        })?;
        let Some(frame) = frame else {
            break;
        };
        let frame = frame.map_err(|_| Denial::malformed("the body could not be read"))?;
        let data = frame.into_data().unwrap_or_default();
        read = read.saturating_add(data.len());
        match read > most {
            // Copied: a frame may be a single byte, and what holds it is larger.
            false => bytes.extend_from_slice(&data),
            true => bytes = BytesMut::new(),
        }
    }
    if read > most {
        let status = StatusCode::PAYLOAD_TOO_LARGE;
        let error = format!("the body has more than {most} bytes");
        return Err(Denial::new(status, error, "send less at once"));
    }
    Ok(bytes.freeze())
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::body::Body;
    use bytes::Bytes;
    use futures::stream;

    use super::gather;

    const PATIENCE: Duration = Duration::from_secs(30);

    /// So many frames of this size, the next one whenever so much time has passed.
    fn body(frames: usize, size: usize, pause: Duration) -> Body {
        let each = stream::unfold(0, move |sent| async move {
            tokio::time::timeout(pause, std::future::pending::<()>())
                .await
                .err()?;
            let frame = Bytes::from(vec![sent as u8; size]);
            (sent < frames).then_some((Ok::<_, std::io::Error>(frame), sent + 1))
        });
        Body::from_stream(each)
    }

    /// The clock stands still but where all wait for it.
    #[tokio::test(start_paused = true)]
    async fn a_body_may_not_trickle() {
        let short = Duration::from_secs(20);
        let trickling = gather(body(100, 1, short), 1 << 20, PATIENCE).await;
        assert!(trickling.is_err());
        let slow = gather(body(100, 1 << 19, short), 1 << 30, PATIENCE).await;
        assert_eq!(slow.expect("all of it").len(), 100 << 19);
        let stopping = gather(body(3, 1 << 20, PATIENCE * 2), 1 << 30, PATIENCE).await;
        assert!(stopping.is_err());
    }

    #[tokio::test]
    async fn frames_are_put_together_and_counted() {
        let cut = || body(300, 1, Duration::ZERO);
        let whole = gather(cut(), 300, PATIENCE).await.expect("all of it");
        assert!(whole.iter().copied().eq((0..300).map(|at| at as u8)));
        assert!(gather(cut(), 299, PATIENCE).await.is_err());
    }
}
