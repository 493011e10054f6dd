//! Everything that has to hold before a change goes in. All steps run, so that one look shows all
//! that is wrong; what could not be checked is said last and loudly.

use crate::deny::{self, Denial};
use crate::{house, packages, test, tidy};
use anyhow::{Result, bail};

/// Formatting, lints, house rules, documentation, licences and advisories, and all tests.
#[derive(clap::Args)]
pub(crate) struct Check {
    /// Install what is missing: Debian packages (as root) and cargo-deny
    #[arg(long)]
    install: bool,
    /// Leave the tests out, for who has just run them
    #[arg(long)]
    without_tests: bool,
}

/// How the steps went so far.
#[derive(Default)]
struct Tally {
    failed: Vec<String>,
    left_out: Vec<String>,
}

impl Check {
    pub(crate) fn run(self) -> Result<()> {
        let mut tally = Tally::default();
        tally.step("format", || {
            house::run(&mut house::cargo(&["fmt", "--all", "--check"])?)
        });
        tally.step("house rules", tidy::run);
        tally.step("lints", lints);
        tally.step("documentation", documentation);
        tally.step("fuzz targets", fuzz_targets);
        tally.dependencies(self.install);
        if self.without_tests {
            tally
                .left_out
                .push("tests (as asked by --without-tests)".into());
        } else {
            tally.step("tests", || {
                packages::ensure(self.install)?;
                test::run_all()
            });
        }
        tally.close()
    }
}

impl Tally {
    fn step(&mut self, name: &str, run: impl FnOnce() -> Result<()>) {
        eprintln!("\n== {name}");
        if let Err(error) = run() {
            eprintln!("{name}: {error:#}");
            self.failed.push(name.to_owned());
        }
    }

    /// Licences are checked by the house rules in any case; cargo-deny looks again, and at more.
    fn dependencies(&mut self, may_install: bool) {
        let mut left_out = None;
        self.step("dependencies", || {
            if let Denial::LeftOut(what) = deny::run(may_install)? {
                left_out = Some(what);
            }
            Ok(())
        });
        self.left_out.extend(left_out);
    }

    fn close(self) -> Result<()> {
        eprintln!();
        for what in &self.left_out {
            eprintln!("!! NOT CHECKED: {what}");
        }
        if !self.failed.is_empty() {
            bail!("failed: {}", self.failed.join(", "));
        }
        eprintln!("all that was checked holds");
        Ok(())
    }
}

fn lints() -> Result<()> {
    let arguments = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ];
    house::run(&mut house::cargo(&arguments)?)
}

fn documentation() -> Result<()> {
    let mut doc = house::cargo(&["doc", "--workspace", "--no-deps"])?;
    house::run(doc.env("RUSTDOCFLAGS", "-D warnings"))
}

/// Fuzz targets stand outside the workspace; here they only have to be well formed and compile.
fn fuzz_targets() -> Result<()> {
    if !house::root()?.join("fuzz/Cargo.toml").exists() {
        eprintln!("there are none yet");
        return Ok(());
    }
    let manifest = ["--manifest-path", "fuzz/Cargo.toml"];
    house::run(house::cargo(&["fmt", "--check"])?.args(manifest))?;
    house::run(
        house::cargo(&["check", "--target-dir"])?
            .arg(house::target()?)
            .args(manifest),
    )
}

#[cfg(test)]
mod tests {
    use super::Tally;
    use anyhow::bail;

    #[test]
    fn all_steps_run_and_every_failure_is_named() {
        let mut tally = Tally::default();
        let mut ran = 0;
        tally.step("first", || bail!("broken"));
        tally.step("second", || {
            ran += 1;
            Ok(())
        });
        tally.step("third", || bail!("broken too"));
        assert_eq!(ran, 1);
        assert_eq!(
            tally.close().unwrap_err().to_string(),
            "failed: first, third"
        );
    }

    #[test]
    fn what_is_left_out_is_no_failure() {
        let mut tally = Tally::default();
        tally.left_out.push("something".into());
        assert!(tally.close().is_ok());
    }
}
