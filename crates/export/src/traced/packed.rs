//! Tracks as they are kept: pieces of them as they were taken, compressed.
//!
//! A header of eight bytes, then one zstd frame of *pieces*: the slab's number, how many bytes follow, how many of the slab's came
//! before, their checksum, the bytes, which are words. A piece that comes twice counts once. The last piece is of no slab ([`END`]): how many threads found no more room, how many had none at all, and
//! the signal handlers. Numbers are little-endian. Without that piece the record is cut off: what is whole before
//! the cut is certain.
//!
//! Words differ little from one to the next time that code runs, which zstd finds.

use std::io::{self, Read, Write};

use tomo_wire::checksum;

/// What the file starts with.
const MAGIC: [u8; 8] = *b"TOMOTKZ2";
/// The level of compression: programs wait for it.
const LEVEL: i32 = 1;
/// In place of a slab.
const END: u32 = u32::MAX;
/// Bytes of a piece at most.
const LONGEST: usize = 1 << 20;

/// Writes tracks while they are recorded.
pub struct Packer<W: Write> {
    to: zstd::Encoder<'static, W>,
}

impl<W: Write> Packer<W> {
    /// Nothing yet.
    ///
    /// # Errors
    /// As the writer has them.
    pub fn new(mut to: W) -> io::Result<Self> {
        to.write_all(&MAGIC)?;
        Ok(Self {
            to: zstd::Encoder::new(to, LEVEL)?,
        })
    }

    /// What a slab's thread recorded behind so many bytes.
    ///
    /// # Errors
    /// As the writer has them.
    pub fn add(&mut self, slab: u32, mut behind: u64, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.chunks(LONGEST) {
            self.to.write_all(&slab.to_le_bytes())?;
            self.to.write_all(&(piece.len() as u32).to_le_bytes())?;
            self.to.write_all(&behind.to_le_bytes())?;
            behind += piece.len() as u64;
            self.to.write_all(&checksum(piece).to_le_bytes())?;
            self.to.write_all(piece)?;
        }
        Ok(())
    }

    /// Hands all of it to the writer.
    ///
    /// # Errors
    /// As the writer has them.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    /// Says that this was all; `lost` is how many threads found no more room, and how many had none at all.
    ///
    /// # Errors
    /// As the writer has them.
    pub fn finish(mut self, lost: (u64, u64), handlers: &[u64]) -> io::Result<W> {
        let numbers = [lost.0, lost.1].into_iter().chain(handlers.iter().copied());
        let bytes: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
        self.add(END, 0, &bytes)?;
        let mut to = self.to.finish()?;
        to.flush()?;
        Ok(to)
    }
}

/// What the threads of a run recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Words by slab.
    pub slabs: Vec<Vec<u32>>,
    /// Threads that found no more room.
    pub full: u64,
    /// Threads that had none at all.
    pub lost: u64,
    /// Where signal handlers are, counted from the module's first executable page.
    pub handlers: Vec<u64>,
    /// Whether it was cut off, so that more was recorded than is here.
    pub is_cut: bool,
}

impl Recorded {
    /// Reads it, as far as it is whole.
    ///
    /// # Errors
    /// Where it is something else, or cannot be read at all.
    pub fn read(mut from: impl Read) -> io::Result<Self> {
        let mut magic = [0; 8];
        from.read_exact(&mut magic)?;
        if magic != MAGIC {
            return Err(io::Error::other("these are no tracks"));
        }
        let mut recorded = Self {
            is_cut: true,
            ..Self::default()
        };
        let mut unpacker = zstd::Decoder::new(from)?;
        let mut bytes = Vec::new();
        while let Some((slab, behind)) = piece(&mut unpacker, &mut bytes) {
            if slab == END {
                recorded.end(&bytes);
                break;
            }
            if recorded.add(slab, behind, &bytes).is_none() {
                break;
            }
        }
        Ok(recorded)
    }

    /// What a slab's thread recorded behind so many bytes; `None` where something before that is missing.
    pub(super) fn add(&mut self, slab: u32, behind: u64, bytes: &[u8]) -> Option<()> {
        let slab = slab as usize;
        if self.slabs.len() <= slab {
            self.slabs.resize_with(slab + 1, Vec::new);
        }
        let words = &mut self.slabs[slab];
        let known = (words.len() as u64 * 4).checked_sub(behind)?;
        let new = bytes.get(known as usize..).unwrap_or_default();
        let new = new.as_chunks::<4>().0.iter();
        words.extend(new.map(|word| u32::from_le_bytes(*word)));
        Some(())
    }

    fn end(&mut self, bytes: &[u8]) {
        let numbers = bytes.as_chunks::<8>().0.iter();
        let mut numbers = numbers.map(|number| u64::from_le_bytes(*number));
        self.full = numbers.next().unwrap_or(0);
        self.lost = numbers.next().unwrap_or(0);
        self.handlers = numbers.collect();
        self.is_cut = false;
    }
}

/// Bytes before those of a piece.
const HEAD: usize = 24;

/// The slab of the next piece, whose bytes are put into `bytes`, and how many of the slab's came before; `None` where
/// nothing whole follows.
fn piece(from: &mut impl Read, bytes: &mut Vec<u8>) -> Option<(u32, u64)> {
    let mut head = [0; HEAD];
    from.read_exact(&mut head).ok()?;
    let [first, behind, sum] = head.as_chunks::<8>().0 else {
        return None;
    };
    let [first, behind, sum] = [first, behind, sum].map(|one| u64::from_le_bytes(*one));
    let (slab, length) = (first as u32, (first >> 32) as usize);
    if length > LONGEST || (slab != END && slab >= tomo_wire::counting::MOST_SLABS) {
        return None;
    }
    bytes.resize(length, 0);
    from.read_exact(bytes).ok()?;
    (checksum(bytes) == sum).then_some((slab, behind))
}

#[cfg(test)]
mod tests {
    use super::{Packer, Recorded};

    fn written() -> Vec<u8> {
        let mut packer = Packer::new(Vec::new()).expect("a packer");
        for round in 0..100u32 {
            let words = (0..1000).flat_map(|at: u32| (at * round).to_le_bytes());
            let words: Vec<u8> = words.collect();
            let behind = u64::from(round / 3) * words.len() as u64;
            packer.add(round % 3, behind, &words).expect("written");
            packer.add(round % 3, behind, &words).expect("written");
            packer.flush().expect("written");
        }
        packer.finish((1, 2), &[3, 4]).expect("written")
    }

    #[test]
    fn what_is_packed_is_read() {
        let whole = Recorded::read(&written()[..]).expect("read");
        assert_eq!((whole.full, whole.lost, whole.is_cut), (1, 2, false));
        assert_eq!(whole.handlers, [3, 4]);
        let lengths: Vec<usize> = whole.slabs.iter().map(Vec::len).collect();
        assert_eq!(lengths, [34_000, 33_000, 33_000]);
        assert_eq!(whole.slabs[2][33 * 1000 - 1], 98 * 999);
    }

    /// Whatever is missing or changed, what is read is a beginning of what was written.
    #[test]
    fn what_is_cut_or_damaged_is_a_beginning() {
        let bytes = written();
        let whole = Recorded::read(&bytes[..]).expect("read");
        let is_beginning = |part: &Recorded| {
            let slabs = part.slabs.iter().zip(&whole.slabs);
            slabs
                .into_iter()
                .all(|(part, whole)| whole.starts_with(part))
        };
        for length in (8..bytes.len()).step_by(997) {
            let part = Recorded::read(&bytes[..length]).expect("read");
            assert!(part.is_cut && is_beginning(&part), "{length}");
        }
        for at in (8..bytes.len()).step_by(991) {
            let mut other = bytes.clone();
            other[at] ^= 0x55;
            if let Ok(part) = Recorded::read(&other[..]) {
                assert!(is_beginning(&part), "{at}");
            }
        }
        assert!(Recorded::read(&bytes[..4]).is_err());
    }
}
