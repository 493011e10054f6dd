//! The HTML pages.

use std::fs;
use std::path::{Path, PathBuf};

use crate::bench::{Bench, RAN, Seen};

/// All pages below a folder.
pub(crate) fn pages(folder: &Path) -> Vec<PathBuf> {
    let list = |folder: &Path| {
        fs::read_dir(folder)
            .expect("a folder")
            .map(|it| it.expect("an entry").path())
    };
    let mut all: Vec<_> = list(folder)
        .chain(list(&folder.join("files")))
        .filter(|it| it.is_file())
        .collect();
    all.sort();
    all
}

fn body(page: &Path) -> String {
    let text = fs::read_to_string(page).expect("a page");
    let (head, body) = text.split_once("<body>").expect("a body");
    assert!(head.contains("viewport") && head.contains("prefers-color-scheme:dark"));
    // The source has what room there is, and not the numbers before it.
    assert!(head.contains(".code td:last-child{width:100%}"));
    assert!(head.contains(".code td.b{user-select:none;white-space:normal}"));
    assert!(head.contains(".b div{width:max-content;max-width:min(9rem,25vw)}"));
    body.to_owned()
}

#[test]
fn pages_show_the_source_or_say_why_not() {
    let bench = Bench::new();
    let program = bench.sample();
    bench.run("tomo-out", 1, &program, &Seen::blocks(&RAN));
    let source: String = (1..=23).map(|line| format!("line <{line}>\n")).collect();
    fs::create_dir(bench.path("lib")).expect("made");
    fs::write(bench.path("a.c"), source).expect("written");
    let file = fs::File::options().write(true).open(bench.path("a.c"));
    file.and_then(|file| file.set_modified(std::time::UNIX_EPOCH))
        .expect("ours");
    let here = format!("/src/demo:{}", bench.path("").display());
    let here = here.trim_end_matches('/');
    bench
        .tomo(&[
            "report",
            "--format",
            "html",
            "-o",
            "pages",
            "--replace-src-path",
            here,
        ])
        .well();
    let index = body(&bench.path("pages/index.html"));
    insta::assert_snapshot!("index", bench.clean(&index));
    insta::assert_snapshot!(
        "source",
        bench.clean(&body(&bench.path("pages/files/s-a.c.html")))
    );
    let missing = body(&bench.path("pages/files/s-b.h.html"));
    assert!(missing.contains("The source is not shown: no such file or directory."));
    assert!(
        missing.contains("<tr class=\"ran\" id=\"12\">")
            && missing.contains("<tr class=\"missed\" id=\"30\">")
    );
}

/// No page needs anything from elsewhere, and each link leads to a page that is there.
#[test]
fn pages_stand_by_themselves() {
    let bench = Bench::new();
    let program = bench.sample();
    bench.run("tomo-out", 1, &program, &Seen::blocks(&RAN));
    let table = bench.tomo(&["report", "--html", "pages"]).well();
    assert!(table.contains("blocks"), "the table is shown, too");
    let pages = pages(&bench.path("pages"));
    assert_eq!(pages.len(), 4);
    for page in pages {
        let text = fs::read_to_string(&page).expect("a page");
        for outside in ["http:", "https:", "src=", "<script", "@import", "url("] {
            assert!(!text.contains(outside), "{outside} in {}", page.display());
        }
        let links = text
            .split("href=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next());
        for link in links.filter(|link| !link.starts_with('#')) {
            let target = page.parent().expect("a folder").join(link);
            assert!(target.is_file(), "{link} of {}", page.display());
        }
    }
}

/// A source that was changed since shows the wrong lines, however many it has.
#[test]
fn a_source_that_is_newer_than_the_program_is_said_to_be() {
    let bench = Bench::new();
    let program = bench.sample();
    bench.run("tomo-out", 1, &program, &Seen::blocks(&RAN));
    let source = bench.path("a.c");
    fs::write(&source, "line\n".repeat(40)).expect("written");
    let here = format!("/src/demo:{}", bench.path("").display());
    let here = here.trim_end_matches('/');
    let built = fs::metadata(&program.path).and_then(|it| it.modified());
    let built = built.expect("a time");
    let second = std::time::Duration::from_secs(1);
    for (written, expected) in [(built - second, false), (built + second, true)] {
        let file = fs::File::options().write(true).open(&source);
        file.and_then(|file| file.set_modified(written))
            .expect("ours");
        let flags = [
            "report",
            "--format",
            "html",
            "-o",
            "pages",
            "--replace-src-path",
            here,
        ];
        bench.tomo(&flags).well();
        let page = body(&bench.path("pages/files/s-a.c.html"));
        let told = page.contains("The source was written after the program");
        assert_eq!(told, expected);
    }
}

/// A page of a file that is no longer reported would be taken for a part of the report.
#[test]
fn pages_of_an_earlier_report_are_removed() {
    let bench = Bench::new();
    let program = bench.sample();
    bench.run("tomo-out", 1, &program, &Seen::blocks(&RAN));
    let report = |more: &[&str]| {
        bench
            .tomo(&[&["report", "--html", "cov"], more].concat())
            .well();
        pages(&bench.path("cov"))
    };
    let all = report(&[]);
    let own = ["s-notes.html", "module-7.html", "notes.html"].map(|name| {
        let path = bench.path("cov/files").join(name);
        fs::write(&path, "<html>mine</html>").expect("written");
        path
    });
    let empty = bench.path("cov/files/s-empty.html");
    fs::write(&empty, "").expect("written");
    let fewer = report(&["--include", "a.c"]);
    fs::remove_file(&empty).expect("left as it was");
    let fewer: Vec<_> = fewer.into_iter().filter(|page| *page != empty).collect();
    assert!(fewer.len() < all.len() + own.len(), "{fewer:?}");
    assert!(own.iter().all(|path| path.exists()), "{fewer:?}");
    let left: Vec<_> = fewer.iter().filter(|page| !own.contains(page)).collect();
    let names = ["s-a.c.html", "module-0.html", "index.html"].map(|name| {
        let is_it = |page: &&&PathBuf| page.file_name() == Some(name.as_ref());
        left.iter().find(is_it).expect(name)
    });
    assert_eq!(left.len(), names.len(), "{left:?}");
}

/// Whoever names a folder with pages of their own keeps them.
#[test]
fn an_index_of_somebody_elses_is_left_alone() {
    let bench = Bench::with_a_run();
    let report = |folder: &str| bench.tomo(&["report", "--html", folder]);
    fs::create_dir(bench.path("site")).expect("made");
    let index = bench.path("site/index.html");
    let own = "<!DOCTYPE html>\n<html><body>mine</body></html>\n";
    fs::write(&index, own).expect("written");
    let said = report("site");
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""));
    let words = "tomo: site/index.html is no page of an earlier report; name another folder\n";
    assert_eq!(said.err, words);
    assert_eq!(fs::read_to_string(&index).expect("there"), own);
    assert!(!bench.path("site/files").exists());
    // What a full disk left of an earlier report is made anew.
    for left in ["", "<!DOCTYPE html>\n<html lang"] {
        fs::write(&index, left).expect("written");
        assert_eq!(report("site").code, Some(0), "{left}");
        assert!(
            fs::read_to_string(&index)
                .expect("there")
                .ends_with("</html>\n")
        );
    }
}
