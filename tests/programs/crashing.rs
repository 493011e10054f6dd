//! Panics, or runs out of stack, below inner, outer and main; built so that panics abort.

use std::hint::black_box;

#[inline(never)]
fn inner(words: &[String]) -> usize {
    let at = black_box(7);
    let word = &words[at]; // the panic
    word.len() + black_box(1)
}

#[inline(never)]
#[expect(unconditional_recursion, reason = "it is to run out of stack")]
fn overflow(n: usize) -> usize {
    let frame = black_box([n; 64]);
    overflow(n + 1) + frame[black_box(3)]
}

#[inline(never)]
fn outer(words: &[String]) -> usize {
    let n = match words.first().map(String::as_str) {
        Some("overflow") => overflow(1),
        _ => inner(words),
    };
    n + black_box(1)
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    println!("{}", outer(&words));
}
