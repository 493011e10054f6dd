//! A program in each of many languages, alone and observed.
//!
//! Compilers differ in what they do with stacks, registers, tables and signals more than programs do: what no C program
//! does, another language's runtime may do all the time. Each program raises and catches what its language has for
//! exceptions, collects garbage, runs threads or coroutines, overflows its stack and faults, as far as the language has these.

use super::asking::{self, Came, WAYS};
use super::page::Covered;
use super::run::Place;
use super::text;
use crate::house;
use anyhow::{Context as _, Result};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// A language.
struct Language {
    name: &'static str,
    /// Debian's packages of its compiler, or of the program that runs it.
    packages: &'static str,
    /// Lines of a shell that make the program, of `$SOURCES` in a folder of its own.
    build: &'static str,
    /// The program and its arguments; `@` stands for the folder of the sources, a word that begins with `./` for what was
    /// built.
    run: &'static str,
    /// The library that runs the source, where that does not come with the program by itself.
    library: &'static str,
    /// The command that is known to break it; why is said on the page.
    breaks: &'static str,
}

const fn compiled(name: &'static str, packages: &'static str, build: &'static str) -> Language {
    Language {
        name,
        packages,
        build,
        run: "./main",
        library: "",
        breaks: "",
    }
}

const fn interpreted(name: &'static str, packages: &'static str, run: &'static str) -> Language {
    Language {
        name,
        packages,
        build: "",
        run,
        library: "",
        breaks: "",
    }
}

impl Language {
    const fn in_library(self, library: &'static str) -> Self {
        Self { library, ..self }
    }
}

/// Where Java's machine is, which its programs open when they run.
const JVM: &str = "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so";

const LANGUAGES: [Language; 23] = [
    compiled("Ada", "gnat", "gnatmake -O2 -o main $SOURCES/main.adb"),
    compiled("D", "gdc", "gdc -O2 -o main $SOURCES/main.d"),
    compiled(
        "Fortran",
        "gfortran",
        "gfortran -O2 -o main $SOURCES/main.f90",
    ),
    compiled(
        "Go",
        "golang-go libc6-dev gcc",
        "GOCACHE=$PWD/cache GO111MODULE=off go build -o main $SOURCES/main.go",
    ),
    Language {
        breaks: "chains",
        ..compiled(
            "OCaml",
            "ocaml-nox",
            "cp $SOURCES/main.ml . && ocamlopt -o main main.ml",
        )
    },
    compiled(
        "Pascal",
        "fp-compiler fp-units-fcl fp-units-rtl",
        "fpc -O2 -FU. -o./main $SOURCES/main.pas",
    ),
    compiled("Rust", "gcc", "rustc -O -o main $SOURCES/main.rs"),
    compiled(
        "Scheme, chicken",
        "chicken-bin libchicken-dev",
        "csc -O2 -o main $SOURCES/main.scm",
    ),
    interpreted("Forth, gforth", "gforth", "gforth-fast @/main.fs"),
    interpreted("Haskell, shellcheck", "shellcheck", "shellcheck @/main.sh"),
    Language {
        build: "javac -d . $SOURCES/Main.java",
        ..interpreted("Java", "openjdk-17-jdk-headless", "java -cp ./ Main").in_library(JVM)
    },
    interpreted(
        "Java, its compiler",
        "openjdk-17-jdk-headless",
        "javac -d . @/Main.java",
    )
    .in_library(JVM),
    interpreted("JavaScript, Node.js", "nodejs", "node @/main.js"),
    interpreted("Lisp, SBCL", "sbcl", "sbcl --script @/main.lisp"),
    interpreted("Lisp, ECL", "ecl", "ecl --norc --shell @/main.lisp"),
    interpreted("Lua, LuaJIT", "luajit", "luajit @/main.lua"),
    interpreted("Perl", "perl", "perl @/main.perl"),
    interpreted("PHP", "php-cli", "php @/main.php"),
    interpreted("Prolog, SWI", "swi-prolog-nox", "swipl @/main.pl"),
    interpreted("Python", "python3", "/usr/bin/python3 @/main.py"),
    interpreted("Ruby", "ruby", "ruby @/main.rb"),
    interpreted(
        "Scheme, Guile",
        "guile-3.0",
        "guile --no-auto-compile @/main.scm",
    ),
    interpreted("Tcl", "tcl", "tclsh @/main.tcl").in_library("libtcl8.6"),
];

/// What came of a language.
pub(super) struct Spoken {
    pub(super) name: &'static str,
    /// What was observed.
    pub(super) program: String,
    pub(super) covered: Covered,
    pub(super) came: [Came; WAYS.len()],
    /// The command that is known to break it, if any.
    pub(super) breaks: &'static str,
}

impl Spoken {
    /// Whether the program answered as it does alone wherever it was observed, but for what is known.
    pub(super) fn same(&self) -> bool {
        let mut each = self.came.iter().zip(WAYS);
        each.all(|(came, way)| *came != Came::Differs || way == [self.breaks])
    }
}

/// What they are called.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    LANGUAGES.iter().map(|language| language.name)
}

/// Has those run that are chosen by name.
pub(super) fn hear(place: &Place, is_chosen: impl Fn(&str) -> bool) -> Result<Vec<Spoken>> {
    let chosen = || LANGUAGES.iter().filter(|language| is_chosen(language.name));
    install(chosen().flat_map(|each| each.packages.split(' ')))?;
    let mut spoken = Vec::new();
    for language in chosen() {
        eprintln!("== {}", language.name);
        spoken.push(examine(place, language).context(language.name)?);
    }
    Ok(spoken)
}

fn install(packages: impl Iterator<Item = &'static str>) -> Result<()> {
    let mut apt = house::command("apt-get")?;
    apt.env("DEBIAN_FRONTEND", "noninteractive");
    apt.args(["install", "--quiet", "--yes", "--no-install-recommends"]);
    house::run(apt.args(packages))
}

fn examine(place: &Place, language: &Language) -> Result<Spoken> {
    let sources = house::root()?.join("tests/programs/languages");
    let folder = place.folder.join("languages").join(language.name);
    fs::create_dir_all(&folder)?;
    let build = format!("SOURCES='{}'; {}", text(&sources)?, language.build);
    place.succeed(&folder, &build).context("building")?;
    let words = words(language, &sources, &folder)?;
    let library = match language.library {
        "" => Vec::new(),
        library => vec!["--module", library],
    };
    let came = asking::ask(place, &library, &words)?;
    Ok(Spoken {
        name: language.name,
        program: match language.library {
            "" => named(&words[0]),
            library => named(library),
        },
        covered: covered(place, &folder, &library, &words)?,
        came: came.context("it does not answer alike twice alone")?,
        breaks: language.breaks,
    })
}

/// What is run, by its path.
fn words(language: &Language, sources: &Path, folder: &Path) -> Result<Vec<OsString>> {
    let (sources, built) = (text(sources)?, format!("{}/", text(folder)?));
    let words = language.run.split(' ').enumerate().map(|(at, word)| {
        let word = match word.strip_prefix("./") {
            Some(name) => format!("{built}{name}"),
            None => word.replace('@', sources),
        };
        let path = match at {
            0 => house::on_path(&word).with_context(|| format!("there is no {word}"))?,
            _ => PathBuf::from(word),
        };
        Ok(path.into_os_string())
    });
    words.collect()
}

/// The name of a file, and not of a link to it.
fn named(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let name = real.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// How much of what is observed has probes, and how much of it runs.
fn covered(place: &Place, folder: &Path, library: &[&str], words: &[OsString]) -> Result<Covered> {
    let record = folder.join("covered");
    let _ = fs::remove_dir_all(&record);
    let mut command = house::command(&place.tomo)?;
    place.at_home(&mut command, folder);
    command.arg("cover").args(library).arg("-o").arg(&record);
    command.arg("--").args(words).output()?;
    place.coverage(&record)
}
