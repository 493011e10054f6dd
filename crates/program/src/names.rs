//! Mangled names made readable: Rust (legacy and v0) and C++ (Itanium ABI).
//!
//! Names come from outside, and a short mangled name can stand for an exponentially long one
//! (substitutions of substitutions), so what is written is bounded: a name that would pass
//! [`LONGEST`] bytes stays mangled.

use std::fmt::{self, Write};

use cpp_demangle::{DemangleOptions, ParseOptions, Symbol};

/// Bytes of the longest demangled name that is given.
pub(crate) const LONGEST: usize = 64 * 1024;

/// The readable form of `mangled`, or `None` where it is not mangled, or not in a way known here.
/// Rust's hash at the end of legacy names is left out.
#[must_use]
pub fn demangle(mangled: &str) -> Option<String> {
    if let Ok(rust) = rustc_demangle::try_demangle(mangled) {
        return bounded(|out| write!(out, "{rust:#}"));
    }
    if !mangled.starts_with("_Z") && !mangled.starts_with("__Z") {
        return None;
    }
    let options = ParseOptions::default().recursion_limit(160);
    let symbol = Symbol::new_with_options(mangled, &options).ok()?;
    let options = DemangleOptions::new().recursion_limit(160);
    bounded(|out| symbol.structured_demangle(out, &options))
}

/// What `write` writes, unless it is too long or fails.
fn bounded(write: impl FnOnce(&mut Bounded) -> fmt::Result) -> Option<String> {
    let mut out = Bounded(String::new());
    write(&mut out).ok()?;
    Some(out.0)
}

/// A string that refuses to grow beyond [`LONGEST`].
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// A demangled name without template arguments' and parameters' details: what stands before the
/// parameter list. `ns::f(int, long)` gives `ns::f`; operators keep their signs.
#[must_use]
pub fn without_parameters(demangled: &str) -> &str {
    const CALL: &str = "operator()";
    let skip = demangled.find(CALL).map_or(0, |at| at + CALL.len());
    let mut depth = 0_usize;
    for (at, letter) in demangled.char_indices().filter(|(at, _)| *at >= skip) {
        match letter {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            '(' if depth == 0 && !demangled[at..].starts_with("(anonymous namespace)") => {
                return &demangled[..at];
            }
            _ => {}
        }
    }
    demangled
}

/// Whether people may call a function `name` that is called `demangled` in full: with or without
/// its parameters, and, for instances of templates, its result.
#[must_use]
pub fn is_called(demangled: &str, name: &str) -> bool {
    let before = without_parameters(demangled).strip_suffix(name);
    demangled == name || before.is_some_and(|result| result.is_empty() || result.ends_with(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_languages_and_neither() {
        assert_eq!(
            demangle("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE").as_deref(),
            Some("core::fmt::Formatter::pad")
        );
        assert_eq!(
            demangle("_RNvC6_123foo3bar").as_deref(),
            Some("123foo::bar")
        );
        assert_eq!(demangle("_ZN2ns1fEil").as_deref(), Some("ns::f(int, long)"));
        assert_eq!(
            demangle("_ZN2ns1fEi.cold").as_deref(),
            Some("ns::f(int) [clone .cold]")
        );
        assert_eq!(demangle("main"), None);
        assert_eq!(demangle("_Znonsense"), None);
    }

    #[test]
    fn parameters_are_cut() {
        assert_eq!(without_parameters("ns::f(int, long)"), "ns::f");
        assert_eq!(
            without_parameters("(anonymous namespace)::f(int)"),
            "(anonymous namespace)::f"
        );
        assert_eq!(
            without_parameters("a<void (*)(int)>::f(int)"),
            "a<void (*)(int)>::f"
        );
        assert_eq!(
            without_parameters("a::operator()(int) const"),
            "a::operator()"
        );
        assert_eq!(
            without_parameters("core::fmt::Formatter::pad"),
            "core::fmt::Formatter::pad"
        );
    }

    #[test]
    fn results_and_parameters_need_not_be_said() {
        let demangled = "void ns::f<int>(int)";
        for name in [demangled, "void ns::f<int>", "ns::f<int>"] {
            assert!(is_called(demangled, name), "{name}");
        }
        for name in ["f<int>", "ns::f", "int)"] {
            assert!(!is_called(demangled, name), "{name}");
        }
    }

    /// Forty pairs of a pair: a terabyte, if written out.
    #[test]
    fn exponential_names_stay_mangled() {
        let mut name = String::from("_Z1f4pairIiiE");
        for level in 0..40 {
            let last = if level == 0 {
                "S_".to_owned()
            } else {
                format!("S{}_", radix36(level - 1))
            };
            write!(name, "4pairI{last}{last}E").unwrap();
        }
        assert!(demangle(&name).is_none_or(|long| long.len() <= LONGEST));
    }

    fn radix36(number: usize) -> String {
        let digit = |n: usize| char::from(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[n]);
        if number < 36 {
            digit(number).into()
        } else {
            format!("{}{}", radix36(number / 36), digit(number % 36))
        }
    }
}
