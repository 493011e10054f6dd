//! Builds the programs that the tests read.

use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A directory with a program in it, both gone when dropped.
pub(crate) struct Built {
    pub(crate) directory: TempDir,
    pub(crate) program: PathBuf,
}

impl Built {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        std::fs::read(&self.program).expect("the program was just built")
    }
}

/// Builds `sources` (name and text) with `compiler` and `flags` into a program.
pub(crate) fn build(compiler: &str, flags: &[&str], sources: &[(&str, &str)]) -> Built {
    let directory = TempDir::new().expect("a temporary directory");
    for (name, text) in sources {
        std::fs::write(directory.path().join(name), text).expect("a source is written");
    }
    let names = sources
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| !name.ends_with(".h"));
    let mut command = Command::new(compiler);
    command
        .current_dir(directory.path())
        .args(flags)
        .args(names)
        .args(["-o", "program"]);
    run(&mut command);
    let program = directory.path().join("program");
    Built { directory, program }
}

/// Runs a command that must succeed, and gives what it wrote.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| {
        panic!("{command:?}: {error} (Debian packages: gcc g++ clang-19 lld-19 binutils)")
    });
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What a tool writes about a program.
pub(crate) fn tool(name: &str, arguments: &[&str], program: &Path) -> String {
    run(Command::new(name)
        .env("LC_ALL", "C")
        .args(arguments)
        .arg(program))
}

/// A C program with all kinds of results, in two files.
pub(crate) const C: [(&str, &str); 3] = [
    (
        "one.c",
        r#"
        #include "both.h"
        typedef void nothing;
        typedef const nothing *pointer;
        static int counter;
        static void hidden(int by) { counter += by; }
        static int also_hidden(int x) { return x * counter; }
        nothing by_another_name(void) { hidden(3); }
        pointer a_pointer(void) { return &counter; }
        void (*a_function_pointer(int x))(int) { return x ? hidden : 0; }
        struct pair { long a, b, c; };
        struct pair a_pair(long a) { struct pair p = { a, a + 1, counter }; return p; }
        __attribute__((noreturn)) void die(int code) { hidden(code); exit(code); }
        _Noreturn static int die_quietly(void) { for (;;) counter++; }
        __attribute__((cold, noinline)) void rare(int x) { counter -= x; }
        __attribute__((noinline)) int split(int x) {
            if (__builtin_expect(x > 1000, 0)) { rare(x); hidden(x); rare(x + 1); return 3; }
            return also_hidden(x);
        }
        int main(int argc, char **argv) {
            (void)argv;
            if (argc > 9) die(argc);
            if (argc > 8) die_quietly();
            by_another_name();
            a_function_pointer(argc)(1);
            inlined_and_not(argc);
            return split(argc) + (int)a_pair(argc).c + (a_pointer() == 0) + elsewhere(argc) > 5;
        }
        "#,
    ),
    (
        "two.c",
        r#"
        #include "both.h"
        static int hidden(void) { return 7; }
        int (*keep)(void) = hidden;
        int elsewhere(int x) { inlined_and_not(x); return x + hidden() + puts("x"); }
        void inlined_and_not(int x) { if (x > 77) abort(); }
        void unused(void) { puts("unused"); }
        "#,
    ),
    (
        "both.h",
        r#"
        #include <stdlib.h>
        #include <stdio.h>
        int elsewhere(int x);
        void inlined_and_not(int x);
        __attribute__((noreturn)) void die(int code);
        "#,
    ),
];

/// A C++ program: members, specialisations, lambdas, things in namespaces, promises not to return.
pub(crate) const CPP: [(&str, &str); 2] = [
    (
        "one.cpp",
        r#"
        #include "shape.h"
        #include <cstdio>
        namespace {
        int local_count;
        [[gnu::noinline]] void hidden() { local_count++; }
        }
        namespace outer { namespace inner {
        [[noreturn]] void leave(int code) { hidden(); throw code; }
        template <class T> [[gnu::noinline]] T twice(T x) { hidden(); return x + x; }
        template <class T> [[gnu::noinline]] void nothing_of(T) { hidden(); }
        extern "C" int plain_name(int x) { return x + 1; }
        } }
        auto deduced_value(int x) { return x + local_count; }
        auto deduced_void(int) { hidden(); }
        Shape::Shape(int s) : sides(s) { hidden(); }
        Shape::~Shape() { hidden(); }
        int Shape::area() const { return sides * 2; }
        void Shape::grow(int by) { sides += by; }
        void Shape::fail() { outer::inner::leave(3); }
        int Shape::count() { return local_count; }
        int main(int argc, char **) {
            Square square(argc);
            square.grow(2);
            deduced_void(1);
            struct Local { int value; [[gnu::noinline]] int get() const { hidden(); return value; }
                           [[gnu::noinline]] void set(int v) { hidden(); value = v; } } local{argc};
            local.set(local.get() + 1);
            auto lambda = [&](int x) -> void { hidden(); local.value = x; };
            lambda(3);
            outer::inner::nothing_of(2.0);
            try { if (argc > 5) square.fail(); } catch (int code) { std::printf("%d\n", code); }
            return square.area() + Shape::count() + outer::inner::twice(argc) + deduced_value(2)
                + outer::inner::plain_name(3) > 4;
        }
        "#,
    ),
    (
        "shape.h",
        r#"
        struct Shape {
            int sides;
            Shape(int s);
            virtual ~Shape();
            virtual int area() const;
            void grow(int by);
            [[noreturn]] void fail();
            static int count();
        };
        struct Square : Shape {
            Square(int s) : Shape(s + 4) {}
            int area() const override { return sides * sides; }
        };
        "#,
    ),
];

/// A Rust program.
pub(crate) const RUST: [(&str, &str); 1] = [(
    "main.rs",
    r#"
    use std::hint::black_box;
    struct Counter { value: u64 }
    impl Counter {
        #[inline(never)] fn add(&mut self, by: u64) { self.value += black_box(by); }
        #[inline(never)] fn get(&self) -> u64 { black_box(self.value) }
        #[inline(never)] fn give_up(&self) -> ! { std::process::exit(black_box(3)) }
    }
    trait Shape { fn area(&self) -> f64; fn grow(&mut self); }
    impl Shape for f64 {
        #[inline(never)] fn area(&self) -> f64 { black_box(*self) }
        #[inline(never)] fn grow(&mut self) { *self += 1.0; }
    }
    #[inline(never)] fn nothing(values: &mut Vec<u8>) { values.push(black_box(1)); }
    #[inline(never)] fn generic<T: Clone>(x: &T) -> T { black_box(x.clone()) }
    #[unsafe(no_mangle)] #[inline(never)] pub extern "C" fn plain(x: i32) -> i32 { x + black_box(1) }
    fn main() {
        let mut counter = Counter { value: 1 };
        let mut values = vec![0];
        nothing(&mut values);
        counter.add(2);
        let mut side = 2.0;
        let shape: &mut dyn Shape = black_box(&mut side);
        shape.grow();
        if counter.get() > 99 { counter.give_up(); }
        let closure = |x: u64| black_box(x) + counter.get();
        let sum = closure(3) + generic(&values).len() as u64 + plain(1) as u64 + shape.area() as u64;
        println!("{sum}");
    }
    "#,
)];
