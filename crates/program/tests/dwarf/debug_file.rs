//! Debug information in a file of its own, split off by `objcopy`.

use crate::build::{Built, C, build, run, tool};
use std::path::{Path, PathBuf};
use std::process::Command;
use tomo_program::debug_file::{Directories, Found, find};
use tomo_program::dwarf::{Sections, functions};

/// A program with debug information, and its stripped form `stripped` and debug file `moved` beside.
struct Split {
    built: Built,
    stripped: PathBuf,
}

const ID: &str = "-Wl,--build-id=0x0123456789abcdef";
const NO_ID: &str = "-Wl,--build-id=none";

fn split(flags: &[&str], moved: &str) -> Split {
    let built = build("gcc", flags, &C);
    let home = built.directory.path().to_owned();
    let moved = home.join(moved);
    std::fs::create_dir_all(moved.parent().expect("a parent")).expect("a directory");
    let (program, stripped) = (&built.program, home.join("stripped"));
    run(Command::new("objcopy")
        .arg("--only-keep-debug")
        .arg(program)
        .arg(&moved));
    let link = format!("--add-gnu-debuglink={}", moved.display());
    run(Command::new("objcopy")
        .args(["--strip-all", &link])
        .arg(program)
        .arg(&stripped));
    Split { built, stripped }
}

impl Split {
    fn home(&self) -> PathBuf {
        self.built
            .directory
            .path()
            .canonicalize()
            .expect("it exists")
    }

    fn find(&self, directories: &[PathBuf]) -> Found {
        let data = std::fs::read(&self.stripped).expect("the program");
        assert!(Sections::read(&data).is_empty());
        find(&self.stripped, &data, &Directories(directories.to_vec()))
    }

    /// Checks that the file found is `expected` and says what the whole program said.
    fn check(&self, found: &Found, expected: &Path) {
        let file = found
            .file
            .as_ref()
            .unwrap_or_else(|| panic!("{:?}", found.warnings));
        assert_eq!(file.path, expected);
        let whole = functions(&Sections::read(&self.built.bytes()));
        let moved = functions(&file.sections());
        assert!(whole.functions.len() > 5);
        assert_eq!(moved.functions, whole.functions);
        assert_eq!(moved.warnings, []);
    }
}

#[test]
fn by_build_id() {
    for compression in ["-gz=none", "-gz=zlib"] {
        let split = split(
            &["-g", "-O1", compression, ID],
            "store/.build-id/01/23456789abcdef.debug",
        );
        let store = split.home().join("store");
        let found = split.find(&[PathBuf::from("/nonexistent"), store.clone()]);
        split.check(&found, &store.join(".build-id/01/23456789abcdef.debug"));
        assert_eq!(found.warnings, []);
    }
}

#[test]
fn by_link_in_all_its_places() {
    for id in [ID, NO_ID] {
        for place in ["moved.debug", ".debug/moved.debug"] {
            let split = split(&["-g", "-O1", id], place);
            split.check(&split.find(&[]), &split.home().join(place));
        }
        let split = split(&["-g", "-O1", id], "moved.debug");
        let home = split.home();
        let store = home.join("store");
        let below = store.join(home.strip_prefix("/").expect("an absolute path"));
        std::fs::create_dir_all(&below).expect("a directory");
        std::fs::rename(home.join("moved.debug"), below.join("moved.debug")).expect("moved");
        split.check(&split.find(&[store]), &below.join("moved.debug"));
    }
}

#[test]
fn through_a_symbolic_link() {
    let split = split(&["-g", "-O1", ID], "moved.debug");
    let elsewhere = tempfile::TempDir::new().expect("a directory");
    let alias = elsewhere.path().join("alias");
    std::os::unix::fs::symlink(&split.stripped, &alias).expect("a link");
    let data = std::fs::read(&alias).expect("the program");
    let found = find(&alias, &data, &Directories(Vec::new()));
    split.check(&found, &split.home().join("moved.debug"));
}

#[test]
fn a_changed_file_or_one_of_another_build_is_not_used() {
    for id in [ID, NO_ID] {
        let split = split(&["-g", "-O1", id], "moved.debug");
        let path = split.home().join("moved.debug");
        let mut changed = std::fs::read(&path).expect("the debug file");
        *changed.last_mut().expect("not empty") ^= 1;
        std::fs::write(&path, changed).expect("written");
        let found = split.find(&[]);
        assert!(found.file.is_none());
        assert_eq!(found.warnings.len(), 1);
        assert!(
            found.warnings[0].to_string().contains("checksum"),
            "{}",
            found.warnings[0]
        );
    }
    let other = "-Wl,--build-id=0xffff";
    let split = split(&["-g", "-O1", other], "store/.build-id/ff/ff.debug");
    let store = split.home().join("store");
    std::fs::copy(&split.built.program, store.join(".build-id/ff/ff.debug")).expect("copied");
    assert!(
        split.find(std::slice::from_ref(&store)).file.is_some(),
        "the whole program will do"
    );
    let foreign = build("gcc", &["-g", ID], &C);
    std::fs::copy(&foreign.program, store.join(".build-id/ff/ff.debug")).expect("copied");
    let found = split.find(&[store]);
    assert!(found.file.is_none());
    assert!(
        found.warnings[0].to_string().contains("another build"),
        "{}",
        found.warnings[0]
    );
}

#[test]
fn the_compilers_own_tools_agree_on_the_link() {
    let split = split(&["-g", "-O1", NO_ID], "moved.debug");
    let shown = tool(
        "readelf",
        &["--string-dump=.gnu_debuglink"],
        &split.stripped,
    );
    assert!(shown.contains("moved.debug"), "{shown}");
}

#[test]
fn nothing_to_find() {
    let built = build("gcc", &["-O1", "-s", ID], &C);
    let directories = Directories(vec![built.directory.path().to_owned()]);
    let found = find(&built.program, &built.bytes(), &directories);
    assert!(found.file.is_none() && found.warnings.is_empty());
    let found = find(Path::new("/nonexistent"), b"\x7fELF", &directories);
    assert!(found.file.is_none() && found.warnings.is_empty());
}

#[test]
fn broken_links_and_notes_lead_nowhere() {
    let split = split(&["-g", "-O1", ID], "moved.debug");
    let data = std::fs::read(&split.stripped).expect("the program");
    for at in 0..data.len().min(1200) {
        for value in [0, 0xff] {
            let mut broken = data.clone();
            broken[at] = value;
            let _ = find(&split.stripped, &broken, &Directories(Vec::new()));
        }
        let _ = find(
            &split.stripped,
            &data[..data.len() - at],
            &Directories(Vec::new()),
        );
    }
}
