//! All tests, on a machine that has nothing but Rust and gcc: packages first, then sources of the
//! test programs, then everything. Nothing is left out silently: ignored tests are listed with
//! their reasons, before the tests run so that the runner's closing lines stay last.

use crate::tidy::{files, source};
use crate::{house, packages};
use anyhow::Result;
use std::path::Path;

/// Installs what the tests need, then runs all of them, documentation's examples included.
///
/// As root on Debian missing packages are installed by apt-get; otherwise what to install is
/// printed, and the exit code is not zero.
#[derive(clap::Args)]
pub(crate) struct Test {
    /// Install nothing: fail when a package is missing
    #[arg(long)]
    no_install: bool,
}

impl Test {
    pub(crate) fn run(self) -> Result<()> {
        packages::ensure(!self.no_install)?;
        house::run(&mut house::cargo(&["fetch", "--locked"])?)?;
        run_all()
    }
}

/// Builds and runs every test of the workspace.
pub(crate) fn run_all() -> Result<()> {
    report_ignored(&house::root()?)?;
    if !house::succeeds(&mut house::cargo(&["nextest", "--version"])?) {
        return house::run(&mut house::cargo(&[
            "test",
            "--workspace",
            "--no-fail-fast",
        ])?);
    }
    house::run(&mut house::cargo(&[
        "test",
        "--workspace",
        "--doc",
        "--no-fail-fast",
    ])?)?;
    house::run(&mut house::cargo(&[
        "nextest",
        "run",
        "--workspace",
        "--no-fail-fast",
    ])?)
}

fn report_ignored(root: &Path) -> Result<()> {
    let mut count = 0;
    for file in files::rust(root)? {
        for ignored in source::ignored_tests(&file.text) {
            count += 1;
            let reason = ignored.reason.as_deref().unwrap_or("no reason given");
            eprintln!("left out: {}: {}: {reason}", file.path, ignored.name);
        }
    }
    eprintln!("{count} tests are marked to be left out; all others run");
    Ok(())
}
