//! Builds the agent as this crate carries it: another crate of the workspace, without the standard
//! library and with a profile of its own, so another run of cargo in a folder of its own. Its content decides the name that it
//! has in caches: said here once, it need not be read again whenever a program is started.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    for watched in [
        "agent/src",
        "agent/build.rs",
        "agent/Cargo.toml",
        "wire/src",
    ] {
        println!(
            "cargo:rerun-if-changed={}",
            here.join("..").join(watched).display()
        );
    }
    let target = out.join("agent");
    let mut cargo = Command::new(env::var_os("CARGO").expect("cargo sets CARGO"));
    cargo
        .current_dir(here.join("../agent"))
        .args([
            "build",
            "--locked",
            "--profile",
            "agent",
            "--features",
            "carried",
        ])
        .arg("--target-dir")
        .arg(&target);
    // What this build was given for itself, its tests or its lints is none of the agent's.
    for name in [
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
        "RUSTC_WORKSPACE_WRAPPER",
        "CARGO_BUILD_TARGET",
    ] {
        cargo.env_remove(name);
    }
    // Handlers that follow frame pointers come through the agent's own.
    cargo.env("RUSTFLAGS", "-Cforce-frame-pointers=yes");
    let status = cargo.status().expect("cargo runs");
    assert!(status.success(), "the agent does not build");
    let built = target.join("agent/libtomo_agent.so");
    let agent = std::fs::read(built).expect("the agent was built");
    let sum = tomo_wire::checksum(&agent);
    println!("cargo:rustc-env=AGENT_NAME=libtomo_agent-{sum:016x}.so");
    std::fs::write(out.join("libtomo_agent.so"), agent).expect("the agent can be kept");
}
