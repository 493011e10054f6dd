//! Machine code that is read piece by piece, as bytes.

/// Code, and how far it has been read.
pub(super) struct Bytes<'c> {
    code: &'c [u8],
    /// Bytes that have been read.
    pub(super) at: usize,
}

impl<'c> Bytes<'c> {
    pub(super) fn of(code: &'c [u8]) -> Self {
        Self { code, at: 0 }
    }

    /// The next bytes.
    pub(super) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let bytes = self.code.get(self.at..)?.first_chunk()?;
        self.at += N;
        Some(*bytes)
    }

    /// Nothing unless these bytes come next.
    pub(super) fn expect<const N: usize>(&mut self, wanted: [u8; N]) -> Option<()> {
        (self.take()? == wanted).then_some(())
    }

    /// Whether these bytes come next, which are passed then.
    pub(super) fn skips<const N: usize>(&mut self, wanted: [u8; N]) -> bool {
        let at = self.at;
        let found = self.expect(wanted).is_some();
        if !found {
            self.at = at;
        }
        found
    }
}
