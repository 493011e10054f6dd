//! By what a program's file is known.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::time::UNIX_EPOCH;

use tomo_testkit::corpus::compiled;
use tomo_testkit::coverage::{Pool, complete};
use tomo_wire::FileStamp;
use tomo_wire::record::{Field, Live, Reason, RecordView, live_offset};

/// Writes the program of scenarios into the file at `path`; gives its length.
fn install(path: &Path, build_id: &str, flags: &[&str]) -> usize {
    let build_id = format!("-Wl,--build-id={build_id}");
    let flags = [&["-O2", "-pthread", &build_id], flags, &["-ldl"]].concat();
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
fn exit_code(pool: &Pool, program: &Path) -> Option<i32> {
    let mut command = pool.command(program);
    command.arg("exit");
    complete(command, b"").expect("run").status.code()
}

fn live(pool: &Pool) -> Live {
    let record = fs::read(pool.file("record").expect("one")).expect("read");
    RecordView::read(&record).expect("a record").live
}

#[test]
fn a_program_without_a_build_id_that_was_touched_runs_its_own_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("program");
    let first = install(&program, "none", &[]);
    let pool = Pool::new(&program).expect("a pool");
    let seen = || {
        let live = live(&pool);
        (live.armed.get(), Reason::from_number(live.reason.get()))
    };
    assert_eq!(exit_code(&pool, &program), Some(6));
    assert_eq!(seen(), (1, None));
    // As long, and of the same time.
    assert_eq!(install(&program, "none", &["-DEXITS=7"]), first);
    assert_eq!(exit_code(&pool, &program), Some(7));
    assert_eq!(seen(), (1, Some(Reason::Touched)));
}

/// What the file at `path` is known by.
fn stamp(path: &Path) -> u64 {
    let found = fs::metadata(path).expect("a file");
    let time = |seconds: i64, more: i64| seconds * 1_000_000_000 + more;
    let stamp = FileStamp {
        device: found.dev().into(),
        inode: found.ino().into(),
        length: found.len().into(),
        modified: time(found.mtime(), found.mtime_nsec()).into(),
        changed: time(found.ctime(), found.ctime_nsec()).into(),
    };
    stamp.checksum()
}

/// Who links a program touches it, as `perf record` does to keep it. Its text is compared then, by the first process alone.
#[test]
fn a_program_that_was_linked_is_compared_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("program");
    install(&program, "0x600d", &[]);
    let pool = Pool::new(&program).expect("a pool");
    let seen = || {
        let live = live(&pool);
        (live.armed.get(), live.refused.get(), live.file.get())
    };
    assert_eq!(exit_code(&pool, &program), Some(6));
    assert_eq!(seen(), (1, 0, 0));
    fs::hard_link(&program, folder.path().join("kept")).expect("linked");
    let linked = stamp(&program);
    assert_eq!(exit_code(&pool, &program), Some(6));
    assert_eq!(seen(), (2, 0, linked));
    // Another program in the same file, which says that it is the same build: its own code runs.
    install(&program, "0x600d", &["-DEXITS=7"]);
    assert_eq!(exit_code(&pool, &program), Some(7));
    assert_eq!(seen(), (2, 1, linked));
    // Only what the record says of a file keeps it from being compared.
    let record = OpenOptions::new()
        .write(true)
        .open(pool.file("record").expect("one"));
    let forged = stamp(&program).to_le_bytes();
    record
        .expect("the record")
        .write_all_at(&forged, live_offset(Field::File))
        .expect("written");
    assert_eq!(exit_code(&pool, &program), Some(6), "the image's text");
}
