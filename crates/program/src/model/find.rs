//! One function, by whatever people call it.

use super::{FunctionView, Graphs, Named};
use crate::Address;

/// Why no function is meant, or which.
#[derive(Clone, Debug)]
pub enum Search<'g> {
    /// This one.
    Found(FunctionView<'g>),
    /// None has this address.
    NothingAt(Address),
    /// None has this name, nor one with it as a part.
    NothingNamed,
    /// Several have this name, or, if it is a part only, one with it as a part.
    Several(Named<'g>),
}

impl<'m> Graphs<'m> {
    /// The function that `query` means: an address in it (decimal, or hexadecimal behind `0x`), or
    /// its name, mangled or readable, with or without parameters, or a part of its name that no
    /// other has. What unnamed functions are shown as (`sub_` and the entry) names them too.
    #[must_use]
    pub fn search(&self, query: &str) -> Search<'_> {
        if let Some(address) = address(query) {
            return self
                .function_at(address)
                .map_or(Search::NothingAt(address), Search::Found);
        }
        let named = self.functions_named(query);
        match named.functions.as_slice() {
            [only] => Search::Found(*only),
            [] => self.search_unnamed(query),
            _ => Search::Several(named),
        }
    }

    fn search_unnamed(&self, query: &str) -> Search<'_> {
        let entry = query
            .strip_prefix("sub_")
            .and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let found = entry.and_then(|entry| self.function_starting_at(Address(entry)));
        found.map_or(Search::NothingNamed, Search::Found)
    }
}

/// The address that `query` is, if it is one.
fn address(query: &str) -> Option<Address> {
    let hexadecimal = query
        .strip_prefix("0x")
        .or_else(|| query.strip_prefix("0X"));
    let number =
        hexadecimal.map_or_else(|| query.parse(), |digits| u64::from_str_radix(digits, 16));
    number.ok().map(Address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_look_like_addresses() {
        assert_eq!(address("0x10"), Some(Address(16)));
        assert_eq!(address("10"), Some(Address(10)));
        assert_eq!(address("main"), None);
        assert_eq!(address("0x"), None);
        assert_eq!(address("-1"), None);
    }
}
