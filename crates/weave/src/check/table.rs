//! The trap table: it has what an `int3` may be met at, and nothing else.

use tomo_program::Address;
use tomo_wire::image::Window as Row;
use tomo_wire::plan::Tactic;
use zerocopy::little_endian::U32;

use super::{Checker, Flaw, Found, at};

impl Checker<'_> {
    /// The windows of trap probes: those of which the table tells, and those that are gone.
    pub(super) fn traps(&self, rows: &[Row]) -> Result<Vec<Found>, Flaw> {
        let address = |offset: U32| Address(self.text.origin() + u64::from(offset.get()));
        let mut traps = Vec::new();
        for row in rows {
            let (probe, start) = (row.probe.get(), address(row.offset));
            match (self.tactic(probe), row.length) {
                (Some(Tactic::Trap), 1) => traps.push((probe, start, Some(&0xcc))),
                (Some(Tactic::Held), 5) | (Some(Tactic::HeldHop), 2) => {}
                _ => return Err(at(start, "a row of the trap table does not fit its probe")),
            }
        }
        let is_gone = |probe| (self.is_gone)(probe) && self.tactic(probe) == Some(Tactic::Trap);
        let gone = (0..).zip(self.disposals);
        traps.extend(
            gone.filter(|(probe, _)| is_gone(*probe))
                .map(|(probe, row)| {
                    let start = address(row.offset);
                    (probe, start, self.text.from(start).and_then(<[u8]>::first))
                }),
        );
        let found = traps.into_iter().map(|(probe, start, byte)| {
            let is = self.patched(start).and_then(<[u8]>::first);
            let wrong = "the byte of a trap probe is not what it should be";
            (byte.is_some() && is == byte)
                .then_some(Found {
                    start,
                    length: 1,
                    probe,
                    tactic: Tactic::Trap,
                    filling: false,
                    slot: 0,
                    displaced: 0,
                })
                .ok_or(at(start, wrong))
        });
        found.collect()
    }

    /// The trap table is sorted and has exactly the held windows and the traps that are there.
    pub(super) fn check_rows(&self, rows: &[Row], windows: &[Found]) -> Result<(), Flaw> {
        let is_there = |w: &&Found| !w.filling && w.is_met() && !(self.is_gone)(w.probe);
        let mut expected = windows.iter().filter(is_there);
        for row in rows {
            let start = Address(self.text.origin() + u64::from(row.offset.get()));
            let window = expected
                .next()
                .filter(|w| w.start == start && w.probe == row.probe.get());
            let Some(window) = window else {
                return Err(at(
                    start,
                    "the trap table is unsorted or has a row too many",
                ));
            };
            let length = usize::from(row.length);
            let original = self.original(start, length);
            let tail = row.original.get(length..).unwrap_or_default();
            if u64::from(row.length) != window.length
                || original != row.original.get(..length)
                || tail.iter().any(|byte| *byte != 0)
            {
                return Err(at(start, "the trap table has other bytes than the module"));
            }
        }
        match expected.next() {
            Some(window) => Err(at(window.start, "the trap table lacks a window")),
            None => Ok(()),
        }
    }
}
