//! Rules of size: a file of at most 700 lines, a function of at most 70, and over the whole house
//! nine functions in ten under 55 with a median of at most 11.

use super::Finding;
use super::files::File;
use super::tokens::{self, Kind, Token};

const FILE_LINES: usize = 700;
const FUNCTION_LINES: usize = 70;
const MEDIAN_LINES: usize = 11;
const NINETIETH_LINES: usize = 55;

/// A function with a body, and the lines from `fn` to its closing brace.
#[derive(Debug, PartialEq, Eq)]
struct Function {
    name: String,
    line: usize,
    lines: usize,
}

pub(super) fn check(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lines = file.text.lines().count();
    if lines > FILE_LINES {
        let what = format!("{lines} lines, over {FILE_LINES}");
        findings.push(Finding::new("file-size", &file.path, 0, what));
    }
    for function in functions(&file.text) {
        if function.lines > FUNCTION_LINES {
            let Function { name, line, lines } = function;
            let what = format!("fn {name} has {lines} lines, over {FUNCTION_LINES}");
            findings.push(Finding::new("function-size", &file.path, line, what));
        }
    }
    findings
}

/// Checks the distribution of function sizes over the whole house.
pub(super) fn check_manners(files: &[File]) -> Vec<Finding> {
    let sizes = sizes(files);
    let limits = [(50, MEDIAN_LINES), (90, NINETIETH_LINES)];
    let over = limits
        .into_iter()
        .filter(|&(share, limit)| percentile(&sizes, share) > limit);
    over.map(|(share, limit)| {
        let size = percentile(&sizes, share);
        let what = format!("{share} % of functions have up to {size} lines, over {limit}");
        Finding::new("manners", "the whole house", 0, what)
    })
    .collect()
}

/// One line on the size of the house.
pub(super) fn summary(files: &[File]) -> String {
    let sizes = sizes(files);
    let [median, most, all] = [50, 90, 100].map(|share| percentile(&sizes, share));
    let count = sizes.len();
    format!("{count} functions: median {median} lines, nine in ten up to {most}, longest {all}")
}

fn sizes(files: &[File]) -> Vec<usize> {
    let ours = files
        .iter()
        .filter(|file| file.is_rust() && !file.is_fixture());
    let functions = ours.flat_map(|file| functions(&file.text));
    let mut sizes: Vec<_> = functions.map(|function| function.lines).collect();
    sizes.sort_unstable();
    sizes
}

/// The smallest size that at least `share` percent do not exceed; 0 of nothing.
fn percentile(sorted: &[usize], share: usize) -> usize {
    let rank = (sorted.len() * share).div_ceil(100);
    rank.checked_sub(1).map_or(0, |index| sorted[index])
}

fn functions(text: &str) -> Vec<Function> {
    let tokens = tokens::read(text).unwrap_or_default();
    (0..tokens.len())
        .filter_map(|at| function_at(&tokens, at))
        .collect()
}

fn function_at(tokens: &[Token], at: usize) -> Option<Function> {
    let name = tokens
        .get(at + 1)?
        .word()
        .filter(|_| tokens[at].is_word("fn"))?;
    let end = tokens::closing(tokens, body(tokens, at)?);
    let line = tokens[at].line;
    Some(Function {
        name: name.to_owned(),
        line,
        lines: tokens[end].line - line + 1,
    })
}

/// The brace that opens a function's body; a declaration has none.
fn body(tokens: &[Token], mut at: usize) -> Option<usize> {
    loop {
        match tokens.get(at)?.kind {
            Kind::Open('{') => return Some(at),
            Kind::Open(_) => at = tokens::closing(tokens, at),
            Kind::Sign(';') | Kind::Close(_) => return None,
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::{FILE_LINES, FUNCTION_LINES, check, check_manners, functions, percentile};
    use crate::tidy::files::File;

    fn function(lines: usize) -> String {
        format!("fn f() {{{}}}\n", "\n".repeat(lines - 1))
    }

    #[test]
    fn functions_are_measured_wherever_they_stand() {
        let text = "trait T {\n fn declared(x: [u8; 2]);\n fn given<const N: usize>(f: fn(u8)) {\n }\n}\n\
                    m! { fn inside() {} }\nfn outer() {\n fn inner() {\n }\n}\n";
        let found: Vec<_> = functions(text)
            .into_iter()
            .map(|f| (f.name, f.line, f.lines))
            .collect();
        let expected = [
            ("given", 3, 2),
            ("inside", 6, 1),
            ("outer", 7, 4),
            ("inner", 8, 2),
        ];
        assert_eq!(
            found,
            expected.map(|(name, line, lines)| (name.to_owned(), line, lines))
        );
    }

    #[test]
    fn long_functions_and_files_are_flagged() {
        let rules = |text: &str| -> Vec<_> {
            check(&File::new("a.rs", text))
                .into_iter()
                .map(|finding| finding.rule)
                .collect()
        };
        assert_eq!(rules(&function(FUNCTION_LINES)), [""; 0]);
        assert_eq!(rules(&function(FUNCTION_LINES + 1)), ["function-size"]);
        assert_eq!(rules(&"\n".repeat(FILE_LINES)), [""; 0]);
        assert_eq!(rules(&"\n".repeat(FILE_LINES + 1)), ["file-size"]);
    }

    #[test]
    fn manners_are_those_of_the_whole_house() {
        let house = |short: usize, long: usize| {
            let text = function(5).repeat(short) + &function(60).repeat(long);
            check_manners(&[File::new("a.rs", &text)]).len()
        };
        assert_eq!(house(0, 0), 0);
        assert_eq!(house(9, 1), 0);
        assert_eq!(house(8, 2), 1);
        assert_eq!(house(4, 6), 2);
    }

    #[test]
    fn percentiles_are_values_of_the_list() {
        assert_eq!(percentile(&[], 50), 0);
        assert_eq!(percentile(&[7], 50), 7);
        assert_eq!(percentile(&[1, 2, 3, 4], 50), 2);
        assert_eq!(percentile(&[1, 2, 3, 4], 51), 3);
        assert_eq!(percentile(&[1, 2, 3, 4], 100), 4);
    }
}
