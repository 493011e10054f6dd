//! Namespaces of their own for a command: file systems that are full, allow no programs, or are none at all; processes of
//! which it is the first.

use std::process::Command;

/// A shell that runs `script` where it may mount what it likes, seen by nobody else: in a mount
/// namespace, and if need be in one of users. Its further arguments are `$1` and so on.
///
/// The system has to allow that; where it does not, the command fails and says so.
#[must_use]
pub fn shell(script: &str) -> Command {
    apart(&["--mount"], script)
}

/// The same as the first of processes that see no others.
#[must_use]
pub fn first(script: &str) -> Command {
    apart(&["--mount", "--pid", "--fork", "--mount-proc"], script)
}

fn apart(namespaces: &[&str], script: &str) -> Command {
    let mut command = Command::new("unshare");
    if !nix::unistd::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    let script = format!("set -e; {script}");
    command.args(namespaces);
    command.args(["--", "bash", "-c", &script, "bash"]);
    command
}
