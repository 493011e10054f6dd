//! The main job, end to end, on a program that the workspace builds itself.

use crate::house;
use anyhow::Result;
use std::path::PathBuf;

/// Builds `tomo` and a small C program, maps the program, and shows one of its functions.
#[derive(clap::Args)]
pub(crate) struct Demo {}

impl Demo {
    pub(crate) fn run(self) -> Result<()> {
        let tomo = house::build_tomo()?;
        let program = build_program()?;
        house::run(house::command(&tomo)?.arg("map").arg(&program))?;
        house::run(
            house::command(&tomo)?
                .arg("map")
                .arg(&program)
                .args(["--function", "main"]),
        )
    }
}

/// Compiles the demo's sources as a distribution would ship them, with debug data.
fn build_program() -> Result<PathBuf> {
    let folder = house::target()?.join("demo");
    std::fs::create_dir_all(&folder)?;
    let program = folder.join("calculator");
    let sources = [
        "tests/programs/demo/calculator.c",
        "tests/programs/demo/stack.c",
    ];
    let mut gcc = house::command("gcc")?;
    gcc.args(["-O2", "-g", "-Wall", "-Wextra", "-o"])
        .arg(&program)
        .args(sources);
    house::run(&mut gcc)?;
    Ok(program)
}
