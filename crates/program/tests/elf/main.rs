//! The reading side: ELF files and unwind tables, against binutils, against the unwinder, and
//! under attack.

mod build;
mod check;
mod exceptions;
mod hostile;
mod programs;
