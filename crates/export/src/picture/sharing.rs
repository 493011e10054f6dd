//! Functions of the source that have one and the same code: compilers (`-fipa-icf`) and linkers (`--icf`) keep one of several that are
//! alike, and the source may give one several names. Which of them was called nobody can tell; so all their names stand where the one
//! stands that debug information knows. Linear in the symbols, plus sorting them.

use rustc_hash::FxHashMap;
use tomo_program::elf::sharing;
use tomo_program::{Address, demangle, without_marks};

use crate::module::Located;

/// So many others are named at most.
const NAMED: usize = 3;

/// The names of such code, where it has several.
pub(super) fn shared(located: &Located) -> FxHashMap<Address, Vec<&str>> {
    let debug = located.debug.as_ref().map(|file| file.data.as_slice());
    sharing(debug.unwrap_or(&located.bytes))
        .into_iter()
        .collect()
}

/// What is said behind the name of a function whose code has these names. Instances of one generic function are called alike.
pub(super) fn also(names: &[&str], own: &str) -> String {
    let title = |name: &str| {
        let name = without_marks(name);
        demangle(name).unwrap_or_else(|| name.to_owned())
    };
    let own = title(own);
    let mut others: Vec<String> = names.iter().map(|name| title(name)).collect();
    others.sort();
    others.dedup();
    others.retain(|other| *other != own);
    let more = others.len().saturating_sub(NAMED);
    if more > 0 {
        others.truncate(NAMED);
        others.push(format!("{more} more"));
    }
    match others.is_empty() {
        true => String::new(),
        false => format!(" (also {})", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::also;

    #[test]
    fn others_are_named_up_to_a_number() {
        assert_eq!(also(&["first", "second"], "second"), " (also first)");
        assert_eq!(also(&["first"], "first"), "");
        let instances = ["_ZN1a1f17h0123456789abcdefE", "_ZN1a1f17hfedcba9876543210E"];
        assert_eq!(also(&instances, instances[1]), "");
        assert_eq!(
            also(&["_ZN1AC1Ev", "_ZN1BC1Ev"], "_ZN1AC2Ev"),
            " (also B::B())"
        );
        let names = ["a", "b", "c", "d", "e", "f"];
        assert_eq!(also(&names, "a"), " (also b, c, d, 2 more)");
    }
}
