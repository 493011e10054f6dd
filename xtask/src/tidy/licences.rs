//! The licences of all we depend upon, by what cargo knows of them, against the list in
//! `deny.toml`. This needs neither a network nor cargo-deny, which looks again at more where it
//! is installed (full texts, clarifications).

use super::Finding;
use serde_json::Value;
use spdx::{Expression, LicenseReq, Licensee, ParseMode};

pub(super) fn check(metadata: &Value, deny: &str) -> Vec<Finding> {
    let allowed = match allowed(deny) {
        Ok(allowed) => allowed,
        Err(what) => return vec![Finding::new("licence", "deny.toml", 0, what)],
    };
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let foreign = packages.filter(|package| !package["source"].is_null());
    foreign
        .filter_map(|package| fault(package, &allowed))
        .collect()
}

/// The licences that `deny.toml` allows.
fn allowed(deny: &str) -> Result<Vec<Licensee>, String> {
    let table: toml::Table = deny.parse().map_err(|error| format!("{error}"))?;
    let list = table
        .get("licenses")
        .and_then(|licenses| licenses.get("allow"));
    let list = list
        .and_then(toml::Value::as_array)
        .ok_or("has no list licenses.allow")?;
    let names = list.iter().filter_map(toml::Value::as_str);
    names
        .map(|name| Licensee::parse(name).map_err(|error| error.to_string()))
        .collect()
}

fn fault(package: &Value, allowed: &[Licensee]) -> Option<Finding> {
    let name = package["name"].as_str().unwrap_or_default();
    let what = match package["license"].as_str() {
        None => "states no licence".to_owned(),
        Some(licence) => match Expression::parse_mode(licence, ParseMode::LAX) {
            Err(_) => format!("states a licence that is no SPDX expression: {licence}"),
            Ok(expression) if expression.evaluate(|one| is_allowed(one, allowed)) => return None,
            Ok(_) => format!("its licence is not on the list in deny.toml: {licence}"),
        },
    };
    Some(Finding::new("licence", name, 0, what))
}

fn is_allowed(requirement: &LicenseReq, allowed: &[Licensee]) -> bool {
    allowed
        .iter()
        .any(|licensee| licensee.satisfies(requirement))
}

#[cfg(test)]
mod tests {
    use super::check;
    use serde_json::{Value, json};

    const DENY: &str = "[licenses]\nallow = [\"MIT\", \"Apache-2.0\", \"Unicode-3.0\"]\n";

    fn faults(licence: Value) -> usize {
        let ours = json!({ "name": "ours", "source": null, "license": null });
        let foreign = json!({ "name": "foreign", "source": "registry", "license": licence });
        check(&json!({ "packages": [ours, foreign] }), DENY).len()
    }

    #[test]
    fn listed_licences_pass() {
        for licence in [
            "MIT",
            "GPL-3.0 OR MIT",
            "MIT/Apache-2.0",
            "(MIT OR GPL-2.0) AND Unicode-3.0",
        ] {
            assert_eq!(faults(json!(licence)), 0, "{licence}");
        }
    }

    #[test]
    fn others_are_flagged() {
        for licence in [
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "Apache-2.0 WITH LLVM-exception",
            "my own",
        ] {
            assert_eq!(faults(json!(licence)), 1, "{licence}");
        }
        assert_eq!(faults(Value::Null), 1);
    }

    #[test]
    fn a_broken_list_is_flagged() {
        for deny in ["", "licenses = 3", "[licenses]\nallow = [\"no such\"]"] {
            assert_eq!(check(&json!({ "packages": [] }), deny).len(), 1, "{deny}");
        }
    }
}
