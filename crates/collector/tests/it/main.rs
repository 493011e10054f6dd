//! The collector from outside: what joins promise, what the store keeps, what the API says and refuses.

mod api;
mod counted;
mod faults;
mod fleet;
mod joins;
mod naive;
mod segments;
mod stores;
