//! Starting a program with its armed images, and collecting what they recorded.
//!
//! | file | what |
//! |---|---|
//! | `target.rs` | which executable a command is, and whether it can be observed |
//! | `modules.rs` | which modules are observed: the executable and what comes with it |
//! | `images.rs` | armed images out of the cache, or baked |
//! | `room.rs` | whether the images of one program find room beside its modules |
//! | `agent.rs` | the agent's file, as it is carried in this program |
//! | `folder.rs` | the folder of a run: private copies of images, records, plans, the roster |
//! | `forks.rs` | whose records there are |
//! | `pool.rs` | a folder that runs share |
//! | `variant.rs` | images of which only some probes are left, which runs share |
//! | `live.rs` | probes are taken away from running programs |
//! | `seen.rs` | what of a record was written is read |
//! | `unwound.rs` | where runs crashed, unwound afterwards |
//! | `private.rs` | files and folders that nobody else can write |
//! | `inherited.rs` | how broken pipes are to be handled |
//! | `container.rs` | what a container allows |
//! | `scarce.rs` | the program runs where there is too little memory for more |
//! | `attended.rs` | a program that this process attends to: breakpoints, calm |
//! | `outside.rs` | a static program is armed from outside |
//! | `auxiliary.rs` | what the kernel hands to a program |
//! | `passing.rs` | signals are passed on |
//! | `job.rs` | this process stops where the program does |
//! | `executed.rs` | the program's environment, and its number where that names it |
//! | `about.rs` | what the system tells of a process |
//! | `orphans.rs` | how orphans end, in the first process of a container |
//! | `stand_in.rs` | this process becomes the program, or ends as it does |
//! | `tracing.rs` | a program that is traced |
//! | `start.rs` | the program runs, its end is waited for |

#![deny(unsafe_code)]

mod about;
mod agent;
mod attended;
mod auxiliary;
mod container;
#[expect(
    unsafe_code,
    reason = "executes the program from the process that was made for it; SAFETY.md argues it"
)]
mod executed;
mod folder;
mod forks;
mod images;
#[expect(
    unsafe_code,
    reason = "asks before the standard library begins; SAFETY.md argues it"
)]
mod inherited;
mod job;
#[expect(
    unsafe_code,
    reason = "stores into text that others execute; SAFETY.md argues it"
)]
mod live;
mod modules;
mod orphans;
mod outside;
#[expect(
    unsafe_code,
    reason = "handles signals and sends them by their numbers; SAFETY.md argues it"
)]
mod passing;
mod pool;
mod private;
mod room;
#[expect(
    unsafe_code,
    reason = "asks for limits, and gives what allocators find; SAFETY.md argues it"
)]
mod scarce;
mod seen;
#[expect(
    unsafe_code,
    reason = "becomes the program, or waits for it, where nothing can be allocated; SAFETY.md argues it"
)]
mod stand_in;
mod standing;
mod start;
mod target;
mod tracing;
mod unwound;
mod variant;

pub use agent::{Agent, AgentError};
pub use attended::{Attendance, Attended, Calm, Keep, Points, attend};
pub use folder::{Armed, CRASHES, FolderError, Run, RunFolder, SLABS};
pub use forks::{Forks, records};
pub use images::{ChosenPaths, How, ImageError, Images, Markings, Weighed};
pub use live::{Live, LiveError};
pub use modules::{Choice, Chosen, Found, Observed, is_path, modules};
pub use outside::{Outside, OutsideError};
pub use passing::keep_going;
pub use pool::{Pool, PoolError};
pub use private::NotPrivate;
pub use room::Placed;
pub use scarce::{Sparing, is_stack_small, processes_allowed, threads_affordable};
pub use seen::{Seen, read_live};
pub use stand_in::{end_for_the_program, end_if_interrupted, is_to_start};
pub use standing::Standing;
pub use start::{Arming, Ended, Extra, StartError, Started, run, start, start_with};
pub use target::{Target, TargetError, on_path};
pub use tracing::{HowTraced, TRACKS, TraceImages, keep_addresses};
pub use unwound::{Crash, CrashError, CrashedModule, Crashes, End, Frame, crashes};
pub use variant::{
    Carried, Master, VariantError, equip, from_outside, masters, new_folder, private_folder,
    read_record,
};
