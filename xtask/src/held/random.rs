//! Random programs, in C and C++, of all that makes graphs hard to find and code hard to move: tables of targets, labels as
//! values, jumps between assembly and C, calls that come back twice or never, exceptions, tail calls by pointers, stray bytes
//! in code. Each ends by itself: every entry of a function and every way back burns fuel, and there is little of it.

use super::choice::Choice;
use std::fmt::Write;

/// A program's text and how it is built.
pub(crate) struct Program {
    pub(crate) text: String,
    pub(crate) is_cpp: bool,
    pub(crate) tool: &'static str,
    pub(crate) flags: Vec<&'static str>,
}

const PRELUDE: &str = r#"#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef unsigned u;
typedef u (*way)(u, u);
static int fuel = 300;
static u sum;
static jmp_buf *out;
__attribute__((noinline)) static u many(u n, ...) { u s = 0; va_list l; va_start(l, n); while (n--) s = s * 3 + va_arg(l, u); va_end(l); return s; }
__attribute__((noinline, noreturn)) static void leave(u x) { printf("%u\n", sum ^ x); exit((int)(x & 63)); }
"#;

const IN_CPP: &str = "struct Guard { u x; __attribute__((noinline)) ~Guard() { sum += x; } };
struct Base { virtual u go(u a, u b) { return a ^ b; } virtual ~Base() {} };
struct Other : Base { u go(u a, u b) override { if (a & 1) throw b; return a + b; } };
static Base plain; static Other other; static Base *const objects[] = { &plain, &other };
";

/// The program of this number.
pub(crate) fn program(seed: u64) -> Program {
    let mut choice = Choice::new(seed);
    let is_cpp = choice.one_in(3);
    let is_gcc = choice.one_in(2);
    let is_strange = choice.one_in(4);
    let functions = 3 + choice.below(6) as usize;
    let mut writer = Writer {
        choice,
        text: PRELUDE.to_owned(),
        is_cpp,
        is_gcc,
        functions,
        labels: 0,
        depth: 0,
        loops: 0,
        is_guarded: false,
        is_strange,
    };
    writer.all();
    let Writer {
        mut choice, text, ..
    } = writer;
    let tool = match (is_gcc, is_cpp) {
        (true, false) => "gcc",
        (true, true) => "g++",
        (false, false) => "clang-19",
        (false, true) => "clang++-19",
    };
    Program {
        flags: flags(&mut choice, is_gcc),
        text,
        is_cpp,
        tool,
    }
}

/// Appends the text of a program.
struct Writer {
    choice: Choice,
    text: String,
    is_cpp: bool,
    is_gcc: bool,
    functions: usize,
    /// Labels of the function that is being written.
    labels: usize,
    depth: usize,
    /// Loops around, up to what may not be left.
    loops: usize,
    /// Whether a frame would be left that somebody may come back to.
    is_guarded: bool,
    /// Whether there are stray bytes, of which functions do not become exact. In such programs nobody comes
    /// back to a frame: where that is a function's that is not observed, chains keep what was left, and say so.
    is_strange: bool,
}

const LEAVES: [&str; 9] = [
    "a",
    "b",
    "c",
    "sum",
    "d[a & 3]",
    "1u",
    "7u",
    "0x5bd1e995u",
    "d[c & 3]",
];
const OPERATORS: [&str; 8] = ["+", "-", "*", "^", "|", "&", ">>", "/"];
const COMPARED: [&str; 6] = ["<", ">", "==", "!=", "<=", ">="];
const PLACES: [&str; 5] = ["a", "b", "c", "sum", "d[b & 3]"];

impl Writer {
    fn put(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn all(&mut self) {
        if self.is_cpp {
            self.put(IN_CPP);
        }
        for number in 0..self.functions {
            let attribute = match self.choice.below(7) {
                0 => "__attribute__((cold)) static ",
                1 => "__attribute__((hot, noinline)) static ",
                2 => "",
                3 => "static inline ",
                _ => "__attribute__((noinline)) static ",
            };
            let _ = writeln!(self.text, "{attribute}u f{number}(u a, u b);");
        }
        self.put("static const way table[] = {");
        for number in 0..self.functions {
            let _ = write!(self.text, " f{number},");
        }
        self.put(" };\n");
        for number in 0..self.functions {
            self.function(number);
        }
        let body = match self.is_cpp {
            true => "try { f0(c, 3); } catch (int x) { sum += x; } catch (...) { sum ^= 9; }",
            false => "f0(c, 3);",
        };
        let _ = writeln!(
            self.text,
            "int main(int c, char **v) {{ (void)v; (void)table; for (u i = 0; i < 4; i++) {{ fuel += 100; {body} }} leave(sum); }}"
        );
    }

    fn function(&mut self, number: usize) {
        self.labels = match self.choice.below(3) {
            0 => 2 + self.choice.below(4) as usize,
            _ => 0,
        };
        let kept = if !self.is_cpp && self.choice.one_in(4) {
            "volatile "
        } else {
            ""
        };
        let _ = writeln!(
            self.text,
            "u f{number}(u a, u b) {{ {kept}u c = a ^ {number}, d[4] = {{ a, b, 3, {number} }};\nif (--fuel < 0) return a;"
        );
        for label in 0..self.labels.max(1) {
            if self.labels > 0 {
                let _ = writeln!(self.text, "L{label}: a += {label};");
            }
            for _ in 0..1 + self.choice.below(4) {
                self.statement();
            }
        }
        match self.choice.below(4) {
            0 => self.tail_call(),
            _ => {
                let value = self.value();
                let _ = writeln!(self.text, "return {value};");
            }
        }
        self.put("}\n");
    }

    /// Where there may be a `return`: a call behind which nothing is left to do.
    fn tail_call(&mut self) {
        let target = self.target();
        let attribute = match !self.is_gcc && !self.is_cpp && self.choice.one_in(2) {
            true => "__attribute__((musttail)) ",
            false => "",
        };
        let _ = writeln!(self.text, "{attribute}return {target}(a + 1, b ^ c);");
    }

    fn target(&mut self) -> String {
        let number = self.choice.below(self.functions as u64);
        match self.choice.below(3) {
            0 => format!("table[(a + {number}) % {}]", self.functions),
            _ => format!("f{number}"),
        }
    }

    fn value(&mut self) -> String {
        let left = self.choice.of(&LEAVES);
        let right = self.choice.of(&LEAVES);
        match self.choice.of(&OPERATORS) {
            "/" => format!("({left} / ({right} | 1))"),
            ">>" => format!("({left} >> ({right} & 31))"),
            operator => format!("({left} {operator} {right})"),
        }
    }

    fn condition(&mut self) -> String {
        let (left, operator) = (self.value(), self.choice.of(&COMPARED));
        match self.choice.below(4) {
            0 => format!("{left} & {}", 1 << self.choice.below(6)),
            1 => format!("(int){left} {operator} (int){}", self.value()),
            2 => format!("({left} & 15) {operator} {}", self.choice.below(16)),
            _ => format!("{left} {operator} {}", self.value()),
        }
    }

    fn block(&mut self) {
        self.put("{\n");
        for _ in 0..1 + self.choice.below(3) {
            self.statement();
        }
        self.put("}\n");
    }

    fn statement(&mut self) {
        if self.depth > 3 {
            return self.assignment();
        }
        self.depth += 1;
        match self.choice.below(26) {
            0..=4 => self.branch(),
            5..=7 => self.repeat(),
            8..=10 => self.switch(),
            11 => self.open_switch(),
            12..=14 => self.call(),
            15 | 16 => self.jump(),
            17 | 18 => self.assembly(),
            19 | 20 if !self.is_strange => self.comes_back_twice(),
            21 | 22 => self.leaves(),
            23 => self.odd(),
            _ => self.assignment(),
        }
        self.depth -= 1;
    }

    fn assignment(&mut self) {
        let (place, value) = (self.choice.of(&PLACES), self.value());
        let operator = self.choice.of(&["=", "+=", "^=", "-="]);
        let _ = writeln!(self.text, "{place} {operator} {value};");
    }

    fn branch(&mut self) {
        let condition = self.condition();
        let _ = write!(self.text, "if ({condition}) ");
        self.block();
        if self.choice.one_in(2) {
            self.put("else ");
            self.block();
        }
    }

    fn repeat(&mut self) {
        self.loops += 1;
        let turns = 1 + self.choice.below(6);
        match self.choice.below(3) {
            0 => {
                let _ = write!(self.text, "for (u i = 0; i < {turns} && --fuel > 0; i++) ");
                self.block();
            }
            1 => {
                let condition = self.condition();
                let _ = write!(self.text, "while (({condition}) && --fuel > 0) ");
                self.block();
            }
            _ => {
                self.put("do ");
                self.block();
                let condition = self.condition();
                let _ = writeln!(self.text, "while (--fuel > 0 && {condition});");
            }
        }
        self.loops -= 1;
    }

    fn switch(&mut self) {
        let cases = 2 + self.choice.below(10);
        let (first, step) = match self.choice.below(4) {
            0 => (0, 1),
            1 => (self.choice.below(200), 1),
            2 => (0, 1 + self.choice.below(3)),
            _ => (self.choice.below(9), 1000 + self.choice.below(9)),
        };
        let value = self.value();
        let span = first + cases * step + self.choice.below(3);
        let kind = self.choice.of(&[
            "",
            "(unsigned char)",
            "(short)",
            "(long)",
            "(unsigned long)",
        ]);
        let sure = self.choice.one_in(5);
        let range = if sure { first + cases * step } else { span + 1 };
        let _ = writeln!(self.text, "switch ({kind}({value} % {range}u)) {{");
        for number in 0..cases {
            let case = first + number * step;
            let _ = match self.choice.below(6) {
                0 if step > 1 => writeln!(self.text, "case {case} ... {}:", case + step - 1),
                _ => writeln!(self.text, "case {case}:"),
            };
            self.block();
            if !self.choice.one_in(4) {
                self.put("break;\n");
            }
        }
        match self.choice.below(3) {
            0 => self.put("default: c += 5;\n"),
            1 => self.put("default: sum++; break;\n"),
            _ => {}
        }
        self.put("}\n");
    }

    /// One that knows all of the values that its variable may have.
    fn open_switch(&mut self) {
        let count = 3 + self.choice.below(8);
        let (x, low) = self.unbounded(count);
        let _ = writeln!(self.text, "{{ {x} switch (x) {{");
        for number in 0..count as i64 {
            let _ = writeln!(self.text, "case {}:", low + number);
            self.assignment();
            if !self.choice.one_in(4) {
                self.put("break;\n");
            }
        }
        self.put("break; default: __builtin_unreachable(); } }\n");
    }

    fn call(&mut self) {
        let (target, place) = (self.target(), self.choice.of(&PLACES));
        let (one, two) = (self.value(), self.value());
        let _ = match self.choice.below(6) {
            0 => writeln!(self.text, "{place} += many(3, {one}, {two}, a);"),
            1 if self.is_cpp && !self.is_strange => {
                writeln!(self.text, "{place} += objects[a & 1]->go({one}, {two});")
            }
            _ => writeln!(self.text, "{place} += {target}({one}, {two});"),
        };
    }

    /// A variable `x` of one of `count` values, the lowest of which is given, as nobody but the program knows: nothing bounds it.
    fn unbounded(&mut self, count: u64) -> (String, i64) {
        let low = self.choice.of(&[0, 0, 1, 5, 7, -3, 100]);
        let value = self.value();
        let declared =
            format!("long x = (long)({value} % {count}u) + ({low}); __asm__(\"\" : \"+r\"(x));");
        (declared, low)
    }

    /// To labels, by their names, by tables of them, absolute and relative.
    fn jump(&mut self) {
        if self.labels == 0 || self.is_guarded || self.is_cpp {
            return self.assignment();
        }
        let count = self.labels as u64;
        let names = |base: &str| -> String {
            (0..count)
                .map(|label| format!("&&L{label}{base}, "))
                .collect()
        };
        let of_labels = format!("static const void *const to[] = {{ {} }};", names(""));
        let of_offsets = format!("static const int to[] = {{ {} }};", names(" - &&L0"));
        let (x, low) = self.unbounded(count);
        let (value, label) = (self.value(), self.choice.below(count));
        let _ = match self.choice.below(3) {
            0 => writeln!(
                self.text,
                "{{ {of_labels} {x} if (--fuel > 0) goto *to[x - ({low})]; }}"
            ),
            1 => writeln!(
                self.text,
                "{{ {of_offsets} {x} if (--fuel > 0) goto *((char *)&&L0 + to[x - ({low})]); }}"
            ),
            _ => writeln!(self.text, "if (--fuel > 0 && {value} & 3) goto L{label};"),
        };
    }

    fn assembly(&mut self) {
        let value = self.value();
        let label = self.choice.below(self.labels.max(1) as u64);
        let _ = match self.choice.below(4) {
            0 => writeln!(
                self.text,
                "{{ u n = {value} % 5 + 1; __asm__ volatile(\"1: addl %0, %1; subl $1, %0; jnz 1b\" : \"+r\"(n), \"+r\"(a) :: \"cc\"); }}"
            ),
            1 if self.is_strange => writeln!(
                self.text,
                "__asm__ volatile(\"jmp 1f; .byte 0x0f, 0x3f, 0xe8; 1:\");"
            ),
            2 if self.labels > 0 && !self.is_guarded && !self.is_cpp => writeln!(
                self.text,
                "if (--fuel > 0) __asm__ goto(\"testl $5, %0; jnz %l1\" :: \"r\"({value}) : \"cc\" : L{label});"
            ),
            _ => writeln!(
                self.text,
                "memset(d, (int){value}, sizeof d); d[3] = (u)strlen(\"abc\" + (a & 3));"
            ),
        };
    }

    /// A frame that is come back to, by `longjmp` or by an exception.
    fn comes_back_twice(&mut self) {
        let before = (self.is_guarded, self.loops);
        (self.is_guarded, self.loops) = (true, 0);
        if self.is_cpp {
            let guard = if self.choice.one_in(2) {
                "Guard guard{b};"
            } else {
                ""
            };
            let _ = writeln!(self.text, "try {{ {guard}");
            self.block();
            self.put("} catch (int x) { a += (u)x;\n");
            self.block();
            self.put("}");
            if self.choice.one_in(2) {
                self.put(" catch (...) {");
                self.block();
                self.put("}");
            }
            self.put("\n");
        } else {
            self.put("{ jmp_buf here, *volatile before = out; switch (setjmp(here)) { case 0: out = &here;\n");
            self.block();
            self.put("break; case 2: ");
            self.block();
            self.put("break; default: sum += 3; } out = before; }\n");
        }
        (self.is_guarded, self.loops) = before;
    }

    /// Out of the loop, the function, or of several at once.
    fn leaves(&mut self) {
        let condition = self.condition();
        let _ = write!(self.text, "if ({condition}) ");
        let value = self.value();
        let _ = match self.choice.below(6) {
            0 if self.loops > 0 => writeln!(self.text, "break;"),
            1 if self.loops > 0 => writeln!(self.text, "continue;"),
            2 | 3 if self.is_strange => writeln!(self.text, "b++;"),
            2 if self.is_cpp => writeln!(self.text, "throw (int){value};"),
            3 if self.is_cpp => writeln!(self.text, "throw {value};"),
            2 | 3 => writeln!(
                self.text,
                "if (out) {{ jmp_buf *to = out; out = 0; longjmp(*to, 1 + ({value} & 3)); }}"
            ),
            4 if self.choice.one_in(4) => writeln!(self.text, "leave({value});"),
            _ if self.is_guarded => writeln!(self.text, "a--;"),
            5 => {
                self.put("{ ");
                self.tail_call();
                writeln!(self.text, "}}")
            }
            _ => writeln!(self.text, "return {value};"),
        };
    }

    fn odd(&mut self) {
        let value = self.value();
        let _ = match self.choice.below(5) {
            0 => writeln!(
                self.text,
                "{{ u n = ({value} & 7) + 1; u e[n]; memset(e, 1, sizeof e); a += e[n - 1]; }}"
            ),
            1 if self.is_gcc && !self.is_cpp => writeln!(
                self.text,
                "{{ __label__ away; u inner(u x) {{ if (x & 1) goto away; return x * b; }} a += inner({value}); b ^= 5; away: c++; }}"
            ),
            2 => writeln!(
                self.text,
                "sum += (u)((double)({value} & 0xffff) * 1.5 + (a > 9 ? 0.5 : (double)c));"
            ),
            3 => writeln!(
                self.text,
                "if (a == 0x12345 && b == {value}) __builtin_trap();"
            ),
            _ => writeln!(
                self.text,
                "sum += (u)(((unsigned __int128){value} * a) >> 7);"
            ),
        };
    }
}

/// Whose flags they are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Both,
    Gcc,
    Clang,
}
use Takes::{Both, Clang, Gcc};

/// Flags that move code about.
const FLAGS: [(Takes, &str); 47] = [
    (Both, "-fcf-protection=none"),
    (Both, "-fcf-protection=full"),
    (Both, "-fno-jump-tables"),
    (Both, "-mcmodel=large"),
    (Both, "-mcmodel=medium"),
    (Both, "-fno-plt"),
    (Both, "-fno-omit-frame-pointer"),
    (Both, "-mno-red-zone"),
    (Both, "-falign-functions=1"),
    (Both, "-falign-loops=32"),
    (Both, "-ffunction-sections -Wl,--gc-sections"),
    (Both, "-fno-asynchronous-unwind-tables"),
    (Both, "-s"),
    (Both, "-g"),
    (Both, "-flto"),
    (Both, "-fstack-protector-all"),
    (Both, "-fstack-clash-protection"),
    (
        Both,
        "-fsanitize=undefined -fsanitize-undefined-trap-on-error",
    ),
    (Both, "-fpatchable-function-entry=5,2"),
    (Both, "-march=x86-64-v3"),
    (Both, "-funroll-loops"),
    (Both, "-ftrivial-auto-var-init=pattern"),
    (Both, "-fzero-call-used-regs=all"),
    (Both, "-no-pie -fno-pie"),
    (Clang, "-fuse-ld=lld"),
    (Clang, "-fuse-ld=lld -Wl,--icf=all"),
    (Both, "-fuse-ld=gold"),
    (Both, "-Wl,-z,noseparate-code"),
    (Both, "-Wl,-z,now"),
    (Gcc, "-mindirect-branch=thunk"),
    (
        Gcc,
        "-mindirect-branch=thunk-inline -mfunction-return=thunk-inline -fcf-protection=none",
    ),
    (Gcc, "-fno-reorder-blocks"),
    (Gcc, "-fno-reorder-blocks-and-partition"),
    (
        Gcc,
        "-fno-tree-switch-conversion -fno-if-conversion -fno-if-conversion2",
    ),
    (Gcc, "-ftracer"),
    (Gcc, "-fharden-compares -fharden-conditional-branches"),
    (Gcc, "-fno-guess-branch-probability"),
    (Gcc, "-fsplit-paths -fsplit-loops -funswitch-loops"),
    (Gcc, "-fno-ipa-ra"),
    (Gcc, "-falign-jumps=1 -falign-labels=1"),
    (Gcc, "-mtune=atom"),
    (Gcc, "-fcaller-saves -fno-ira-share-spill-slots"),
    (Clang, "-mretpoline -fcf-protection=none"),
    (Clang, "-fbasic-block-sections=all"),
    (Clang, "-mllvm -enable-split-machine-functions"),
    (Clang, "-Oz"),
    (Clang, "-fno-integrated-as"),
];

fn flags(choice: &mut Choice, is_gcc: bool) -> Vec<&'static str> {
    let level = choice.of(&["-O0", "-O1", "-O2", "-O2", "-O3", "-Os", "-Og"]);
    let mut flags = vec!["-w", level];
    for _ in 0..choice.below(5) {
        let (takes, more) = choice.of(&FLAGS);
        if takes == Both || takes == if is_gcc { Gcc } else { Clang } {
            flags.extend(more.split(' '));
        }
    }
    flags
}
