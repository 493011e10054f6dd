//! Dependencies as cargo-deny sees them: licences, duplicates and sources work without a network;
//! advisories need a database that may be out of reach. What is left out is handed back, so that
//! the caller can say so where it will be read.

use crate::house;
use anyhow::Result;

/// What came of it, when nothing was wrong.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Denial {
    /// All of it was checked.
    Complete,
    /// This could not be.
    LeftOut(String),
}

/// Checks the dependencies; an error is a fault in them.
pub(crate) fn run(may_install: bool) -> Result<Denial> {
    if !is_installed()? {
        if !may_install {
            let what = "bans, sources and advisories (cargo-deny is not installed; --install does)";
            return Ok(Denial::LeftOut(what.into()));
        }
        house::run(&mut house::cargo(&["install", "--locked", "cargo-deny"])?)?;
    }
    house::run(&mut house::cargo(&[
        "deny", "check", "licenses", "bans", "sources",
    ])?)?;
    if house::output(&mut house::cargo(&["deny", "fetch", "db"])?).is_err() {
        let what = "advisories (their database is out of reach from here)";
        return Ok(Denial::LeftOut(what.into()));
    }
    house::run(&mut house::cargo(&[
        "deny",
        "--offline",
        "check",
        "advisories",
    ])?)?;
    Ok(Denial::Complete)
}

fn is_installed() -> Result<bool> {
    Ok(house::succeeds(&mut house::cargo(&["deny", "--version"])?))
}
