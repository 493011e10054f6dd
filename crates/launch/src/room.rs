//! Whether what belongs to the images of one program finds room beside its modules.
//!
//! Each image keeps its trampolines at a distance of its own, so that one image serves all programs.
//! Where a program has several large modules these places may meet, or lie on a module. The loader puts the modules of a
//! program at much the same distances from each other each time (kernels that align large files in memory move
//! them by some megabytes), so that can be seen beforehand, and an image with another distance is made for that program:
//! one of few, and one that is there already before a new one, so that not each start makes new ones. What is not seen
//! beforehand the agent meets: it then makes a copy of its own, which takes longer and shares no text with others.

use std::iter;
use std::ops::Range;

use tomo_wire::PAGE;
use tomo_wire::image::{Image, REACH};

/// Where the loader puts a module, as far as it tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// What is added to the module's stated addresses.
    pub base: u64,
    /// The lowest address of a module of the program.
    pub lowest: u64,
    /// How many modules the program has.
    pub modules: usize,
}

/// What lies between modules and what belongs to their images: room for a library that is loaded
/// besides, and for what the loader maps for itself.
const MARGIN: u64 = 64 << 20;
/// How far apart two images' places are to be where that can be: a few modules move by up to 24 MB against one another, among
/// hundreds by 100.
const APART: u64 = 32 << 20;
/// How many distances are looked at; so many images of a module there may be.
const DISTANCES: u64 = 12;

/// More modules than for which the places of all are looked for that nothing will meet: the loader, too, moves them by more than
/// there is room between them.
const MANY: usize = 48;

/// The places that are taken in one program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Room {
    taken: Vec<Range<u64>>,
}

impl Room {
    /// The distance at which the image is to be: its own where that is clear of all modules and far enough from what was
    /// taken, else the first such one, or the one that is farthest from it; those first for which an image `is_there`. Its own, too,
    /// where none is clear. Among hundreds of modules no distance does for long, so a new one is chosen only if no other is clear.
    pub(crate) fn distance(
        &self,
        placed: Placed,
        image: &Image,
        is_there: impl Fn(i64) -> bool,
    ) -> i64 {
        let own = image.distance.get();
        let others = (1..DISTANCES).filter_map(|number| distance(image, number));
        let (known, new): (Vec<i64>, Vec<i64>) = others.partition(|one| is_there(*one));
        let known: Vec<i64> = iter::once(own).chain(known).collect();
        let apart = |distance: i64| self.apart(placed, &place_at(placed, image, distance)?);
        let is_far = |distance: &&i64| apart(**distance) >= Some(APART);
        let farthest = |among: &[i64]| {
            let clear = among.iter().filter(|distance| apart(**distance).is_some());
            clear.copied().max_by_key(|distance| apart(*distance))
        };
        let far = known.iter().find(is_far).copied();
        let clear = || farthest(&known).filter(|_| placed.modules > MANY);
        let any = || farthest(&[&known[..], &new[..]].concat());
        let chosen = far.or_else(clear);
        let chosen = chosen.or_else(|| new.iter().find(is_far).copied());
        chosen.or_else(any).unwrap_or(own)
    }

    /// How far a place below all modules is from those that are taken; `None` if it is not clear.
    fn apart(&self, placed: Placed, place: &Range<u64>) -> Option<u64> {
        if place.end.checked_add(MARGIN)? > placed.lowest {
            return None;
        }
        let each = self.taken.iter().map(|taken| {
            let before = taken.start.checked_sub(place.end);
            before.or_else(|| place.start.checked_sub(taken.end))
        });
        each.min().unwrap_or(Some(u64::MAX))
    }

    /// The image is used.
    pub(crate) fn take(&mut self, placed: Placed, image: &Image) {
        self.taken.extend(place(placed, image));
    }
}

/// Where that lies which belongs to the image.
fn place(placed: Placed, image: &Image) -> Option<Range<u64>> {
    place_at(placed, image, image.distance.get())
}

/// Where it would lie at this distance.
fn place_at(placed: Placed, image: &Image, distance: i64) -> Option<Range<u64>> {
    let first = image.regions().first()?;
    let origin = placed.base.checked_add(first.address.get())?;
    let start = origin.checked_add_signed(distance)?;
    Some(start..start.checked_add(image.companion_length())?)
}

/// The distance of this `number`, which depends on the module alone.
fn distance(image: &Image, number: u64) -> Option<i64> {
    let (first, last) = (image.regions().first()?, image.regions().last()?);
    let span = (last.address.get() + last.length.get()).checked_sub(first.address.get())?;
    let nearest = image.companion_length().checked_add(PAGE)?;
    let pages = REACH.checked_sub(nearest.checked_add(span)?)? / PAGE;
    // Fibonacci hashing: the upper half of the product depends on all bits.
    let mixed = (image.module.fingerprint.get() ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let page = (nearest / PAGE) + ((mixed * pages) >> 32);
    Some(-(page * PAGE).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::{APART, DISTANCES, MARGIN, Placed, Room, place_at};
    use std::collections::BTreeSet;
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

    const LOWEST: u64 = BASE - 3 * MARGIN;

    /// Of a module that is this many bytes below the first.
    fn placed(below: u64) -> Placed {
        Placed {
            base: BASE - below,
            lowest: LOWEST,
            modules: 10,
        }
    }

    /// The same at the distance where it finds room.
    fn moved(room: &mut Room, placed: Placed, mut image: Image) -> Image {
        image.distance = room.distance(placed, &image, |_| false).into();
        room.take(placed, &image);
        image
    }

    #[test]
    fn an_image_keeps_its_own_distance_where_that_is_free() {
        let far = image(10, -(1 << 30));
        let mut room = Room::default();
        assert_eq!(moved(&mut room, placed(0), far).distance, far.distance);
        let beside = image(10, far.distance.get() - 2 * APART.cast_signed());
        assert_eq!(
            moved(&mut room, placed(0), beside).distance,
            beside.distance
        );
        assert_ne!(moved(&mut room, placed(0), far).distance, far.distance);
    }

    #[test]
    fn modules_are_in_the_way() {
        for near in [-(1 << 20), -(128 << 20), -(200 << 20)] {
            let distance = Room::default().distance(placed(0), &image(10, near), |_| false);
            assert_ne!(distance, near);
            let place = place_at(placed(0), &image(10, near), distance).unwrap();
            assert!(place.end + MARGIN <= LOWEST, "{place:x?}");
        }
    }

    #[test]
    fn images_that_would_all_meet_find_room() {
        let mut room = Room::default();
        for number in 0..20 {
            let mut large = image(1000, -4096);
            large.module.fingerprint = (number * 977).into();
            let large = moved(&mut room, placed(number << 20), large);
            assert_eq!(large.distance.get() % PAGE.cast_signed(), 0);
        }
        room.taken.sort_by_key(|taken| taken.start);
        let are_clear = room.taken.windows(2).all(|two| two[0].end <= two[1].start);
        assert!(are_clear, "{:x?}", room.taken);
    }

    /// Each of ten large modules is up to 24 MB from where it was when the distances were chosen.
    #[test]
    fn images_of_modules_that_move_do_not_meet() {
        const MOST: u64 = 24 << 20;
        for program in 0..50 {
            let mut room = Room::default();
            let images: Vec<(u64, Image)> = (0..10)
                .map(|number| {
                    let mut one = image(1000, -4096);
                    one.module.fingerprint = (program * 10 + number).into();
                    (number << 25, moved(&mut room, placed(number << 25), one))
                })
                .collect();
            for start in 0..100 {
                let places = images.iter().map(|(below, image)| {
                    let mixed = (below ^ start).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
                    let moves = mixed * PAGE % MOST;
                    place_at(placed(below + moves), image, image.distance.get()).unwrap()
                });
                let mut places: Vec<_> = places.collect();
                places.sort_by_key(|place| place.start);
                let are_clear = places.windows(2).all(|two| two[0].end <= two[1].start);
                assert!(are_clear, "{program} {start}: {places:x?}");
            }
        }
    }

    /// Modules move a little from start to start; that makes no new images each time.
    #[test]
    fn there_are_few_distances_whatever_the_layout() {
        let mut all = BTreeSet::new();
        for start in 0..1000 {
            let mut room = Room::default();
            for number in 0..10 {
                let below = (number << 24) + (start * 7919 * (number + 1) * PAGE) % APART;
                let mut one = image(1000, -4096);
                one.module.fingerprint = number.into();
                let one = moved(&mut room, placed(below), one);
                all.insert((number, one.distance.get()));
            }
        }
        assert!(all.len() as u64 <= 10 * DISTANCES, "{}", all.len());
    }

    /// Hundreds of modules move by up to 100 MB against one another, and each start has the images of those before it.
    #[test]
    fn among_hundreds_of_modules_hardly_a_start_makes_new_images() {
        const MODULES: usize = 215;
        let mut all = BTreeSet::new();
        let mut made = Vec::new();
        for start in 0..50 {
            let mut room = Room::default();
            let before = all.len();
            for number in 0..MODULES as u64 {
                let mixed = (number ^ start << 8).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
                let below = (number << 20) + mixed * PAGE % (100 << 20);
                let mut one = image(300, -(1 << 30));
                one.module.fingerprint = (number * 977).into();
                let own = one.distance.get();
                let placed = Placed {
                    modules: MODULES,
                    ..placed(below)
                };
                one.distance = room
                    .distance(placed, &one, |distance| all.contains(&(number, distance)))
                    .into();
                room.take(placed, &one);
                if one.distance.get() != own {
                    all.insert((number, one.distance.get()));
                }
            }
            made.push(all.len() - before);
        }
        let later: usize = made[1..].iter().sum();
        assert!(made[0] < MODULES && later < 2 * MODULES, "{made:?}");
    }

    #[test]
    fn what_is_too_large_for_any_distance_keeps_its_own() {
        let huge = image(1 << 20, -4096);
        let distance = Room::default().distance(placed(0), &huge, |_| false);
        assert_eq!(distance, -4096);
    }
}
