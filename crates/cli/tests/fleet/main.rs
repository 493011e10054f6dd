//! The commands for a fleet as a user meets them: a collector as a process, a program built here, and
//! reports made by hand.

mod chains;
mod commands;
mod damage;
mod errors;
mod instances;
mod isolate;
mod paths;
mod site;
mod statics;
mod tokens;
