//! Rules on `unsafe`: it stands only in the modules named here, each use under a SAFETY comment
//! (clippy asks for one at blocks; here it is asked for at items and attributes too), and each
//! such file has a row in `SAFETY.md`.

use super::Finding;
use super::files::File;
use super::{tables, tokens};

/// The modules that may be unsafe. What each relies on stands in `SAFETY.md`.
const MODULES: [&str; 53] = [
    "crates/agent/src/arm.rs",
    "crates/agent/src/armed.rs",
    "crates/agent/src/chains.rs",
    "crates/agent/src/closed.rs",
    "crates/agent/src/contexts.rs",
    "crates/agent/src/crash.rs",
    "crates/agent/src/cuts.rs",
    "crates/agent/src/emulator.rs",
    "crates/agent/src/executing.rs",
    "crates/agent/src/fatal.rs",
    "crates/agent/src/forked.rs",
    "crates/agent/src/given.rs",
    "crates/agent/src/handlers.rs",
    "crates/agent/src/kept.rs",
    "crates/agent/src/label.rs",
    "crates/agent/src/late.rs",
    "crates/agent/src/lib.rs",
    "crates/agent/src/limits.rs",
    "crates/agent/src/lines.rs",
    "crates/agent/src/listed.rs",
    "crates/agent/src/loader.rs",
    "crates/agent/src/maps.rs",
    "crates/agent/src/notified.rs",
    "crates/agent/src/numbered.rs",
    "crates/agent/src/origins.rs",
    "crates/agent/src/parts.rs",
    "crates/agent/src/passage.rs",
    "crates/agent/src/pointed.rs",
    "crates/agent/src/preloaded.rs",
    "crates/agent/src/relocated.rs",
    "crates/agent/src/shadow.rs",
    "crates/agent/src/signals.rs",
    "crates/agent/src/slabs.rs",
    "crates/agent/src/start.rs",
    "crates/agent/src/symbols.rs",
    "crates/agent/src/system.rs",
    "crates/agent/src/system/bases.rs",
    "crates/agent/src/system/disk.rs",
    "crates/agent/src/system/errno.rs",
    "crates/agent/src/system/large.rs",
    "crates/agent/src/system/tracing.rs",
    "crates/agent/src/tables.rs",
    "crates/agent/src/tracks.rs",
    "crates/agent/src/trap.rs",
    "crates/launch/src/attended/apart.rs",
    "crates/launch/src/attended/system.rs",
    "crates/launch/src/executed.rs",
    "crates/launch/src/inherited.rs",
    "crates/launch/src/live.rs",
    "crates/launch/src/passing.rs",
    "crates/launch/src/scarce.rs",
    "crates/launch/src/stand_in.rs",
    "crates/program/src/mapping.rs",
];

/// The page with a row per invariant.
pub(super) const PAGE: &str = "SAFETY.md";

/// How far above its `unsafe` an argument may begin.
const REACH: usize = 20;

pub(super) fn check(file: &File) -> Vec<Finding> {
    check_in(&MODULES, file)
}

fn check_in(modules: &[&str], file: &File) -> Vec<Finding> {
    let lines: Vec<_> = file.text.lines().collect();
    let mut findings = Vec::new();
    for line in unsafe_lines(&file.text) {
        if !modules.contains(&file.path.as_str()) {
            let what = "unsafe outside the modules named in xtask/src/tidy/unsafety.rs";
            findings.push(Finding::new("unsafe", &file.path, line, what));
        }
        if !is_argued(&lines[..line]) {
            let what = "unsafe without a SAFETY comment";
            findings.push(Finding::new("safety-comment", &file.path, line, what));
        }
    }
    findings
}

/// Checks that the named modules exist and have their rows.
pub(super) fn check_table(files: &[File]) -> Vec<Finding> {
    check_table_of(&MODULES, files)
}

fn check_table_of(modules: &[&str], files: &[File]) -> Vec<Finding> {
    let page = files.iter().find(|file| file.path == PAGE);
    let quoted = page.map_or_else(Vec::new, |page| tables::quoted(&page.text));
    let mut findings = Vec::new();
    for &module in modules {
        if !files.iter().any(|file| file.path == module) {
            let what = "named as unsafe in xtask/src/tidy/unsafety.rs, but not there";
            findings.push(Finding::new("unsafe", module, 0, what));
        }
        if !quoted.iter().any(|word| word == module) {
            findings.push(Finding::new(
                "safety-row",
                PAGE,
                0,
                format!("no row for {module}"),
            ));
        }
    }
    findings
}

fn unsafe_lines(text: &str) -> Vec<usize> {
    let tokens = tokens::read(text).unwrap_or_default();
    tokens
        .iter()
        .filter(|token| token.is_word("unsafe"))
        .map(|token| token.line)
        .collect()
}

fn is_argued(lines_up_to: &[&str]) -> bool {
    let near = lines_up_to.iter().rev().take(REACH);
    near.into_iter()
        .any(|line| line.contains("SAFETY:") || line.contains("# Safety"))
}

#[cfg(test)]
mod tests {
    use super::{PAGE, check_in, check_table_of};
    use crate::tidy::files::File;

    const ARGUED: &str = "//! Doc.\n// SAFETY: never called.\nunsafe fn f() {}\n";

    fn rules(path: &str, text: &str) -> Vec<&'static str> {
        let findings = check_in(&["a.rs"], &File::new(path, text));
        findings.into_iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn unsafe_stays_in_its_modules_and_is_argued() {
        assert_eq!(rules("a.rs", ARGUED), [""; 0]);
        assert_eq!(rules("b.rs", ARGUED), ["unsafe"]);
        assert_eq!(
            rules("a.rs", "//! Doc.\nunsafe fn f() {}\n"),
            ["safety-comment"]
        );
        assert_eq!(
            rules("b.rs", "//! Doc.\n#[unsafe(no_mangle)]\nfn f() {}\n").len(),
            2
        );
        assert_eq!(
            rules("b.rs", "//! unsafe\n#![deny(unsafe_code)]\n"),
            [""; 0]
        );
    }

    #[test]
    fn each_module_exists_and_has_its_row() {
        let page = |text: &str| File::new(PAGE, text);
        let module = || File::new("a.rs", ARGUED);
        let rules = |files: &[File]| -> Vec<_> {
            check_table_of(&["a.rs"], files)
                .into_iter()
                .map(|finding| finding.rule)
                .collect()
        };
        let row = "| what | where |\n|---|---|\n| it holds | `a.rs` |\n";
        assert_eq!(rules(&[module(), page(row)]), [""; 0]);
        assert_eq!(rules(&[page(row)]), ["unsafe"]);
        assert_eq!(
            rules(&[module(), page("`a.rs` outside a table\n")]),
            ["safety-row"]
        );
        assert_eq!(rules(&[module()]), ["safety-row"]);
    }
}
