//! `tomo report`, `tomo merge` and their kin as a user meets them: records made by hand of programs built here.

mod again;
mod bench;
mod choice;
mod completed;
mod formats;
mod hostile;
mod marked;
mod merging;
mod pages;
mod processes;
mod runs;
mod truth;
mod unknown;
mod words;
