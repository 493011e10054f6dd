//! The house's chores, run as `cargo xtask COMMAND`. Each command is a file of its own.

mod bench;
mod check;
mod compat;
mod demo;
mod deny;
mod held;
mod house;
mod packages;
mod page;
mod study;
mod test;
mod tidy;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// The house's chores.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Build everything and run the main job on a program that is built here
    Demo(demo::Demo),
    /// Install what the tests need, then run all of them
    Test(test::Test),
    /// Everything that has to hold before a change goes in
    Check(check::Check),
    /// The house rules that compiler and linter do not know
    Tidy(tidy::Tidy),
    /// Hold what is said of a program against single steps
    Held(held::Held),
    /// Real programs' own test suites, with and without probes
    Compat(compat::Compat),
    /// Measure, and rewrite the tables of the benchmark page
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Make the papers' studies anew, and rewrite the page that tells of them
    #[command(subcommand)]
    Study(study::Study),
}

fn main() -> ExitCode {
    match run(Arguments::parse().chore) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(chore: Chore) -> anyhow::Result<()> {
    match chore {
        Chore::Demo(demo) => demo.run(),
        Chore::Test(test) => test.run(),
        Chore::Check(check) => check.run(),
        Chore::Tidy(tidy) => tidy.run(),
        Chore::Held(held) => held.run(),
        Chore::Compat(compat) => compat.run(),
        Chore::Bench(bench) => bench.run(),
        Chore::Study(study) => study.run(),
    }
}

#[cfg(test)]
mod tests {
    use super::Arguments;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }
}
