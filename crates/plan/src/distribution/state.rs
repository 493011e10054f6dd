//! A distribution in the making: sets are placed into variants and taken away again, and the cost is
//! known after each change, at the expense of what the change touches.
//!
//! Per variant and unit it counts the sets that need the unit there, so a set's probes go when the
//! last set that needs them goes. That is four bytes for each variant and each unit that is in a
//! placeable set, the price for a probe's lookup in one step; beyond 2^32 of these counters
//! a problem is refused. Beside each counter stands a bit, which is looked at far more often.
//!
//! Source of Random-Events and Random-Clusters: PDT §4.2.

use super::bound::{count_variants, placeable};
use super::objective::{FRACTION, Packing, Parts};
use super::tally::Tally;
use super::{Bound, Distribution, DistributionError, SetId, UnitId, UnitSets, Variant};
use crate::random::Random;

/// Random-Events and Random-Clusters: each variant gets randomly chosen sets, but none that
/// exceeds the bound together with those before.
///
/// In each variant every set is tried once, until nothing is left of the bound. O(variants · units
/// of all sets).
///
/// # Errors
/// [`DistributionError::NoVariants`] and the like, [`DistributionError::Mismatch`].
pub fn random_sets(
    sets: &UnitSets,
    bound: &Bound,
    variants: usize,
    seed: u64,
) -> Result<Distribution, DistributionError> {
    let mut state = State::new(sets, bound, variants)?;
    state.fill_randomly(&mut Random::new(seed));
    Ok(state.distribution())
}

/// One variant's sums.
#[derive(Clone, Debug, Default)]
pub(super) struct Room {
    /// The sets that were placed, in no order.
    pub(super) placed: Vec<SetId>,
    /// What the variant's probes cost.
    used: u64,
}

/// Sets placed into variants, with all sums that the cost is made of.
#[derive(Clone, Debug)]
pub(super) struct State<'a> {
    sets: &'a UnitSets,
    limit: u64,
    /// The sets that may be placed.
    pub(super) placeable: Vec<SetId>,
    rooms: Vec<Room>,
    table: Table,
    /// Per set: in how many variants it is.
    times: Vec<u32>,
    tally: Tally,
    /// Per variant: ov, placements saved by sharing.
    overlaps: Vec<u64>,
    saved: u64,
    /// L: what a variant with all sets would save.
    most_saved: u64,
}

impl<'a> State<'a> {
    /// Nothing is placed yet.
    pub(super) fn new(
        sets: &'a UnitSets,
        bound: &Bound,
        variants: usize,
    ) -> Result<Self, DistributionError> {
        let variants = count_variants(variants)?;
        let placeable = placeable(sets, bound)?;
        let lengths = placeable.iter().map(|&set| sets.length(set));
        let table = Table::new(sets, &placeable, bound, variants)?;
        Ok(Self {
            sets,
            limit: bound.limit(),
            rooms: vec![Room::default(); variants],
            times: vec![0; sets.len()],
            tally: Tally::new(lengths.clone(), variants),
            overlaps: vec![0; variants],
            saved: 0,
            most_saved: lengths.sum::<u64>() - table.columns as u64,
            table,
            placeable,
        })
    }

    /// How many variants there are.
    pub(super) fn variants(&self) -> usize {
        self.rooms.len()
    }

    /// The sets placed in a variant, in no order.
    pub(super) fn placed(&self, variant: usize) -> &[SetId] {
        &self.rooms[variant].placed
    }

    /// Whether a variant has nothing left of its bound.
    pub(super) fn is_full(&self, variant: usize) -> bool {
        self.rooms[variant].used == self.limit
    }

    /// What is left of a variant's bound.
    pub(super) fn left(&self, variant: usize) -> u64 {
        self.limit - self.rooms[variant].used
    }

    /// In how many variants a set is.
    pub(super) fn times(&self, set: SetId) -> u32 {
        self.times[set.index()]
    }

    /// How many units a placeable set has.
    pub(super) fn length(&self, set: SetId) -> u64 {
        self.table.members(set).len() as u64
    }

    /// How often sets are placed, all together.
    pub(super) fn uses(&self) -> u64 {
        self.tally.uses()
    }

    /// See [`Tally::rise`].
    pub(super) fn rise(&self) -> i128 {
        self.tally.rise()
    }

    /// How many units of a placeable set have no probe in a variant, and what these would cost; `None`
    /// if that is more than `left`.
    pub(super) fn missing(&self, variant: usize, set: SetId, left: u64) -> Option<(u64, u64)> {
        self.table.missing(variant, set, left)
    }

    /// How many units of a set that is placed in a variant no other set needs there, and what their
    /// probes cost.
    pub(super) fn freed(&self, variant: usize, set: SetId) -> (u64, u64) {
        self.table.freed(variant, set)
    }

    /// Whether a set fits into an empty variant. No other may be placed.
    pub(super) fn is_placeable(&self, set: SetId) -> bool {
        self.placeable.binary_search(&set).is_ok()
    }

    /// Places a placeable set, if the variant does not have it and has room for it.
    pub(super) fn place(&mut self, variant: usize, set: SetId) -> bool {
        let room = &mut self.rooms[variant];
        let left = self.limit - room.used;
        let Some((missing, cost)) = self.table.missing(variant, set, left) else {
            return false;
        };
        // Of a set that is placed nothing is missing, so only then there is a need to look.
        if missing == 0 && room.placed.contains(&set) {
            return false;
        }
        room.used += cost;
        room.placed.push(set);
        self.table.place(variant, set);
        let length = self.table.members(set).len() as u64;
        self.overlaps[variant] += length - missing;
        self.saved += length - missing;
        let times = &mut self.times[set.index()];
        self.tally.place(length, u64::from(*times));
        *times += 1;
        true
    }

    /// Takes away the set at this position of the variant's list; the last one moves there.
    pub(super) fn take(&mut self, variant: usize, position: usize) -> SetId {
        let set = self.rooms[variant].placed.swap_remove(position);
        let (freed, cost) = self.table.take(variant, set);
        self.rooms[variant].used -= cost;
        let length = self.table.members(set).len() as u64;
        self.overlaps[variant] -= length - freed;
        self.saved -= length - freed;
        let times = &mut self.times[set.index()];
        self.tally.take(length, u64::from(*times));
        *times -= 1;
        set
    }

    /// Tries all sets in a random order in each variant.
    pub(super) fn fill_randomly(&mut self, random: &mut Random) {
        let mut order = self.placeable.clone();
        for variant in 0..self.variants() {
            random.shuffle(&mut order);
            for &set in &order {
                if self.is_full(variant) {
                    break;
                }
                self.place(variant, set);
            }
        }
    }

    /// The parts of the cost, without a look at anything that has not changed: O(1), or O(variants)
    /// for PACKING as printed.
    pub(super) fn parts(&self, packing: Packing) -> Parts {
        Parts {
            balance: self.tally.balance(),
            packing: match packing {
                Packing::Meant => {
                    let most = self.overlaps.len() as u128 * u128::from(self.most_saved);
                    (most - u128::from(self.saved)) * FRACTION
                }
                #[cfg(feature = "lab")]
                Packing::Printed => super::printed::packing(&self.overlaps),
            },
            all_used: self.tally.unused(),
        }
    }

    /// What has been placed.
    pub(super) fn distribution(&self) -> Distribution {
        let rooms = self.rooms.iter();
        let variants = rooms.map(|room| Variant::of_sets(self.sets, room.placed.clone()));
        Distribution::new(variants.collect())
    }
}

/// Who needs which unit where. Units of placeable sets are numbered anew, as *columns*, so that
/// rows hold no unit that never gets a probe.
#[derive(Clone, Debug)]
struct Table {
    columns: usize,
    /// Per column what a probe costs; `None` if 1 each.
    costs: Option<Vec<u64>>,
    /// Where each set begins in `members`, and the end of the last.
    starts: Vec<u32>,
    /// The columns of each set; none of sets that are not placeable.
    members: Vec<u32>,
    /// Per variant and column: how many of the variant's sets need the unit.
    needs: Vec<u32>,
    /// Whether any does. Most questions are of this kind, and a row of bits stays in the cache.
    probed: Bits,
}

impl Table {
    fn new(
        sets: &UnitSets,
        placeable: &[SetId],
        bound: &Bound,
        variants: usize,
    ) -> Result<Self, DistributionError> {
        let mut numbering = Numbering::new(sets, bound);
        let (mut starts, mut members) = (vec![0], Vec::new());
        for &set in placeable {
            starts.resize(set.index() + 1, members.len() as u32);
            members.extend(sets.units(set).iter().map(|&unit| numbering.column(unit)));
        }
        starts.resize(sets.len() + 1, members.len() as u32);
        let columns = numbering.count as usize;
        let cells = columns.max(sets.len()).checked_mul(variants);
        cells
            .filter(|&cells| cells <= 1 << 32)
            .ok_or(DistributionError::TooLarge)?;
        Ok(Self {
            columns,
            costs: numbering.costs,
            starts,
            members,
            needs: vec![0; columns * variants],
            probed: Bits::new(variants, columns),
        })
    }

    fn members(&self, set: SetId) -> &[u32] {
        let (from, to) = (self.starts[set.index()], self.starts[set.index() + 1]);
        &self.members[from as usize..to as usize]
    }

    fn cost(&self, column: u32) -> u64 {
        self.costs
            .as_ref()
            .map_or(1, |costs| costs[column as usize])
    }

    /// How many units of a set have no probe in a variant, and what these would cost; `None` if that
    /// is more than `left`.
    fn missing(&self, variant: usize, set: SetId, left: u64) -> Option<(u64, u64)> {
        let row = self.probed.row(variant);
        let (mut count, mut cost) = (0, 0);
        for &column in self.members(set) {
            if row[column as usize / 64] >> (column % 64) & 1 == 0 {
                count += 1;
                cost += self.cost(column);
                if cost > left {
                    return None;
                }
            }
        }
        Some((count, cost))
    }

    fn freed(&self, variant: usize, set: SetId) -> (u64, u64) {
        let needs = &self.needs[variant * self.columns..][..self.columns];
        let members = self.members(set).iter();
        let alone = members.filter(|&&column| needs[column as usize] == 1);
        alone.fold((0, 0), |(count, cost), &column| {
            (count + 1, cost + self.cost(column))
        })
    }

    fn place(&mut self, variant: usize, set: SetId) {
        for at in self.starts[set.index()]..self.starts[set.index() + 1] {
            let column = self.members[at as usize] as usize;
            let needs = &mut self.needs[variant * self.columns + column];
            *needs += 1;
            if *needs == 1 {
                self.probed.flip(variant, column);
            }
        }
    }

    /// Returns how many units lost their last need, and what their probes cost.
    fn take(&mut self, variant: usize, set: SetId) -> (u64, u64) {
        let (mut freed, mut cost) = (0, 0);
        for at in self.starts[set.index()]..self.starts[set.index() + 1] {
            let column = self.members[at as usize];
            let needs = &mut self.needs[variant * self.columns + column as usize];
            *needs -= 1;
            if *needs == 0 {
                self.probed.flip(variant, column as usize);
                freed += 1;
                cost += self.cost(column);
            }
        }
        (freed, cost)
    }
}

/// A bit for each variant and each of something else.
#[derive(Clone, Debug)]
struct Bits {
    words: usize,
    bits: Vec<u64>,
}

impl Bits {
    fn new(variants: usize, columns: usize) -> Self {
        let words = columns.div_ceil(64);
        Self {
            words,
            bits: vec![0; words * variants],
        }
    }

    fn row(&self, variant: usize) -> &[u64] {
        &self.bits[variant * self.words..][..self.words]
    }

    fn flip(&mut self, variant: usize, column: usize) {
        self.bits[variant * self.words + column / 64] ^= 1 << (column % 64);
    }
}

/// Columns given to units in the order in which they are met.
struct Numbering<'a> {
    bound: &'a Bound,
    column: Vec<u32>,
    count: u32,
    costs: Option<Vec<u64>>,
}

impl<'a> Numbering<'a> {
    fn new(sets: &UnitSets, bound: &'a Bound) -> Self {
        Self {
            bound,
            column: vec![u32::MAX; sets.unit_count()],
            count: 0,
            costs: bound.is_expected().then(Vec::new),
        }
    }

    fn column(&mut self, unit: UnitId) -> u32 {
        let column = &mut self.column[unit.index()];
        if *column == u32::MAX {
            *column = self.count;
            self.count += 1;
            if let Some(costs) = &mut self.costs {
                costs.push(self.bound.cost(unit));
            }
        }
        *column
    }
}
