//! Prints for each package whose sources programs are built from its name, a tab, and where it lies, for
//! `tomo study isolation`.

use anyhow::Result;
use tomo_testkit::corpus::package;

const PACKAGES: [&str; 5] = [
    "bzip2-sys",
    "jq-src",
    "libsqlite3-sys",
    "lua-src",
    "zstd-sys",
];

fn main() -> Result<()> {
    for name in PACKAGES {
        println!("{name}\t{}", package(name)?.display());
    }
    Ok(())
}
