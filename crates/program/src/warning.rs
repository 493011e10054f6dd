//! What was found broken in a file without keeping the rest from being used.

use std::borrow::Cow;
use std::fmt;

/// Something in a file that could not be used, and what that costs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Warning {
    /// What is wrong, as one line without a full stop.
    pub what: Cow<'static, str>,
    /// Section, segment or table that it is in, by the name the file or the specification gives.
    pub place: Cow<'static, str>,
    /// Where it is: an offset into that place.
    pub offset: Option<u64>,
}

impl Warning {
    /// A warning about all of `place`.
    #[must_use]
    pub fn new(place: impl Into<Cow<'static, str>>, what: impl Into<Cow<'static, str>>) -> Self {
        Self {
            what: what.into(),
            place: place.into(),
            offset: None,
        }
    }

    /// A warning about the byte `offset` of `place`.
    #[must_use]
    pub fn at(
        place: impl Into<Cow<'static, str>>,
        offset: u64,
        what: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            what: what.into(),
            place: place.into(),
            offset: Some(offset),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            Some(offset) => write!(f, "{}+{offset:#x}: {}", self.place, self.what),
            None => write!(f, "{}: {}", self.place, self.what),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_place_and_offset() {
        assert_eq!(
            Warning::new(".symtab", "no names").to_string(),
            ".symtab: no names"
        );
        assert_eq!(
            Warning::at(".eh_frame", 16, "cut off").to_string(),
            ".eh_frame+0x10: cut off"
        );
    }
}
