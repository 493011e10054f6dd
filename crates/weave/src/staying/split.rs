//! Telling two cases of a result apart on a way that both of them take, by the flags that the branch there looked at: they
//! are those of a comparison of the result with zero, and stay as they are.

use super::action::Sinks;
use crate::trampoline::Writer;

/// What is told, and by what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Split {
    /// Whether it is by the sign: negative, or not. Else by zero, or not.
    pub(crate) by_sign: bool,
    /// The mark of the first of the two; the other's is the next one.
    pub(crate) first: u32,
}

impl Split {
    /// Appends its code.
    pub(crate) fn write(self, writer: &mut Writer, sinks: Sinks) {
        let first = writer.short_ahead(if self.by_sign { 0x78 } else { 0x74 }); // js, je
        writer.store_byte(sinks.mark(self.first + 1), 1);
        let end = writer.short_ahead(0xeb); // jmp
        writer.land_short(first);
        writer.store_byte(sinks.mark(self.first), 1);
        writer.land_short(end);
    }
}
