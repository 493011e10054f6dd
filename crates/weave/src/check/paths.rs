//! The checker of images that count paths: the walk of `counted.rs`, and what may be done for a path besides.
//!
//! Proven is that the program cannot tell the difference, and that only counters of the very function are incremented whose
//! code is executed, whatever the register of a path holds. Not proven is that sums are right, and that the words of the
//! shadow are those of return addresses: that is left to single steps in the tests, and harms nobody but the counts.

use std::ops::Range;

use tomo_program::{Address, Binary, Graphs, Model};
use tomo_wire::image::Image;
use tomo_wire::paths::{BELOW, Function, Paths};

use super::Flaw;
use super::counted::{CountersChecked, Observes, Walk, belongs};
use super::path::Done;
use crate::WeaveError;
use crate::text::Text;

/// What was proven of an image that counts paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathsChecked {
    /// What is as in images with counters.
    pub counters: CountersChecked,
    /// Where in the image stand sums of paths, which of its function's paths is counted where only one can end, or which word of the shadow
    /// is meant: these are not proven.
    pub sums: Vec<Range<usize>>,
}

/// The functions whose paths are counted.
#[derive(Clone, Copy)]
pub(super) struct PathPlan<'a> {
    /// How far from the `gs` base the first counter is.
    slab: u32,
    /// By entry.
    pub(super) functions: &'a [Function],
}

impl PathPlan<'_> {
    /// Which of the functions has an instruction at `address`.
    pub(super) fn function_at(&self, graphs: &Graphs<'_>, address: Address) -> Option<usize> {
        let entry = graphs.block_at(address)?.function()?.entry().0;
        let by_entry = |one: &Function| one.entry.get();
        self.functions.binary_search_by_key(&entry, by_entry).ok()
    }

    /// How far from the `gs` base the counter of this number is.
    fn offset(&self, counter: u32) -> u32 {
        self.slab.wrapping_add(8u32.wrapping_mul(counter))
    }

    /// Whether a function has a counter so far from the `gs` base.
    pub(super) fn has_counter(&self, function: usize, offset: u32) -> bool {
        let Some(row) = self.functions.get(function) else {
            return false;
        };
        let bytes = offset.wrapping_sub(self.offset(row.first.get()));
        bytes.is_multiple_of(8) && bytes / 8 <= row.numbers.get()
    }

    /// Whether that may be done in a function.
    pub(super) fn permits(&self, function: usize, done: &Done) -> bool {
        let row = self.functions.get(function);
        match (done, row) {
            (_, None) => false,
            (Done::Set(_) | Done::Add(_), Some(_)) => true,
            (
                Done::End {
                    counter, numbers, ..
                },
                Some(row),
            ) => {
                let first = self.offset(row.first.get().wrapping_add(1));
                *counter == first && *numbers == row.numbers.get()
            }
        }
    }
}

/// Proves that the files `image` and `paths` are right for the module in the file `bytes`, but for the sums.
///
/// # Errors
/// The first thing that is not.
pub fn check_paths(
    (image, paths): (&[u8], &[u8]),
    bytes: &[u8],
    binary: &Binary<'_>,
    model: &Model,
) -> Result<PathsChecked, Flaw> {
    let header = Image::read(image, image.len() as u64).map_err(Flaw::Image)?;
    let (paths, rows) = Paths::read(paths).map_err(Flaw::Plan)?;
    let text = Text::read(bytes)?;
    belongs(&header, (paths.name(), paths.module), &text)?;
    let end = paths
        .at
        .get()
        .checked_add(8u32.saturating_mul(paths.counters.get()));
    if end != Some(header.slab_end.get()) || header.shadowed.get() != 1 {
        return Err(Flaw::Mismatch("the image has other counters"));
    }
    let start = header.trampolines.get() as usize;
    let plan = PathPlan {
        slab: paths.at.get().wrapping_sub(BELOW),
        functions: rows.functions,
    };
    let graphs = model.graphs().map_err(WeaveError::from)?;
    let what = Observes::Paths(plan);
    let mut walk = Walk::of((image, header), &text, &graphs, binary, what);
    walk.complete()?;
    let in_image = |sum: &Range<usize>| start + sum.start..start + sum.end;
    Ok(PathsChecked {
        sums: walk.sums.iter().map(in_image).collect(),
        counters: walk.finish()?,
    })
}
