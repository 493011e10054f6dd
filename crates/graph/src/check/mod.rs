//! One check per analysis: the result is held against an oracle written from the definition.
//!
//! Each function takes a graph (small: oracles are cubic or worse) and says in the error what
//! differs. Unit tests, property tests and fuzz targets drive the same functions; [`all`] runs
//! every one on the graph that [`generate()`] makes of arbitrary bytes. Oracles share no code with
//! the analyses but the graph itself; where one analysis rests on another (loops on a depth-first
//! walk), that other has its own check.

mod acyclic;
mod control;
mod dominance;
mod generate;
mod loops;
mod naive;
mod orders;
mod realizability;
mod spanning;
mod views;

pub use acyclic::acyclic_paths;
pub use control::control_dependence;
pub use dominance::{dominators, post_dominators};
pub use generate::{Entropy, generate};
pub use loops::loops;
pub use naive::{all_cycles_and_diamonds, printed_conditions};
pub use orders::{components, depth_first};
pub use realizability::{enumerations, executions, realizability};
pub use spanning::spanning_tree;
pub use views::views;

/// What a check finds: nothing, or what is wrong.
pub type Outcome = Result<(), String>;

/// Ends the check with what is wrong unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(format!($($message)+));
        }
    };
}
pub(crate) use ensure;

/// Makes a graph of `bytes` and runs every check on it.
pub fn all(bytes: &[u8]) -> Outcome {
    let mut entropy = Entropy::new(bytes);
    let graph = generate(&mut entropy, 14);
    depth_first(&graph)?;
    components(&graph)?;
    views(&graph)?;
    dominators(&graph)?;
    post_dominators(&graph)?;
    control_dependence(&graph)?;
    loops(&graph)?;
    acyclic_paths(&graph)?;
    spanning_tree(&graph, &mut entropy)?;
    let small = generate(&mut entropy, 7);
    spanning_tree(&small, &mut entropy)?;
    enumerations(&small)?;
    realizability(&small, &mut entropy)?;
    executions(&generate(&mut entropy, 4), &mut entropy)
}
