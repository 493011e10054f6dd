//! The document that describes the API, made from the handlers. It is kept as `docs/openapi.json`; a
//! test holds the two together.

use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

use super::handlers;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Tomograph's collector",
        description = "Instances report, readers read, administrators plan. Every path but that of \
            health needs a bearer token; every refusal has a body that says what happened and what \
            to do.",
    ),
    paths(
        handlers::health,
        handlers::reports,
        handlers::assignment,
        handlers::programs,
        handlers::put_program,
        handlers::program,
        handlers::put_model,
        handlers::model,
        handlers::put_file,
        handlers::file,
        handlers::put_plan,
        handlers::plan,
        handlers::put_terrain,
        handlers::new_campaign,
        handlers::campaigns,
        handlers::campaign,
        handlers::status,
        handlers::profile,
        handlers::growth,
        handlers::search,
        handlers::new_token,
        handlers::tokens,
        handlers::retire,
        handlers::withdraw,
        handlers::metrics,
    ),
    modifiers(&Roles)
)]
struct Document;

/// The three roles of tokens.
struct Roles;

impl Modify for Roles {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        let roles = [
            ("instance", "Reports for one campaign."),
            ("reader", "Reads one campaign."),
            ("admin", "Does everything but report."),
        ];
        for (role, words) in roles {
            let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer);
            let scheme = scheme.description(Some(words)).build();
            components.add_security_scheme(role, SecurityScheme::Http(scheme));
        }
    }
}

/// The document, as it is kept.
///
/// # Errors
/// Where it cannot be written as JSON, which does not happen.
pub fn document() -> Result<String, serde_json::Error> {
    Ok(Document::openapi().to_pretty_json()? + "\n")
}
