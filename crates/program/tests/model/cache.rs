//! The cache directory.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use tomo_program::{Cache, Identity, Key, Model};

use crate::sample;

fn identity() -> Identity {
    Identity {
        key: Key::BuildId(vec![0xab; 20]),
        fingerprint: sample::facts().fingerprint,
    }
}

fn model() -> Model {
    Model::build(sample::functions(), sample::facts())
}

#[test]
fn what_is_kept_is_found_by_who_it_belongs_to() {
    let directory = tempfile::tempdir().expect("a directory");
    let cache = Cache::at(directory.path().join("new/deep"));
    assert!(cache.find(&identity()).expect("no error").is_none());
    cache.keep(&identity(), &model()).expect("kept");
    let found = cache.find(&identity()).expect("sound").expect("there");
    assert!(found.as_bytes() == model().as_bytes());
    let other = Identity {
        fingerprint: 1,
        ..identity()
    };
    assert!(
        cache.find(&other).expect("no error").is_none(),
        "a twin with other headers"
    );
}

#[test]
fn the_directory_is_private_and_holds_nothing_else() {
    let directory = tempfile::tempdir().expect("a directory");
    let cache = Cache::at(directory.path().join("cache"));
    cache.keep(&identity(), &model()).expect("kept");
    cache.keep(&identity(), &model()).expect("kept again");
    let mode =
        |path: &std::path::Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&directory.path().join("cache/models")), 0o700);
    assert_eq!(mode(&directory.path().join("cache")), 0o711);
    assert_eq!(mode(&cache.path_of(&identity())), 0o600);
    assert_eq!(
        fs::read_dir(directory.path().join("cache/models"))
            .expect("there")
            .count(),
        1
    );
}

#[test]
fn a_model_of_another_program_is_not_taken() {
    let directory = tempfile::tempdir().expect("a directory");
    let cache = Cache::at(directory.path());
    cache.keep(&identity(), &model()).expect("kept");
    let other = Identity {
        fingerprint: 1,
        ..identity()
    };
    fs::rename(cache.path_of(&identity()), cache.path_of(&other)).expect("renamed");
    let error = cache.find(&other).expect_err("not its model");
    assert!(error.to_string().contains("of another program"), "{error}");
}

#[test]
fn what_cannot_be_written_leaves_what_was_there() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("models"), "not a directory").expect("written");
    let cache = Cache::at(directory.path());
    cache
        .keep(&identity(), &model())
        .expect_err("a file is in the way");
    assert_eq!(
        fs::read(directory.path().join("models")).expect("there"),
        b"not a directory"
    );
}

/// Many writers and readers at once: whoever finds a model finds a whole one.
#[test]
fn readers_beside_writers_find_whole_models() {
    let directory = tempfile::tempdir().expect("a directory");
    let cache = Cache::at(directory.path());
    let expected = model();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..50).for_each(|_| cache.keep(&identity(), &expected).expect("kept")));
        }
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..200 {
                    if let Some(found) = cache.find(&identity()).expect("whole") {
                        found.verify().expect("whole");
                        assert!(found.as_bytes() == expected.as_bytes());
                    }
                }
            });
        }
    });
    assert_eq!(
        fs::read_dir(directory.path().join("models"))
            .expect("there")
            .count(),
        1
    );
}

/// A mapped model outlives its replacement.
#[test]
fn replacing_a_model_leaves_who_has_it_open_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let cache = Cache::at(directory.path());
    cache.keep(&identity(), &model()).expect("kept");
    let old = cache.find(&identity()).expect("sound").expect("there");
    let facts = tomo_program::Facts {
        fingerprint: identity().fingerprint,
        ..Default::default()
    };
    cache
        .keep(&identity(), &Model::build(Vec::new(), facts))
        .expect("kept");
    assert_eq!(old.graphs().expect("sound").functions().len(), 3);
    assert_eq!(
        cache
            .find(&identity())
            .expect("sound")
            .expect("there")
            .summary()
            .functions,
        0
    );
}

/// So it does its removal.
#[test]
fn removing_a_model_leaves_who_has_it_open_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let cache = Cache::at(directory.path());
    cache.keep(&identity(), &model()).expect("kept");
    let open = cache.find(&identity()).expect("sound").expect("there");
    fs::remove_dir_all(directory.path().join("models")).expect("removed");
    assert!(open.as_bytes() == model().as_bytes());
    assert_eq!(open.graphs().expect("sound").functions().len(), 3);
    assert!(cache.find(&identity()).expect("no error").is_none());
}
