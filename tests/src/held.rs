//! What a test held against single steps, for the table of `cargo xtask bench truth`.

use serde_json::json;

/// Says, as a line of JSON, how many things of this kind were right in a build, over
/// all its workloads.
pub fn tell(kind: &str, build: &str, agreed: usize) {
    println!(
        "{}",
        json!({ "kind": kind, "build": build, "agreed": agreed })
    );
}
