//! What a distribution is: per variant its probes, and the sets that they were placed for
//! (PDT §4.1: D, and Hv_i for each variant).

use super::{SetId, UnitId, UnitSets, VariantId};

/// What one variant carries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    pub(super) units: Vec<UnitId>,
    pub(super) sets: Vec<SetId>,
}

impl Variant {
    /// A variant with probes for all units of these sets.
    #[must_use]
    pub fn of_sets(sets: &UnitSets, mut placed: Vec<SetId>) -> Self {
        placed.sort_unstable();
        placed.dedup();
        let units = placed.iter().flat_map(|&set| sets.units(set)).copied();
        Self {
            units: ascending(units.collect()),
            sets: placed,
        }
    }

    /// A variant with probes for these units, placed for no set.
    #[must_use]
    pub fn of_units(units: Vec<UnitId>) -> Self {
        Self {
            units: ascending(units),
            sets: Vec::new(),
        }
    }

    /// The units with a probe, ascending.
    #[must_use]
    pub fn units(&self) -> &[UnitId] {
        &self.units
    }

    /// The sets that probes were placed for, ascending; none if they were placed for their own
    /// sake.
    #[must_use]
    pub fn sets(&self) -> &[SetId] {
        &self.sets
    }

    /// Whether this unit has a probe. O(log probes).
    #[must_use]
    pub fn has(&self, unit: UnitId) -> bool {
        self.units.binary_search(&unit).is_ok()
    }

    /// Whether all these units have probes, placed for them or not.
    #[must_use]
    pub fn observes(&self, units: &[UnitId]) -> bool {
        units.iter().all(|&unit| self.has(unit))
    }
}

fn ascending(mut units: Vec<UnitId>) -> Vec<UnitId> {
    units.sort_unstable();
    units.dedup();
    units
}

/// Probes distributed over variants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    variants: Vec<Variant>,
}

impl Distribution {
    /// The distribution of these variants.
    #[must_use]
    pub fn new(variants: Vec<Variant>) -> Self {
        Self { variants }
    }

    /// All variants, in order.
    #[must_use]
    pub fn variants(&self) -> &[Variant] {
        &self.variants
    }

    /// One variant. Panics if there is no such variant.
    #[must_use]
    pub fn variant(&self, id: VariantId) -> &Variant {
        &self.variants[id.index()]
    }

    /// Per unit, how many variants have a probe there.
    #[must_use]
    pub fn times_probed(&self, unit_count: usize) -> Vec<u32> {
        let mut times = vec![0; unit_count];
        for unit in self.variants.iter().flat_map(Variant::units) {
            times[unit.index()] += 1;
        }
        times
    }

    /// Per set, how many variants were given probes for it: PDT's TimesUsed.
    #[must_use]
    pub fn times_placed(&self, sets: &UnitSets) -> Vec<u32> {
        let mut times = vec![0; sets.len()];
        for set in self.variants.iter().flat_map(Variant::sets) {
            times[set.index()] += 1;
        }
        times
    }

    /// Per set, how many variants have probes for all its units, whether they were placed for it
    /// or not. O(variants · units of all sets).
    #[must_use]
    pub fn times_observed(&self, sets: &UnitSets) -> Vec<u32> {
        let mut times = vec![0; sets.len()];
        let mut has = vec![false; sets.unit_count()];
        for variant in &self.variants {
            variant
                .units
                .iter()
                .for_each(|unit| has[unit.index()] = true);
            for set in sets.ids() {
                let all = sets.units(set).iter().all(|unit| has[unit.index()]);
                times[set.index()] += u32::from(all);
            }
            variant
                .units
                .iter()
                .for_each(|unit| has[unit.index()] = false);
        }
        times
    }
}
