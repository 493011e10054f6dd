//! Whether what belongs to the images of one program finds room beside its modules.
//!
//! Each image keeps its trampolines at a distance of its own, so that one image serves all programs.
//! Where a program has several large modules these places may meet, or lie on a module. The loader
//! puts the modules of a program at the same distances from each other each time, so that can be seen
//! beforehand, and an image with another distance is made for that program. What is not seen
//! beforehand the agent meets: it then leaves the module as it is, and says so.

use std::ops::Range;

use tomo_wire::PAGE;
use tomo_wire::image::Image;

/// Where the loader puts a module, as far as it tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// What is added to the module's stated addresses.
    pub base: u64,
    /// The lowest address of a module of the program.
    pub lowest: u64,
}

/// What lies between modules and what belongs to their images: room for a library that is loaded
/// besides, and for what the loader maps for itself.
const MARGIN: u64 = 64 << 20;

/// The places that are taken in one program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Room {
    taken: Vec<Range<u64>>,
}

impl Room {
    /// Whether what belongs to the image is clear of all modules and of what was taken.
    pub(crate) fn fits(&self, placed: Placed, image: &Image) -> bool {
        let Some(wanted) = place(placed, image) else {
            return false;
        };
        let clear = |taken: &Range<u64>| wanted.end <= taken.start || taken.end <= wanted.start;
        wanted.end + MARGIN <= placed.lowest && self.taken.iter().all(clear)
    }

    /// The distance at which it would be clear.
    pub(crate) fn distance(&self, placed: Placed, image: &Image) -> Option<i64> {
        let origin = origin(placed, image)?;
        let taken = self.taken.iter().map(|taken| taken.start);
        let end = taken
            .min()
            .map_or(placed.lowest, |start| start.min(placed.lowest));
        let start = end.checked_sub(image.companion_length() + MARGIN)? / PAGE * PAGE;
        Some(start.cast_signed() - (origin / PAGE * PAGE).cast_signed())
    }

    /// The image is used.
    pub(crate) fn take(&mut self, placed: Placed, image: &Image) {
        self.taken.extend(place(placed, image));
    }
}

/// Where the image's first region is.
fn origin(placed: Placed, image: &Image) -> Option<u64> {
    let first = image.regions().first()?;
    placed.base.checked_add(first.address.get())
}

/// Where that lies which belongs to the image.
fn place(placed: Placed, image: &Image) -> Option<Range<u64>> {
    let start = origin(placed, image)?.checked_add_signed(image.distance.get())?;
    Some(start..start.checked_add(image.companion_length())?)
}

#[cfg(test)]
mod tests {
    use super::{MARGIN, Placed, Room, place};
    use tomo_wire::image::Image;
    use tomo_wire::{FileStamp, ModuleId, PAGE};
    use zerocopy::FromZeros as _;

    /// Of a module with one region of `text` pages, all else as large, at this distance.
    fn image(text: u64, distance: i64) -> Image {
        let mut image = Image::of(ModuleId::new_zeroed(), FileStamp::new_zeroed());
        image.region_count = 1.into();
        image.regions[0].address = PAGE.into();
        image.regions[0].length = (text * PAGE).into();
        image.trampolines_length = (text * PAGE).into();
        image.distance = distance.into();
        image
    }

    const BASE: u64 = 0x7f00_0000_0000;

    #[test]
    fn places_below_all_modules_are_free_until_they_are_taken() {
        let placed = Placed {
            base: BASE,
            lowest: BASE - 100 * PAGE,
        };
        let mut room = Room::default();
        let far = image(10, -(1 << 30));
        assert!(room.fits(placed, &far));
        room.take(placed, &far);
        assert!(!room.fits(placed, &far));
        let beside = image(10, -(1 << 30) - 20 * PAGE.cast_signed());
        assert!(room.fits(placed, &beside));
    }

    #[test]
    fn modules_are_in_the_way() {
        let placed = Placed {
            base: BASE,
            lowest: BASE - (1 << 30),
        };
        for near in [-(1 << 20), -(1 << 30), -(1 << 30) - (1 << 20)] {
            assert!(!Room::default().fits(placed, &image(10, near)), "{near:#x}");
        }
    }

    #[test]
    fn the_other_distance_is_clear_of_everything() {
        let lowest = BASE - 3 * MARGIN;
        let mut room = Room::default();
        for number in 0..5 {
            let placed = Placed {
                base: BASE - number * MARGIN / 2,
                lowest,
            };
            let mut moved = image(1000, -4096);
            assert!(!room.fits(placed, &moved));
            moved.distance = room.distance(placed, &moved).unwrap().into();
            assert!(room.fits(placed, &moved), "{:x?}", place(placed, &moved));
            assert_eq!(moved.distance.get() % PAGE.cast_signed(), 0);
            room.take(placed, &moved);
        }
    }
}
