//! The Debian packages that the tests need, and those beside them that are measured: one list each, one place. Each is looked for by something
//! that it brings, so that other distributions pass too when they have it. As root on Debian what
//! is missing is installed; otherwise the exact command is printed and nothing is run.

use crate::house;
use anyhow::{Result, bail};
use nix::unistd::Uid;
use std::path::Path;

/// One package and why we want it.
struct Package {
    name: &'static str,
    proof: Proof,
    why: &'static str,
}

/// What shows that a package is there.
#[derive(Clone, Copy)]
enum Proof {
    /// A command on the search path.
    Command(&'static str),
    /// A file at its usual place.
    File(&'static str),
}

const fn command(name: &'static str, command: &'static str, why: &'static str) -> Package {
    Package {
        name,
        proof: Proof::Command(command),
        why,
    }
}

const PACKAGES: &[Package] = &[
    command("gcc", "gcc", "compiles the C programs of the test set"),
    command("g++", "g++", "compiles the C++ programs of the test set"),
    command(
        "clang-19",
        "clang-19",
        "compiles them again, with the compiler's own block map",
    ),
    Package {
        name: "libclang-rt-19-dev",
        proof: Proof::File("/usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.profile-x86_64.a"),
        why: "counts coverage as clang does, beside which ours is measured",
    },
    command(
        "llvm-19",
        "llvm-dwarfdump-19",
        "says which calls were inlined",
    ),
    command(
        "musl-tools",
        "musl-gcc",
        "links C programs to another C library",
    ),
    command(
        "golang-go",
        "go",
        "compiles the Go programs of the test set",
    ),
    command("lld-19", "ld.lld-19", "links what clang-19 compiled"),
    command("binutils", "objcopy", "strips and rewrites programs"),
    command("git", "git", "lists the files that tidy checks; is mapped"),
    command("bash", "bash", "is mapped"),
    command("perl", "perl", "is mapped"),
    command("python3", "python3", "is mapped"),
    command("gdb", "gdb", "is mapped; starts armed programs"),
    command("strace", "strace", "watches armed programs"),
    command("ltrace", "ltrace", "starts armed programs"),
    command("valgrind", "valgrind", "emulates armed programs"),
    command("qemu-user", "qemu-x86_64", "emulates armed programs"),
    command("xz-utils", "xz", "is mapped"),
];

const MEASURED: &[Package] = &[Package {
    name: "libllvm14",
    proof: Proof::File("/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1"),
    why: "is mapped, the largest of them",
}];

/// Makes sure that every package is there that the tests need, installing it when that is allowed and possible.
pub(crate) fn ensure(may_install: bool) -> Result<()> {
    ensure_all(&[PACKAGES], may_install)
}

/// Makes sure that those are there, too, that are measured.
pub(crate) fn ensure_measured() -> Result<()> {
    ensure_all(&[PACKAGES, MEASURED], false)
}

fn ensure_all(lists: &[&'static [Package]], may_install: bool) -> Result<()> {
    let missing = missing(lists);
    if missing.is_empty() {
        return Ok(());
    }
    for package in &missing {
        eprintln!("missing: {} ({})", package.name, package.why);
    }
    let names: Vec<_> = missing.iter().map(|package| package.name).collect();
    if !may_install || !Uid::effective().is_root() || house::on_path("apt-get").is_none() {
        bail!("{}", advice(&names));
    }
    install(&names)?;
    match self::missing(lists).first() {
        Some(package) => bail!("{} was installed, yet is not found", package.name),
        None => Ok(()),
    }
}

fn missing(lists: &[&'static [Package]]) -> Vec<&'static Package> {
    let all = lists.iter().copied().flatten();
    all.filter(|package| !is_there(package.proof)).collect()
}

fn is_there(proof: Proof) -> bool {
    match proof {
        Proof::Command(name) => house::on_path(name).is_some(),
        Proof::File(path) => Path::new(path).exists(),
    }
}

fn advice(names: &[&str]) -> String {
    let names = names.join(" ");
    format!(
        "packages are missing; on Debian 12 install them with\n\n    \
         sudo apt-get update && sudo apt-get install --yes --no-install-recommends {names}\n"
    )
}

fn install(names: &[&str]) -> Result<()> {
    house::run(house::command("apt-get")?.args(["update", "--quiet"]))?;
    let mut apt = house::command("apt-get")?;
    apt.env("DEBIAN_FRONTEND", "noninteractive");
    apt.args(["install", "--quiet", "--yes", "--no-install-recommends"])
        .args(names);
    house::run(&mut apt)
}

#[cfg(test)]
mod tests {
    use super::{MEASURED, PACKAGES, Proof, advice, is_there};
    use std::collections::BTreeSet;

    #[test]
    fn proofs_tell_what_is_there_from_what_is_not() {
        assert!(is_there(Proof::Command("sh")));
        assert!(is_there(Proof::File("/proc/self/exe")));
        assert!(!is_there(Proof::Command("no-such-program-here")));
        assert!(!is_there(Proof::File("/no/such/file")));
    }

    #[test]
    fn every_package_is_listed_once() {
        let all = PACKAGES.iter().chain(MEASURED);
        let names: BTreeSet<_> = all.map(|package| package.name).collect();
        assert_eq!(names.len(), PACKAGES.len() + MEASURED.len());
    }

    #[test]
    fn the_advice_can_be_pasted_into_a_shell() {
        let advice = advice(&["gdb", "xz-utils"]);
        assert!(advice.contains("apt-get install --yes --no-install-recommends gdb xz-utils\n"));
    }
}
