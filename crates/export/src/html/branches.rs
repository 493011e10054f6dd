//! The sides of a line's branches, before its source: a mark each.
//!
//! A line can have hundreds of them, and the source is to be seen beside them all the same: the first few stand there, in a width
//! that the sheet bounds; the others open on demand, below how many they are and how many of them ran.

use std::fmt::Write as _;

use tomo_profile::merge::Finding;

use crate::{Branch, Brief};

/// Marks that are shown at once.
const MARKS: usize = 12;

/// Writes the marks of all sides.
pub(super) fn write(out: &mut String, branches: &[Branch]) {
    if branches.is_empty() {
        return;
    }
    let sides: Vec<_> = branches
        .iter()
        .flat_map(|branch| [("taken", branch.taken), ("not taken", branch.not_taken)])
        .collect();
    let (first, others) = sides.split_at(sides.len().min(MARKS));
    out.push_str("<div>");
    marks(out, first);
    if !others.is_empty() {
        let ran = |(_, side): &&(&str, Finding)| side.ran() == Some(true);
        let _ = write!(
            out,
            "<details><summary>{} more, {} of them ran</summary>",
            others.len(),
            others.iter().filter(ran).count()
        );
        marks(out, others);
        out.push_str("</details>");
    }
    out.push_str("</div>");
}

fn marks(out: &mut String, sides: &[(&str, Finding)]) {
    for (side, finding) in sides {
        let brief = Brief::from(*finding);
        let (class, sign) = match finding.ran() {
            Some(true) => ("yes", "✓"),
            Some(false) => ("no", "✗"),
            None => ("", "?"),
        };
        let _ = write!(
            out,
            "<span class=\"chip {class}\" title=\"{side}: {}, {}\">{sign}</span>",
            brief.state, brief.how
        );
    }
}

#[cfg(test)]
mod tests {
    use tomo_profile::merge::Finding;
    use tomo_program::Address;

    use super::{MARKS, write};
    use crate::Branch;

    fn written(sides: &[(bool, bool)]) -> String {
        let finding = |ran| if ran { Finding::Ran } else { Finding::NotRun };
        let branches: Vec<_> = sides
            .iter()
            .map(|(taken, not_taken)| Branch {
                line: 1,
                module: 0,
                address: Address(0),
                copy: 0,
                block: Finding::Ran,
                taken: finding(*taken),
                not_taken: finding(*not_taken),
            })
            .collect();
        let mut out = String::new();
        write(&mut out, &branches);
        out
    }

    #[test]
    fn of_many_sides_the_first_are_shown_and_the_others_told_by_number() {
        let count = |text: &str| text.matches("class=\"chip ").count();
        assert_eq!(written(&[]), "");
        let few = written(&[(true, false); MARKS / 2]);
        assert_eq!(count(&few), MARKS);
        assert!(!few.contains("<details>"));
        let many = [[(true, false); 59].as_slice(), &[(false, false)]].concat();
        let many = written(&many);
        let (shown, others) = many.split_once("<details>").expect("others");
        assert_eq!((count(shown), count(others)), (MARKS, 120 - MARKS));
        assert!(others.starts_with("<summary>108 more, 53 of them ran</summary>"));
    }
}
