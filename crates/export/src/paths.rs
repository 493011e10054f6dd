//! Which source files are shown, and under which names.
//!
//! A pattern without a leading `/` may start at any folder, and a pattern that matches a folder takes
//! all that is in it: `src`, `src/*.c`, `*.h`, `/usr/include` do what they look like. Exclusion wins
//! over inclusion; both look at names after replacement.

use globset::{Glob, GlobSet, GlobSetBuilder};

/// Why a pattern is none.
#[derive(Debug, thiserror::Error)]
pub enum BadPattern {
    /// A glob that cannot be read.
    #[error(transparent)]
    Glob(#[from] globset::Error),
    /// A replacement without a colon.
    #[error("{0:?} is no replacement: write FROM:TO")]
    Replacement(String),
}

/// The choice of source files.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    include: Option<GlobSet>,
    exclude: Option<GlobSet>,
    replace: Vec<(String, String)>,
}

impl Paths {
    /// The choice that these patterns and `FROM:TO` replacements make.
    ///
    /// # Errors
    /// Where one of them cannot be read.
    pub fn new(
        include: &[String],
        exclude: &[String],
        replace: &[String],
    ) -> Result<Self, BadPattern> {
        let pair = |text: &String| {
            let (from, to) = text
                .split_once(':')
                .filter(|(from, _)| !from.is_empty())
                .ok_or_else(|| BadPattern::Replacement(text.clone()))?;
            Ok((from.to_owned(), to.to_owned()))
        };
        Ok(Self {
            include: set(include)?,
            exclude: set(exclude)?,
            replace: replace
                .iter()
                .map(pair)
                .collect::<Result<_, BadPattern>>()?,
        })
    }

    /// What a file is called: the first replacement that fits the start of its name is made, and
    /// `.` and `..` are resolved.
    #[must_use]
    pub fn renamed(&self, path: &str) -> String {
        let mut fitting = self.replace.iter().filter_map(|(from, to)| {
            let rest = path.strip_prefix(from.as_str())?;
            let whole = rest.is_empty() || rest.starts_with('/') || from.ends_with('/');
            whole.then(|| format!("{to}{rest}"))
        });
        let path = fitting.next().unwrap_or_else(|| path.to_owned());
        normal(&path)
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
fn normal(path: &str) -> String {
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

fn set(patterns: &[String]) -> Result<Option<GlobSet>, BadPattern> {
    if patterns.is_empty() {
        return Ok(None);
    }
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let pattern = pattern.strip_suffix('/').unwrap_or(pattern);
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        let anywhere = match pattern.starts_with('/') {
            true => pattern.to_owned(),
            false => format!("**/{pattern}"),
        };
        set.add(glob(&anywhere)?);
        set.add(glob(&format!("{anywhere}/**"))?);
    }
    Ok(Some(set.build()?))
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
        Paths::new(&owned(include), &owned(exclude), &owned(replace)).expect("sound patterns")
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
            ("./src/", "src/x.c", true),
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
            Paths::new(&list(include), &[], &list(replace)).is_err()
        };
        assert!(refused("[", "") && refused("", "no-colon") && refused("", ":x"));
    }
}
