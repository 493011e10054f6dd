//! One function for each path and method.

use axum::Json;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use tomo_protocol::{
    Answer, Assignment, Campaign, CampaignId, Found, Growth, Health, InstanceId, KnownToken, Name,
    NewCampaign, NewToken, Numbers, Plan, Problem, Profile, Program, Summary, Token,
};

use super::who::Named;
use super::{Administrator, ReaderOf, Reporter, Shared, bytes, read, read_json, read_reports};
use crate::campaigns::Part;
use crate::observed::Observed;
use crate::state;
use crate::{Collector, Denial, answers, hunting};

type Answered<T> = Result<Json<T>, Denial>;

/// Something that was done and needs no other answer.
#[derive(serde::Serialize, utoipa::ToSchema)]
pub(super) struct Done {
    /// Always true.
    done: bool,
}

const DONE: Json<Done> = Json(Done { done: true });

/// Whether the collector is there.
#[utoipa::path(get, path = "/v1/health", responses((status = 200, body = Health)), security(()))]
pub(super) async fn health() -> Json<Health> {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    Json(Health { version })
}

/// The parameters of what instances ask.
#[derive(Deserialize)]
pub(super) struct Asked {
    instance: Option<String>,
    since: Option<String>,
}

/// Parameters of which some may be missing; what cannot be read is refused.
fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(
    text: Option<&String>,
) -> Result<Option<T>, Denial> {
    let parsed = text.map(|text| text.parse()).transpose();
    parsed.map_err(|error: T::Err| Denial::malformed(error.to_string()))
}

type Parameters = Result<Query<Asked>, axum::extract::rejection::QueryRejection>;

fn parameters(query: Parameters) -> Result<Asked, Denial> {
    let query = query.map_err(|error| Denial::malformed(error.body_text()))?;
    Ok(query.0)
}

/// Takes reports, one behind the other, and answers when they are durable.
#[utoipa::path(
    post, path = "/v1/reports",
    params(("since" = Option<String>, Query, description = "EPOCH:N, up to where the news are known")),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, body = Answer), (status = "default", body = Problem)),
    security(("instance" = []))
)]
pub(super) async fn reports(
    who: Reporter,
    State(collector): Shared,
    query: Parameters,
    body: Body,
) -> Answered<Answer> {
    let asked = parameters(query)?;
    let since = parsed(asked.since.as_ref())?;
    let body = read_reports(&collector, body).await?;
    let answer = collector.take_reports(who.campaign, &body, since).await?;
    Ok(Json(answer))
}

/// What an instance is to observe. Asking again gives the same.
#[utoipa::path(
    get, path = "/v1/assignment",
    params(
        ("instance" = InstanceId, Query, description = "Who asks"),
        ("since" = Option<String>, Query, description = "EPOCH:N, up to where the news are known"),
    ),
    responses((status = 200, body = Assignment), (status = "default", body = Problem)),
    security(("instance" = []))
)]
pub(super) async fn assignment(
    who: Reporter,
    State(collector): Shared,
    query: Parameters,
) -> Answered<Assignment> {
    let asked = parameters(query)?;
    let instance: Option<InstanceId> = parsed(asked.instance.as_ref())?;
    let instance =
        instance.ok_or_else(|| Denial::malformed("the parameter `instance` is missing"))?;
    let since = parsed(asked.since.as_ref())?;
    let assignment = collector.assign(who.campaign, instance, since).await?;
    Ok(Json(assignment))
}

/// All builds.
#[utoipa::path(
    get, path = "/v1/programs",
    responses((status = 200, body = Vec<Program>), (status = "default", body = Problem)),
    security(("admin" = []))
)]
pub(super) async fn programs(_: Administrator, State(collector): Shared) -> Json<Vec<Program>> {
    Json(collector.programs())
}

/// Registers a build.
#[utoipa::path(
    put, path = "/v1/programs/{stem}", params(("stem" = String, Path)), request_body = Program,
    responses((status = 200, body = Program), (status = "default", body = Problem)),
    security(("admin" = []))
)]
pub(super) async fn put_program(
    _: Administrator,
    State(collector): Shared,
    Named(stem): Named<String>,
    body: Body,
) -> Answered<Program> {
    let program: Program = read_json(&collector, body).await?;
    if program.stem != stem {
        return Err(Denial::malformed(
            "the body names another build than the path",
        ));
    }
    Ok(Json(collector.put_program(program).await?))
}

/// A build.
#[utoipa::path(
    get, path = "/v1/programs/{stem}", params(("stem" = String, Path)),
    responses((status = 200, body = Program), (status = "default", body = Problem)),
    security(("admin" = []), ("reader" = []))
)]
pub(super) async fn program(
    who: ReaderOf,
    State(collector): Shared,
    Named(stem): Named<String>,
) -> Answered<Program> {
    reads_module(&who, &collector, |module| module.stem == stem)?;
    Ok(Json(collector.program(&stem)?))
}

/// Lets readers of one campaign see what belongs to its modules.
fn reads_module(
    who: &ReaderOf,
    collector: &Collector,
    is_it: impl Fn(&tomo_protocol::ModuleOf) -> bool,
) -> Result<(), Denial> {
    let Some(only) = who.only() else {
        return Ok(());
    };
    let observed = collector.observed(only)?;
    match observed.campaign.modules.iter().any(is_it) {
        true => Ok(()),
        false => Err(Denial::new(
            axum::http::StatusCode::FORBIDDEN,
            "this token's campaign does not observe that",
            "use a token that is meant for this",
        )),
    }
}

async fn put_part(collector: &Collector, stem: &str, part: Part, body: Body) -> Answered<Done> {
    let most = collector.shared.options.limits.upload;
    let bytes = read(collector, body, most).await?;
    collector.put_part(stem, part, bytes).await?;
    Ok(DONE)
}

/// Stores a build's model.
#[utoipa::path(
    put, path = "/v1/programs/{stem}/model", params(("stem" = String, Path)),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, body = Done), (status = "default", body = Problem)),
    security(("admin" = []))
)]
pub(super) async fn put_model(
    _: Administrator,
    State(collector): Shared,
    Named(stem): Named<String>,
    body: Body,
) -> Answered<Done> {
    put_part(&collector, &stem, Part::Model, body).await
}

/// Stores a build's file.
#[utoipa::path(
    put, path = "/v1/programs/{stem}/file", params(("stem" = String, Path)),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, body = Done), (status = "default", body = Problem)),
    security(("admin" = []))
)]
pub(super) async fn put_file(
    _: Administrator,
    State(collector): Shared,
    Named(stem): Named<String>,
    body: Body,
) -> Answered<Done> {
    put_part(&collector, &stem, Part::File, body).await
}

/// A build's model, as it was put.
#[utoipa::path(
    get, path = "/v1/programs/{stem}/model", params(("stem" = String, Path)),
    responses(
        (status = 200, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = "default", body = Problem)
    ),
    security(("admin" = []), ("reader" = []))
)]
pub(super) async fn model(
    who: ReaderOf,
    State(collector): Shared,
    Named(stem): Named<String>,
) -> Result<Response, Denial> {
    reads_module(&who, &collector, |module| module.stem == stem)?;
    Ok(bytes(collector.part(&stem, Part::Model).await?))
}

/// A build's file, as it was put.
#[utoipa::path(
    get, path = "/v1/programs/{stem}/file", params(("stem" = String, Path)),
    responses(
        (status = 200, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = "default", body = Problem)
    ),
    security(("admin" = []), ("reader" = []))
)]
pub(super) async fn file(
    who: ReaderOf,
    State(collector): Shared,
    Named(stem): Named<String>,
) -> Result<Response, Denial> {
    reads_module(&who, &collector, |module| module.stem == stem)?;
    Ok(bytes(collector.part(&stem, Part::File).await?))
}

/// Stores a master plan under its name.
#[utoipa::path(
    put, path = "/v1/plans/{name}", params(("name" = Name, Path)),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, body = Plan), (status = "default", body = Problem)),
    security(("admin" = []))
)]
pub(super) async fn put_plan(
    _: Administrator,
    State(collector): Shared,
    Named(name): Named<Name>,
    body: Body,
) -> Answered<Plan> {
    let most = collector.shared.options.limits.upload;
    let bytes = read(&collector, body, most).await?;
    Ok(Json(collector.put_plan(name, bytes).await?))
}

/// A master plan.
#[utoipa::path(
    get, path = "/v1/plans/{name}", params(("name" = Name, Path)),
    responses(
        (status = 200, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = "default", body = Problem)
    ),
    security(("admin" = []), ("reader" = []))
)]
pub(super) async fn plan(
    who: ReaderOf,
    State(collector): Shared,
    Named(name): Named<Name>,
) -> Result<Response, Denial> {
    reads_module(&who, &collector, |module| module.plan == name)?;
    Ok(bytes(collector.plan(name).await?))
}

/// Stores the program of a plan of predicates, as a search sees it.
#[utoipa::path(
    put, path = "/v1/plans/{name}/terrain", params(("name" = Name, Path)),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, body = Done), (status = "default", body = Problem)),
    security(("admin" = []))
)]
pub(super) async fn put_terrain(
    _: Administrator,
    State(collector): Shared,
    Named(name): Named<Name>,
    body: Body,
) -> Answered<Done> {
    let most = collector.shared.options.limits.upload;
    let bytes = read(&collector, body, most).await?;
    collector.put_terrain(name, bytes).await?;
    Ok(DONE)
}

/// Plans a campaign.
#[utoipa::path(
    post, path = "/v1/campaigns", request_body = NewCampaign,
    responses((status = 200, body = Campaign), (status = "default", body = Problem)),
    security(("admin" = []))
)]
pub(super) async fn new_campaign(
    _: Administrator,
    State(collector): Shared,
    body: Body,
) -> Answered<Campaign> {
    let new = read_json(&collector, body).await?;
    Ok(Json(collector.new_campaign(new).await?))
}

/// All campaigns that the token may read.
#[utoipa::path(
    get, path = "/v1/campaigns",
    responses((status = 200, body = Vec<Summary>), (status = "default", body = Problem)),
    security(("admin" = []), ("reader" = []))
)]
pub(super) async fn campaigns(who: ReaderOf, State(collector): Shared) -> Json<Vec<Summary>> {
    Json(collector.summaries(who.only()))
}

/// A campaign with its variants.
#[utoipa::path(
    get, path = "/v1/campaigns/{id}", params(("id" = CampaignId, Path)),
    responses((status = 200, body = Campaign), (status = "default", body = Problem)),
    security(("admin" = []), ("reader" = []))
)]
pub(super) async fn campaign(
    who: ReaderOf,
    State(collector): Shared,
    Named(id): Named<CampaignId>,
) -> Answered<Campaign> {
    let observed = collector.observed(who.reads(id)?)?;
    Ok(Json(observed.campaign.clone()))
}

/// Something that is derived from a copy of a campaign's state.
async fn derived<T: Send + 'static>(
    collector: &Collector,
    id: CampaignId,
    derive: impl FnOnce(&Campaign, &state::State, bool) -> T + Send + 'static,
) -> Answered<T> {
    let observed = collector.observed(id)?;
    let work = |observed: &Observed, state: &_, retired| derive(&observed.campaign, state, retired);
    let derived = collector.shared.on_a_copy(&observed, work).await;
    derived.map(Json).ok_or_else(Denial::busy)
}

/// How a campaign stands, and each of its instances.
#[utoipa::path(
    get, path = "/v1/campaigns/{id}/status", params(("id" = CampaignId, Path)),
    responses((status = 200, body = Numbers), (status = "default", body = Problem)),
    security(("admin" = []), ("reader" = []))
)]
pub(super) async fn status(
    who: ReaderOf,
    State(collector): Shared,
    Named(id): Named<CampaignId>,
) -> Answered<Numbers> {
    let id = who.reads(id)?;
    let Json(mut numbers) = derived(&collector, id, answers::numbers).await?;
    // Of a search variants come and go.
    if let Some(hunt) = collector.observed(id)?.hunt() {
        numbers.carried = hunt.carried();
    }
    Ok(Json(numbers))
}

/// What all instances of a campaign saw together.
#[utoipa::path(
    get, path = "/v1/campaigns/{id}/profile", params(("id" = CampaignId, Path)),
    responses((status = 200, body = Profile), (status = "default", body = Problem)),
    security(("admin" = []), ("reader" = []))
)]
pub(super) async fn profile(
    who: ReaderOf,
    State(collector): Shared,
    Named(id): Named<CampaignId>,
) -> Answered<Profile> {
    let id = who.reads(id)?;
    let searched = collector.observed(id)?.hunt().map(|hunt| hunt.variants());
    derived(&collector, id, move |campaign, state, _| {
        answers::profile(campaign, state, searched.as_ref())
    })
    .await
}

/// How a search stands: what predicts which failures. It goes on first, as far as what is known leads it.
#[utoipa::path(
    get, path = "/v1/campaigns/{id}/search", params(("id" = CampaignId, Path)),
    responses((status = 200, body = Found), (status = "default", body = Problem)),
    security(("admin" = []), ("reader" = []))
)]
pub(super) async fn search(
    who: ReaderOf,
    State(collector): Shared,
    Named(id): Named<CampaignId>,
) -> Answered<Found> {
    let id = who.reads(id)?;
    let observed = collector.observed(id)?;
    hunting::go_on(&collector.shared, &collector.queue, &observed).await;
    let work = move |observed: &Observed, state: &_, _| Some(observed.hunt()?.found(id, state));
    let found = collector.shared.on_a_copy(&observed, work).await;
    let found = found.ok_or_else(Denial::busy)?;
    let advice = "`tomo fleet report` shows what it has seen";
    let found = found.ok_or_else(|| Denial::unknown("search in this campaign", advice))?;
    Ok(Json(found))
}

/// How coverage grew, of all instances and of each.
#[utoipa::path(
    get, path = "/v1/campaigns/{id}/growth", params(("id" = CampaignId, Path)),
    responses((status = 200, body = Growth), (status = "default", body = Problem)),
    security(("admin" = []), ("reader" = []))
)]
pub(super) async fn growth(
    who: ReaderOf,
    State(collector): Shared,
    Named(id): Named<CampaignId>,
) -> Answered<Growth> {
    let id = who.reads(id)?;
    derived(&collector, id, |campaign, state, _| {
        answers::growth(campaign, state)
    })
    .await
}

/// Draws a token for a campaign. It is shown this once.
#[utoipa::path(
    post, path = "/v1/campaigns/{id}/tokens", params(("id" = CampaignId, Path)),
    request_body = NewToken,
    responses((status = 200, body = Token), (status = "default", body = Problem)),
    security(("admin" = []))
)]
pub(super) async fn new_token(
    _: Administrator,
    State(collector): Shared,
    Named(id): Named<CampaignId>,
    body: Body,
) -> Answered<Token> {
    let new = read_json(&collector, body).await?;
    Ok(Json(collector.new_token(id, new).await?))
}

/// What is kept of a campaign's tokens.
#[utoipa::path(
    get, path = "/v1/campaigns/{id}/tokens", params(("id" = CampaignId, Path)),
    responses((status = 200, body = Vec<KnownToken>), (status = "default", body = Problem)),
    security(("admin" = []))
)]
pub(super) async fn tokens(
    _: Administrator,
    State(collector): Shared,
    Named(id): Named<CampaignId>,
) -> Answered<Vec<KnownToken>> {
    Ok(Json(collector.tokens_of(id)?))
}

/// Ends a campaign.
#[utoipa::path(
    post, path = "/v1/campaigns/{id}/retire", params(("id" = CampaignId, Path)),
    responses((status = 200, body = Summary), (status = "default", body = Problem)),
    security(("admin" = []))
)]
pub(super) async fn retire(
    _: Administrator,
    State(collector): Shared,
    Named(id): Named<CampaignId>,
) -> Answered<Summary> {
    Ok(Json(collector.retire(id).await?))
}

/// Withdraws a token, by its hash.
#[utoipa::path(
    delete, path = "/v1/tokens/{hash}", params(("hash" = String, Path)),
    responses((status = 200, body = Done), (status = "default", body = Problem)),
    security(("admin" = []))
)]
pub(super) async fn withdraw(
    _: Administrator,
    State(collector): Shared,
    Named(hash): Named<String>,
) -> Answered<Done> {
    collector.withdraw(&hash).await?;
    Ok(DONE)
}

/// Numbers for Prometheus.
#[utoipa::path(
    get, path = "/metrics",
    responses((status = 200, body = String, content_type = "text/plain"), (status = "default", body = Problem)),
    security(("admin" = []))
)]
pub(super) async fn metrics(
    _: Administrator,
    State(collector): Shared,
) -> Result<Response, Denial> {
    let stored = collector.shared.stored();
    let text = collector.shared.metrics.text(stored);
    let text = text.map_err(|_| Denial::busy())?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([("content-type", kind)], text).into_response())
}
