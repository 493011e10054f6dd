//! Collective disposal over hosts: when an instance tells what it has seen, and hears what others
//! have; and what that costs and saves, simulated.
//!
//! Source: DIS §4 (Algorithm 2; policies in §4.1; deployments in §4.2; figures of its study in §4.3 and
//! §4.4). A [`Policy`] says when to talk; [`simulate`] runs instances of a [`Technique`] in a
//! [`Scenario`] against one server. All times are whole numbers of one unit of the caller's choice, so
//! results are the same everywhere.

mod deployment;
mod policy;
mod simulation;
mod workload;

pub use deployment::{DeploymentError, Scenario};
pub use policy::{Policy, Trigger};
pub use simulation::{Costs, Outcome, RunOutcome, Technique, simulate};
pub use workload::{Hit, Mix, Workload};
