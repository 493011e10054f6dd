//! The paths of the API, as the router and the document state them, and as clients fill them in.

use crate::{CampaignId, InstanceId, Name, Since};

/// Whether the collector is there; the only path that needs no token.
pub const HEALTH: &str = "/v1/health";
/// What instances report.
pub const REPORTS: &str = "/v1/reports";
/// What an instance is to observe.
pub const ASSIGNMENT: &str = "/v1/assignment";
/// A build.
pub const PROGRAM: &str = "/v1/programs/{stem}";
/// The model of a build.
pub const MODEL: &str = "/v1/programs/{stem}/model";
/// The file of a build, for its debug data.
pub const FILE: &str = "/v1/programs/{stem}/file";
/// All builds.
pub const PROGRAMS: &str = "/v1/programs";
/// A master plan.
pub const PLAN: &str = "/v1/plans/{name}";
/// The program of a plan of predicates, as a search sees it.
pub const TERRAIN: &str = "/v1/plans/{name}/terrain";
/// All campaigns.
pub const CAMPAIGNS: &str = "/v1/campaigns";
/// A campaign.
pub const CAMPAIGN: &str = "/v1/campaigns/{id}";
/// How a campaign stands.
pub const STATUS: &str = "/v1/campaigns/{id}/status";
/// What all instances of a campaign saw together.
pub const PROFILE: &str = "/v1/campaigns/{id}/profile";
/// How a search stands.
pub const SEARCH: &str = "/v1/campaigns/{id}/search";
/// How coverage grew.
pub const GROWTH: &str = "/v1/campaigns/{id}/growth";
/// Tokens of a campaign.
pub const TOKENS: &str = "/v1/campaigns/{id}/tokens";
/// The end of a campaign.
pub const RETIRE: &str = "/v1/campaigns/{id}/retire";
/// A token, by its hash.
pub const TOKEN: &str = "/v1/tokens/{hash}";
/// Numbers for Prometheus.
pub const METRICS: &str = "/metrics";

/// The path of a build's part: one of [`PROGRAM`], [`MODEL`], [`FILE`].
#[must_use]
pub fn of_program(path: &str, stem: &str) -> String {
    path.replace("{stem}", stem)
}

/// The path of a plan.
#[must_use]
pub fn of_plan(name: Name) -> String {
    PLAN.replace("{name}", &name.to_string())
}

/// The path of a plan's terrain.
#[must_use]
pub fn of_terrain(name: Name) -> String {
    TERRAIN.replace("{name}", &name.to_string())
}

/// The path of a campaign's part: one of those with an `{id}`.
#[must_use]
pub fn of_campaign(path: &str, id: CampaignId) -> String {
    path.replace("{id}", &id.to_string())
}

/// The path of a token.
#[must_use]
pub fn of_token(hash: &str) -> String {
    TOKEN.replace("{hash}", hash)
}

/// The path of an instance's assignment, with the news since then.
#[must_use]
pub fn of_assignment(instance: InstanceId, since: Option<Since>) -> String {
    let since = since.map_or_else(String::new, |since| format!("&since={since}"));
    format!("{ASSIGNMENT}?instance={instance}{since}")
}

/// The path for reports, with the news since then.
#[must_use]
pub fn of_reports(since: Option<Since>) -> String {
    let since = since.map_or_else(String::new, |since| format!("?since={since}"));
    format!("{REPORTS}{since}")
}

/// Whether this can be the stem of a build's files: hexadecimal digits and dashes, so that it never
/// leads out of a folder.
#[must_use]
pub fn is_stem(stem: &str) -> bool {
    let fits = |letter: u8| matches!(letter, b'0'..=b'9' | b'a'..=b'f' | b'-');
    (1..=160).contains(&stem.len()) && stem.bytes().all(fits)
}
