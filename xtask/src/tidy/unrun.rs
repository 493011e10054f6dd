//! Tests that nobody runs: they stand in the sources of a target for which cargo is told to build none.

use super::Finding;
use super::files::File;
use serde_json::Value;
use std::path::Path;

/// A folder of sources, and whether tests in it are built.
struct Folder {
    path: String,
    tested: bool,
}

/// The files with tests of which no target builds any. `metadata` is what cargo says of the workspace below `root`.
pub(crate) fn check(root: &Path, files: &[File], metadata: &Value) -> Vec<Finding> {
    let folders = folders(root, metadata);
    let is_unrun = |file: &&File| {
        let holds = |folder: &&Folder| file.path.starts_with(&folder.path);
        let mut around = folders.iter().filter(holds).peekable();
        around.peek().is_some() && around.all(|folder| !folder.tested)
    };
    let with_tests = files.iter().filter(|file| file.is_rust());
    let with_tests = with_tests.filter(|file| file.text.contains("#[test]"));
    let what = "its tests are never run: Cargo.toml says `test = false`";
    let finding = |file: &File| Finding::new("tests-run", &file.path, 0, what);
    with_tests.filter(is_unrun).map(finding).collect()
}

fn folders(root: &Path, metadata: &Value) -> Vec<Folder> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let packages = list(&metadata["packages"]).into_iter();
    let own = packages.filter(|package| package["source"].is_null());
    let targets = own.flat_map(|package| list(&package["targets"]));
    let folder = |target: Value| {
        let source = Path::new(target["src_path"].as_str()?);
        let path = source.parent()?.strip_prefix(root).ok()?.to_str()?;
        Some(Folder {
            path: format!("{path}/"),
            tested: target["test"].as_bool()?,
        })
    };
    targets.filter_map(folder).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(tested: [bool; 2], text: &str) -> usize {
        let target = |path: &str, test: bool| json!({"src_path": path, "test": test});
        let targets = [
            target("/r/crates/a/src/lib.rs", tested[0]),
            target("/r/crates/a/src/main.rs", tested[1]),
            target("/r/crates/b/src/lib.rs", true),
        ];
        let metadata = json!({"packages": [{"source": null, "targets": targets}]});
        let file = File::new("crates/a/src/deep/one.rs", text);
        check(Path::new("/r"), &[file], &metadata).len()
    }

    #[test]
    fn tests_in_a_target_without_tests_are_found() {
        assert_eq!(found([false, false], "#[test]\nfn holds() {}"), 1);
        assert_eq!(found([false, false], "fn holds() {}"), 0);
        assert_eq!(found([true, false], "#[test]\nfn holds() {}"), 0);
        assert_eq!(found([true, true], "#[test]\nfn holds() {}"), 0);
    }
}
