//! The agent's own file, and the command's: what they need, and that nobody observes the agent.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use tomo_testkit::corpus::compiled;
use tomo_testkit::coverage::{Pool, complete};
use tomo_testkit::tomo;

/// The program of scenarios.
fn program() -> PathBuf {
    compiled("gcc", "manners.c", &["-O2", "-pthread", "-ldl"]).expect("built")
}

/// A copy of the agent, as pools have it.
fn agent(folder: &TempDir) -> PathBuf {
    let pool = Pool::new(&program()).expect("a pool");
    let agents = fs::read_dir(pool.path().join("agent")).expect("read");
    let agents: Vec<_> = agents.flatten().map(|entry| entry.path()).collect();
    assert_eq!(agents.len(), 1);
    let copy = folder.path().join("agent.so");
    fs::copy(&agents[0], &copy).expect("copied");
    copy
}

/// Nothing of the agent can panic, and it asks no library for anything: it could be loaded into a program
/// that has none of them.
#[test]
fn the_agent_holds_no_panic_and_needs_no_library() {
    let folder = tempfile::tempdir().expect("a folder");
    let agent = agent(&folder);
    let objdump = |argument: &str| {
        let output = Command::new("objdump").arg(argument).arg(&agent).output();
        String::from_utf8(output.expect("objdump").stdout).expect("text")
    };
    let code = objdump("-d");
    assert!(code.contains("syscall"), "the code is shown");
    assert!(!code.contains("ud2"), "a panic is left");
    assert!(!objdump("-p").contains("NEEDED"));
    let strong = objdump("-T");
    let strong: Vec<_> = strong
        .lines()
        .filter(|line| line.contains("*UND*") && !line.contains(" w "))
        .collect();
    assert!(strong.is_empty(), "{strong:?}");
}

/// The command needs the C library, which every program has that it observes, and nothing else.
#[test]
fn the_command_needs_the_c_library_alone() {
    let mut objdump = Command::new("objdump");
    let output = objdump.arg("-p").arg(tomo::path().expect("tomo")).output();
    let said = String::from_utf8(output.expect("objdump").stdout).expect("text");
    let needed = said
        .lines()
        .filter_map(|line| line.trim().strip_prefix("NEEDED"));
    let needed: Vec<_> = needed.map(str::trim).collect();
    let own = ["libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"];
    assert!(needed.contains(&"libc.so.6"), "{needed:?}");
    assert!(needed.iter().all(|name| own.contains(name)), "{needed:?}");
}

/// Runs the program, in which `library` is to be observed and is an agent: it runs, and that is said. What is `loaded` comes before
/// the program's own libraries.
fn runs_and_leaves_alone(folder: &TempDir, command: &str, library: &Path, loaded: &str) {
    let output = folder.path().join(command);
    let mut tomo = Command::new(tomo::path().expect("tomo"));
    tomo.env("TOMO_CACHE_DIR", folder.path().join("cache"))
        .env("LD_PRELOAD", loaded)
        .args([command, "-o"])
        .arg(output)
        .arg("--module")
        .arg(library)
        .arg("--")
        .arg(program())
        .arg("exit");
    let output = complete(tomo, b"").expect("run");
    let said = String::from_utf8_lossy(&output.stderr);
    let what = format!("{command} {}: {said}", library.display());
    assert_eq!(output.status.code(), Some(6), "{what}");
    assert!(output.stdout.starts_with(b"exit "), "{what}");
    assert!(said.contains("tomo's own agent"), "{what}");
}

/// Its probes would be met by what serves them. Other builds of it are known by what they call themselves.
#[test]
fn agents_are_not_observed() {
    let folder = tempfile::tempdir().expect("a folder");
    let flags = ["-shared", "-fPIC", "-Wl,-soname,libtomo_agent.so"];
    let other = compiled("gcc", "plugin.c", &flags).expect("built");
    runs_and_leaves_alone(&folder, "cover", &agent(&folder), "");
    for command in ["cover", "count", "chains"] {
        runs_and_leaves_alone(&folder, command, &other, &other.to_string_lossy());
    }
}

/// As where what is observed runs `tomo`: both agents are in the program that this observes.
#[test]
fn a_second_agent_leaves_the_program_to_the_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = agent(&folder);
    for command in ["cover", "count", "chains", "predicates"] {
        let mut tomo = Command::new(tomo::path().expect("tomo"));
        tomo.env("TOMO_CACHE_DIR", folder.path().join("cache"))
            .env("LD_PRELOAD", &other)
            .args([command, "-o"])
            .arg(folder.path().join(command))
            .arg("--")
            .arg(program())
            .arg("exit");
        let output = complete(tomo, b"").expect("run");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(6), "{command}: {said}");
        assert!(output.stdout.starts_with(b"exit "), "{command}: {said}");
        assert!(!said.contains("not observed"), "{command}: {said}");
    }
}
