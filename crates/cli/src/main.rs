//! The `tomo` command: flags in, words out.
//!
//! Exit codes: 0 where all went well, 2 where something that was asked for could not be done; then one line
//! on standard error says what and where.

mod map;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The analysis makes and drops millions of small values; the system's allocator takes a fifth longer.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Profile native programs as they are, in the field.
///
/// Tomograph works on unmodified x86-64 Linux programs and shared libraries: no recompiling, no
/// source changes. Start with `tomo map PROGRAM`.
#[derive(Parser)]
#[command(
    name = "tomo",
    version,
    arg_required_else_help = true,
    max_term_width = 80
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Map(map::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Map(arguments) => map::run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tomo: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Whether the reader of our output has enough of it (`tomo … | head`).
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
