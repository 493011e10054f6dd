//! Weaves real programs and proves of every image that it is harmless.

mod asking;
mod disposal;
mod moved;
mod mutations;
mod paths;
mod programs;
mod relocations;
mod traces;
mod woven;
