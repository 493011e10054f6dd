//! Lines on standard error, as people read them.
//!
//! Paths and names come from files that others have written. Where a letter would steer the terminal or turn the text
//! around it, a replacement character (U+FFFD) stands instead. System errors are told in words, without their numbers.

use std::fmt::Arguments;
use std::io::Write as _;

use tomo_protocol::steers;

/// Says a line. Where nobody hears it, nothing becomes of that: not of the program that is observed, and not of our
/// exit code, which is the program's.
pub(crate) fn line(line: Arguments<'_>) {
    let line = in_words(&legible(&line.to_string()));
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Columns of the standard output that are filled, within reason: those that `COLUMNS` names, as for git and man, or those of the
/// terminal; 80 where there is none.
pub(crate) fn columns() -> usize {
    let named = std::env::var("COLUMNS").ok();
    let named = named.and_then(|columns| columns.parse::<usize>().ok());
    let of_terminal = || console::Term::stdout().size().1.into();
    let columns = named.filter(|columns| *columns > 0);
    columns.unwrap_or_else(of_terminal).clamp(60, 160)
}

/// A text that does nothing to a terminal but begin lines.
pub(crate) fn legible(text: &str) -> String {
    let letters = text.chars().map(|letter| match letter {
        '\n' | '\t' => letter,
        letter if steers(letter) => char::REPLACEMENT_CHARACTER,
        letter => letter,
    });
    letters.collect()
}

/// A name of others' as part of a line, which it does not end.
pub(crate) fn name(text: &str) -> String {
    text.replace(steers, "\u{fffd}")
}

/// Writes a text for people to standard output: what it quotes of others does nothing to a terminal.
pub(crate) fn show(text: &str) -> std::io::Result<()> {
    std::io::stdout().write_all(legible(text).as_bytes())
}

/// A text without the numbers of system errors, whose words begin small behind a colon, as all others do.
fn in_words(text: &str) -> String {
    let mut said = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((words, behind)) = rest.split_once(" (os error ") {
        let Some((number, behind)) = behind.split_once(')') else {
            break;
        };
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            break;
        }
        let start = words.rfind(": ").map_or(0, |at| at + 2);
        let (before, error) = words.split_at(start);
        let mut letters = error.chars();
        said += before;
        said.extend(letters.next().map(|first| match start {
            0 => first,
            _ => first.to_ascii_lowercase(),
        }));
        said += letters.as_str();
        rest = behind;
    }
    said + rest
}

#[cfg(test)]
mod tests {
    use super::{in_words, legible, name};

    #[test]
    fn system_errors_are_told_in_words() {
        for (text, expected) in [
            (
                "tomo: writing x: Permission denied (os error 13)",
                "tomo: writing x: permission denied",
            ),
            (
                "a: Is a directory (os error 21); b: No such file or directory (os error 2)",
                "a: is a directory; b: no such file or directory",
            ),
            ("Broken pipe (os error 32)", "Broken pipe"),
            ("odd (os error x)", "odd (os error x)"),
            ("cut (os error ", "cut (os error "),
            ("nothing of it", "nothing of it"),
        ] {
            assert_eq!(in_words(text), expected);
        }
    }

    #[test]
    fn nothing_steers_a_terminal() {
        assert_eq!(
            legible("a\u{1b}[31m\r\u{9b}\u{202e}\tb\nä"),
            "a\u{fffd}[31m\u{fffd}\u{fffd}\u{fffd}\tb\nä"
        );
        assert_eq!(
            name("a\n\tb\u{1b}"),
            "a\u{fffd}\u{fffd}b\u{fffd}",
            "nor its lines"
        );
    }
}
