//! What an installation of a program keeps, observes and reports: the part of the fleet that runs where the
//! program's user is.
//!
//! **The user feels nothing.** The program is started at once, with what was prepared earlier; everything
//! that takes time (the network, the analysis of a program, weaving) happens beside it at the lowest
//! priority, and nothing that goes wrong with it stops or slows the program.
//!
//! **The collector is not trusted with code.** What it says is a choice among units that were proven safe
//! here, of plans that were made here; anything else is refused as a whole (`assigned.rs`).
//!
//! **Nothing is counted twice, and what is lost is counted.** A run has a number that is never given again, its
//! reports are cumulative, and a report stays in the spool until the collector has settled it (DIS §4: what
//! instances disseminate; PDT §5.1: "sent if a connection is available or locally stored otherwise").
//!
//! | file | what |
//! |---|---|
//! | `state.rs` | the folder that an installation keeps |
//! | `identity.rs` | who it is, and that a copy is another |
//! | `numbers.rs` | numbers of runs, each given once |
//! | `assigned.rs` | what the collector says is to be observed, checked against the program |
//! | `installed.rs` | the program's modules, as they are here |
//! | `bake.rs`, `bake/` | the variant's images, made from that |
//! | `known.rs` | the last assignments that were made into images |
//! | `meaning.rs` | what says what their marks and counters mean |
//! | `unmade.rs` | why the last one was not |
//! | `listening.rs` | the program's errors, passed on and looked at, where somebody asked for it |
//! | `run.rs` | one run: its folder, its records, its reports |
//! | `forest.rs` | the trees of calls of its threads, put together |
//! | `leftover.rs` | runs whose launcher did not come to the end |
//! | `spool.rs` | final reports until they are settled |
//! | `channel.rs` | one exchange with the collector, and what follows from the answer |
//! | `reporter.rs` | the thread that reports by policy while the program runs |
//! | `farewell.rs` | the last report, when the program has ended |
//! | `instance.rs` | all of it together: a program is run, or only prepared, or only reported |
//! | `calibrate.rs` | what probes cost a program, measured |
//! | `clock.rs` | processor time of the program |

#![forbid(unsafe_code)]

mod assigned;
mod bake;
mod calibrate;
mod channel;
mod clock;
mod farewell;
mod forest;
mod identity;
mod installed;
mod instance;
mod known;
mod leftover;
mod listening;
mod meaning;
mod numbers;
mod reporter;
mod run;
mod spool;
mod state;
mod unmade;

pub use assigned::NotAccepted;
pub use bake::BakeError;
pub use calibrate::{CalibrateError, Measured, calibrate};
pub use channel::Sent;
pub use instance::{Command, Happened, Instance, InstanceError, Options};
pub use listening::{PASS_ON, pass_on_alone};
pub use run::Observed;
pub use state::{State, StateError};
