//! Debug information of programs built here by gcc, g++, clang and rustc, held against what binutils
//! read from the same files, and broken in every way.

mod apart;
mod attack;
mod block_lines;
mod build;
mod check;
mod debug_file;
mod functions;
mod lines;
mod oracle;
mod shared;
