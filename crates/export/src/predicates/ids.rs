//! What predicates are called: `branch@0x1234:taken`, `result@0x1240:negative`; a site without the case.

use std::fmt;
use std::str::FromStr;

use tomo_wire::predicates::{Kind, Row};

/// The name of a predicate, or of all of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id {
    /// What is looked at.
    pub kind: Kind,
    /// The site.
    pub site: u64,
    /// Which of its predicates; all of them where it is not said.
    pub case: Option<u8>,
}

/// What is no such name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} names no predicate; they are called like branch@0x1234:taken or result@0x1240:negative, sites like branch@0x1234"
)]
pub struct BadId(String);

/// The names of the predicates of a kind, in the order of their cases.
fn cases(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Branch => &["taken", "not-taken"],
        Kind::Result => &["negative", "zero", "positive"],
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Branch => "branch",
        Kind::Result => "result",
    }
}

/// The name of a case.
#[must_use]
pub fn case_name(kind: Kind, case: u8) -> &'static str {
    cases(kind).get(usize::from(case)).copied().unwrap_or("")
}

impl Id {
    /// The name of the predicate of a row.
    #[must_use]
    pub fn of(row: &Row) -> Option<Self> {
        Some(Self {
            kind: row.kind()?,
            site: row.site.get(),
            case: Some(row.case),
        })
    }

    /// The predicates that it names.
    pub fn predicates(self) -> impl Iterator<Item = (Kind, u64, u8)> {
        let all = 0..self.kind.cases();
        let named = all.filter(move |case| self.case.is_none_or(|own| own == *case));
        named.map(move |case| (self.kind, self.site, case))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{:#x}", kind_name(self.kind), self.site)?;
        match self.case {
            Some(case) => write!(f, ":{}", case_name(self.kind, case)),
            None => Ok(()),
        }
    }
}

impl FromStr for Id {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        let bad = || BadId(text.into());
        let (kind, rest) = text.split_once("@0x").ok_or_else(bad)?;
        let kinds = [Kind::Branch, Kind::Result];
        let kind = kinds.into_iter().find(|known| kind_name(*known) == kind);
        let kind = kind.ok_or_else(bad)?;
        let (site, case) = match rest.split_once(':') {
            Some((site, case)) => (site, Some(case)),
            None => (rest, None),
        };
        let site = u64::from_str_radix(site, 16).map_err(|_| bad())?;
        let number = |case: &str| {
            let found = cases(kind).iter().position(|known| *known == case);
            found.map(|at| at as u8).ok_or_else(bad)
        };
        let case = case.map(number).transpose()?;
        Ok(Self { kind, site, case })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn names_are_read_as_they_are_written(site: u64, case in prop::option::of(0u8..2), branch: bool) {
            let kind = if branch { Kind::Branch } else { Kind::Result };
            let id = Id { kind, site, case };
            prop_assert_eq!(id.to_string().parse(), Ok(id));
        }
    }

    #[test]
    fn what_is_no_name_is_said() {
        for text in [
            "",
            "branch",
            "branch@12",
            "branch@0x",
            "branch@0x1:zero",
            "loop@0x1",
        ] {
            assert!(text.parse::<Id>().is_err(), "{text}");
        }
    }
}
