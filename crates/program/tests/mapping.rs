//! What the mapping of model files relies on (`SAFETY.md`), attacked: a file that is open is never
//! written to or shortened by us, whatever writers do; and no file that somebody else damaged
//! before it was opened gets further than its checksums.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tempfile::TempDir;
use tomo_program::{Cache, Facts, Identity, Key, Model};

fn identity() -> Identity {
    let key = Key::BuildId(vec![7; 20]);
    Identity {
        key,
        fingerprint: 99,
    }
}

/// A model of several pages that all say `mark`.
fn model(mark: &str, lines: usize) -> Model {
    let facts = Facts {
        fingerprint: identity().fingerprint,
        warnings: vec![mark.repeat(50); lines],
        ..Facts::default()
    };
    Model::build(Vec::new(), facts)
}

fn cache() -> (TempDir, Cache) {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::at(directory.path());
    (directory, cache)
}

#[test]
fn replacing_a_model_leaves_who_has_it_open_alone() {
    let (_directory, cache) = cache();
    let (long, short) = (model("old", 1000), model("new", 1));
    cache.keep(&identity(), &long).unwrap();
    let open = cache.find(&identity()).unwrap().unwrap();
    cache.keep(&identity(), &short).unwrap();
    assert_eq!(open.as_bytes(), long.as_bytes());
    open.verify().unwrap();
    let now = cache.find(&identity()).unwrap().unwrap();
    assert_eq!(now.as_bytes(), short.as_bytes());
}

#[test]
fn removing_a_model_leaves_who_has_it_open_alone() {
    let (directory, cache) = cache();
    let kept = model("old", 1000);
    cache.keep(&identity(), &kept).unwrap();
    let open = cache.find(&identity()).unwrap().unwrap();
    directory.close().unwrap();
    assert_eq!(open.as_bytes(), kept.as_bytes());
}

#[test]
fn readers_beside_writers_find_whole_models() {
    let (_directory, cache) = cache();
    let models = [model("long", 500), model("short", 3)];
    cache.keep(&identity(), &models[0]).unwrap();
    let reading = AtomicBool::new(true);
    thread::scope(|scope| {
        for kept in &models {
            scope.spawn(|| {
                while reading.load(Ordering::Relaxed) {
                    cache.keep(&identity(), kept).unwrap();
                }
            });
        }
        let read = || (0..300).all(|_| is_one_of(&cache, &models));
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read));
        reading.store(false, Ordering::Relaxed);
        assert!(matches!(outcome, Ok(true)), "a reader found something else");
    });
}

fn is_one_of(cache: &Cache, models: &[Model]) -> bool {
    let found = cache.find(&identity()).unwrap().unwrap();
    found.verify().is_ok() && models.iter().any(|one| one.as_bytes() == found.as_bytes())
}

#[test]
fn a_model_cut_short_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model");
    let whole = model("cut", 100).as_bytes().to_vec();
    for length in (0..whole.len()).step_by(7) {
        fs::write(&path, &whole[..length]).unwrap();
        assert!(Model::open(&path).is_err(), "{length} of {}", whole.len());
    }
}

#[test]
fn a_model_with_any_byte_changed_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model");
    let whole = model("bad", 3).as_bytes().to_vec();
    for index in 0..whole.len() {
        let mut changed = whole.clone();
        changed[index] ^= 0x55;
        fs::write(&path, &changed).unwrap();
        let verified = Model::open(&path).and_then(|model| model.verify());
        assert!(verified.is_err(), "byte {index} of {}", whole.len());
    }
}
