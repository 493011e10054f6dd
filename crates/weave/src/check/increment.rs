//! Recognises the increment of a counter in machine code, whole, with what saves and restores what it changes.

use super::bytes::Bytes;

/// An increment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// How many bytes into the slab the counter is.
    pub(super) offset: u32,
    /// Where in the code that is said, in four bytes.
    pub(super) at: usize,
    pub(super) keep: Keep,
    /// Bytes of all of it.
    pub(super) length: usize,
}

/// What it leaves as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// All but the flags, of which it keeps the carry.
    Nothing,
    /// All but `rax`.
    Rax,
    /// All but the general register of this number.
    Register(u8),
    /// All.
    Stack,
}

/// `inc qword ptr gs:[…]`.
const INCREMENT: [u8; 5] = [0x65, 0x48, 0xff, 0x04, 0x25];

impl Bytes<'_> {
    /// That, and the offset.
    fn increment(&mut self) -> Option<u32> {
        self.expect(INCREMENT)?;
        self.take().map(u32::from_le_bytes)
    }

    /// The same between `lahf; seto al` and `add al, 127; sahf`.
    fn with_flags(&mut self) -> Option<u32> {
        self.expect([0x9f, 0x0f, 0x90, 0xc0])?;
        let offset = self.increment()?;
        self.expect([0x04, 0x7f, 0x9e])?;
        Some(offset)
    }

    /// The same between `mov register, rax` and `mov rax, register`.
    fn with_register(&mut self) -> Option<(u32, u8)> {
        let [prefix, opcode, registers] = self.take()?;
        let (high, low) = (prefix & 1, registers & 7);
        if prefix & 0xfe != 0x48 || opcode != 0x89 || registers & 0xf8 != 0xc0 {
            return None;
        }
        let offset = self.with_flags()?;
        self.expect([prefix, 0x8b, registers])?;
        Some((offset, high << 3 | low))
    }

    /// The same with `rax` saved below the red zone.
    fn with_stack(&mut self) -> Option<u32> {
        self.expect([0x48, 0x8d, 0x64, 0x24, 0x80, 0x50])?;
        let offset = self.with_flags()?;
        self.expect([0x58, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0])?;
        Some(offset)
    }
}

/// The increment that `code` begins with, if it does.
pub(super) fn read(code: &[u8]) -> Option<Found> {
    let whole = |what: &dyn Fn(&mut Bytes<'_>) -> Option<(u32, Keep)>| {
        let mut reading = Bytes::of(code);
        let (offset, keep) = what(&mut reading)?;
        let before = code.windows(INCREMENT.len());
        Some(Found {
            offset,
            at: before.into_iter().position(|bytes| bytes == INCREMENT)? + INCREMENT.len(),
            keep,
            length: reading.at,
        })
    };
    whole(&|reading| Some((reading.increment()?, Keep::Nothing)))
        .or_else(|| whole(&|reading| Some((reading.with_flags()?, Keep::Rax))))
        .or_else(|| whole(&|reading| Some((reading.with_stack()?, Keep::Stack))))
        .or_else(|| {
            whole(&|reading| {
                let (offset, register) = reading.with_register()?;
                Some((offset, Keep::Register(register)))
            })
        })
}

#[cfg(test)]
mod tests {
    use super::{Keep, read};
    use crate::staying::increment;
    use crate::staying::live::Set;
    use crate::trampoline::{Spot, Writer};
    use iced_x86::Register;

    #[test]
    fn what_is_written_is_recognised_whatever_is_live() {
        let flags = Set::STATUS;
        let but = |number| Set::ALL.without(Set::numbered(number));
        for (live, keep) in [
            (Set::NONE, Keep::Nothing),
            (Set::CARRY, Keep::Nothing),
            (flags, Keep::Rax),
            (flags.with(Set::register(Register::RAX)), Keep::Register(1)),
            (but(12), Keep::Register(12)),
            (but(15), Keep::Register(15)),
            (Set::ALL, Keep::Stack),
        ] {
            let mut writer = Writer::new(Spot(0), 64);
            increment::write(&mut writer, 0x1238, live);
            let length = writer.bytes.len();
            writer.copy(&[0xcc]);
            let found = read(&writer.bytes).expect("an increment");
            assert_eq!(
                (found.offset, found.keep, found.length),
                (0x1238, keep, length)
            );
            for cut in 0..length {
                assert_eq!(read(&writer.bytes[..cut]), None, "{keep:?}, {cut} bytes");
            }
        }
    }
}
