//! Who asks: made from a token, and from nothing else.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use tomo_protocol::{CampaignId, Role};

use crate::tokens::Grant;
use crate::{Collector, Denial};

/// Somebody who may do everything.
pub(crate) struct Administrator(());

/// An instance of this campaign.
pub(crate) struct Reporter {
    pub(crate) campaign: CampaignId,
}

/// Somebody who may read all campaigns (`None`), or one.
pub(crate) struct ReaderOf {
    only: Option<CampaignId>,
}

impl ReaderOf {
    /// The campaign that he may read, if it is only one.
    pub(crate) fn only(&self) -> Option<CampaignId> {
        self.only
    }

    /// Lets him read this campaign, or not. Of other campaigns he does not even learn that they exist.
    pub(crate) fn reads(&self, campaign: CampaignId) -> Result<CampaignId, Denial> {
        match self.only {
            Some(only) if only != campaign => Err(forbidden("this token is for another campaign")),
            _ => Ok(campaign),
        }
    }
}

fn unauthorized(error: &str) -> Denial {
    let advice = "send a valid token as `Authorization: Bearer …`; `tomo campaign token` makes one";
    Denial::new(StatusCode::UNAUTHORIZED, error, advice)
}

fn forbidden(error: &str) -> Denial {
    Denial::new(
        StatusCode::FORBIDDEN,
        error,
        "use a token that is meant for this",
    )
}

/// The token that a header shows; its scheme may be in small letters or large ones (RFC 9110, §11.1).
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    let is_bearer = scheme.eq_ignore_ascii_case("bearer");
    is_bearer.then(|| token.trim_start_matches(' '))
}

/// What the token of a request grants; counts against its rate.
fn grant(parts: &Parts, collector: &Collector) -> Result<Grant, Denial> {
    let value = parts.headers.get(header::AUTHORIZATION);
    let value = value.ok_or_else(|| unauthorized("there is no token"))?;
    let token = bearer(value.to_str().unwrap_or_default());
    let token = token.ok_or_else(|| unauthorized("the token is not sent as a bearer token"))?;
    let known = collector.shared.tokens.look_up(token);
    let (hash, grant) = known.ok_or_else(|| unauthorized("the token is not valid"))?;
    if collector.shared.buckets.take(&hash, Instant::now()) {
        return Ok(grant);
    }
    let status = StatusCode::TOO_MANY_REQUESTS;
    let error = "too many requests with this token";
    Err(Denial::new(status, error, "wait and try again").after(1))
}

impl FromRequestParts<Arc<Collector>> for Administrator {
    type Rejection = Denial;

    async fn from_request_parts(
        parts: &mut Parts,
        collector: &Arc<Collector>,
    ) -> Result<Self, Denial> {
        match grant(parts, collector)?.role {
            Role::Admin => Ok(Self(())),
            _ => Err(forbidden("only administrators may do this")),
        }
    }
}

impl FromRequestParts<Arc<Collector>> for Reporter {
    type Rejection = Denial;

    async fn from_request_parts(
        parts: &mut Parts,
        collector: &Arc<Collector>,
    ) -> Result<Self, Denial> {
        match grant(parts, collector)? {
            Grant {
                role: Role::Instance,
                campaign: Some(campaign),
                ..
            } => Ok(Self { campaign }),
            _ => Err(forbidden("only instances may do this")),
        }
    }
}

impl FromRequestParts<Arc<Collector>> for ReaderOf {
    type Rejection = Denial;

    async fn from_request_parts(
        parts: &mut Parts,
        collector: &Arc<Collector>,
    ) -> Result<Self, Denial> {
        match grant(parts, collector)? {
            Grant {
                role: Role::Admin, ..
            } => Ok(Self { only: None }),
            Grant {
                role: Role::Reader,
                campaign: Some(campaign),
                ..
            } => Ok(Self {
                only: Some(campaign),
            }),
            _ => Err(forbidden("only readers may do this")),
        }
    }
}

/// The only variable part of a path, as what it names. Comes after who asks, so that nobody without a
/// token learns what can be named.
pub(crate) struct Named<T>(pub(crate) T);

impl<T: std::str::FromStr<Err: std::fmt::Display>> FromRequestParts<Arc<Collector>> for Named<T> {
    type Rejection = Denial;

    async fn from_request_parts(
        parts: &mut Parts,
        collector: &Arc<Collector>,
    ) -> Result<Self, Denial> {
        let path = Path::<String>::from_request_parts(parts, collector).await;
        let Path(text) = path.map_err(|error| Denial::malformed(error.body_text()))?;
        let named = text.parse();
        named
            .map(Self)
            .map_err(|error: T::Err| Denial::malformed(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::bearer;

    #[test]
    fn the_scheme_is_in_any_letters() {
        for value in ["Bearer t", "bearer t", "BEARER  t"] {
            assert_eq!(bearer(value), Some("t"), "{value}");
        }
        for value in ["", "t", "Bearer", "Basic t", "Bearert"] {
            assert_eq!(bearer(value), None, "{value}");
        }
    }
}
