//! What a run printed: its beginning as it was, and of all that is behind it how much it was and a checksum. So a run that
//! prints for ever takes no more room than others, and any two can be compared.

use std::hash::{DefaultHasher, Hasher as _};
use std::io::{self, ErrorKind, Read};

/// Bytes that are kept as they are.
const MOST: usize = 64 << 20;
/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// What was printed.
#[derive(Clone, Debug)]
pub(crate) struct Printed {
    most: usize,
    kept: Vec<u8>,
    /// Bytes behind those.
    more: u64,
    rest: DefaultHasher,
    buffer: Vec<u8>,
}

impl Printed {
    /// Nothing so far.
    pub(crate) fn new() -> Self {
        Self::keeping(MOST)
    }

    fn keeping(most: usize) -> Self {
        Self {
            most,
            kept: Vec::new(),
            more: 0,
            rest: DefaultHasher::new(),
            buffer: Vec::new(),
        }
    }

    /// All that can be read.
    pub(crate) fn all_of(mut from: impl Read) -> io::Result<Self> {
        let mut printed = Self::new();
        while printed.read(&mut from)? {}
        Ok(printed)
    }

    /// Reads once; whether there may be more.
    pub(crate) fn read(&mut self, from: &mut impl Read) -> io::Result<bool> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(CHUNK, 0);
        let read = from.read(&mut buffer);
        let more = match read {
            Ok(read) => {
                self.add(buffer.get(..read).unwrap_or_default());
                Ok(read > 0)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(error),
        };
        self.buffer = buffer;
        more
    }

    fn add(&mut self, bytes: &[u8]) {
        let room = self.most - self.kept.len();
        let (kept, rest) = bytes.split_at(room.min(bytes.len()));
        self.kept.extend(kept);
        self.more += rest.len() as u64;
        self.rest.write(rest);
    }

    /// Whether both are the same.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let rest = |one: &Self| (one.more, one.rest.finish());
        self.kept == other.kept && rest(self) == rest(other)
    }

    /// All of it, unless that is too much.
    pub(crate) fn whole(&self) -> Option<&[u8]> {
        (self.more == 0).then_some(&self.kept)
    }
}

#[cfg(test)]
mod tests {
    use super::Printed;

    fn printed(parts: &[&[u8]]) -> Printed {
        let mut printed = Printed::keeping(4);
        parts.iter().for_each(|part| printed.add(part));
        printed
    }

    #[test]
    fn what_is_behind_that_which_is_kept_counts() {
        let one = printed(&[b"0123456789"]);
        assert!(one.is(&printed(&[b"01", b"2345", b"", b"6789"])));
        assert!(!one.is(&printed(&[b"012345678"])) && !one.is(&printed(&[b"012345678_"])));
        assert!(!one.is(&printed(&[b"0123"])) && !one.is(&printed(&[b"_123456789"])));
        assert_eq!(one.whole(), None);
        assert_eq!(printed(&[b"01", b"23"]).whole(), Some(b"0123".as_slice()));
    }
}
