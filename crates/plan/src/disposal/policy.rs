//! When an instance talks to the server.
//!
//! Source: DIS §4.1: at regular intervals, or when a buffer of newly covered probes is full; updates at
//! the start of a run, and with each dissemination, "to leverage the connection already established".
//! A buffer that never fills and no update at the start is local disposal.

use std::num::NonZeroU32;

/// What makes an instance send what it has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// So many probes seen since it last did.
    Buffer(NonZeroU32),
    /// So much time gone by since it last did, seen something or not.
    Interval(u64),
    /// Nothing.
    Never,
}

/// When to send and when to hear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Policy {
    /// What makes it send.
    pub send: Trigger,
    /// Whether it asks at its start for what others have seen.
    pub update_at_start: bool,
    /// Whether the answer to what it sends says what others have seen.
    pub piggyback: bool,
    /// Whether it sends at its end what is left in the buffer.
    pub flush_at_end: bool,
}

impl Policy {
    /// The policy of the study: a buffer of one, updates at the start and with every dissemination.
    pub const STUDY: Self = Self {
        send: Trigger::Buffer(NonZeroU32::MIN),
        update_at_start: true,
        piggyback: true,
        flush_at_end: true,
    };

    /// Whether it is time to send, with so many probes in the buffer, so long after the last time.
    #[must_use]
    pub fn is_due(&self, buffered: usize, since: u64) -> bool {
        match self.send {
            Trigger::Buffer(size) => buffered >= size.get() as usize,
            Trigger::Interval(length) => since >= length.max(1),
            Trigger::Never => false,
        }
    }
}
