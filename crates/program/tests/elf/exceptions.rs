//! Landing pads against the unwinder itself: programs that report each landing pad they enter.
//!
//! The personality routine calls `_Unwind_SetIP` right before it enters a landing pad. The programs
//! here bring their own, which prints the return address of the call that the exception passed and
//! the landing pad, and then does what the library's does.

use std::fs;

use crate::build::{Workshop, need, run};
use crate::check;
use tomo_program::elf::Binary;
use tomo_program::unwind::{self, CallSite, ExceptionTable, UnwindEntry};
use tomo_program::{Address, Range};

const SOURCE: &str = r#"
#include <cstdio>
#include <cstdint>
#include <dlfcn.h>
#include <stdexcept>
#include <string>
#include <unwind.h>

extern "C" char __executable_start[];
static bool reporting = false;

extern "C" void _Unwind_SetIP(struct _Unwind_Context *context, uintptr_t pad) {
    typedef void Real(struct _Unwind_Context *, uintptr_t);
    static Real *real = (Real *)dlsym(RTLD_NEXT, "_Unwind_SetIP");
    if (reporting)
        printf("%zx %zx\n", (size_t)_Unwind_GetIP(context) - BASE, (size_t)pad - BASE);
    real(context, pad);
}

struct Guard {
    int *count;
    ~Guard() { ++*count; }
};

__attribute__((noinline)) void thrower(int n) {
    if (n % 3 == 0) throw n;
    if (n % 3 == 1) throw std::runtime_error("one");
    throw std::string("two");
}

__attribute__((noinline)) int cleans(int n, int *count) {
    Guard first{count};
    thrower(n);
    Guard second{count};
    thrower(n + 1);
    return 0;
}

__attribute__((noinline)) int catches(int n, int *count) {
    try {
        return cleans(n, count);
    } catch (int caught) {
        return caught;
    } catch (const std::exception &caught) {
        try {
            thrower(n + 2);
        } catch (...) {
            return caught.what()[0];
        }
    }
    return -1;
}

__attribute__((noinline)) int nested(int n, int *count) {
    int sum = 0;
    for (int i = 0; i < n; i++) {
        try {
            Guard guard{count};
            sum += catches(i, count);
            thrower(i);
        } catch (const std::string &caught) {
            sum += (int)caught.size();
        } catch (...) {
            sum ^= i;
        }
    }
    return sum;
}

int main() {
    int count = 0;
    reporting = true;
    int sum = nested(12, &count);
    reporting = false;
    return sum + count == 0;
}
"#;

/// The call site that covers the call which returns to `returns_to`.
fn site_of(functions: &[UnwindEntry], returns_to: Address) -> Option<(&UnwindEntry, CallSite)> {
    let call = Address(returns_to.0 - 1);
    let function = functions.iter().find(|entry| entry.range.contains(call))?;
    let site = function
        .call_sites
        .iter()
        .find(|site| site.range.contains(call))?;
    Some((function, *site))
}

/// Runs a build and looks up everything it reports.
fn reports_what_was_read(workshop: &Workshop, compiler: &str, flags: &[&str]) {
    let path = workshop.build(compiler, flags, "throws.cc", SOURCE, "throws");
    let data = fs::read(&path).expect("built above");
    let binary = Binary::parse(&data).expect("a program");
    let unwind = unwind::read(&binary);
    assert_eq!(unwind.warnings, [], "{compiler} {flags:?}");
    check::unwind_promises(&binary, &unwind);
    let report = run(path.to_str().expect("UTF-8"), &[]);
    let mut entered = 0;
    for line in report.lines() {
        let (returns_to, pad) = line.split_once(' ').expect("two numbers");
        let number = |text| Address(u64::from_str_radix(text, 16).expect("a number"));
        let (returns_to, pad) = (number(returns_to), number(pad));
        let (_, site) = site_of(&unwind.functions, returns_to)
            .unwrap_or_else(|| panic!("{compiler} {flags:?}: no call site at {returns_to}"));
        assert_eq!(
            site.landing_pad,
            Some(pad),
            "{compiler} {flags:?} at {returns_to}"
        );
        entered += 1;
    }
    assert!(
        entered >= 30,
        "{compiler} {flags:?}: only {entered} landing pads were entered"
    );
    cleanups_do_not_catch(&binary, &unwind.functions);
}

/// `cleans` has destructors to run and nothing to catch, `catches` has both.
fn cleanups_do_not_catch(binary: &Binary<'_>, functions: &[UnwindEntry]) {
    let entry = |name: &str| {
        let symbol = binary.symbols().iter().find(|symbol| symbol.name == name);
        let address = symbol.expect("a function of the source").address;
        let found = functions
            .iter()
            .find(|entry| entry.range.start() == address);
        found.expect("every function has an unwind entry")
    };
    let cleans = entry("_Z6cleansiPi");
    assert!(cleans.entry_frame && cleans.exceptions == ExceptionTable::Read);
    assert!(!cleans.call_sites.is_empty());
    assert!(cleans.call_sites.iter().all(|site| !site.catches));
    let catches = entry("_Z7catchesiPi");
    assert!(catches.call_sites.iter().any(|site| site.catches));
    assert!(entry("_Z7throweri").entry_frame);
}

#[test]
fn landing_pads_are_those_that_gcc_programs_enter() {
    let workshop = Workshop::new();
    for optimisation in ["-O0", "-O1", "-O2", "-O3"] {
        reports_what_was_read(&workshop, "g++", &[optimisation, "-no-pie", "-DBASE=0"]);
        let position_independent = [
            optimisation,
            "-pie",
            "-fPIE",
            "-DBASE=(size_t)__executable_start",
        ];
        reports_what_was_read(&workshop, "g++", &position_independent);
    }
}

#[test]
fn landing_pads_are_those_that_clang_programs_enter() {
    need("clang++-19", "clang-19");
    need("ld.lld-19", "lld-19");
    let workshop = Workshop::new();
    for optimisation in ["-O0", "-O2"] {
        reports_what_was_read(
            &workshop,
            "clang++-19",
            &[optimisation, "-no-pie", "-DBASE=0"],
        );
        let lld = [
            optimisation,
            "-fuse-ld=lld-19",
            "-DBASE=(size_t)__executable_start",
        ];
        reports_what_was_read(&workshop, "clang++-19", &lld);
    }
    // Every block a section of its own: landing pads far from the calls, LPStart given, tables that
    // reach into each other. With optimisation these programs lead their own unwinder astray.
    let split = ["-O0", "-fbasic-block-sections=all"];
    let fixed = ["-no-pie", "-DBASE=0"];
    let anywhere = ["-pie", "-fPIE", "-DBASE=(size_t)__executable_start"];
    // One linker keeps the unwind entries of empty parts, the other one does not.
    for linker in [&["-fuse-ld=lld-19"][..], &[]] {
        for place in [&fixed[..], &anywhere] {
            let flags = [&split[..], place, linker].concat();
            reports_what_was_read(&workshop, "clang++-19", &flags);
        }
    }
}

#[test]
fn split_off_parts_are_no_entries() {
    let workshop = Workshop::new();
    let flags = ["-O2", "-no-pie", "-DBASE=0"];
    let path = workshop.build("g++", &flags, "throws.cc", SOURCE, "throws");
    let data = fs::read(&path).expect("built above");
    let binary = Binary::parse(&data).expect("a program");
    let unwind = unwind::read(&binary);
    let mut parts = 0;
    for symbol in binary
        .symbols()
        .iter()
        .filter(|symbol| symbol.name.starts_with("_Z"))
    {
        let entry = unwind
            .functions
            .iter()
            .find(|entry| entry.range.start() == symbol.address);
        let Some(entry) = entry else { continue };
        let range = Range::sized(symbol.address, symbol.size);
        assert_eq!(Some(entry.range), range, "{}", symbol.name);
        let is_part = symbol.name.ends_with(".cold");
        parts += usize::from(is_part);
        assert_eq!(entry.entry_frame, !is_part, "{}", symbol.name);
    }
    assert!(parts >= 1, "gcc has split off no part");
}
