//! The house's chores.

fn main() {}
