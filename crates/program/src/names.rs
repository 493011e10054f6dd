//! Mangled names made readable: Rust (legacy and v0) and C++ (Itanium ABI).
//!
//! Names come from outside, and a short mangled name can stand for an exponentially long one
//! (substitutions of substitutions), so what is written is bounded: a name that would pass
//! [`LONGEST`] bytes stays mangled.

use std::borrow::Cow;
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
    demangle_cpp(mangled)
}

fn demangle_cpp(mangled: &str) -> Option<String> {
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

/// The function of the source that `name`, which linkers know, is a symbol of: what its copies have in common.
///
/// Compilers make copies for some callers (`.constprop`, `.isra`), or to be seen from elsewhere (`.llvm`, `.lto_priv`), and split parts
/// off (`.part`, `.cold`). Of the constructors and destructors of C++, of which there may be several symbols (Itanium C++ ABI §5.1.4.4),
/// it is the demangled name that they have in common.
#[must_use]
pub fn source_name(name: &str) -> Cow<'_, str> {
    let function = without_marks(name);
    let is_rust = rustc_demangle::try_demangle(function).is_ok();
    let demangled = (!is_rust).then(|| demangle_cpp(function)).flatten();
    demangled.map_or(function.into(), Cow::from)
}

/// The linkage name of the function of which this may be a copy or a part.
#[must_use]
pub fn without_marks(name: &str) -> &str {
    const MARKS: [&str; 6] = ["cold", "constprop", "isra", "llvm", "lto_priv", "part"];
    let Some((function, marks)) = name.split_once('.') else {
        return name;
    };
    let is_known = |mark: &str| {
        let is_number = mark.bytes().all(|byte| byte.is_ascii_digit());
        is_number || MARKS.contains(&mark)
    };
    match !function.is_empty() && marks.split('.').all(is_known) {
        true => function,
        false => name,
    }
}

/// Whether this is the symbol of code that a C++ compiler made to adjust an object's address before a function of the source, or after it
/// (Itanium C++ ABI §5.1.4.2).
#[must_use]
pub fn is_thunk(name: &str) -> bool {
    ["_ZTh", "_ZTv", "_ZTc"]
        .iter()
        .any(|mark| name.starts_with(mark))
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
    fn copies_and_parts_are_of_the_function() {
        for name in [
            "f",
            "f.constprop.0",
            "f.isra.0.constprop.1",
            "f.lto_priv.3",
            "f.llvm.1234567",
            "f.part.0",
            "f.constprop.0.cold",
        ] {
            assert_eq!(source_name(name), "f");
        }
        for name in [".L1", "f.avx2", "f.resolver"] {
            assert_eq!(source_name(name), name);
        }
    }

    #[test]
    fn constructors_and_destructors_are_one_each() {
        for mark in ["C1", "C2", "C4", "C2.isra.0"] {
            let (mark, copy) = mark.split_at(2);
            let name = format!("_ZN2ns1A{mark}Ei{copy}");
            assert_eq!(source_name(&name), "ns::A::A(int)");
        }
        for mark in ["D0", "D1", "D2", "D4"] {
            assert_eq!(source_name(&format!("_ZN2ns1A{mark}Ev")), "ns::A::~A()");
        }
        let rust = "_ZN3foo3foo17h0123456789abcdefE";
        assert_eq!(source_name(rust), rust);
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
