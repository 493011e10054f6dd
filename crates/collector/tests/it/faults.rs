//! What goes wrong, one test for each: nothing that was acknowledged is lost, nothing counts twice, and
//! every refusal says why.

mod broken;
mod killed;
mod network;
mod reports;
