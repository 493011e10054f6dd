//! The `tomo` command.

fn main() {}
