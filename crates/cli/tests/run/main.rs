//! `tomo run` as a user meets it, and as a collector does.

mod calibrate;
mod faults;
mod hostile;
mod instance;
mod live;
mod prepared;
mod session;
mod site;
mod stub;
