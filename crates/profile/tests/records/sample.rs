//! Plans and records to read.

use fixedbitset::FixedBitSet;
use tomo_wire::ModuleId;
use tomo_wire::plan::{Entry, Level, Plan, Tactic};
use tomo_wire::record::{LIVE, Live, MARKS, Record};
use zerocopy::{FromBytes as _, IntoBytes as _};

pub(crate) fn module() -> ModuleId {
    ModuleId::by_build_id(&[1, 2, 3], 99).expect("an id")
}

/// A plan of four blocks, of which three have probes.
pub(crate) fn plan() -> (Plan, Vec<u8>) {
    let entry = |from: u64, tactic: Tactic| Entry {
        from: from.into(),
        to: 0.into(),
        tactic: (tactic as u32).into(),
        is_edge: 0.into(),
    };
    let units = [
        entry(0x1000, Tactic::Quadword),
        entry(0x1010, Tactic::Held),
        entry(0x1020, Tactic::Trap),
        entry(0x1008, Tactic::Inferred),
    ];
    let plan = Plan::of(module(), Level::Block, 1, &units);
    let bytes = [plan.as_bytes(), units.as_bytes()].concat();
    (plan, bytes)
}

/// A record of that plan.
pub(crate) fn record(hits: [bool; 3]) -> Vec<u8> {
    let (plan, _) = plan();
    let record = Record::of(module(), plan.name(), 3, [7; 16], 42);
    let mut bytes = vec![0; record.length() as usize];
    let header = record.sealed();
    bytes[..header.len()].copy_from_slice(&header);
    for (byte, hit) in bytes[MARKS as usize..].iter_mut().zip(hits) {
        *byte = u8::from(hit);
    }
    bytes
}

/// Changes the counters of a record.
pub(crate) fn with_live(mut bytes: Vec<u8>, change: impl FnOnce(&mut Live)) -> Vec<u8> {
    let place = &mut bytes[LIVE as usize..][..size_of::<Live>()];
    let mut live = Live::read_from_bytes(place).expect("as long");
    change(&mut live);
    place.copy_from_slice(live.as_bytes());
    bytes
}

/// The hits of a record of these probes.
pub(crate) fn hits(seen: &[bool]) -> FixedBitSet {
    let mut hits = FixedBitSet::with_capacity(seen.len());
    let probes = seen.iter().enumerate();
    hits.extend(probes.filter(|(_, hit)| **hit).map(|(probe, _)| probe));
    hits
}
