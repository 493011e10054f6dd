//! The server of a fleet: it assigns variants to instances, takes their reports, tells each what the
//! others have seen, and keeps everything in files.
//!
//! | file | what |
//! |---|---|
//! | `state.rs` | what is known of a campaign: a join of all that was accepted |
//! | `answers.rs` | what people ask, derived from a state |
//! | `segment.rs` | the form of what is logged |
//! | `store.rs` | the objects of the store and their names |
//! | `commit.rs` | group commit: what arrives while a segment is written goes into the next |
//! | `observed.rs` | one campaign in memory: definition, state, news |
//! | `hunt.rs` | the search for what predicts failure, over all instances |
//! | `hunting.rs` | when it goes on |
//! | `variants.rs` | how a campaign's probes are shared out over variants |
//! | `tokens.rs` | who may do what |
//! | `limits.rs` | how much of it, and how often instances are to report |
//! | `collector.rs` | all of it together: start and end |
//! | `reports.rs` | what instances ask: reports and assignments |
//! | `campaigns.rs` | what administrators ask: builds, plans, campaigns, tokens |
//! | `denial.rs` | how a request is refused |
//! | `keep.rs` | refreshing, compaction, and what bounds the store |
//! | `api.rs` | the HTTP API, and the document that describes it |
//! | `server.rs` | sockets, TLS, time limits, the end |
//! | `metrics.rs` | numbers for Prometheus |
//!
//! What was acknowledged is on disk. The state in memory is a join of what is there and changes only
//! after a segment is durable; nothing else needs to survive.

#![forbid(unsafe_code)]

mod answers;
mod api;
mod campaigns;
mod collector;
mod commit;
mod denial;
mod hunt;
mod hunting;
mod keep;
mod limits;
mod metrics;
mod observed;
mod reports;
pub mod segment;
mod server;
pub mod state;
mod store;
mod tokens;
mod variants;

pub use api::{document, router};
pub use collector::{Clock, Collector, OpenError, Options};
pub use denial::Denial;
pub use keep::Retention;
pub use limits::Limits;
pub use server::{Identity, ServeError, Server, Shutdown, TlsError};
pub use store::{Store, StoreError};
pub use variants::{PlanningError, variants};
