//! Telling what is in `rax` by its sign: negative, zero or positive (ABI §2.1), by so many of its bits.
//!
//! A comparison with zero and two branches; each of the three ways marks, or counts, one predicate. `rax` stays as it
//! is. All status flags change; where somebody may look at one of these they are saved on the stack,
//! below the red zone, where no signal handler finds them in its way.

use super::action::Sinks;
use super::increment;
use super::live::Set;
use crate::trampoline::Writer;

/// What is told, and by what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    /// Bits of the value: 8, 16, 32 or 64.
    pub(crate) bits: u8,
    /// The first of the three marks, or counters: of negative values; zero; positive ones.
    pub(crate) first: u32,
    /// Whether it counts.
    pub(crate) counts: bool,
}

impl Class {
    /// Appends its code, where `live` is looked at afterwards.
    pub(crate) fn write(self, writer: &mut Writer, sinks: Sinks, live: Set) {
        let keeps = live.has_any(Set::STATUS);
        if keeps {
            writer.copy(&[0x48, 0x8d, 0x64, 0x24, 0x80]); // lea rsp, [rsp - 128]
            writer.copy(&[0x9c]); // pushfq
        }
        writer.copy(self.comparison());
        let negative = writer.short_ahead(0x78); // js
        let zero = writer.short_ahead(0x74); // je
        self.record(writer, sinks, 2);
        let positive = writer.short_ahead(0xeb); // jmp
        writer.land_short(zero);
        self.record(writer, sinks, 1);
        let end = writer.short_ahead(0xeb); // jmp
        writer.land_short(negative);
        self.record(writer, sinks, 0);
        writer.land_short(positive);
        writer.land_short(end);
        if keeps {
            writer.copy(&[0x9d]); // popfq
            writer.copy(&[0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0]); // lea rsp, [rsp + 128]
        }
    }

    /// `test` of the register with itself.
    fn comparison(self) -> &'static [u8] {
        match self.bits {
            8 => &[0x84, 0xc0],
            16 => &[0x66, 0x85, 0xc0],
            32 => &[0x85, 0xc0],
            _ => &[0x48, 0x85, 0xc0],
        }
    }

    fn record(self, writer: &mut Writer, sinks: Sinks, case: u32) {
        let number = self.first + case;
        match self.counts {
            // The flags are saved, or nobody looks at them.
            true => increment::write(writer, sinks.counter(number), Set::NONE),
            false => writer.store_byte(sinks.mark(number), 1),
        }
    }
}
