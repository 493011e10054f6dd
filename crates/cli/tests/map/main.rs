//! `tomo map` as a user meets it.

mod bad_input;
mod bench;
mod formats;
mod pages;
mod sample;
