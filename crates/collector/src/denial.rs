//! Why a request was not granted: a status, what happened, and what to do.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tomo_protocol::Problem;

use crate::StoreError;

/// Why a request was not granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The HTTP status.
    pub status: StatusCode,
    /// What the answer says.
    pub problem: Problem,
    /// After how many seconds to try again.
    pub retry_after: Option<u32>,
}

impl Denial {
    /// A denial with these words.
    pub(crate) fn new(
        status: StatusCode,
        error: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            status,
            problem: Problem {
                error: error.into(),
                advice: advice.into(),
            },
            retry_after: None,
        }
    }

    pub(crate) fn after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    pub(crate) fn malformed(error: impl Into<String>) -> Self {
        let advice = "see docs/openapi.json for what is expected";
        Self::new(StatusCode::BAD_REQUEST, error, advice)
    }

    pub(crate) fn unknown(what: &str, advice: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("there is no {what}"), advice)
    }

    pub(crate) fn busy() -> Self {
        let advice = "wait and try again; nothing of it was stored";
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the collector is busy",
            advice,
        )
        .after(5)
    }

    pub(crate) fn full() -> Self {
        Self::new(
            StatusCode::INSUFFICIENT_STORAGE,
            "the collector has no room to store it",
            "make room on its disk, raise --max-store-mb, or retire campaigns; \
             what was acknowledged is not lost",
        )
        .after(60)
    }
}

impl From<&StoreError> for Denial {
    /// The cause is for the log; who asks hears only that it is not his fault.
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::Full(_) => Self::full(),
            StoreError::Failed(..) => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "the collector could not store or read it",
                "try again; the collector's log says what is wrong with its store",
            )
            .after(30),
        }
    }
}

impl IntoResponse for Denial {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.problem)).into_response();
        if let Some(seconds) = self.retry_after {
            let value = HeaderValue::from(seconds);
            response.headers_mut().insert(header::RETRY_AFTER, value);
        }
        if self.status == StatusCode::UNAUTHORIZED {
            let value = HeaderValue::from_static("Bearer");
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, value);
        }
        response
    }
}
