//! What adaptive bug isolation costs: a step over a million reports and a hundred thousand sites, arming a new plan,
//! and whole processes while a search's plans are armed in them.
//!
//! Prints one JSON object a line. Run by `cargo bench -p tomo-lab --bench isolate`, and by `cargo xtask bench isolate`.

mod armed;
mod step;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    // Cargo passes --bench, and `cargo test --benches` does not: then there is nothing to do.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    step::step()?;
    armed::programs()
}

fn print(what: &str, value: f64, unit: &str, promise: &str) {
    // No text here holds anything that JSON would write otherwise than Rust does.
    println!(
        r#"{{"bench":"isolate","what":{what:?},"value":{value},"unit":{unit:?},"promise":{promise:?}}}"#
    );
}

/// The value in the middle.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
