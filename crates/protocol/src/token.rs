//! Tokens: who may do what.

use serde::{Deserialize, Serialize};

use crate::CampaignId;

/// What the bearer of a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Ask for an assignment and report, for one campaign.
    Instance,
    /// Read the profile of one campaign, and what belongs to it.
    Reader,
    /// Everything.
    Admin,
}

impl Role {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Instance => "instance",
            Self::Reader => "reader",
            Self::Admin => "admin",
        }
    }
}

/// A token that is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// What its bearer may do: `instance` or `reader`.
    pub role: Role,
    /// A note for people.
    #[serde(default)]
    pub note: String,
}

/// A token. The collector keeps only its hash, so this is the one time that it is seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Token {
    /// What to send as `Authorization: Bearer …`.
    pub token: String,
    /// Its hash, which names it where it is to be withdrawn.
    pub hash: String,
    /// What its bearer may do.
    pub role: Role,
    /// For which campaign; of an admin for all.
    pub campaign: Option<CampaignId>,
}

/// What the collector keeps of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct KnownToken {
    /// Its hash, which names it where it is to be withdrawn.
    pub hash: String,
    /// What its bearer may do.
    pub role: Role,
    /// A note for people.
    pub note: String,
    /// When it was made, in nanoseconds since 1970.
    pub created: i64,
}
