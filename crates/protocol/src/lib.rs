//! What instances, collector and command say to each other: the bodies of all requests and answers as
//! types, the paths, and a client.
//!
//! | file | what |
//! |---|---|
//! | `ids.rs` | campaigns, instances and plans by their names |
//! | `units.rs` | sets of units as ranges |
//! | `campaign.rs` | programs and campaigns: what is observed, by which strategy, in which variants |
//! | `instance.rs` | what an instance asks and hears: its assignment, answers to reports, news |
//! | `profile.rs` | what readers hear: the merged profile, instances, coverage over time |
//! | `calibration.rs` | what probes cost a program, as measured |
//! | `search.rs` | adaptive search: what is asked for, the program as it sees it, what came of it |
//! | `token.rs` | tokens and their roles |
//! | `paths.rs` | the paths of the API |
//! | `client.rs` | a blocking client |
//! | `schema.rs` | schemas of what is written by hand, for the document that describes the API |
//!
//! Reports themselves are binary: [`tomo_wire::report`]. Numbers of 64 bits that name something are
//! text in JSON, sixteen hexadecimal digits, since many readers of JSON round them. Times are
//! nanoseconds since 1970 by the collector's clock, lengths of time are nanoseconds unless the name
//! says otherwise.

#![forbid(unsafe_code)]

mod calibration;
mod campaign;
mod client;
mod ids;
mod instance;
pub mod paths;
mod profile;
#[cfg(feature = "schema")]
mod schema;
mod search;
mod token;
mod units;

pub use calibration::{Calibration, CalibrationError, Cost, SCHEMA as CALIBRATION_SCHEMA};
pub use campaign::{
    Bound, CHAINS, Campaign, ModuleOf, NewCampaign, NewModule, PATHS, Plan, Policy, Program,
    Strategy, Summary, Variant, is_counted, steers,
};
pub use client::{Client, ClientError, Settings, TokenError, read_token};
pub use ids::{CampaignId, IdError, InstanceId, Name};
pub use instance::{Answer, AssignedModule, Assignment, News, Since, Verdict, What};
pub use profile::{
    Chain, Curve, Growth, Instance, Numbers, Profile, Seen, Totals, Unseen, VariantChains,
    VariantTotals,
};
pub use search::{
    Cause, Choice, CrashFrame, Found, Group, Known, Routine, Search, SearchStep, Terrain, Towards,
};
pub use token::{KnownToken, NewToken, Role, Token};
pub use units::{Units, UnitsError};

use serde::{Deserialize, Serialize};

/// Why something was refused. Every answer that is not a success has this body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Problem {
    /// What happened.
    pub error: String,
    /// What to do about it.
    pub advice: String,
}

/// That the collector is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Health {
    /// The version of tomo that serves.
    pub version: String,
}
