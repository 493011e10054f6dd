//! Scripts for Lua: a server of requests, some of which only some configurations answer.

use std::fmt::Write as _;

use super::{Numbers, Usual};

const LIBRARY: &str = include_str!("requests.lua");
/// How many special trades the library has.
const SPECIAL: u64 = 16;

pub(super) const USUAL: Usual = Usual {
    long: 150_000,
    short: 60,
    instance: 20_000,
};

/// The script of a configuration.
pub(super) fn script(configuration: Option<usize>, seed: u64, requests: u64) -> String {
    let mut draw = Numbers::new(configuration.map_or(0, |number| number as u64 + 1));
    let mut used = String::new();
    for trade in 1..=SPECIAL {
        if configuration.is_none() || draw.below(10) < 4 {
            let _ = write!(used, "{trade}, ");
        }
    }
    format!("local use, seed, requests, rare = {{ {used}}}, {seed}, {requests}, 37\n{LIBRARY}")
}
