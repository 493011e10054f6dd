//! The walls between the crates: which may depend on which, and which foreign crates stay in
//! which of ours. The lists are those of `ARCHITECTURE.md`; a crate without a row is a finding,
//! so that nobody adds one without thinking of its walls.

use super::Finding;
use serde_json::Value;

/// What a crate of ours may depend on, among ours.
struct Row {
    name: &'static str,
    may_use: &'static [&'static str],
}

const ROWS: [Row; 17] = [
    Row {
        name: "tomo-graph",
        may_use: &[],
    },
    Row {
        name: "tomo-program",
        may_use: &["tomo-graph"],
    },
    Row {
        name: "tomo-plan",
        may_use: &["tomo-graph"],
    },
    Row {
        name: "tomo-wire",
        may_use: &[],
    },
    Row {
        name: "tomo-profile",
        may_use: &["tomo-graph", "tomo-plan", "tomo-wire"],
    },
    Row {
        name: "tomo-weave",
        may_use: &["tomo-graph", "tomo-program", "tomo-plan", "tomo-wire"],
    },
    Row {
        name: "tomo-agent",
        may_use: &["tomo-wire"],
    },
    Row {
        name: "tomo-launch",
        may_use: &["tomo-program", "tomo-plan", "tomo-weave", "tomo-wire"],
    },
    Row {
        name: "tomo-export",
        may_use: &[
            "tomo-graph",
            "tomo-plan",
            "tomo-profile",
            "tomo-program",
            "tomo-wire",
        ],
    },
    Row {
        name: "tomo-protocol",
        may_use: &["tomo-wire"],
    },
    Row {
        name: "tomo-collector",
        may_use: &[
            "tomo-graph",
            "tomo-plan",
            "tomo-profile",
            "tomo-protocol",
            "tomo-wire",
        ],
    },
    Row {
        name: "tomo-instance",
        may_use: &[
            "tomo-export",
            "tomo-program",
            "tomo-protocol",
            "tomo-weave",
            "tomo-launch",
            "tomo-wire",
        ],
    },
    Row {
        name: "tomo-isolate",
        may_use: &[
            "tomo-graph",
            "tomo-program",
            "tomo-plan",
            "tomo-profile",
            "tomo-weave",
            "tomo-launch",
            "tomo-export",
            "tomo-protocol",
            "tomo-wire",
        ],
    },
    Row {
        name: "tomo-cli",
        may_use: &[
            "tomo-collector",
            "tomo-instance",
            "tomo-isolate",
            "tomo-protocol",
            "tomo-graph",
            "tomo-program",
            "tomo-plan",
            "tomo-profile",
            "tomo-weave",
            "tomo-launch",
            "tomo-export",
            "tomo-lab",
            "tomo-wire",
        ],
    },
    Row {
        name: "tomo-lab",
        may_use: &[
            "tomo-export",
            "tomo-graph",
            "tomo-isolate",
            "tomo-program",
            "tomo-plan",
            "tomo-profile",
            "tomo-weave",
            "tomo-launch",
            "tomo-protocol",
            "tomo-wire",
        ],
    },
    Row {
        name: "tomo-testkit",
        may_use: &[
            "tomo-graph",
            "tomo-program",
            "tomo-wire",
            "tomo-cli",
            "tomo-export",
            "tomo-profile",
        ],
    },
    Row {
        name: "xtask",
        may_use: &[],
    },
];

/// The test kit is open to the tests of every crate.
const FOR_TESTS: &str = "tomo-testkit";

/// Foreign crates that stay in some of ours: edges and chores may be comfortable, the middle not.
const KEPT: [(&str, &[&str]); 3] = [
    ("tokio", &["tomo-collector", "tomo-cli"]),
    ("anyhow", &["tomo-cli", "tomo-testkit", "xtask"]),
    ("miette", &["tomo-cli", "xtask"]),
];

pub(super) fn check(metadata: &Value) -> Vec<Finding> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let ours: Vec<_> = packages
        .filter(|package| package["source"].is_null())
        .collect();
    let names: Vec<_> = ours
        .iter()
        .filter_map(|package| package["name"].as_str())
        .collect();
    ours.iter()
        .flat_map(|package| check_crate(package, &names))
        .collect()
}

fn check_crate(package: &Value, ours: &[&str]) -> Vec<Finding> {
    let name = package["name"].as_str().unwrap_or_default();
    let Some(row) = ROWS.iter().find(|row| row.name == name) else {
        return vec![finding(
            name,
            "has no row in xtask/src/tidy/edges.rs".into(),
        )];
    };
    let mut findings = Vec::new();
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        let used = dependency["name"].as_str().unwrap_or_default();
        // Tests may use the test kit, and features of their own crate.
        let for_tests = dependency["kind"] == "dev" && (used == FOR_TESTS || used == name);
        if ours.contains(&used) && !row.may_use.contains(&used) && !for_tests {
            findings.push(finding(name, format!("may not depend on {used}")));
        }
        let kept = KEPT.iter().find(|(foreign, _)| *foreign == used);
        if kept.is_some_and(|(_, keepers)| !keepers.contains(&name)) {
            findings.push(finding(name, format!("may not use {used}")));
        }
    }
    findings
}

fn finding(name: &str, what: String) -> Finding {
    Finding::new("edges", name, 0, what)
}

#[cfg(test)]
mod tests {
    use super::check;
    use serde_json::{Value, json};

    fn package(name: &str, dependencies: &[(&str, Option<&str>)]) -> Value {
        let dependencies = dependencies
            .iter()
            .map(|(name, kind)| json!({ "name": name, "kind": kind }));
        json!({ "name": name, "source": null, "dependencies": dependencies.collect::<Vec<_>>() })
    }

    fn faults(packages: &[Value]) -> Vec<String> {
        let findings = check(&json!({ "packages": packages }));
        findings
            .into_iter()
            .map(|finding| finding.to_string())
            .collect()
    }

    #[test]
    fn allowed_edges_pass() {
        let graph = package(
            "tomo-graph",
            &[
                ("tomo-testkit", Some("dev")),
                ("tomo-graph", Some("dev")),
                ("rayon", None),
            ],
        );
        let program = package("tomo-program", &[("tomo-graph", None)]);
        let cli = package("tomo-cli", &[("tomo-program", None), ("anyhow", None)]);
        assert_eq!(
            faults(&[graph, program, cli, package("tomo-testkit", &[])]),
            [""; 0]
        );
    }

    #[test]
    fn edges_across_a_wall_are_flagged() {
        let graph = package("tomo-graph", &[("tomo-program", Some("dev"))]);
        let program = package("tomo-program", &[("tomo-testkit", None)]);
        let found = faults(&[graph, program, package("tomo-testkit", &[])]);
        let expected = [
            "tomo-graph: may not depend on tomo-program [edges]",
            "tomo-program: may not depend on tomo-testkit [edges]",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn unknown_crates_and_foreign_ones_out_of_place_are_flagged() {
        let found = faults(&[
            package("tomo-new", &[]),
            package("tomo-graph", &[("anyhow", None)]),
        ]);
        assert_eq!(found.len(), 2);
        assert!(found[1].contains("may not use anyhow"), "{found:?}");
    }
}
