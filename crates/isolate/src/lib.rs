//! The search for what predicts failure, on one machine (ABI §4, Procedure 1).
//!
//! | step | file |
//! |---|---|
//! | cases: arguments, input, and how success is told | `cases.rs` |
//! | a case run, armed or as it is, and labelled | `run.rs` |
//! | what it printed | `printed.rs` |
//! | that it ends with this process | `keeper.rs` |
//! | one of which more is kept than marks | `kept.rs` |
//! | many at a time | `many.rs` |
//! | where runs crash | `crash.rs` |
//! | which functions cases enter | `survey.rs` |
//! | the program as the search sees it | `map.rs` |
//! | what has been found so far, kept between steps | `state.rs` |
//! | what is asked of a search | `asked.rs` |
//! | step by step: arm, run, label, score, extend | `session.rs`, `watched.rs` |
//! | what both have in common with their rehearsal | `hunt.rs` |
//! | all cases with all sites, and searches rehearsed on that | `complete.rs`, `rehearse.rs`, `walk.rs` |
//! | what marks mean, and runs in sum | `tallied.rs` |
//! | cases with counters; paths as predicates | `counted.rs`, `paths.rs` |
//! | the answer | `answer.rs`, `words.rs` |
//! | the program for a search that a collector makes, and its answer | `terrain.rs`, `fleet.rs` |
//!
//! Each step arms only the sites of its plan, so a run pays for these alone; what has been answered is armed no more.

#![forbid(unsafe_code)]

mod answer;
mod asked;
mod cases;
mod complete;
mod counted;
mod crash;
mod fleet;
mod hunt;
mod keeper;
mod kept;
mod many;
mod map;
mod paths;
mod printed;
mod rehearse;
mod run;
mod session;
mod state;
mod survey;
mod tallied;
mod terrain;
mod walk;
mod watched;
mod words;

pub use answer::{Answer, Finding, Name};
pub use asked::{IsolateError, Options, Score, Towards};
pub use cases::{Case, Cases, CasesError, Success};
pub use complete::Complete;
pub use fleet::fleet_answer;
pub use keeper::{END_GROUPS, end_groups, end_runs_with_us};
pub use rehearse::{Rehearsal, Rehearsed, Stage, Way};
pub use run::End;
pub use session::{Session, Watch};
pub use state::{Known, StepMade};
pub use tallied::{Tally, Teller};
pub use terrain::terrain;
pub use walk::Walk;
pub use words::{Words, words};
