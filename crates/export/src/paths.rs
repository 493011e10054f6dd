//! Which source files are shown, and under which names.
//!
//! A pattern without a leading `/` may start at any folder, but `./` and `../` are seen from the folder where we are; and a
//! pattern that matches a folder takes all that is in it: `src`, `./src`, `../lib`, `src/*.c`, `*.h`, `/usr/include` do what
//! they look like. Exclusion wins over inclusion; both look at names after replacement. Names, and patterns, are compared
//! without `.` and `..`.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use globset::{Glob, GlobSet, GlobSetBuilder};
use tomo_program::text_of;

/// Why a pattern is none.
#[derive(Debug, thiserror::Error)]
pub enum BadPattern {
    /// A glob that cannot be read, and why.
    #[error("{0:?} is no pattern: {1}")]
    Glob(String, globset::ErrorKind),
    /// A replacement without a colon.
    #[error("{0:?} is no replacement: write FROM:TO")]
    Replacement(String),
}

/// The choice of source files.
#[derive(Debug, Default)]
pub struct Paths {
    include: Option<GlobSet>,
    exclude: Option<GlobSet>,
    replace: Vec<Replacement>,
    leaves_out_marked: bool,
}

/// `to` in place of each of `from` at the start of a name.
#[derive(Debug)]
struct Replacement {
    from: Vec<String>,
    to: String,
    /// What was asked for.
    text: String,
    /// Whether a name began so.
    used: AtomicBool,
}

impl Replacement {
    fn new(text: &str, here: &Path) -> Result<Self, BadPattern> {
        let parts = text.split_once(':').filter(|(from, _)| !from.is_empty());
        let (from, to) = parts.ok_or_else(|| BadPattern::Replacement(text.to_owned()))?;
        Ok(Self {
            from: starts(from, here),
            to: to.to_owned(),
            text: text.to_owned(),
            used: AtomicBool::new(false),
        })
    }

    /// The other name of `path`, if it begins so.
    fn of(&self, path: &str) -> Option<String> {
        let mut rests = self.from.iter().filter_map(|from| {
            let rest = path.strip_prefix(from.as_str())?;
            let whole = rest.is_empty() || rest.starts_with('/') || from.ends_with('/');
            whole.then_some(rest)
        });
        let rest = rests.next()?;
        self.used.store(true, Ordering::Relaxed);
        // A folder's name is one with a slash behind it or without, on either side.
        let apart = path[..path.len() - rest.len()].ends_with('/');
        let between = match apart && !self.to.is_empty() && !self.to.ends_with('/') {
            true => "/",
            false => "",
        };
        Some(format!("{}{between}{rest}", self.to))
    }
}

impl Paths {
    /// The choice that these patterns and `FROM:TO` replacements make in the folder `here`.
    ///
    /// # Errors
    /// Where one of them cannot be read.
    pub fn new(
        include: &[String],
        exclude: &[String],
        replace: &[String],
        here: &Path,
    ) -> Result<Self, BadPattern> {
        let replace = replace.iter().map(|text| Replacement::new(text, here));
        Ok(Self {
            include: set(include, here)?,
            exclude: set(exclude, here)?,
            replace: replace.collect::<Result<_, _>>()?,
            leaves_out_marked: false,
        })
    }

    /// Without the lines that the source marks as lcov and gcovr know it, if `wanted`.
    #[must_use]
    pub fn leaving_out_marked(self, wanted: bool) -> Self {
        Self {
            leaves_out_marked: wanted,
            ..self
        }
    }

    /// Whether such lines are left out.
    pub(crate) fn leaves_out_marked(&self) -> bool {
        self.leaves_out_marked
    }

    /// What a file is called: `.` and `..` are resolved, and the first replacement that fits the start of its name is
    /// made.
    #[must_use]
    pub fn renamed(&self, path: &str) -> String {
        let path = normal(path);
        let other = self
            .replace
            .iter()
            .find_map(|replacement| replacement.of(&path));
        other.map_or(path, |other| normal(&other))
    }

    /// The replacements that fitted no name so far, as they were asked for.
    pub fn unused(&self) -> impl Iterator<Item = &str> {
        let used = |replacement: &&Replacement| replacement.used.load(Ordering::Relaxed);
        let unused = self
            .replace
            .iter()
            .filter(move |replacement| !used(replacement));
        unused.map(|replacement| replacement.text.as_str())
    }

    /// Whether the file that is called `path` is shown.
    #[must_use]
    pub fn takes(&self, path: &str) -> bool {
        let in_set = |set: &Option<GlobSet>| set.as_ref().map(|set| set.is_match(path));
        in_set(&self.include).unwrap_or(true) && !in_set(&self.exclude).unwrap_or(false)
    }

    /// Whether code that comes from no known file is shown.
    #[must_use]
    pub fn takes_unknown(&self) -> bool {
        self.include.is_none()
    }
}

/// A path without `.`, doubled `/`, and `..` behind a name.
pub(crate) fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if path.starts_with('/') && parts.is_empty() => {}
            part => parts.push(part),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    root.to_owned() + &parts.join("/")
}

/// Whether a path is one as seen from the folder where we are.
fn is_from_here(path: &str) -> bool {
    matches!(path.split('/').next(), Some("." | ".."))
}

/// How names may begin that `from` is the beginning of: as it stands, as debug information may say it, too; and seen from
/// here.
fn starts(from: &str, here: &Path) -> Vec<String> {
    let mut starts = vec![normal(from)];
    if is_from_here(from) {
        starts.push(normal(&format!("{}/{from}", text_of(here))));
    }
    starts.retain(|start| !start.is_empty());
    if from.ends_with('/') {
        let open = starts.iter_mut().filter(|start| !start.ends_with('/'));
        open.for_each(|start| start.push('/'));
    }
    starts
}

fn set(patterns: &[String], here: &Path) -> Result<Option<GlobSet>, BadPattern> {
    if patterns.is_empty() {
        return Ok(None);
    }
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let anchored = match pattern {
            _ if is_from_here(pattern) => {
                normal(&format!("{}/{pattern}", globset::escape(&text_of(here))))
            }
            _ if pattern.starts_with('/') => normal(pattern),
            _ => format!("**/{}", normal(pattern)),
        };
        let bad = |error: globset::Error| BadPattern::Glob(pattern.clone(), error.kind().clone());
        set.add(glob(&anchored).map_err(bad)?);
        set.add(glob(&format!("{}/**", anchored.trim_end_matches('/'))).map_err(bad)?);
    }
    Ok(Some(set.build().map_err(|error| {
        BadPattern::Glob(patterns.join(" "), error.kind().clone())
    })?))
}

fn glob(pattern: &str) -> Result<Glob, globset::Error> {
    let mut builder = globset::GlobBuilder::new(pattern);
    builder.literal_separator(true).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(include: &[&str], exclude: &[&str], replace: &[&str]) -> Paths {
        let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let here = Path::new("/home/me/a[b]");
        Paths::new(&owned(include), &owned(exclude), &owned(replace), here).expect("sound patterns")
    }

    #[test]
    fn patterns_do_what_they_look_like() {
        let taken = |pattern: &str, path: &str| paths(&[pattern], &[], &[]).takes(path);
        for (pattern, path, expected) in [
            ("src", "/home/me/src/a/b.c", true),
            ("src/*.c", "/home/me/src/b.c", true),
            ("src/*.c", "/home/me/src/a/b.c", false),
            ("src/**/*.c", "/home/me/src/a/b.c", true),
            ("*.h", "include/deep/x.h", true),
            ("/usr/include", "/usr/include/stdio.h", true),
            ("/usr/include", "/opt/usr/include/stdio.h", false),
            ("src/", "src/x.c", true),
            ("./src/", "/home/me/a[b]/src/x.c", true),
            ("./*.c", "/home/me/a[b]/x.c", true),
            (".", "/home/me/a[b]/src/x.c", true),
            ("./src", "/rustc/library/std/src/x.rs", false),
            ("./src", "/home/me/a[b]/lib/src/x.c", false),
            ("../b", "/home/me/b/x.c", true),
            ("../b", "/home/me/a[b]/b/x.c", false),
            ("../../*/src/./", "/home/you/src/x.c", true),
            ("..", "/home/me/c.c", true),
            ("./x/../src", "/home/me/a[b]/src/x.c", true),
            ("src/../lib/*.c", "/any/lib/x.c", true),
            ("/usr/./lib/../include//", "/usr/include/stdio.h", true),
            ("/", "/x.c", true),
            (".hidden", "/any/.hidden/x.c", true),
            ("sr", "src/x.c", false),
        ] {
            assert_eq!(taken(pattern, path), expected, "{pattern} of {path}");
        }
    }

    #[test]
    fn exclusion_wins_and_names_are_replaced_first() {
        let paths = paths(&["/here"], &["*.y"], &["/build/there:/here", "/b:"]);
        assert_eq!(paths.renamed("/build/there/x.c"), "/here/x.c");
        assert_eq!(
            paths.renamed("/build/thereabouts/x.c"),
            "/build/thereabouts/x.c"
        );
        assert_eq!(paths.renamed("/b/x.c"), "/x.c");
        assert!(paths.takes("/here/x.c") && !paths.takes("/here/x.y") && !paths.takes("/x.c"));
        assert!(!paths.takes_unknown());
        let unused = self::paths(&[], &[], &["/no:/x", "../b:/y"]);
        assert_eq!(Vec::from_iter(unused.unused()), ["/no:/x", "../b:/y"]);
        let _ = unused.renamed("../b/x.c");
        assert_eq!(Vec::from_iter(unused.unused()), ["/no:/x"]);
    }

    #[test]
    fn names_are_replaced_without_the_turns_they_take() {
        let renamed = |replace: &str, path: &str| paths(&[], &[], &[replace]).renamed(path);
        for (replace, path, expected) in [
            ("/build/src:/here", "/build/out/../src/x.c", "/here/x.c"),
            ("/build/out/../src/:/here/", "/build/src/x.c", "/here/x.c"),
            ("../b:/here", "/home/me/b/x.c", "/here/x.c"),
            ("../b:/here", "../b/x.c", "/here/x.c"),
            ("./src:/here", "src/x.c", "/here/x.c"),
            (".:/here", "/home/me/a[b]/x.c", "/here/x.c"),
            (".:/here", "/elsewhere/x.c", "/elsewhere/x.c"),
            ("/:/top/", "/x.c", "/top/x.c"),
            ("/build/:/here", "/build/x.c", "/here/x.c"),
            ("/build/:/here/", "/build/x.c", "/here/x.c"),
            ("/build/:", "/build/x.c", "x.c"),
            ("/build:/here/", "/build/x.c", "/here/x.c"),
        ] {
            assert_eq!(renamed(replace, path), expected, "{replace} of {path}");
        }
    }

    #[test]
    fn names_are_normal() {
        for (path, expected) in [
            ("/a/./b//c/../d.c", "/a/b/d.c"),
            ("../x/y.c", "../x/y.c"),
            ("/../x.c", "/x.c"),
            ("a/../../x.c", "../x.c"),
            ("", ""),
        ] {
            assert_eq!(normal(path), expected);
        }
    }

    #[test]
    fn bad_patterns_are_refused() {
        let refused = |include: &str, replace: &str| {
            let list = |text: &str| {
                if text.is_empty() {
                    vec![]
                } else {
                    vec![text.to_owned()]
                }
            };
            Paths::new(&list(include), &[], &list(replace), Path::new("/")).is_err()
        };
        assert!(refused("[", "") && refused("", "no-colon") && refused("", ":x"));
    }
}
