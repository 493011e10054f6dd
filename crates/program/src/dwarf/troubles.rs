//! Collects what could not be read, so that a file broken in a thousand places gives a few warnings.

use crate::Warning;
use rustc_hash::FxHashMap;

/// Counts of what could not be read, by section and kind, each with its first occurrence.
#[derive(Default)]
pub(super) struct Troubles {
    kinds: FxHashMap<(&'static str, &'static str), Trouble>,
}

struct Trouble {
    offset: u64,
    detail: String,
    count: u64,
}

impl Troubles {
    /// Counts that `what` went wrong at `offset` of `section`.
    pub(super) fn add(
        &mut self,
        section: &'static str,
        offset: u64,
        what: &'static str,
        detail: &dyn std::fmt::Display,
    ) {
        self.kinds
            .entry((section, what))
            .and_modify(|trouble| trouble.count += 1)
            .or_insert_with(|| Trouble {
                offset,
                detail: detail.to_string(),
                count: 1,
            });
    }

    /// One warning for each section and kind, in a stable order.
    pub(super) fn into_warnings(self) -> Vec<Warning> {
        let mut all: Vec<_> = self.kinds.into_iter().collect();
        all.sort_unstable_by_key(|&(kind, _)| kind);
        all.into_iter()
            .map(|((section, what), trouble)| trouble.warning(section, what))
            .collect()
    }
}

impl Trouble {
    fn warning(self, section: &'static str, what: &'static str) -> Warning {
        let more = match self.count {
            1 => String::new(),
            count => format!(" (and {} more like it)", count - 1),
        };
        let colon = if self.detail.is_empty() { "" } else { ": " };
        Warning::at(
            section,
            self.offset,
            format!("{what}{colon}{}{more}", self.detail),
        )
    }
}
