//! Lists of strings, as the model file keeps them: the end of each string as a 32-bit number, then
//! all their bytes.

use zerocopy::FromBytes as _;
use zerocopy::IntoBytes as _;
use zerocopy::little_endian::U32;

use super::format::{ModelError, Section};

/// A list of strings in a model file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Strings<'m> {
    ends: &'m [U32],
    text: &'m str,
}

impl<'m> Strings<'m> {
    /// Takes the bytes of `section` for a list of strings.
    pub(crate) fn read(bytes: &'m [u8], section: Section) -> Result<Self, ModelError> {
        let malformed = |what| ModelError::Malformed {
            section: section.name(),
            what,
        };
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let (count, rest) = U32::ref_from_prefix(bytes).map_err(|_| malformed("no length"))?;
        let (ends, text) = <[U32]>::ref_from_prefix_with_elems(rest, count.get() as usize)
            .map_err(|_| malformed("more strings than bytes"))?;
        let text = std::str::from_utf8(text).map_err(|_| malformed("not UTF-8"))?;
        Ok(Self { ends, text })
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The string with this number.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&'m str> {
        let end = self.ends.get(index)?.get() as usize;
        let start = index
            .checked_sub(1)
            .map_or(0, |before| self.ends[before].get() as usize);
        self.text.get(start..end)
    }

    /// All of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'m str> + use<'m> {
        let this = *self;
        (0..this.len()).map(move |index| this.get(index).unwrap_or_default())
    }
}

/// A list of strings being made.
#[derive(Debug, Default)]
pub(crate) struct StringsBuilder {
    ends: Vec<U32>,
    text: String,
}

impl StringsBuilder {
    /// Appends `string`; one that would pass four gigabytes in all is kept as an empty one.
    pub(crate) fn push(&mut self, string: &str) {
        if u32::try_from(self.text.len() + string.len()).is_ok() {
            self.text.push_str(string);
        }
        self.ends
            .push(U32::new(u32::try_from(self.text.len()).unwrap_or(u32::MAX)));
    }

    /// About how many bytes the section will have.
    pub(crate) fn bytes(&self) -> usize {
        4 + self.ends.len() * 4 + self.text.len()
    }

    /// The section's bytes.
    pub(crate) fn finish(self) -> Vec<u8> {
        let count = U32::new(u32::try_from(self.ends.len()).unwrap_or(u32::MAX));
        let mut bytes = Vec::with_capacity(self.bytes());
        bytes.extend_from_slice(count.as_bytes());
        bytes.extend_from_slice(self.ends.as_bytes());
        bytes.extend_from_slice(self.text.as_bytes());
        bytes
    }
}

impl<S: AsRef<str>> FromIterator<S> for StringsBuilder {
    fn from_iter<I: IntoIterator<Item = S>>(strings: I) -> Self {
        let mut builder = Self::default();
        strings
            .into_iter()
            .for_each(|string| builder.push(string.as_ref()));
        builder
    }
}
