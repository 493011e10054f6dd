//! Puts everything into one file: header, trap table, trampolines, patched text (see
//! `tomo_wire::image`), and the plan beside it.

use tomo_program::Address;
use tomo_wire::image::{Image, REACH, Region as Mapped, Window as Row};
use tomo_wire::paths::BELOW;
use tomo_wire::plan::{Entry, Level, Plan, Tactic};
use tomo_wire::relocations::{FIELD, encode};
use tomo_wire::{FileStamp, ModuleId, PAGE, checksum, pages};
use zerocopy::IntoBytes;

use crate::WeaveError;
use crate::place::Unit;
use crate::staying::action::Sinks;
use crate::staying::region::Regions;
use crate::tactics::{held, hop, prefixed, quadword, retarget, staying, trap};
use crate::text::Text;
use crate::trampoline::{JUMP, Job, Spot, Writer, displacement};
use crate::window::{JUMP_BYTES, Window};

/// Free bytes between the trampolines' end and the module, where they lie below it.
const GAP: u64 = 256 << 20;
/// Distance to the trampolines of a module that lies at its stated address, low in memory: so far above
/// it that its heap has room to grow.
const ABOVE: u64 = 1792 << 20;

/// A plan's file.
pub(crate) struct PlanFile {
    pub(crate) bytes: Vec<u8>,
    pub(crate) name: u64,
}

/// The plan of `units`, the first `probes` of which have a probe.
pub(crate) fn plan(
    units: &[Unit],
    probes: usize,
    module: ModuleId,
    level: Level,
    analysis: u32,
) -> PlanFile {
    debug_assert!(units[..probes].iter().all(|u| u.window.tactic.is_probe()));
    let entry = |unit: &Unit| Entry {
        from: unit.from.into(),
        to: unit.to.into(),
        tactic: (unit.window.tactic as u32).into(),
        is_edge: u32::from(unit.to != 0).into(),
    };
    let entries: Vec<Entry> = units.iter().map(entry).collect();
    let header = Plan::of(module, level, analysis, &entries);
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend(entries.as_bytes());
    PlanFile {
        bytes,
        name: header.name(),
    }
}

/// What an image is made from.
pub(crate) struct Weaving<'a> {
    pub(crate) text: &'a Text,
    /// Units with a probe, by window.
    pub(crate) units: &'a [Unit],
    /// What is executed elsewhere.
    pub(crate) regions: &'a Regions,
    pub(crate) module: ModuleId,
    pub(crate) stamp: FileStamp,
    pub(crate) plan: u64,
    /// Whether the module lies at its stated addresses.
    pub(crate) fixed: bool,
    pub(crate) distance: Option<i64>,
    /// How many bytes into the slab of a thread its counters start, if it has any.
    pub(crate) slab: Option<u32>,
    /// Whether a shadow of the stacks is behind the slab.
    pub(crate) shadowed: bool,
    /// Marks, or what is counted.
    pub(crate) probes: usize,
    /// Counters of 64 bits in each slab.
    pub(crate) counters: usize,
}

/// Bytes of the trampoline of a tactic, for those whose trampolines are all alike.
fn trampoline_length(tactic: Tactic) -> usize {
    match tactic {
        Tactic::Quadword => quadword::LENGTH,
        Tactic::Held => held::LENGTH,
        Tactic::Retarget => retarget::LENGTH,
        Tactic::Hop => hop::LENGTH,
        Tactic::HeldHop => hop::HELD_LENGTH,
        Tactic::Prefixed => prefixed::LENGTH,
        Tactic::ShortRetarget => hop::BRANCH_LENGTH,
        _ => 0,
    }
}

/// Whether an `int3` may be met at such a window.
fn is_met(tactic: Tactic) -> bool {
    matches!(tactic, Tactic::Held | Tactic::HeldHop | Tactic::Trap)
}

impl Weaving<'_> {
    /// The image file and its header.
    pub(crate) fn image(&self) -> Result<(Vec<u8>, Image), WeaveError> {
        let rows = self.trap_table();
        let mut header = self.layout(rows.len())?;
        header.windows_checksum = checksum(rows.as_bytes()).into();
        let mut patched = Patched::of(self.text);
        let writer = self.weave(&header, &mut patched)?;
        let spot = |address| {
            let spot = i32::try_from(self.spot(address).0).ok()?;
            u32::try_from(spot).ok()
        };
        let origins = writer.origins.table(&writer.bytes, spot);
        header.moved = header.length;
        header.moved_count = (origins.len() as u64).into();
        header.moved_checksum = checksum(origins.as_bytes()).into();
        let end = header.length.get() + origins.as_bytes().len() as u64;
        let relocations = relocations(&header, &writer, &patched);
        header.relocations = pages(end).ok_or(WeaveError::TooLarge)?.into();
        header.relocations_length = (relocations.len() as u64).into();
        header.relocations_checksum = checksum(&relocations).into();
        header.length = (header.relocations.get() + relocations.len() as u64).into();
        let mut file = Vec::with_capacity(header.length.get() as usize);
        file.extend(header.sealed());
        pad(&mut file, 0);
        file.extend(rows.as_bytes());
        pad(&mut file, 0);
        file.extend(writer.bytes);
        pad(&mut file, trap::TRAP);
        file.extend(patched.texts.concat());
        file.extend(origins.as_bytes());
        pad(&mut file, 0);
        file.extend(relocations);
        let sealed = Image::read(&file, file.len() as u64).map_err(|_| WeaveError::TooLarge)?;
        Ok((file, sealed))
    }

    /// Where in the first region's distance an address lies.
    fn spot(&self, address: Address) -> Spot {
        spot(self.text, address)
    }

    /// All places where an `int3` may be met.
    fn trap_table(&self) -> Vec<Row> {
        let row = |probe: u32, start: Address, length: u64| {
            let mut original = [0; 7];
            let bytes = self.text.from(start).unwrap_or_default();
            original[..length as usize].copy_from_slice(&bytes[..length as usize]);
            Row {
                offset: (self.spot(start).0 as u32).into(),
                probe: probe.into(),
                length: length as u8,
                original,
            }
        };
        let probes = (0u32..).zip(self.units.iter().map(|unit| unit.window));
        let probes = probes.filter(|(_, window)| is_met(window.tactic));
        let probes = probes.map(|(probe, window)| row(probe, window.start, window.length()));
        let once = self.regions.once();
        let once = once.map(|once| row(once.mark, once.window, JUMP_BYTES));
        let mut rows: Vec<Row> = probes.chain(once).collect();
        rows.sort_by_key(|row| row.offset.get());
        rows
    }

    fn has_vanishing(&self) -> bool {
        let mut tactics = self.units.iter().map(|unit| unit.window.tactic);
        tactics.any(|tactic| tactic != Tactic::Staying) || self.regions.once().next().is_some()
    }

    fn layout(&self, rows: usize) -> Result<Image, WeaveError> {
        let large = WeaveError::TooLarge;
        let lengths = self.units.iter().map(|unit| match unit.window.tactic {
            Tactic::Staying => staying::length(unit.window.start, self.displaced(unit)),
            tactic => trampoline_length(tactic),
        });
        let trampolines = lengths.sum::<usize>() + self.regions.length;
        let trampolines = pages(trampolines as u64).ok_or(large)?;
        let windows = pages(size_of::<Image>() as u64).unwrap_or(PAGE);
        let table = pages((rows * size_of::<Row>()) as u64).unwrap_or(0);
        let mut header = Image::of(self.module, self.stamp);
        header.plan = self.plan.into();
        header.probes = (self.probes as u32).into();
        header.slab_end = self.slab_end()?.into();
        header.shadowed = u32::from(self.shadowed).into();
        header.vanishing = u32::from(self.has_vanishing()).into();
        header.windows = windows.into();
        header.window_count = (rows as u64).into();
        header.trampolines = (windows + table).into();
        header.trampolines_length = trampolines.into();
        let mut offset = windows + table + trampolines;
        header.region_count = (self.text.regions.len() as u32).into();
        for (slot, region) in header.regions.iter_mut().zip(&self.text.regions) {
            *slot = Mapped {
                address: region.address.into(),
                length: (region.bytes.len() as u64).into(),
                offset: offset.into(),
                original: checksum(&region.bytes).into(),
            };
            offset += region.bytes.len() as u64;
        }
        header.length = offset.into();
        header.distance = self.distance(header.companion_length())?.into();
        Ok(header)
    }

    /// From the first region's start to the trampolines.
    fn distance(&self, companion: u64) -> Result<i64, WeaveError> {
        if let Some(distance) = self.distance {
            let whole = distance % PAGE as i64 == 0;
            return whole
                .then_some(distance)
                .ok_or(WeaveError::Distance(distance));
        }
        let last = self.text.regions.last().map_or(0, |region| region.end());
        let span = last - self.text.origin();
        if self.fixed {
            let highest = REACH.checked_sub(companion + PAGE);
            let distance = highest.map(|highest| highest.min(ABOVE) / PAGE * PAGE);
            let distance = distance.filter(|distance| *distance >= span);
            return distance.map(|d| d as i64).ok_or(WeaveError::TooLarge);
        }
        let below = pages(self.text.origin() - self.text.lowest).unwrap_or(0);
        let nearest = companion.checked_add(GAP.max(below + PAGE));
        let nearest = nearest.filter(|nearest| nearest + span < REACH);
        let whole = span.max(self.text.highest.saturating_sub(self.text.origin()));
        let spread = |nearest: u64| self.spread((REACH - nearest).saturating_sub(whole));
        let distance = nearest.map(|nearest| nearest + spread(nearest));
        distance.map(|d| -(d as i64)).ok_or(WeaveError::TooLarge)
    }

    /// How much farther away than need be, where there is `room`: what is executed there reaches the module's data, too. The
    /// loader puts modules one below the other, and what belongs to each is often larger than the module: at the same
    /// distance from all of them it would collide. So each has a distance of its own.
    fn spread(&self, room: u64) -> u64 {
        // Fibonacci hashing: the upper half of the product depends on all bits.
        let mixed = self
            .module
            .fingerprint
            .get()
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            >> 32;
        let pages = (room / PAGE).saturating_sub(1);
        ((mixed * pages) >> 32) * PAGE
    }

    /// Patches the texts and writes the trampolines.
    fn weave(&self, header: &Image, patched: &mut Patched<'_>) -> Result<Writer, WeaveError> {
        let start = Spot(header.distance.get());
        let length = header.trampolines_length.get() as usize;
        let mut writer = Writer::new(start, length);
        let marks = header.marks_distance();
        let aliases: Vec<i64> = (0..patched.texts.len())
            .map(|i| header.alias_distance(i))
            .collect();
        for (index, unit) in self.units.iter().enumerate() {
            let address = unit.window.start;
            let (region, offset) = self.text.place(address.0).ok_or(WeaveError::TooLarge)?;
            let window = self.spot(address);
            let to = start.plus(writer.bytes.len() as i64);
            self.patch(unit, to, patched)?;
            let job = Job {
                mark: Spot(marks + index as i64),
                window,
                alias: Spot(aliases[region] + offset as i64),
                word: self.word(address),
                original: self.text.head(address),
            };
            match unit.window.tactic {
                Tactic::Quadword => quadword::write(&mut writer, &job),
                Tactic::Held => held::write(&mut writer, &job),
                Tactic::Retarget => retarget::write(&mut writer, &job),
                Tactic::Hop => hop::write(&mut writer, &job),
                Tactic::HeldHop => hop::write_held(&mut writer, &job),
                Tactic::Prefixed => prefixed::write(&mut writer, &job),
                Tactic::ShortRetarget => hop::write_branch(&mut writer, &job),
                Tactic::Staying => {
                    let bytes = self.displaced(unit);
                    staying::write(&mut writer, job.mark, address, bytes, |there| {
                        self.spot(there)
                    });
                }
                _ => {}
            }
        }
        self.lead_into_regions(writer.here(), patched)
            .ok_or(WeaveError::TooLarge)?;
        let spot = |address| self.spot(address);
        let below = if self.shadowed { BELOW } else { 0 };
        let mut sinks = Sinks {
            slab: self.slab.unwrap_or_default().wrapping_sub(below),
            marks: Spot(marks),
            ..Sinks::NOWHERE
        };
        for ((to, region), alias) in sinks
            .aliases
            .iter_mut()
            .zip(&self.text.regions)
            .zip(aliases)
        {
            *to = Some((Address(region.address), Spot(alias)));
        }
        self.regions.write(&mut writer, self.text, sinks, spot);
        if writer.fits {
            Ok(writer)
        } else {
            Err(WeaveError::TooLarge)
        }
    }

    /// Changes the window of `unit`, and filling, so that they lead to its trampoline at `to`.
    fn patch(&self, unit: &Unit, to: Spot, patched: &mut Patched<'_>) -> Result<(), WeaveError> {
        let Window { start, tactic } = unit.window;
        let hop = || hop::displacement(unit.window.end(), unit.stations().next()?);
        let hop = || hop().map(i8::cast_unsigned);
        let done = match tactic {
            Tactic::Trap => patched.put(start, &[trap::TRAP]),
            Tactic::Retarget => patched.lead(start, to),
            Tactic::Hop | Tactic::HeldHop => {
                hop().and_then(|near| patched.put(start, &[hop::SHORT_JUMP, near]))
            }
            Tactic::ShortRetarget => hop().and_then(|near| patched.put(start, &[near])),
            _ => patched.jump(start, to),
        };
        let filled = match tactic {
            Tactic::Hop | Tactic::HeldHop | Tactic::ShortRetarget => fill(unit, to, patched),
            _ => Some(()),
        };
        done.and(filled).ok_or(WeaveError::TooLarge)
    }

    /// Lets the texts lead into the regions, whose code begins at `code`.
    fn lead_into_regions(&self, code: Spot, patched: &mut Patched<'_>) -> Option<()> {
        for (call, to) in self.regions.calls(code) {
            patched.lead(call.wrapping_add(1), to)?;
        }
        for (at, to) in self.regions.leads(code) {
            patched.lead(at, to)?;
        }
        for (entrance, to) in self.regions.ways_in(code) {
            let jump_at = entrance.by.unwrap_or(entrance.at);
            patched.jump(jump_at, to)?;
            if entrance.by.is_some() {
                let end = entrance.at.wrapping_add(hop::BYTES);
                let near = hop::displacement(end, jump_at)?.cast_unsigned();
                patched.put(entrance.at, &[hop::SHORT_JUMP, near])?;
            }
        }
        Some(())
    }

    /// Where the counters end in the slab of a thread.
    fn slab_end(&self) -> Result<u32, WeaveError> {
        let Some(slab) = self.slab.filter(|_| !self.regions.is_empty()) else {
            return Ok(0);
        };
        let length = u32::try_from(8 * self.counters).ok();
        let end = length.and_then(|length| slab.checked_add(length));
        // A displacement is signed, and below a shadow there is so much room.
        let most = if self.shadowed {
            BELOW
        } else {
            i32::MAX as u32
        };
        let end = end.filter(|end| *end <= most);
        end.ok_or(WeaveError::TooLarge)
    }

    /// The module's bytes that a unit's trampoline executes.
    fn displaced(&self, unit: &Unit) -> &[u8] {
        let bytes = self.text.from(unit.window.start).unwrap_or_default();
        bytes.get(..unit.displaced as usize).unwrap_or_default()
    }

    /// The module's bytes of the word that has `address`. Regions are whole pages, so it is there.
    fn word(&self, address: Address) -> [u8; 8] {
        let start = Address(address.0 - address.0 % 8);
        self.text.chunk(start).unwrap_or_default()
    }
}

/// The texts as they are changed.
struct Patched<'a> {
    text: &'a Text,
    /// By region.
    texts: Vec<Vec<u8>>,
    /// Where displacements are that lead to the trampolines.
    leads: Vec<Address>,
}

impl<'a> Patched<'a> {
    fn of(text: &'a Text) -> Self {
        Self {
            text,
            texts: text.regions.iter().map(|r| r.bytes.clone()).collect(),
            leads: Vec::new(),
        }
    }

    /// Changes bytes.
    fn put(&mut self, address: Address, bytes: &[u8]) -> Option<()> {
        let (region, offset) = self.text.place(address.0)?;
        let place = self.texts.get_mut(region)?;
        let place = place.get_mut(offset..offset + bytes.len())?;
        place.copy_from_slice(bytes);
        Some(())
    }

    /// Lets the displacement at `from` lead to `to` in the trampolines.
    fn lead(&mut self, from: Address, to: Spot) -> Option<()> {
        self.put(from, &displacement(spot(self.text, from), to)?)?;
        self.leads.push(from);
        Some(())
    }

    /// Puts a jump to `to` in the trampolines at `from`.
    fn jump(&mut self, from: Address, to: Spot) -> Option<()> {
        self.put(from, &[JUMP])?;
        self.lead(from.wrapping_add(1), to)
    }
}

/// Puts the jumps into filling by way of which the window of `unit` leads to `to`.
fn fill(unit: &Unit, to: Spot, patched: &mut Patched<'_>) -> Option<()> {
    for (at, next) in unit.stations().zip(unit.stations().skip(1)) {
        let near = hop::displacement(at.wrapping_add(hop::BYTES), next)?;
        patched.put(at, &[hop::SHORT_JUMP, near.cast_unsigned()])?;
    }
    patched.jump(unit.slot, to)
}

/// How far behind the start of the first region an address lies.
fn spot(text: &Text, address: Address) -> Spot {
    Spot(address.0.wrapping_sub(text.origin()) as i64)
}

/// The table of the displacements that change if the trampolines are put elsewhere (`tomo_wire::relocations`). Empty, so that
/// they are not, where the text itself has what leads to a trampoline: nobody could tell whether its probe was taken away.
fn relocations(header: &Image, writer: &Writer, patched: &Patched<'_>) -> Vec<u8> {
    let start = header.distance.get();
    let companions = start..start + header.companion_length() as i64;
    let outward = writer.displacements.iter();
    let outward = outward.filter(|(_, to)| !companions.contains(&to.0));
    let outward = outward.map(|(at, _)| header.trampolines.get() + u64::from(*at));
    let mut leads: Vec<u64> = Vec::with_capacity(patched.leads.len());
    for from in &patched.leads {
        let place = patched.text.place(from.0);
        let told = place.and_then(|(region, offset)| {
            let field = offset..offset + FIELD;
            let new = patched.texts.get(region)?.get(field.clone())?;
            let old = patched.text.regions.get(region)?.bytes.get(field)?;
            (new != old).then_some(header.regions.get(region)?.offset.get() + offset as u64)
        });
        match told {
            Some(at) => leads.push(at),
            None => return Vec::new(),
        }
    }
    leads.sort_unstable();
    let mut last = 0;
    let fields = outward.chain(leads);
    let behind = fields.map(|at| at - std::mem::replace(&mut last, at));
    behind.flat_map(encode).collect()
}

/// Fills the last page.
fn pad(file: &mut Vec<u8>, with: u8) {
    file.resize(file.len().next_multiple_of(PAGE as usize), with);
}
