//! From a path to a model, with an analysis that counts how often it is asked.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tomo_program::{Cache, LoadError, Loaded, Request, load_with};

use crate::sample;

/// A directory with a program and a cache.
struct Bench {
    directory: TempDir,
    analysed: Cell<u32>,
}

/// An ELF header without tables, then `rest`.
fn program(rest: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    bytes.extend_from_slice(rest);
    bytes
}

impl Bench {
    fn new() -> Self {
        let bench = Self {
            directory: tempfile::tempdir().expect("a directory"),
            analysed: Cell::new(0),
        };
        fs::write(bench.path("program"), program(b"one")).expect("written");
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn cache(&self) -> Cache {
        Cache::at(self.path("cache"))
    }

    fn models(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("cache/models"))
            .into_iter()
            .flatten()
            .flatten();
        entries.map(|entry| entry.path()).collect()
    }

    fn load(&self, change: impl FnOnce(&mut Request<'_>)) -> Result<Loaded, LoadError> {
        let (path, cache) = (self.path("program"), self.cache());
        let mut request = request(&path, &cache);
        change(&mut request);
        self.load_as(&request)
    }

    fn load_as(&self, request: &Request<'_>) -> Result<Loaded, LoadError> {
        load_with(request, &(), &|_, _| {
            self.analysed.set(self.analysed.get() + 1);
            Ok((sample::functions(), sample::facts()))
        })
    }
}

fn request<'a>(path: &'a Path, cache: &'a Cache) -> Request<'a> {
    Request {
        path,
        cache: Some(cache),
        refresh: false,
        whole: true,
    }
}

#[test]
fn a_program_is_analysed_once() {
    let bench = Bench::new();
    assert!(!bench.load(|_| {}).expect("loaded").cached);
    let again = bench.load(|_| {}).expect("loaded");
    assert!(again.cached && again.warnings.is_empty());
    assert_eq!(again.model.graphs().expect("sound").functions().len(), 3);
    assert_eq!(bench.analysed.get(), 1);
    assert!(
        !bench
            .load(|request| request.refresh = true)
            .expect("loaded")
            .cached
    );
    assert!(
        !bench
            .load(|request| request.cache = None)
            .expect("loaded")
            .cached
    );
    assert_eq!(bench.analysed.get(), 3);
}

#[test]
fn another_content_is_another_program() {
    let bench = Bench::new();
    bench.load(|_| {}).expect("loaded");
    fs::write(bench.path("program"), program(b"two")).expect("written");
    assert!(!bench.load(|_| {}).expect("loaded").cached);
    assert_eq!(bench.models().len(), 2);
}

#[test]
fn damaged_models_are_replaced_with_a_warning() {
    let bench = Bench::new();
    bench.load(|_| {}).expect("loaded");
    let [kept] = &bench.models()[..] else {
        panic!("one model")
    };
    let sound = fs::read(kept).expect("read");
    for damage in [0, 10, 100, 600, sound.len() - 1] {
        let mut bytes = sound.clone();
        bytes[damage] ^= 0x10;
        fs::write(kept, bytes).expect("written");
        let loaded = bench.load(|_| {}).expect("loaded");
        assert!(!loaded.cached, "byte {damage}");
        assert_eq!(loaded.warnings.len(), 1);
        assert!(
            loaded.warnings[0].contains("cached model not used"),
            "{:?}",
            loaded.warnings
        );
        assert!(
            bench.load(|_| {}).expect("loaded").cached,
            "it was replaced"
        );
    }
    fs::write(kept, b"").expect("written");
    assert!(!bench.load(|_| {}).expect("loaded").cached);
    fs::write(kept, &sound[..sound.len() / 2]).expect("written");
    assert!(!bench.load(|_| {}).expect("loaded").cached);
}

/// A directory in the model's place can be neither read nor replaced; the work is done all the same.
#[test]
fn an_unusable_cache_is_a_warning_only() {
    let bench = Bench::new();
    fs::write(bench.path("cache"), "a file").expect("written");
    let loaded = bench.load(|_| {}).expect("loaded");
    assert!(
        !loaded.cached
            && loaded
                .warnings
                .iter()
                .any(|warning| warning.contains("model not kept"))
    );
    fs::remove_file(bench.path("cache")).expect("removed");
    bench.load(|_| {}).expect("loaded");
    let [kept] = &bench.models()[..] else {
        panic!("one model")
    };
    fs::remove_file(kept).expect("removed");
    fs::create_dir(kept).expect("made");
    let loaded = bench.load(|_| {}).expect("loaded");
    assert_eq!(loaded.warnings.len(), 2, "{:?}", loaded.warnings);
}

#[test]
fn what_is_no_file_is_never_opened() {
    let bench = Bench::new();
    let cache = bench.cache();
    let fails = |path: &Path| {
        bench
            .load_as(&request(path, &cache))
            .expect_err("no program")
            .to_string()
    };
    let pipe = bench.path("pipe");
    let made = std::process::Command::new("mkfifo")
        .arg(&pipe)
        .status()
        .expect("mkfifo runs");
    assert!(made.success());
    assert_eq!(fails(&pipe), "is a named pipe, not a file");
    assert_eq!(fails(bench.directory.path()), "is a directory, not a file");
    assert_eq!(fails(Path::new("/dev/null")), "is a device, not a file");
    assert_eq!(fails(&bench.path("absent")), "no such file or directory");
    let _socket = std::os::unix::net::UnixListener::bind(bench.path("socket")).expect("bound");
    assert_eq!(fails(&bench.path("socket")), "is a socket, not a file");
    fs::write(bench.path("empty"), b"").expect("written");
    assert_eq!(fails(&bench.path("empty")), "is empty");
    fs::write(bench.path("script"), b"#!/usr/bin/env python3\n").expect("written");
    assert_eq!(
        fails(&bench.path("script")),
        "is a script run by python3; map that instead"
    );
    std::os::unix::fs::symlink("self", bench.path("self")).expect("linked");
    assert!(fails(&bench.path("self")).contains("symbolic link"));
    assert_eq!(bench.analysed.get(), 0);
    assert!(bench.models().is_empty());
}

#[test]
fn what_fails_to_be_analysed_is_not_kept() {
    let bench = Bench::new();
    let (path, cache) = (bench.path("program"), bench.cache());
    let request = Request {
        path: &path,
        cache: Some(&cache),
        refresh: false,
        whole: false,
    };
    let error = load_with(&request, &(), &|_, _| Err("no good".into())).expect_err("refused");
    assert_eq!(error.to_string(), "no good");
    assert!(!bench.path("cache").exists());
}

/// Only the first bytes of what has no ELF headers are given to the analysis, to say what is wrong.
#[test]
fn large_files_that_are_no_programs_are_not_read() {
    let bench = Bench::new();
    let path = bench.path("large");
    fs::File::create(&path)
        .and_then(|file| file.set_len(1 << 33))
        .expect("a sparse file");
    let request = Request {
        path: &path,
        cache: None,
        refresh: false,
        whole: false,
    };
    let seen = Cell::new(0);
    let refused = load_with(&request, &(), &|bytes, _| {
        seen.set(bytes.len());
        Err("not an ELF file".into())
    });
    assert!(refused.is_err());
    assert_eq!(seen.get(), 4096);
}
