//! Debug information that was moved out of a program is used where the program has none.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tomo_program::debug_file::Directories;
use tomo_program::{Cache, Facts, Function, Loaded, Request, analyse, analyse_file, load};

use crate::build::run;

const SOURCE: &str = "int twice(int x) { return 2 * x; }
int main(int count, char **words) {
    return words ? twice(count)
                 : 1;
}
void nothing(void) {}
void caller(void) { nothing(); nothing(); }
";

/// A program with debug information, the same without, and the file that this was moved to.
struct Moved {
    _home: TempDir,
    whole: PathBuf,
    bare: PathBuf,
    debug: PathBuf,
}

fn moved() -> Moved {
    let home = TempDir::new().expect("a directory for temporary files");
    let [source, whole, bare, debug] =
        ["main.c", "whole", "bare", "bare.debug"].map(|name| home.path().join(name));
    fs::write(&source, SOURCE).expect("the source is written");
    let text = |path: &Path| path.to_str().expect("a path in UTF-8").to_owned();
    let id = "-Wl,--build-id=sha1";
    run(
        "gcc",
        &["-g", "-O0", id, &text(&source), "-o", &text(&whole)],
    );
    run(
        "objcopy",
        &["--only-keep-debug", &text(&whole), &text(&debug)],
    );
    let link = format!("--add-gnu-debuglink={}", text(&debug));
    run(
        "objcopy",
        &["--strip-all", &link, &text(&whole), &text(&bare)],
    );
    Moved {
        _home: home,
        whole,
        bare,
        debug,
    }
}

impl Moved {
    fn analyse_bare(&self) -> (Vec<Function>, Facts) {
        let data = fs::read(&self.bare).expect("the program is read");
        analyse_file(&self.bare, &data, &Directories(Vec::new()), &()).expect("a program")
    }
}

/// The lines of a function's blocks.
fn lines_of(name: &str, functions: &[Function], facts: &Facts) -> Vec<u32> {
    let blocks = functions.iter().flat_map(|function| {
        let of_it = function.name.as_deref() == Some(name);
        function.blocks.iter().map(move |_| of_it)
    });
    let known = blocks.zip(&facts.lines.at).filter(|(of_it, _)| *of_it);
    known
        .map(|(_, at)| at.as_ref().map_or(0, |position| position.line))
        .collect()
}

#[test]
fn lines_and_names_come_from_the_debug_file() {
    let moved = moved();
    let (functions, facts) = moved.analyse_bare();
    assert_eq!(lines_of("twice", &functions, &facts), [1]);
    let found = lines_of("main", &functions, &facts);
    assert!(found.len() > 3, "{found:?}");
    assert!(found.iter().all(|line| (2..=5).contains(line)), "{found:?}");
    let whole = fs::read(&moved.whole).expect("the program is read");
    let (functions, facts) = analyse(&whole, &()).expect("a program");
    assert_eq!(lines_of("main", &functions, &facts), found);
}

#[test]
fn a_changed_debug_file_costs_its_lines_and_a_warning() {
    let moved = moved();
    let mut data = fs::read(&moved.debug).expect("the debug file is read");
    *data.last_mut().expect("it has bytes") ^= 1;
    fs::write(&moved.debug, &data).expect("it is written");
    let (functions, facts) = moved.analyse_bare();
    assert!(functions.len() > 2);
    assert!(facts.lines.at.iter().all(Option::is_none));
    assert_eq!(facts.warnings.len(), 1, "{:?}", facts.warnings);
    assert!(facts.warnings[0].contains("bare.debug"));
}

/// Its checksum is right, but what it says is not.
#[test]
fn a_broken_debug_file_costs_only_what_it_would_have_given() {
    let moved = moved();
    let sizes = run("objdump", &["-h", moved.debug.to_str().expect("UTF-8")]);
    let section = sizes.lines().find(|line| line.contains(" .debug_info "));
    let mut words = section.expect("it has one").split_whitespace().skip(2);
    let mut number = || usize::from_str_radix(words.next().expect("a column"), 16).expect("hex");
    let (size, _, _, offset) = (number(), number(), number(), number());
    let mut data = fs::read(&moved.debug).expect("the debug file is read");
    data[offset + 4..offset + size].fill(0xff);
    fs::write(&moved.debug, &data).expect("it is written");
    let link = format!("--add-gnu-debuglink={}", moved.debug.display());
    let bare = moved.bare.to_str().expect("UTF-8");
    run("objcopy", &["--remove-section=.gnu_debuglink", bare]);
    run("objcopy", &[&link, bare]);
    let (functions, facts) = moved.analyse_bare();
    assert!(functions.len() > 2);
    assert!(!facts.warnings.is_empty());
}

#[test]
fn without_a_debug_file_there_is_nothing_to_say() {
    let moved = moved();
    fs::remove_file(&moved.debug).expect("it is removed");
    let (_, facts) = moved.analyse_bare();
    assert!(facts.lines.at.iter().all(Option::is_none));
    assert_eq!(facts.warnings, Vec::<String>::new());
}

/// Calls to what returns nothing have no result to observe, and only debug information says that there is none.
#[test]
fn a_debug_file_changes_neither_functions_nor_blocks() {
    let moved = moved();
    let (described, _) = moved.analyse_bare();
    fs::remove_file(&moved.debug).expect("it is removed");
    let (bare, _) = moved.analyse_bare();
    let unnamed = |function: &Function| Function {
        name: None,
        ..function.clone()
    };
    let described: Vec<Function> = described.iter().map(unnamed).collect();
    let bare: Vec<Function> = bare.iter().map(unnamed).collect();
    assert!(described == bare, "{described:?}\n{bare:?}");
}

/// What the symbols of a program say goes with its debug information, whether there is any or not.
#[test]
fn symbols_that_were_moved_name_functions() {
    let moved = moved();
    let debug = moved.debug.to_str().expect("UTF-8");
    run("objcopy", &["--strip-debug", debug]);
    let link = format!("--add-gnu-debuglink={debug}");
    let bare = moved.bare.to_str().expect("UTF-8");
    run("objcopy", &["--remove-section=.gnu_debuglink", bare]);
    run("objcopy", &[&link, bare]);
    let (functions, _) = moved.analyse_bare();
    let names: Vec<&str> = functions
        .iter()
        .filter_map(|it| it.name.as_deref())
        .collect();
    for name in ["main", "twice", "_start"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
}

#[test]
fn a_debug_file_that_is_installed_later_is_used() {
    let moved = moved();
    let cache = Cache::at(moved.bare.with_file_name("cache"));
    let request = Request {
        path: &moved.bare,
        cache: Some(&cache),
        refresh: false,
        whole: true,
    };
    let loaded = || load(&request, &()).expect("a model");
    let knows_main = |loaded: &Loaded| {
        let graphs = loaded.model.graphs().expect("sound");
        graphs.functions().any(|it| it.name() == Some("main"))
    };
    let away = moved.debug.with_extension("away");
    fs::rename(&moved.debug, &away).expect("it is taken away");
    let before = [loaded(), loaded()].map(|it| (it.cached, knows_main(&it)));
    assert_eq!(before, [(false, false), (true, false)]);
    fs::rename(&away, &moved.debug).expect("it is installed");
    let behind = [loaded(), loaded()].map(|it| (it.cached, knows_main(&it)));
    assert_eq!(behind, [(false, true), (true, true)]);
    fs::rename(&moved.debug, &away).expect("it is removed");
    let at_last = loaded();
    assert!(at_last.cached && knows_main(&at_last));
}
