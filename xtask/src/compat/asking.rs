//! What one program answers to one question, alone and observed in each way.

use super::run::Place;
use crate::house;
use anyhow::Result;
use std::ffi::OsString;
use std::path::Path;

/// Seconds that an answer may take; `timeout` then ends the program.
const PATIENCE: &str = "120";
/// How often a program is asked again alone for an answer that it gave when observed: some print what several processes
/// say, as it comes.
const DOUBTS: usize = 30;
/// What `timeout` says then.
const TIMED_OUT: i32 = 124;
/// How they are observed.
pub(super) const WAYS: [&[&str]; 7] = [
    &["cover"],
    &["cover", "--level", "edge", "--fork", "separate"],
    &["count"],
    &["paths"],
    &["chains"],
    &["predicates"],
    &["trace"],
];

/// What is said of programs that cannot be observed, and do not run.
const NOT_RUN: &str = "is statically linked";
/// What is said of those that run, and have nothing that could be observed.
const NO_PLACE: &str = "has no place for a probe";
/// What is said of those that run, and whose code cannot be executed elsewhere.
const STATED_PLACES: &str = "its code is Go's";

/// What observing did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// The program answered as it does alone.
    Same,
    /// It cannot be observed so, which is said.
    Refused,
    /// Its answer is another one, or it was not observed though it could be.
    Differs,
}

/// What a program said.
#[derive(PartialEq, Eq)]
struct Answer {
    code: Option<i32>,
    printed: Vec<u8>,
}

/// What came of asking, way for way; `None` where the program does not answer alike twice alone.
///
/// The words are a program and its arguments; `options` are flags of each command.
pub(super) fn ask(
    place: &Place,
    options: &[&str],
    words: &[OsString],
) -> Result<Option<[Came; WAYS.len()]>> {
    let folder = tempfile::tempdir_in(&place.folder)?;
    let ask = |by: Option<&[&str]>| {
        let by = by.map(|by| [by, options].concat());
        heard(place, by.as_deref(), folder.path(), words)
    };
    // Whether the program answers so alone, asked so often at most.
    let answers = |wanted: &Answer, times: usize| -> Result<bool> {
        for _ in 0..times {
            if ask(None)?.0 == *wanted {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let (alone, _) = ask(None)?;
    if alone.code == Some(TIMED_OUT) || !answers(&alone, 1)? {
        return Ok(None);
    }
    let mut came = [Came::Same; WAYS.len()];
    for (by, came) in WAYS.iter().zip(&mut came) {
        let (answer, said) = ask(Some(by))?;
        let same = answer == alone;
        let runs_alone = [NO_PLACE, STATED_PLACES]
            .iter()
            .any(|words| said.contains(words));
        if said.contains(NOT_RUN) || same && runs_alone {
            *came = Came::Refused;
        } else if said.lines().any(is_unobserved) || !same && !answers(&answer, DOUBTS)? {
            *came = Came::Differs;
        }
    }
    Ok(Some(came))
}

/// What the program answers, observed by `tomo` with these words or alone, and what is said on its standard error.
fn heard(
    place: &Place,
    by: Option<&[&str]>,
    folder: &Path,
    words: &[OsString],
) -> Result<(Answer, String)> {
    let mut command = house::command("timeout")?;
    command.arg(PATIENCE);
    if let Some(by) = by {
        command.arg(&place.tomo).args(by);
        command.args(["-o", "out", "--"]);
    }
    command.args(words);
    place.at_home(&mut command, folder);
    let output = command.output()?;
    let answer = Answer {
        code: output.status.code(),
        printed: output.stdout,
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok((answer, said))
}

/// Whether `tomo` says here that the program was not observed, or not always. Of libraries it says so where nobody asked for
/// them.
fn is_unobserved(line: &str) -> bool {
    line.starts_with("tomo: ") && line.contains("was not ") && !line.contains("comes with it")
}

#[cfg(test)]
mod tests {
    use super::is_unobserved;

    #[test]
    fn what_was_not_observed_is_heard() {
        let library = "tomo: /lib/a comes with it and was not counted: --module does that";
        assert!(is_unobserved("tomo: /bin/a was not observed: no place"));
        assert!(!is_unobserved(library) && !is_unobserved("a: it was not there"));
    }
}
