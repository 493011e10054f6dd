//! Functions of the common libraries that are declared never to return.
//!
//! A call to an import can be seen to end its path only by the import's name. The list holds what
//! the headers of glibc, libstdc++, libc++abi, the unwinders and widespread C libraries declare
//! `noreturn`; leaving one out costs an edge that never runs, naming one wrongly would hide code,
//! so functions that return in some cases (`warn`) are not here. In which cases is known of those that end the process by the
//! status that they are given first, unless that is 0.

use crate::elf::{Import, Symbol, SymbolKind};

/// By name without version, sorted.
const NEVER_RETURN: &[&str] = &[
    "Py_Exit",
    "Py_FatalError",
    "_Exit",
    "_Py_FatalErrorFunc",
    "_Unwind_Resume",
    "_ZSt10unexpectedv",
    "_ZSt17__throw_bad_allocv",
    "_ZSt16__throw_bad_castv",
    "_ZSt18__throw_bad_typeidv",
    "_ZSt19__throw_ios_failurePKc",
    "_ZSt19__throw_ios_failurePKci",
    "_ZSt19__throw_range_errorPKc",
    "_ZSt19__throw_regex_errorNSt15regex_constants10error_typeE",
    "_ZSt20__throw_domain_errorPKc",
    "_ZSt20__throw_future_errori",
    "_ZSt20__throw_length_errorPKc",
    "_ZSt20__throw_out_of_rangePKc",
    "_ZSt20__throw_system_errori",
    "_ZSt21__throw_bad_exceptionv",
    "_ZSt21__throw_runtime_errorPKc",
    "_ZSt22__throw_overflow_errorPKc",
    "_ZSt23__throw_underflow_errorPKc",
    "_ZSt24__throw_invalid_argumentPKc",
    "_ZSt24__throw_out_of_range_fmtPKcz",
    "_ZSt25__throw_bad_function_callv",
    "_ZSt28__throw_bad_array_new_lengthv",
    "_ZSt21__glibcxx_assert_failPKciS0_S0_",
    "_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE",
    "_ZSt9terminatev",
    "__assert",
    "__assert_fail",
    "__assert_perror_fail",
    "__chk_fail",
    "__cxa_bad_cast",
    "__cxa_bad_typeid",
    "__cxa_call_terminate",
    "__cxa_call_unexpected",
    "__cxa_deleted_virtual",
    "__cxa_pure_virtual",
    "__cxa_rethrow",
    "__cxa_throw",
    "__cxa_throw_bad_array_length",
    "__cxa_throw_bad_array_new_length",
    "__fortify_fail",
    "__libc_fatal",
    "__libc_start_main",
    "__longjmp_chk",
    "__stack_chk_fail",
    "__stack_chk_fail_local",
    "__ubsan_handle_builtin_unreachable",
    "__ubsan_handle_missing_return",
    "_exit",
    "_longjmp",
    "abort",
    "err",
    "errx",
    "exit",
    "g_assertion_message",
    "g_assertion_message_cmpnum",
    "g_assertion_message_cmpstr",
    "g_assertion_message_error",
    "g_assertion_message_expr",
    "longjmp",
    "pthread_exit",
    "quick_exit",
    "rust_begin_unwind",
    "siglongjmp",
    "thrd_exit",
    "verr",
    "verrx",
    "Perl_croak",
    "Perl_croak_nocontext",
    "VAS_Fail",
    "__gnat_raise_exception",
    "_d_throw_exception",
    "_gfortran_error_stop_numeric",
    "_gfortran_error_stop_string",
    "_gfortran_runtime_error",
    "_gfortran_runtime_error_at",
    "_gfortran_stop_numeric",
    "_gfortran_stop_string",
    "isc_assertion_failed",
    "isc_error_fatal",
    "log_assert_failed",
    "log_assert_failed_unreachable",
    "objc_exception_throw",
];

/// Whether the function called `name` is declared never to return.
pub(crate) fn never_returns(name: &str) -> bool {
    let plain = name.split('@').next().unwrap_or(name);
    // Ada's failed checks, one for each kind.
    NEVER_RETURN.contains(&plain) || plain.starts_with("__gnat_rcheck_")
}

/// Functions of glibc that end the process unless their first argument, an `int`, is 0.
const END_BY_STATUS: &[&str] = &["error", "error_at_line"];

/// Whether the import ends the process unless its first argument, an `int`, is 0. The names are anybody's, so glibc must be meant.
pub(crate) fn ends_by_status(import: &Import<'_>) -> bool {
    let is_of_glibc = |version: &str| version.starts_with("GLIBC_");
    END_BY_STATUS.contains(&import.name) && import.version.is_some_and(is_of_glibc)
}

/// Whether a function of the file itself, called `name`, is declared never to return: only names
/// that are reserved to the implementation, since a program may give its own function any other.
pub(crate) fn own_never_returns(name: &str) -> bool {
    (name.starts_with('_') || name.ends_with("longjmp")) && never_returns(name)
}

/// Whether a symbol's name marks a part that the compiler or a later tool split off from a
/// function and that is entered by jumps only (`f.cold`, `f.cold.3`, `f.cold.3/1`, LLVM's `f.__part.1` and `f.eh`, and
/// BOLT's `f.warm`).
pub(crate) fn is_split_part(name: &str) -> bool {
    parent_name(name).is_some()
}

/// Whether it is the symbol of a function or of a part of one. To parts in sections of their own LLVM gives no type.
pub(super) fn names_code(symbol: &Symbol<'_>) -> bool {
    match symbol.kind {
        SymbolKind::Function => true,
        SymbolKind::Untyped => is_split_part(symbol.name),
        SymbolKind::IndirectFunction | SymbolKind::Object => false,
    }
}

/// The name of the function that the part called `name` was split off from.
pub(crate) fn parent_name(name: &str) -> Option<&str> {
    [".cold", ".warm", ".__part.", ".eh"]
        .iter()
        .find_map(|mark| {
            let at = name.rfind(mark)?;
            let rest = &name[at + mark.len()..];
            rest.chars()
                .all(|c| c.is_ascii_digit() || c == '.' || c == '/')
                .then(|| &name[..at])
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_do_not_hide_a_name() {
        assert!(never_returns("exit@GLIBC_2.2.5"));
        assert!(never_returns("abort"));
        assert!(!never_returns("error"));
        assert!(!never_returns("atexit"));
    }

    #[test]
    fn split_parts_name_their_parent() {
        assert_eq!(parent_name("f.cold"), Some("f"));
        assert_eq!(parent_name("f.part.0.cold"), Some("f.part.0"));
        assert_eq!(parent_name("f.constprop.0.cold.12"), Some("f.constprop.0"));
        assert_eq!(parent_name("f.warm"), Some("f"));
        assert_eq!(parent_name("f.__part.12"), Some("f"));
        assert_eq!(parent_name("f.eh"), Some("f"));
        assert_eq!(parent_name("f.part.0"), None);
        assert_eq!(parent_name("f.coldish"), None);
    }
}
