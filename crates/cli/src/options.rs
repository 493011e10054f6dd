//! `TOMO_OPTIONS`: flags for `tomo cover` and `tomo env` from the environment, in the manner of the
//! sanitizers: `key=value`, separated by colons. And patterns in the names of folders.

use std::ffi::{OsStr, OsString};

use anyhow::{Result, bail};

/// Puts the flags that `options` state behind the name of the command, before those that were
/// given, which count more: `output=out:level=edge` is `--output=out --level=edge`. Those that are called as in `but` are passed over.
pub(crate) fn with_options(
    given: Vec<OsString>,
    options: Option<&OsStr>,
    but: &[&str],
) -> Vec<OsString> {
    let applies = given
        .get(1)
        .is_some_and(|command| command == "cover" || command == "env");
    let Some(options) = options.and_then(OsStr::to_str).filter(|_| applies) else {
        return given;
    };
    // What is woven ahead has no folder for records.
    let is_ahead = given.get(1).is_some_and(|command| command == "env");
    let is_meant = |option: &&str| {
        let name = option.split('=').next().unwrap_or_default();
        let has_place = name != "output" || !is_ahead;
        !option.is_empty() && has_place && !but.contains(&name)
    };
    let flags = options.split(':').filter(is_meant);
    let flags = flags.map(|option| OsString::from(format!("--{option}")));
    let (command, rest) = given.split_at(2);
    command
        .iter()
        .cloned()
        .chain(flags)
        .chain(rest.iter().cloned())
        .collect()
}

/// What is wrong with flags, of all that is said about it.
pub(crate) fn in_one_line(error: &str) -> String {
    let lines = error.lines().map(str::trim);
    let lines: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    let line = lines.join(" ");
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}

/// A pattern with `%p` for the process id of `tomo`, `%m` for the build id of the program (or the
/// hash of its file if it has none), and `%%` for a percent sign.
pub(crate) fn expanded(pattern: &str, process: u32, module: &str) -> Result<String> {
    let mut name = String::new();
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match (letter, letter == '%') {
            (letter, false) => name.push(letter),
            _ => match letters.next() {
                Some('p') => name.push_str(&process.to_string()),
                Some('m') => name.push_str(module),
                Some('%') => name.push('%'),
                _ => bail!(
                    "{pattern}: only %p, %m and %% mean something; write %% for a percent sign"
                ),
            },
        }
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::{expanded, in_one_line, with_options};
    use std::ffi::{OsStr, OsString};

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn options_stand_before_flags() {
        let with = |line, options: &str| with_options(words(line), Some(OsStr::new(options)), &[]);
        let options = "output=o:level=edge:";
        let expected = words("tomo cover --output=o --level=edge -o p -- x");
        assert_eq!(with("tomo cover -o p -- x", options), expected);
        let ahead = words("tomo env --level=edge --pool p x");
        assert_eq!(
            with("tomo env --pool p x", options),
            ahead,
            "one variable for both"
        );
        assert_eq!(with("tomo report o", options), words("tomo report o"));
        assert_eq!(with("tomo", options), words("tomo"));
        assert_eq!(
            with_options(words("tomo cover x"), None, &[]),
            words("tomo cover x")
        );
    }

    #[test]
    fn errors_are_told_in_one_line() {
        let error = "error: invalid value 'x' for '--level <LEVEL>'\n  [possible values: a, b]\n\nFor more\n";
        assert_eq!(
            in_one_line(error),
            "invalid value 'x' for '--level <LEVEL>' [possible values: a, b]"
        );
    }

    #[test]
    fn patterns_name_process_and_program() {
        let of = |pattern| expanded(pattern, 42, "ab12");
        assert_eq!(
            of("out/%p-%m-100%%").unwrap_or_default(),
            "out/42-ab12-100%"
        );
        assert_eq!(of("out").unwrap_or_default(), "out");
        assert!(of("a%q").is_err() && of("a%").is_err());
    }
}
