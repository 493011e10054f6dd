//! Rules for one Rust file: it opens with its module doc; lints are expected with a reason, not
//! allowed; nothing unfinished or left over from debugging stays; ignored tests say why, and none
//! passes because a tool is missing.

use super::Finding;
use super::files::File;
use super::tokens::{self, Kind, Token};

const UNFINISHED: [&str; 3] = ["todo", "unimplemented", "dbg"];

/// A test that does not run unless it is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ignored {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) reason: Option<String>,
}

pub(super) fn check(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !file.text.starts_with("//!") {
        findings.push(Finding::new(
            "module-doc",
            &file.path,
            1,
            "does not open with a module doc",
        ));
    }
    if file.is_fixture() {
        return findings;
    }
    match tokens::read(&file.text) {
        Ok(tokens) => findings.extend(of_tokens(&file.path, &tokens)),
        Err(error) => findings.push(Finding::new("syntax", &file.path, 0, error.to_string())),
    }
    findings
}

/// The tests of a source file that are ignored.
pub(crate) fn ignored_tests(text: &str) -> Vec<Ignored> {
    let tokens = tokens::read(text).unwrap_or_default();
    let starts = (0..tokens.len()).filter(|&at| opens_attribute(&tokens, at, "ignore"));
    starts.map(|at| ignored_at(&tokens, at)).collect()
}

fn of_tokens(path: &str, tokens: &[Token]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if let Some(name) = unfinished(&tokens[at..]) {
            findings.push(Finding::new(
                "unfinished",
                path,
                token.line,
                format!("{name}! stays"),
            ));
        }
        if opens_attribute(tokens, at, "allow") || opens_conditional_allow(tokens, at) {
            let what = "allow: say #[expect(…, reason = \"…\")]";
            findings.push(Finding::new("allow", path, token.line, what));
        }
        if is_test(path) && says_skipped(token) {
            let what = "a test that skips itself: fail, and name the missing package";
            findings.push(Finding::new("skipped", path, token.line, what));
        }
        if opens_attribute(tokens, at, "ignore") && ignored_at(tokens, at).reason.is_none() {
            let what = "an ignored test without a reason";
            findings.push(Finding::new("ignored", path, token.line, what));
        }
    }
    findings
}

fn is_test(path: &str) -> bool {
    path.starts_with("tests/") || path.contains("/tests/")
}

/// Whether this is a message of giving up, by its first word.
fn says_skipped(token: &Token) -> bool {
    match &token.kind {
        Kind::Literal(text) => ["\"skip", "\"Skip"]
            .iter()
            .any(|start| text.starts_with(start)),
        _ => false,
    }
}

fn unfinished(tokens: &[Token]) -> Option<&str> {
    let [word, sign, ..] = tokens else {
        return None;
    };
    word.word()
        .filter(|word| sign.is_sign('!') && UNFINISHED.contains(word))
}

/// Whether `#[name…` or `#![name…` starts at this token.
fn opens_attribute(tokens: &[Token], at: usize, name: &str) -> bool {
    let rest = match &tokens[at..] {
        [hash, bang, rest @ ..] if hash.is_sign('#') && bang.is_sign('!') => rest,
        [hash, rest @ ..] if hash.is_sign('#') => rest,
        _ => return false,
    };
    matches!(rest, [bracket, word, ..] if bracket.opens('[') && word.is_word(name))
}

fn opens_conditional_allow(tokens: &[Token], at: usize) -> bool {
    let whole = || &tokens[at..=attribute_end(tokens, at)];
    opens_attribute(tokens, at, "cfg_attr")
        && whole()
            .windows(2)
            .any(|pair| pair[0].is_word("allow") && pair[1].opens('('))
}

fn attribute_end(tokens: &[Token], at: usize) -> usize {
    let open = (at..tokens.len()).find(|&index| tokens[index].opens('['));
    open.map_or(at, |open| tokens::closing(tokens, open))
}

fn ignored_at(tokens: &[Token], at: usize) -> Ignored {
    let end = attribute_end(tokens, at);
    let reason = tokens[at..end].iter().find_map(|token| match &token.kind {
        Kind::Literal(text) => Some(text.trim_matches('"').to_owned()),
        _ => None,
    });
    let mut names = tokens[end..]
        .windows(2)
        .filter(|pair| pair[0].is_word("fn"));
    let name = names.find_map(|pair| pair[1].word()).unwrap_or("?");
    Ignored {
        name: name.to_owned(),
        line: tokens[at].line,
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::{Ignored, check, ignored_tests};
    use crate::tidy::files::File;

    fn rules(text: &str) -> Vec<(&'static str, usize)> {
        let findings = check(&File::new("crates/x/src/lib.rs", text));
        findings
            .into_iter()
            .map(|finding| (finding.rule, finding.line))
            .collect()
    }

    #[test]
    fn clean_source_passes() {
        let text = "//! Doc.\n#[expect(dead_code, reason = \"fixture\")]\nfn todo() {}\n";
        assert_eq!(rules(text), []);
    }

    #[test]
    fn a_module_doc_comes_first() {
        assert_eq!(rules("use std::fmt;\n//! Late.\n"), [("module-doc", 1)]);
    }

    #[test]
    fn allowing_is_flagged_in_all_its_forms() {
        let forms = [
            "#[allow(dead_code)]",
            "#![allow(dead_code)]",
            "#[cfg_attr(x, allow(y))]",
        ];
        for form in forms {
            assert_eq!(
                rules(&format!("//! Doc.\n{form}\nfn f() {{}}\n")),
                [("allow", 2)],
                "{form}"
            );
        }
    }

    #[test]
    fn unfinished_work_is_flagged_even_inside_macros() {
        assert_eq!(rules("//! Doc.\nfn f() { todo!() }\n"), [("unfinished", 2)]);
        assert_eq!(
            rules("//! Doc.\nm! { unimplemented!() }\n"),
            [("unfinished", 2)]
        );
        assert_eq!(
            rules("//! Doc.\nfn f() {\n dbg!(1);\n}\n"),
            [("unfinished", 3)]
        );
    }

    #[test]
    fn source_that_is_no_rust_is_flagged() {
        assert_eq!(rules("//! Doc.\nfn f( {\n"), [("syntax", 0)]);
    }

    #[test]
    fn tests_that_skip_themselves_are_flagged() {
        let text = "//! Doc.\nfn f() { eprintln!(\"skipped: no gcc\") }\n";
        let rules = |path| check(&File::new(path, text)).len();
        assert_eq!(rules("crates/x/tests/a.rs"), 1);
        assert_eq!(rules("tests/src/a.rs"), 1);
        assert_eq!(rules("crates/x/src/a.rs"), 0);
    }

    #[test]
    fn ignored_tests_are_found_with_their_reasons() {
        let text =
            "//! Doc.\n#[test]\n#[ignore = \"slow\"]\nfn a() {}\n#[ignore]\n#[test]\nfn b() {}\n";
        let a = Ignored {
            name: "a".into(),
            line: 3,
            reason: Some("slow".into()),
        };
        let b = Ignored {
            name: "b".into(),
            line: 5,
            reason: None,
        };
        assert_eq!(ignored_tests(text), [a, b]);
        assert_eq!(rules(text), [("ignored", 5)]);
    }
}
