//! What lives in the target.
//!
//! The agent is small and dumb. Loaded into a program by the dynamic loader, it looks for a
//! [roster](tomo_wire::roster), maps the armed images of the modules that it names over their text,
//! installs one signal handler if an image has traps, and is otherwise not there. All thinking was done before, by
//! others. It allocates nothing, locks nothing (but that one thread writes a crash at a time), formats nothing, and links to nothing: system calls
//! are its own, and the few symbols of the C library that it uses are weak.
//!
//! **It fails open.** Whatever is not as it should be, the module stays as it was, the reason is
//! counted in the record if there is one, and the program runs.
//!
//! | file | what |
//! |---|---|
//! | `start.rs` | when and whether anything happens at all |
//! | `door.rs` | files are opened, and refused when others could have written them |
//! | `loader.rs` | the modules that are loaded |
//! | `listed.rs` | the same, for who may not ask the loader |
//! | `maps.rs` | the files that are mapped, for who was not named |
//! | `symbols.rs` | functions of other modules |
//! | `kept.rs` | the roster, for what comes after the start |
//! | `late.rs` | modules that are loaded after the start |
//! | `offered.rs` | which modules have been looked at |
//! | `forked.rs` | processes that are forked, where each has its own record |
//! | `own.rs` | what such a process has of its own |
//! | `interrupted.rs` | where signals have interrupted a thread |
//! | `arm.rs` | an image is mapped over a module |
//! | `parts.rs` | tables of an image, mapped |
//! | `armed.rs` | what is armed, for the handler |
//! | `given.rs` | text is given back, for programs that change it or are traced |
//! | `postponed.rs` | children of `vfork` that let themselves be traced |
//! | `trap.rs` | the handler; all that may run in it |
//! | `handlers.rs` | the program's handlers, called by way of ours |
//! | `origins.rs` | what they are told of where their signal came |
//! | `cuts.rs` | where faults took threads out of the middle of a block |
//! | `fatal.rs` | who handles fatal signals: first the agent, then the program |
//! | `crash.rs` | what is kept of a thread that gets one |
//! | `stacks.rs` | stacks for handlers, and whether ours may run there |
//! | `signals.rs` | the C library's functions on signals, kept from hiding SIGTRAP |
//! | `contexts.rs` | contexts that a program switches by itself |
//! | `notified.rs` | functions that the C library calls in threads of its own |
//! | `numbered.rs` | system calls that a program makes by number |
//! | `limits.rs` | limits of memory that a program sets itself |
//! | `executing.rs` | functions that execute another program |
//! | `pointed.rs` | what a program's arguments point at |
//! | `preloaded.rs` | our name in the environment, where our file is out of reach or not wanted |
//! | `slabs.rs` | a slab of counters for each thread |
//! | `segment.rs` | modules that set the base by which it is found |
//! | `ahead.rs` | slabs for who is about to lose sight of their file |
//! | `shadow.rs` | a shadow of the thread's stacks behind it |
//! | `tracks.rs` | what threads record in order, and how it grows |
//! | `chains.rs` | the tree of calls of a thread |
//! | `passage.rs` | the way from woven code into the agent and back |
//! | `tracer.rs` | whether a debugger traces the program |
//! | `emulator.rs` | whether it runs in an emulator |
//! | `told.rs` | what the system tells of a process, in files |
//! | `names.rs` | names that are put together without allocating |
//! | `system.rs` | system calls |
//! | `system/disk.rs` | those about room on the disk |
//! | `system/large.rs` | large memory |
//! | `system/tracing.rs` | those about who traces whom |
//! | `arguments.rs` | what may be an argument, kept over a call |
//! | `label.rs` | addresses of places in assembly |
//! | `tables.rs` | large tables, apart from what each start touches |
//! | `memory.rs` | what compilers want of every library |

#![cfg_attr(feature = "carried", no_std)]
#![expect(
    unsafe_code,
    reason = "it maps code over code and handles signals; SAFETY.md argues each step"
)]
#![cfg_attr(
    not(feature = "carried"),
    expect(dead_code, reason = "without its entry points nothing is used")
)]

mod ahead;
mod arguments;
mod arm;
mod armed;
mod chains;
mod closed;
mod contexts;
mod crash;
mod cuts;
mod door;
mod emulator;
mod executing;
mod fatal;
mod forked;
mod frame;
mod given;
mod handlers;
mod interrupted;
mod kept;
mod label;
mod late;
mod limits;
mod lines;
mod listed;
mod loader;
mod maps;
#[cfg(feature = "carried")]
mod memory;
mod names;
mod notified;
mod numbered;
mod offered;
mod origins;
mod own;
mod parts;
mod passage;
mod pointed;
mod postponed;
mod preloaded;
mod relocated;
mod reserved;
mod segment;
mod shadow;
mod signals;
mod slabs;
mod stacks;
mod start;
mod symbols;
mod system;
mod tables;
mod told;
mod tracer;
mod tracks;
mod trap;

/// The optimiser removes every panic (a test looks for this function in the library). If one were
/// left and happened, it would end the program at once, by an illegal instruction.
#[cfg(feature = "carried")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: the instruction ends the program; nothing is assumed after it.
    unsafe { core::arch::asm!("ud2", options(noreturn, nostack)) }
}
