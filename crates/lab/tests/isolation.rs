//! The study of bug isolation on a small program, and some of the tree's faulty programs: they build, and fail in some
//! cases and not in most.

use std::fs;
use std::path::{Path, PathBuf};

use tomo_lab::isolation::{Laboratory, Subject, Workshop, read_subjects, render, run};
use tomo_launch::Agent;
use tomo_program::Progress;
use tomo_testkit::corpus::package;

struct Quiet;

impl Progress for Quiet {
    fn stage(&self, _: &str, _: u64) {}
    fn advance(&self, _: u64) {}
}

fn laboratory<'l>(
    folder: &'l Path,
    packages: &'l dyn Fn(&str) -> Option<PathBuf>,
) -> Laboratory<'l> {
    let cache = folder.join("cache");
    Laboratory {
        workshop: Workshop { folder, packages },
        agent: Agent::in_cache(&cache).expect("an agent"),
        cache,
        progress: &Quiet,
    }
}

const PROGRAM: &str = "#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    int sum = 0;
    for (int i = 1; i < argc; i++) {
        int number = atoi(argv[i]);
        if (number > 20) {
            number = 20;
        }
        sum += number;
    }
    printf(\"%d\\n\", sum);
    return 0;
}
";

/// A subject of the layout that is described, with its own sources.
fn small(folder: &Path) -> Vec<Subject> {
    let one = folder.join("small");
    fs::create_dir_all(one.join("source")).expect("folders");
    fs::create_dir_all(one.join("variants/other")).expect("folders");
    let write = |name: &str, text: &str| fs::write(one.join(name), text).expect("written");
    write("source/main.c", PROGRAM);
    write("build.sh", "gcc -g -O0 main.c -o \"$OUT\"\n");
    write("cases", "1 2\n30 1\n5\n21\n20\n7 8 9\n40\n2 2\n");
    write(
        "variants/clamped.patch",
        "output, near: more than twenty is thirty\n\n--- a/main.c\n+++ b/main.c\n@@ -7,3 +7,3 @@\n         if (number > 20) {\n-            number = 20;\n+            number = 30;\n         }\n",
    );
    write(
        "variants/other/about",
        "crash, near: twenty and more is too much\n",
    );
    let crashing = PROGRAM.replace(
        "sum += number;",
        "sum += number;\n        if (number == 20) {\n            abort();\n        }",
    );
    write("variants/other/main.c", &crashing);
    read_subjects(folder).expect("subjects")
}

#[test]
fn a_small_study_says_what_there_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let subjects = small(&folder.path().join("subjects"));
    let work = folder.path().join("built");
    fs::create_dir_all(&work).expect("a folder");
    let laboratory = laboratory(&work, &|_| None);
    let results = run(&subjects, &laboratory).expect("results");
    assert!(results.refused.is_empty(), "{:?}", results.refused);
    for one in &results.studied {
        let failures = if one.crashes { 4 } else { 3 };
        assert_eq!((one.failures, one.successes), (failures, 8 - failures));
        // All runs come by, and those that fail alone are on the wrong way.
        let increase = 1.0 - failures as f64 / 8.0;
        let importance = 2.0 / (1.0 / increase + 1.0);
        assert!((one.best - importance).abs() < 1e-9, "{one:?}");
        let missed = one.searched.iter().find(|way| way.found < way.trials);
        assert!(missed.is_none(), "{}: {missed:?}", one.variant);
        let backward = one
            .searched
            .iter()
            .any(|way| way.way.starts_with("backward"));
        assert_eq!(backward, one.crashes, "{}", one.variant);
    }
    let real = results.studied[0].real.as_ref().expect("a real search");
    assert!(
        real.as_rehearsed && (real.best - results.studied[0].best).abs() < 1e-9,
        "{real:?}"
    );
    let pages = render(&results).expect("pages");
    let page = &pages
        .iter()
        .find(|file| file.0 == "isolation.md")
        .expect("a page")
        .1;
    assert!(page.contains("in 2 of 2 variants (100.0 %"), "{page}");
    assert!(
        page.contains("| small | clamped | more than twenty is thirty | output, near | 3 | 8 |")
    );
}

#[test]
fn faults_of_the_tree_show_in_some_cases_and_not_in_most() {
    let folder = tempfile::tempdir().expect("a folder");
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/subjects");
    let subjects = read_subjects(&fs::canonicalize(tree).expect("a tree")).expect("subjects");
    let all: usize = subjects.iter().map(|subject| subject.variants.len()).sum();
    assert!(subjects.len() >= 5 && all >= 30, "{all} variants");
    let packages = |name: &str| package(name).ok();
    let laboratory = laboratory(folder.path(), &packages);
    let bzip2 = subjects.iter().find(|subject| subject.name == "bzip2");
    let bzip2 = bzip2.expect("bzip2");
    for name in ["selector-limit", "run-length-unmarked"] {
        let variant = bzip2.variants.iter().find(|one| one.name == name);
        let labels = laboratory.labels(bzip2, &[variant.expect(name)]);
        let labels = labels.expect(name);
        let failing = labels.iter().filter(|passed| !**passed).count();
        assert!(
            failing >= 2 && 2 * failing < labels.len(),
            "{name}: {failing}"
        );
    }
}
