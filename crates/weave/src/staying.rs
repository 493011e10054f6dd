//! Probes that stay: detours that execute elsewhere what they displace.

pub(crate) mod moved;
