//! The errors of programs are looked at (`--stderr-regex`), and neither they nor their children notice.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Stdio};

use crate::instances::Fleet;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

/// A prepared installation, with a shell that runs this script.
fn shell(script: &str) -> (Fleet, Child) {
    let fleet = Fleet::new("telling.c", &["campaign", "isolate"]);
    for name in ["go", "after"] {
        mkfifo(&fleet.site.path(name), Mode::S_IRWXU).expect("made");
    }
    fleet.prepare(0);
    let mut command = fleet.instance_within("0.1", 0, &["--stderr-regex", "^error"]);
    command.arg("--program").arg(&fleet.program);
    command.args(["--", "sh", "-c", script]);
    command.current_dir(fleet.site.folder.path());
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().expect("tomo");
    (fleet, child)
}

#[test]
fn children_that_outlive_the_program_keep_their_errors() {
    let (fleet, mut tomo) =
        shell("(read word < go; echo late >&2; echo after $? > after) & echo early >&2");
    assert_eq!(tomo.wait().expect("ended").code(), Some(0));
    fs::write(fleet.site.path("go"), "now\n").expect("told");
    let after = fs::read_to_string(fleet.site.path("after")).expect("it goes on");
    assert_eq!(after, "after 0\n");
    let mut errors = String::new();
    let pipe = tomo.stderr.as_mut().expect("a pipe");
    pipe.read_to_string(&mut errors).expect("text");
    assert_eq!(errors, "early\nlate\n");
}

#[test]
fn a_program_whose_errors_nobody_reads_ends_as_alone() {
    let (_fleet, mut tomo) = shell("while :; do echo yes; done >&2");
    let mut line = String::new();
    let mut errors = BufReader::new(tomo.stderr.take().expect("a pipe"));
    errors.read_line(&mut line).expect("a line");
    drop(errors);
    assert_eq!(line, "yes\n");
    assert_eq!(tomo.wait().expect("ended").code(), Some(128 + 13));
}
