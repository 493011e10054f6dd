//! Tracks as they are kept: the words of each slab, compressed.
//!
//! A header of eight bytes, then in one zstd frame for each slab the number of its words and these; first how many slabs
//! there are, how many threads found no more room, how many had none at all, and the signal handlers. Numbers are little-endian.
//!
//! Words differ little from one to the next time that code runs, which zstd finds.

use std::io::{self, Read, Write};

use tomo_wire::tracing::Tracks;

/// What the file starts with.
const MAGIC: [u8; 8] = *b"TOMOTKZ1";
/// The level of compression.
const LEVEL: i32 = 3;

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
}

impl Recorded {
    /// What is in live tracks.
    #[must_use]
    pub fn of(tracks: &Tracks<'_>) -> Self {
        let (full, lost) = tracks.lost();
        Self {
            slabs: super::words_of(tracks),
            full,
            lost,
            handlers: tracks.handlers().collect(),
        }
    }

    /// Writes it.
    ///
    /// # Errors
    /// As the writer has them.
    pub fn write(&self, mut to: impl Write) -> io::Result<()> {
        to.write_all(&MAGIC)?;
        let mut packer = zstd::Encoder::new(to, LEVEL)?;
        packer.include_checksum(true)?;
        let counts = [self.slabs.len() as u64, self.full, self.lost];
        let handlers = [self.handlers.len() as u64];
        for number in counts.iter().chain(&handlers).chain(&self.handlers) {
            packer.write_all(&number.to_le_bytes())?;
        }
        let mut bytes = Vec::new();
        for words in &self.slabs {
            packer.write_all(&(words.len() as u64).to_le_bytes())?;
            for some in words.chunks(1 << 16) {
                bytes.clear();
                bytes.extend(some.iter().flat_map(|word| word.to_le_bytes()));
                packer.write_all(&bytes)?;
            }
        }
        packer.finish()?.flush()
    }

    /// Reads it.
    ///
    /// # Errors
    /// Where it is something else, cut short or damaged.
    pub fn read(mut from: impl Read) -> io::Result<Self> {
        let mut magic = [0; 8];
        from.read_exact(&mut magic)?;
        if magic != MAGIC {
            return Err(io::Error::other("these are no tracks"));
        }
        let mut unpacker = zstd::Decoder::new(from)?;
        let number = |unpacker: &mut dyn Read| -> io::Result<u64> {
            let mut bytes = [0; 8];
            unpacker.read_exact(&mut bytes)?;
            Ok(u64::from_le_bytes(bytes))
        };
        let count = number(&mut unpacker)?;
        let (full, lost) = (number(&mut unpacker)?, number(&mut unpacker)?);
        let mut handlers = Vec::new();
        for _ in 0..number(&mut unpacker)? {
            handlers.push(number(&mut unpacker)?);
        }
        let mut slabs = Vec::new();
        for _ in 0..count {
            let length = number(&mut unpacker)?;
            let mut bytes = Vec::new();
            let bytes_long = length.checked_mul(4);
            let bytes_long = bytes_long.ok_or_else(|| io::Error::other("it is damaged"))?;
            let got = (&mut unpacker).take(bytes_long).read_to_end(&mut bytes)? as u64;
            if got != bytes_long {
                return Err(io::Error::other("it is cut short"));
            }
            let words = bytes.as_chunks::<4>().0.iter();
            slabs.push(words.map(|word| u32::from_le_bytes(*word)).collect());
        }
        Ok(Self {
            slabs,
            full,
            lost,
            handlers,
        })
    }
}
