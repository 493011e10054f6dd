//! Panics that are caught, threads, a stack that grows.
use std::collections::BTreeMap;
use std::panic::catch_unwind;

fn deep(depth: u32) -> u32 {
    match depth {
        0 => 0,
        _ => deep(depth - 1) + 1,
    }
}

fn main() {
    let words: BTreeMap<String, u32> = (0..50_000).map(|n| ((n % 1001).to_string(), n)).collect();
    println!("{}", words.len());
    std::panic::set_hook(Box::new(|_| ()));
    let numbers = vec![1, 2, 3];
    let caught = catch_unwind(|| numbers[std::env::args().count() + 5]);
    println!("{}", caught.is_err());
    let threads = (0..4).map(|n| std::thread::spawn(move || deep(1000 * n)));
    let threads: Vec<_> = threads.collect();
    for thread in threads {
        println!("{}", thread.join().unwrap_or_default());
    }
    std::process::exit(5);
}
