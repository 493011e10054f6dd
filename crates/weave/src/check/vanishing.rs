//! The checker of probes that vanish beside code that is executed elsewhere.
//!
//! They are proven as those of coverage are (`check.rs`), from what is found in the image: how a trampoline restores
//! says what its window is. Then all of them are taken away, and what is left is proven by itself
//! (`check/counted.rs`). That both may be proven apart takes that neither changes a byte that the other changes or
//! writes, and that nobody comes from elsewhere into the middle of a window.

use std::collections::{BTreeSet, HashMap};

use tomo_program::{Address, Binary, Graphs};
use tomo_wire::disposal::{Disposal, Manner};
use tomo_wire::image::{Image, Window as Row};
use tomo_wire::plan::{Entry, Level, Plan, PlanView, Tactic};

use super::apart::check_apart;
use super::counted::Walk;
use super::places::Places;
use super::trampolines::{Trampoline, of_alias};
use super::{Checker, Flaw, Found, at};
use crate::text::Text;

/// Windows of probes that vanish, each proven to observe its unit.
pub(super) struct Vanishing {
    windows: Vec<Found>,
}

/// How the probe of a trampoline is restored, and where.
struct Restores {
    tactic: Tactic,
    window: Address,
}

impl Vanishing {
    /// Proves the probes that have the first marks of the image, so many. `unit` says which unit the probe of a mark is
    /// to observe, by the displacement of a branch or otherwise; the rest is found. `rows` are
    /// those of their windows in the trap table.
    pub(super) fn check(
        (image, header, rows): (&[u8], &Image, &[Row]),
        text: &Text,
        (graphs, binary): (&Graphs<'_>, &Binary<'_>),
        count: u32,
        unit: impl Fn(u32, bool) -> Result<Entry, Flaw>,
    ) -> Result<Self, Flaw> {
        let mut found = Finding {
            image,
            header,
            text,
            disposals: vec![Disposal::of(Manner::Once, 0, 0, &[]); count as usize],
        };
        let (tactics, length) = found.all(rows)?;
        let units = (0..count).map(|mark| {
            let tactic = tactics.get(&mark).copied();
            let tactic = tactic.ok_or(Flaw::Mismatch("a mark has no probe"))?;
            let unit = unit(mark, is_displacement(tactic))?;
            Ok(Entry {
                tactic: (tactic as u32).into(),
                ..unit
            })
        });
        let units: Vec<Entry> = units.collect::<Result<_, Flaw>>()?;
        let checker = Checker {
            image,
            header: *header,
            plan: PlanView {
                header: Plan::of(header.module, Level::Edge, 0, &units),
                level: Level::Edge,
                units: &units,
                name: 0,
            },
            disposals: &found.disposals,
            is_gone: &|_| false,
            text,
        };
        let mut windows = checker.detours(length)?;
        windows.extend(checker.traps(rows)?);
        windows.sort_by_key(|window| window.start);
        checker.check_rows(rows, &windows)?;
        checker.check_each_probe(&windows)?;
        check_apart(&windows)?;
        let places = Places::of(graphs, binary, text);
        for window in &windows {
            match window.filling {
                true => places.check_slot(window)?,
                false => places.check(window, &units[window.probe as usize])?,
            }
        }
        Ok(Self { windows })
    }

    /// By mark: whether it is a displacement, and the first byte of its window.
    pub(super) fn by_mark(&self) -> HashMap<u32, (bool, Address)> {
        let probes = self.windows.iter().filter(|one| !one.filling);
        let each = probes.map(|one| (one.probe, (is_displacement(one.tactic), one.start)));
        each.collect()
    }

    /// The image without them.
    pub(super) fn taken_away(&self, image: &[u8], header: &Image, text: &Text) -> Vec<u8> {
        let mut bytes = image.to_vec();
        for window in &self.windows {
            let offset = window.start.0.wrapping_sub(text.origin()) as u32;
            let place = header.text_at(offset, window.length).unwrap_or(u64::MAX) as usize;
            let length = window.length as usize;
            let original = text.from(window.start).and_then(|text| text.get(..length));
            if let (Some(to), Some(from)) = (bytes.get_mut(place..place + length), original) {
                to.copy_from_slice(from);
            }
        }
        bytes
    }

    /// They and what is executed elsewhere are in nobody's way.
    pub(super) fn check_beside(&self, walk: &Walk<'_>) -> Result<(), Flaw> {
        let each = walk.changes.iter();
        let changed: BTreeSet<u64> = each
            .flat_map(|(start, length)| start.0..start.0 + length)
            .collect();
        for window in &self.windows {
            let (start, end) = (window.start.0, window.start.0 + window.length);
            let written = window
                .word()
                .map_or(start..end, |word| 8 * word..8 * word + 8);
            let all = start.min(written.start)..end.max(written.end);
            if changed.range(all).next().is_some() {
                return Err(at(
                    window.start,
                    "a window is changed for something else too",
                ));
            }
            let mut inside = (start + 1..end).map(Address);
            if inside.any(|byte| walk.returned.contains(&byte)) {
                return Err(at(window.start, "control comes back into a window"));
            }
        }
        Ok(())
    }
}

fn is_displacement(tactic: Tactic) -> bool {
    matches!(tactic, Tactic::Retarget | Tactic::ShortRetarget)
}

/// What is found in the image.
struct Finding<'f> {
    image: &'f [u8],
    header: &'f Image,
    text: &'f Text,
    /// Where each hop has its jump in filling.
    disposals: Vec<Disposal>,
}

impl Finding<'_> {
    /// The tactic of each mark, and bytes of all their trampolines.
    fn all(&mut self, rows: &[Row]) -> Result<(HashMap<u32, Tactic>, usize), Flaw> {
        let header = self.header;
        let start = header.trampolines.get() as usize;
        let end = start + header.trampolines_length.get() as usize;
        let code = self.image.get(start..end).unwrap_or_default();
        let traps = rows.iter().filter(|row| row.length == 1);
        let mut tactics: HashMap<u32, Tactic> =
            traps.map(|row| (row.probe.get(), Tactic::Trap)).collect();
        let mut offset = 0;
        while tactics.len() < self.disposals.len() {
            let wrong = |what| Flaw::Trampoline {
                offset: offset as u64,
                what,
            };
            if offset >= code.len() {
                return Err(wrong("there are too few"));
            }
            let trampoline = Trampoline::read(code, offset, header)?;
            let restores = self.restores(&trampoline);
            let Restores { tactic, window } = restores.ok_or(wrong("it restores nothing"))?;
            let slot = self.slot(tactic, window);
            let disposal = self.disposals.get_mut(trampoline.mark as usize);
            let disposal = disposal.ok_or(wrong("its probe does not vanish"))?;
            *disposal = Disposal::of(Manner::Once, 0, slot, &[]);
            if tactics.insert(trampoline.mark, tactic).is_some() {
                return Err(wrong("it is the second of its probe"));
            }
            offset += trampoline.length;
        }
        Ok((tactics, offset))
    }

    fn restores(&self, trampoline: &Trampoline) -> Option<Restores> {
        let (first, value) = trampoline.stores.first()?;
        let window = of_alias(self.header, *first)?;
        let back = Address(self.text.origin().wrapping_add_signed(trampoline.target));
        let tactic = match (trampoline.stores.len(), value.len()) {
            (1, 8) if back.wrapping_add(1) == window => Tactic::Prefixed,
            (1, 8) => Tactic::Quadword,
            (1, 4) => Tactic::Retarget,
            (1, 2) => Tactic::Hop,
            (1, 1) => Tactic::ShortRetarget,
            (3, 1) if trampoline.stores[1].1.len() == 4 => Tactic::Held,
            (3, 1) => Tactic::HeldHop,
            _ => return None,
        };
        Some(Restores { tactic, window })
    }

    /// Where the short jump or branch at a window leads, from the first region's start.
    fn slot(&self, tactic: Tactic, window: Address) -> u32 {
        let into = match tactic {
            Tactic::Hop | Tactic::HeldHop => 1,
            Tactic::ShortRetarget => 0,
            _ => return 0,
        };
        let bytes = self.text.patched((self.header, self.image), window);
        let way = bytes.and_then(|bytes| bytes.get(into)).copied();
        let end = window.0.wrapping_sub(self.text.origin()) as i64 + into as i64 + 1;
        (end + i64::from(way.unwrap_or_default().cast_signed())) as u32
    }
}
