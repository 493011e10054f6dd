//! The exceptions to the house rules, each with its reason. One that nothing needs any more is
//! itself a finding, so the list only holds what is true.

use super::Finding;

/// A breach that stays, and why.
struct Exception {
    rule: &'static str,
    path: &'static str,
    /// A part of what the finding says, such as the name of a function.
    about: &'static str,
    reason: &'static str,
}

const EXCEPTIONS: &[Exception] = &[];

/// Drops the findings that are excepted.
pub(super) fn forgive(findings: Vec<Finding>) -> Vec<Finding> {
    forgive_by(EXCEPTIONS, findings)
}

fn forgive_by(exceptions: &[Exception], findings: Vec<Finding>) -> Vec<Finding> {
    let unused = exceptions
        .iter()
        .filter(|one| !findings.iter().any(|finding| one.covers(finding)));
    let unused: Vec<_> = unused.map(Exception::complaint).collect();
    let covered = |finding: &Finding| exceptions.iter().any(|one| one.covers(finding));
    let left = findings.into_iter().filter(|finding| !covered(finding));
    left.chain(unused).collect()
}

impl Exception {
    fn covers(&self, finding: &Finding) -> bool {
        let Self {
            rule,
            path,
            about,
            reason,
        } = self;
        !reason.is_empty()
            && finding.rule == *rule
            && finding.path == *path
            && finding.what.contains(about)
    }

    fn complaint(&self) -> Finding {
        let what = format!(
            "an exception ({} {}) that nothing needs",
            self.rule, self.about
        );
        Finding::new("exceptions", self.path, 0, what)
    }
}

#[cfg(test)]
mod tests {
    use super::{Exception, forgive_by};
    use crate::tidy::Finding;

    fn exception(reason: &'static str) -> Exception {
        Exception {
            rule: "size",
            path: "a.rs",
            about: "fn f",
            reason,
        }
    }

    #[test]
    fn an_exception_covers_only_what_it_names() {
        let findings = [
            ("a.rs", "fn f is long"),
            ("a.rs", "fn g is long"),
            ("b.rs", "fn f is long"),
        ];
        let findings = findings
            .map(|(path, what)| Finding::new("size", path, 1, what))
            .to_vec();
        let left = forgive_by(&[exception("a table")], findings.clone());
        assert_eq!(left, findings[1..]);
    }

    #[test]
    fn idle_exceptions_and_those_without_reason_are_findings() {
        let finding = Finding::new("size", "a.rs", 1, "fn f is long");
        assert_eq!(forgive_by(&[exception("a table")], Vec::new()).len(), 1);
        assert_eq!(forgive_by(&[exception("")], vec![finding]).len(), 2);
    }
}
