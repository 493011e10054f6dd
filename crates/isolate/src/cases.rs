//! Cases: a line each, with arguments as in a shell, `< FILE` for input and `=> …` for how success is told.
//!
//! ```text
//! # what follows a number sign is a comment
//! %success output expected.txt
//! %timeout 5
//! -n 3 'two words' < inputs/1.txt
//! --all => exit 3
//! ```
//!
//! Lines that begin with a per cent sign hold for all cases behind them. Files are looked for in the folder of
//! the file of cases. Success is one of
//!
//! - `exit N`: the program ends with this code (`exit 0` where nothing is said);
//! - `output FILE`: it writes what is in this file to its standard output;
//! - `like COMMAND …`: it writes and ends as this command does, with the same arguments and input;
//! - `check COMMAND …`: this command, which finds the output on its standard input, ends with 0.
//!
//! Whatever is ended by a signal, or does not end in time, has failed.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// How success is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Success {
    /// By the exit code.
    Exit(i32),
    /// By its output, which is in this file.
    Output(PathBuf),
    /// By what this command does.
    Like(Vec<OsString>),
    /// By the exit code of this command.
    Check(Vec<OsString>),
}

/// A case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Its line in the file.
    pub line: usize,
    /// Arguments.
    pub arguments: Vec<OsString>,
    /// What it reads; nothing where there is none.
    pub input: Option<PathBuf>,
    /// How success is told.
    pub success: Success,
    /// Seconds that it may take.
    pub timeout: u64,
}

impl Case {
    /// What it reads, opened; an error names the file.
    pub(crate) fn opened(&self) -> io::Result<Stdio> {
        let Some(path) = &self.input else {
            return Ok(Stdio::null());
        };
        let file = File::open(path).map_err(|error| named(path, &error))?;
        Ok(file.into())
    }
}

/// An error that says of which file it is.
pub(crate) fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// All cases of a file.
#[derive(Clone, Debug)]
pub struct Cases {
    /// In the order of the file.
    pub cases: Vec<Case>,
    /// Names the file's contents.
    pub name: u64,
}

/// What is wrong with a file of cases.
#[derive(Debug, thiserror::Error)]
pub enum CasesError {
    /// It cannot be read.
    #[error("{path}: {1}", path = .0.display())]
    Io(PathBuf, io::Error),
    /// A line of it says nothing that is known.
    #[error("{path}:{1}: {2}", path = .0.display())]
    Line(PathBuf, usize, String),
    /// There is none.
    #[error("{path}: has no case; write one a line", path = .0.display())]
    Empty(PathBuf),
}

/// Seconds that a case may take where nothing is said.
const TIMEOUT: u64 = 10;

impl Cases {
    /// The cases in the file at `path`.
    ///
    /// # Errors
    /// Where it cannot be read, or a line of it not understood.
    pub fn read(path: &Path) -> Result<Self, CasesError> {
        let text =
            std::fs::read_to_string(path).map_err(|error| CasesError::Io(path.into(), error))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let cases =
            parse(&text, folder).map_err(|(line, why)| CasesError::Line(path.into(), line, why))?;
        match cases.is_empty() {
            true => Err(CasesError::Empty(path.into())),
            false => Ok(Self {
                cases,
                name: tomo_wire::checksum(text.as_bytes()),
            }),
        }
    }
}

fn parse(text: &str, folder: &Path) -> Result<Vec<Case>, (usize, String)> {
    let mut cases = Vec::new();
    let (mut success, mut timeout) = (Success::Exit(0), TIMEOUT);
    for (line, text) in (1..).zip(text.lines()) {
        let words = split(text).map_err(|why| (line, why))?;
        let wrong = |why: String| (line, why);
        match words.split_first() {
            None => continue,
            Some((Word::Plain(first), rest)) if first == "%success" => {
                success = success_of(rest, folder).map_err(wrong)?;
            }
            Some((Word::Plain(first), rest)) if first == "%timeout" => {
                timeout = seconds(rest).map_err(wrong)?;
            }
            Some((Word::Plain(first), _)) if first.starts_with('%') => {
                let known = "there are %success and %timeout";
                return Err((line, format!("{first} is nothing that is known; {known}")));
            }
            _ => {
                let case = case(&words, folder).map_err(wrong)?;
                cases.push(Case {
                    line,
                    arguments: case.arguments,
                    input: case.input,
                    success: case.success.unwrap_or_else(|| success.clone()),
                    timeout,
                });
            }
        }
    }
    Ok(cases)
}

/// What a line of its own says.
#[derive(Default)]
struct Said {
    arguments: Vec<OsString>,
    input: Option<PathBuf>,
    success: Option<Success>,
}

fn case(words: &[Word], folder: &Path) -> Result<Said, String> {
    let mut said = Said::default();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word {
            Word::Plain(word) => said.arguments.push(word.into()),
            Word::Input => match rest.next() {
                Some(Word::Plain(file)) if said.input.is_none() => {
                    said.input = Some(folder.join(file));
                }
                Some(Word::Plain(_)) => return Err("it has two inputs".into()),
                _ => return Err("no file follows <".into()),
            },
            Word::Tells => {
                said.success = Some(success_of(rest.as_slice(), folder)?);
                return Ok(said);
            }
        }
    }
    Ok(said)
}

fn plain(words: &[Word]) -> Result<Vec<&str>, String> {
    let each = words.iter().map(Word::text);
    each.collect::<Option<_>>()
        .ok_or_else(|| "< and => have no meaning there".into())
}

fn success_of(words: &[Word], folder: &Path) -> Result<Success, String> {
    let words = plain(words)?;
    let command = |words: &[&str]| words.iter().map(OsString::from).collect();
    match words.as_slice() {
        ["exit", code] => code
            .parse::<u8>()
            .map(|code| Success::Exit(code.into()))
            .map_err(|_| format!("{code} is no exit code; they are 0 to 255")),
        ["output", file] => Ok(Success::Output(folder.join(file))),
        ["like", rest @ ..] if !rest.is_empty() => Ok(Success::Like(command(rest))),
        ["check", rest @ ..] if !rest.is_empty() => Ok(Success::Check(command(rest))),
        _ => Err(
            "success is told by: exit N, output FILE, like COMMAND …, or check COMMAND …".into(),
        ),
    }
}

fn seconds(words: &[Word]) -> Result<u64, String> {
    match plain(words)?.as_slice() {
        [seconds] => seconds.parse().ok().filter(|seconds| *seconds > 0),
        _ => None,
    }
    .ok_or_else(|| "%timeout is followed by a number of seconds".into())
}

/// A word of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    Plain(String),
    /// `<`
    Input,
    /// `=>`
    Tells,
}

impl Word {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Plain(text) => Some(text),
            Self::Input | Self::Tells => None,
        }
    }
}

/// The words of a line: quotes and backslashes as in a shell.
fn split(line: &str) -> Result<Vec<Word>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    let mut rest = line.chars();
    let finish = |word: &mut Option<String>, quoted: &mut bool, words: &mut Vec<Word>| {
        let bare = !std::mem::take(quoted);
        words.extend(word.take().map(|word| match word.as_str() {
            "<" if bare => Word::Input,
            "=>" if bare => Word::Tells,
            _ => Word::Plain(word),
        }));
    };
    while let Some(next) = rest.next() {
        match next {
            ' ' | '\t' | '\r' => finish(&mut word, &mut quoted, &mut words),
            '#' if word.is_none() => break,
            '\'' | '"' => {
                quoted = true;
                let word = word.get_or_insert_default();
                within_quotes(next, &mut rest, word)?;
            }
            '\\' => {
                quoted = true;
                let next = rest.next().ok_or("nothing follows the last \\")?;
                word.get_or_insert_default().push(next);
            }
            next => word.get_or_insert_default().push(next),
        }
    }
    finish(&mut word, &mut quoted, &mut words);
    Ok(words)
}

/// What is in quotes, up to the closing one.
fn within_quotes(
    quote: char,
    rest: &mut std::str::Chars<'_>,
    word: &mut String,
) -> Result<(), String> {
    let open = || format!("a {quote} is not closed");
    loop {
        match rest.next().ok_or_else(open)? {
            next if next == quote => return Ok(()),
            '\\' if quote == '"' => word.push(rest.next().ok_or_else(open)?),
            next => word.push(next),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_a_shell_would() {
        let text = "# nothing\n%timeout 3\n-n 3 'two words' \"a\\\"b\" < in.txt # and so on\n\
                    %success like ./old -x\nplain\\ one => exit 3\n'<' '=>'\n";
        let cases = parse(text, Path::new("dir")).expect("cases");
        let words = |at: usize| -> Vec<&str> {
            let arguments = cases[at].arguments.iter();
            arguments.filter_map(|word| word.to_str()).collect()
        };
        assert_eq!(words(0), ["-n", "3", "two words", "a\"b"]);
        assert_eq!(cases[0].input.as_deref(), Some(Path::new("dir/in.txt")));
        assert_eq!(
            (&cases[0].success, cases[0].timeout),
            (&Success::Exit(0), 3)
        );
        assert_eq!(words(1), ["plain one"]);
        assert_eq!(cases[1].success, Success::Exit(3));
        assert_eq!(words(2), ["<", "=>"]);
        assert!(matches!(&cases[2].success, Success::Like(command) if command.len() == 2));
        assert_eq!(
            cases.iter().map(|case| case.line).collect::<Vec<_>>(),
            [3, 5, 6]
        );
    }

    #[test]
    fn an_input_that_is_missing_is_named() {
        let cases = parse("a < none\n", Path::new("/nowhere")).expect("cases");
        let error = cases[0].opened().expect_err("no such file");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().starts_with("/nowhere/none: "), "{error}");
    }

    #[test]
    fn what_is_not_understood_is_said_with_its_line() {
        for (text, line) in [
            ("a\n'b", 2),
            ("a <", 1),
            ("a => exit", 1),
            ("\na => exit x", 2),
            ("a => exit 256", 1),
            ("a => exit -1", 1),
            ("%succes exit 0", 1),
            ("%timeout 0", 1),
            ("a < b < c", 1),
            ("a => output b < c", 1),
            ("a \\", 1),
        ] {
            let error = parse(text, Path::new("")).expect_err(text);
            assert_eq!(error.0, line, "{text}: {}", error.1);
        }
    }
}
