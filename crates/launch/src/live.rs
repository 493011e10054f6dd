//! Probes are taken away from programs while these run: what others have seen need not be seen again (DIS §4,
//! collective disposal).
//!
//! Processes execute their text out of the image's file, which they map shared; so whoever stores into the
//! file changes what all of them execute, the next instruction already. What is stored for a probe, and in which
//! steps, is what its own trampoline would store in the same program at the same time (`tomo_wire::disposal`;
//! argued for each tactic in `crates/weave/src/tactics`), so this is one thread more that restores a window.
//! Whoever is in a trampoline just then marks and restores as ever; whoever meets the `int3` of a hold
//! traps, marks, and finishes what was begun here, also if this process is killed before it is done.
//!
//! No probe that was disposed of comes back, and nothing is ever written but the module's own bytes and
//! the `int3` before them.

use std::arch::asm;
use std::fs;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use memmap2::{MmapOptions, MmapRaw};
use tomo_wire::Refusal;
use tomo_wire::disposal::{Disposal, DisposalsView, Manner};
use tomo_wire::image::Image;

use crate::private;

/// An image that programs may be running.
#[derive(Debug)]
pub struct Live {
    map: MmapRaw,
    header: Image,
    /// Probes that can be disposed of, ascending, with how.
    rows: Vec<(u32, Disposal)>,
}

/// Why nothing can be disposed of in an image.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// A file cannot be read or mapped.
    #[error("{path}: {1}", path = .0.display())]
    Io(PathBuf, io::Error),
    /// A file is not what it should be.
    #[error("{path}: {1}", path = .0.display())]
    Refused(PathBuf, Refusal),
}

/// `int3`.
const HOLD: u8 = 0xcc;

impl Live {
    /// The image in the file `image`, with what was woven with it in the file `disposals`.
    ///
    /// # Errors
    /// Where one of them cannot be read, belongs to somebody else, is damaged, or they do not belong
    /// together.
    pub fn open(image: &Path, disposals: &Path) -> Result<Self, LiveError> {
        let io = |path: &Path| {
            let path = path.to_path_buf();
            move |error| LiveError::Io(path, error)
        };
        let refused = |path: &Path| {
            let path = path.to_path_buf();
            move |refusal| LiveError::Refused(path, refusal)
        };
        let file = private::open(image, true).map_err(io(image))?;
        let mut head = [0; size_of::<Image>()];
        file.read_exact_at(&mut head, 0).map_err(io(image))?;
        let length = file.metadata().map_err(io(image))?.len();
        let header = Image::read(&head, length).map_err(refused(image))?;
        let bytes = fs::read(disposals).map_err(io(disposals))?;
        let view = DisposalsView::read(&bytes, &header).map_err(refused(disposals))?;
        Ok(Self {
            map: MmapOptions::new().map_raw(&file).map_err(io(image))?,
            header,
            rows: view.iter().map(|(probe, row)| (probe, *row)).collect(),
        })
    }

    /// How many probes the image has, disposed of or not.
    #[must_use]
    pub fn probes(&self) -> u32 {
        self.header.probes.get()
    }

    /// Disposes of a probe; whether it was still there. There is none that the disposals do not have, and one that
    /// was made to stay stays.
    pub fn dispose(&self, probe: u32) -> bool {
        let Some((row, manner, to)) = self.find(probe) else {
            return false;
        };
        if is_stored(to, row.bytes()) {
            return false;
        }
        match (manner, row.bytes()) {
            (Manner::Held, [first, tail @ ..]) => {
                // SAFETY: `find` gave a place that has room for all these bytes, in the mapping, which
                // lives as long as `self`. x86 makes stores of one processor visible in the order in
                // which they are made, and none of these is moved: each is an instruction of its own.
                unsafe {
                    store(to, &[HOLD]);
                    for (at, byte) in tail.iter().enumerate() {
                        store(to.add(1 + at), &[*byte]);
                    }
                    store(to, &[*first]);
                }
            }
            // SAFETY: as above; the length is one that is stored at once, or the disposals would have
            // been refused.
            (_, bytes) => unsafe { store(to, bytes) },
        }
        true
    }

    /// How the probe is disposed of, and where that is in this process.
    fn find(&self, probe: u32) -> Option<(&Disposal, Manner, *mut u8)> {
        let found = self.rows.binary_search_by_key(&probe, |(probe, _)| *probe);
        let (_, row) = self.rows.get(found.ok()?)?;
        let length = row.bytes().len() as u64;
        let start = self.header.text_at(row.offset.get(), length)?;
        let inside = start + length <= self.map.len() as u64;
        // Inside of the mapping, as was just asked, no address wraps.
        let to = inside.then(|| self.map.as_mut_ptr().wrapping_add(start as usize));
        let manner = row.steps().filter(|manner| *manner != Manner::Still)?;
        Some((row, manner, to?))
    }
}

/// Whether the bytes are there already. Others may store the same bytes meanwhile.
fn is_stored(place: *const u8, bytes: &[u8]) -> bool {
    bytes.iter().enumerate().all(|(at, byte)| {
        // SAFETY: `Live::find` gave a place that has room for all of these bytes.
        unsafe { place.wrapping_add(at).read_volatile() == *byte }
    })
}

/// Stores 1, 2, 4 or 8 bytes by one instruction, wherever they lie; others may store and execute there.
///
/// # Safety
/// There must be room for them at `to`, mapped as long as this takes.
unsafe fn store(to: *mut u8, bytes: &[u8]) {
    // SAFETY: each instruction stores as many bytes as it was given, where the caller has room for them.
    unsafe {
        match *bytes {
            [byte] => {
                asm!("mov byte ptr [{}], {}", in(reg) to, in(reg_byte) byte, options(nostack, preserves_flags));
            }
            [a, b] => {
                let value = u16::from_le_bytes([a, b]);
                asm!("mov word ptr [{}], {:x}", in(reg) to, in(reg) value, options(nostack, preserves_flags));
            }
            [a, b, c, d] => {
                let value = u32::from_le_bytes([a, b, c, d]);
                asm!("mov dword ptr [{}], {:e}", in(reg) to, in(reg) value, options(nostack, preserves_flags));
            }
            [a, b, c, d, e, f, g, h] => {
                let value = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
                asm!("mov qword ptr [{}], {}", in(reg) to, in(reg) value, options(nostack, preserves_flags));
            }
            _ => {}
        }
    }
}
