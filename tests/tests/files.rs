//! By what a program's file is known.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::UNIX_EPOCH;

use tomo_testkit::corpus::compiled;
use tomo_testkit::coverage::{Pool, complete};
use tomo_wire::record::{Reason, RecordView};

/// Writes the program of scenarios, without a build id, into the file at `path`; gives its length.
fn install(path: &Path, flags: &[&str]) -> usize {
    let flags = [
        &["-O2", "-pthread", "-Wl,--build-id=none"],
        flags,
        &["-ldl"],
    ]
    .concat();
    let built = compiled("gcc", "manners.c", &flags).expect("built");
    if !path.exists() {
        fs::copy(&built, path).expect("copied");
    }
    let bytes = fs::read(built).expect("read");
    let file = OpenOptions::new().write(true).truncate(true).open(path);
    let mut file = file.expect("the program");
    file.write_all(&bytes).expect("written");
    file.set_modified(UNIX_EPOCH).expect("a time");
    bytes.len()
}

/// Without a build id only its file tells what a program is, whatever its times are set to.
#[test]
fn a_program_without_a_build_id_that_was_touched_runs_its_own_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("program");
    let first = install(&program, &[]);
    let pool = Pool::new(&program).expect("a pool");
    let run = || {
        let mut command = pool.command(&program);
        command.arg("exit");
        complete(command, b"").expect("run").status.code()
    };
    let seen = || {
        let record = fs::read(pool.file("record").expect("one")).expect("read");
        let live = RecordView::read(&record).expect("a record").live;
        (live.armed.get(), Reason::from_number(live.reason.get()))
    };
    assert_eq!(run(), Some(6));
    assert_eq!(seen(), (1, None));
    // As long, and of the same time.
    assert_eq!(install(&program, &["-DEXITS=7"]), first);
    assert_eq!(run(), Some(7));
    assert_eq!(seen(), (1, Some(Reason::Touched)));
}
