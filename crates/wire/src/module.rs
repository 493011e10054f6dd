//! Which module something belongs to.

use zerocopy::little_endian::{I64, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Bytes of the longest build id that is kept.
pub const LONGEST_BUILD_ID: usize = 64;

/// A module: one ELF file, as its build id and a hash of its headers name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct ModuleId {
    /// Hash of the file's length and headers; tells a stripped twin from the file with symbols.
    pub fingerprint: U64,
    length: U32,
    /// 1 where the identity is a hash of the whole file because it has no build id.
    by_content: U32,
    id: [u8; LONGEST_BUILD_ID],
}

impl ModuleId {
    /// The module with this build id; `None` where it is empty or longer than is kept.
    #[must_use]
    pub fn by_build_id(id: &[u8], fingerprint: u64) -> Option<Self> {
        Self::new(id, fingerprint, 0)
    }

    /// The module without a build id whose whole file has this hash.
    #[must_use]
    pub fn by_content(hash: u128, fingerprint: u64) -> Option<Self> {
        Self::new(&hash.to_be_bytes(), fingerprint, 1)
    }

    fn new(id: &[u8], fingerprint: u64, by_content: u32) -> Option<Self> {
        let mut padded = [0; LONGEST_BUILD_ID];
        padded.get_mut(..id.len())?.copy_from_slice(id);
        (!id.is_empty()).then_some(Self {
            fingerprint: fingerprint.into(),
            length: (id.len() as u32).into(),
            by_content: by_content.into(),
            id: padded,
        })
    }

    /// The build id, unless the module has none.
    #[must_use]
    pub fn build_id(&self) -> Option<&[u8]> {
        (self.by_content.get() == 0).then(|| self.name())
    }

    /// The build id, or the hash of the content where there is none.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        self.id.get(..self.length.get() as usize).unwrap_or(&[])
    }
}

/// What tells that a file is still the one that was looked at, without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct FileStamp {
    /// The device it is on.
    pub device: U64,
    /// Its number on that device.
    pub inode: U64,
    /// Its length in bytes.
    pub length: U64,
    /// When its content last changed, in nanoseconds since 1970, as far as nobody has stated another time;
    pub modified: I64,
    /// when anything about it last did.
    pub changed: I64,
}

impl FileStamp {
    /// What names it where there is no room for all of it.
    #[must_use]
    pub fn checksum(&self) -> u64 {
        crate::checksum(self.as_bytes())
    }
}
