//! The checker: proves of an image that it is harmless and of its plan that it says what is observed.
//!
//! In the manner of regalloc2's checker, it shares nothing with the weaving but the reading of the
//! module's text and, where probes stay, what instructions read and write. It takes the finished files and works backwards: decodes the trampolines, runs
//! them in the head, and asks the model whether what they and the patched text do is allowed.
//!
//! - Every trampoline marks one mark, its own, restores the module's bytes and nothing else, leaves
//!   registers and flags as they were, and jumps to its window's start; the jump in the window
//!   leads to it. One whose probe stays executes what its window displaced instead, and goes back behind it.
//! - Every byte of the text that differs from the module's lies in exactly one window.
//! - The trap table has all windows at which an `int3` may be met, sorted, with the module's bytes.
//! - The disposals have all probes, in their order, with what restores each from outside: the module's bytes, in
//!   the steps that its tactic asks for. So whoever disposes of all of them has the module's text again,
//!   byte for byte, but for the jumps in filling that nothing leads to any more.
//! - What is said to have been disposed of is the module's text, and nothing else is.
//! - A quadword's store touches nobody else's bytes; what is held is fetched at once.
//! - A window starts at an instruction of its unit's block before which nothing can fault, and no way of the
//!   model leads to any other of its bytes (see `check/places.rs`).
//!
//! Linear but for a sort.

mod apart;
mod branched;
mod bytes;
mod chained;
mod class;
mod counted;
mod increment;
mod moved;
mod path;
mod paths;
mod places;
mod predicates;
mod step;
mod table;
mod traced;
mod trampolines;
mod vanishing;
mod witness;

use tomo_program::{Address, Binary, Model};
use tomo_wire::Refusal;
use tomo_wire::disposal::{Disposal, DisposalsView, Manner};
use tomo_wire::image::Image;
use tomo_wire::plan::{PlanView, Tactic};

pub use chained::check_chains;
pub use counted::{CountersChecked, check_counters};
pub use paths::{PathsChecked, check_paths};
pub use predicates::{PredicatesChecked, check_predicates};
pub use traced::check_traces;

use crate::WeaveError;
use crate::text::Text;
use apart::check_apart;
use places::Places;
use trampolines::Trampoline;

/// Bytes, aligned, that any processor fetches at once.
const FETCH: u64 = 16;
/// By way of how many short jumps in filling a window may lead to its trampoline.
const MOST_RELAYS: usize = 2;

/// What is wrong with an image.
#[derive(Debug, thiserror::Error)]
pub enum Flaw {
    /// The image is not readable.
    #[error("the image: {0}")]
    Image(Refusal),
    /// The plan is not readable.
    #[error("the plan: {0}")]
    Plan(Refusal),
    /// The disposals are not readable, or are of another image.
    #[error("the disposals: {0}")]
    Disposals(Refusal),
    /// The module is not readable.
    #[error("the module: {0}")]
    Module(#[from] WeaveError),
    /// Image, plan, module do not belong together.
    #[error("{0}")]
    Mismatch(&'static str),
    /// Something at this address of the module is wrong.
    #[error("at {address:#x}: {what}")]
    At {
        /// The stated address.
        address: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// Something in the trampoline at this offset of the trampolines is wrong.
    #[error("trampoline at {offset:#x}: {what}")]
    Trampoline {
        /// Where it starts.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    },
}

fn at(address: Address, what: &'static str) -> Flaw {
    Flaw::At {
        address: address.0,
        what,
    }
}

/// What is to be proven.
#[derive(Clone, Copy)]
pub struct Files<'a> {
    /// An image file.
    pub image: &'a [u8],
    /// Its plan's file.
    pub plan: &'a [u8],
    /// The file of its disposals.
    pub disposals: &'a [u8],
    /// Which of its probes have been disposed of.
    pub is_gone: &'a dyn Fn(u32) -> bool,
}

/// What was proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Windows, each of one probe, disposed of or not.
    pub windows: usize,
    /// Bytes of text that differ from the module's.
    pub changed: usize,
}

/// A window as it was found in the files.
#[derive(Clone, Copy, Debug)]
struct Found {
    start: Address,
    length: u64,
    probe: u32,
    tactic: Tactic,
    /// Whether this is filling with a jump that never changes.
    filling: bool,
    /// Where the window's own filling is, from the first region's start, or 0.
    slot: u32,
    /// Bytes from its start that are executed elsewhere.
    displaced: u64,
}

/// A window that stays.
struct Stays {
    window: Found,
    /// Bytes of its trampoline.
    length: usize,
}

impl Found {
    /// Whether an `int3` may be met there.
    fn is_met(&self) -> bool {
        matches!(self.tactic, Tactic::Held | Tactic::HeldHop | Tactic::Trap)
    }

    /// The first byte that is ever another one than the module's: a prefix stays.
    fn first(&self) -> u64 {
        self.start.0 + u64::from(self.tactic == Tactic::Prefixed)
    }

    /// The word that is written when it is restored, if all of it is.
    fn word(&self) -> Option<u64> {
        let whole = matches!(self.tactic, Tactic::Quadword | Tactic::Prefixed);
        whole.then(|| self.first() / 8)
    }
}

/// Proves that these files are right for the module in the file `bytes`.
///
/// # Errors
/// The first thing that is not.
pub fn check(
    files: &Files<'_>,
    bytes: &[u8],
    binary: &Binary<'_>,
    model: &Model,
) -> Result<Checked, Flaw> {
    let image = files.image;
    let header = Image::read(image, image.len() as u64).map_err(Flaw::Image)?;
    let plan = PlanView::read(files.plan).map_err(Flaw::Plan)?;
    let disposals = DisposalsView::read(files.disposals, &header).map_err(Flaw::Disposals)?;
    let disposals = disposals
        .all()
        .ok_or(Flaw::Disposals(Refusal::Inconsistent))?;
    let text = Text::read(bytes)?;
    belong_together(&header, &plan, &text)?;
    let checker = Checker {
        image,
        header,
        plan,
        disposals,
        is_gone: files.is_gone,
        text: &text,
    };
    let rows = header.window_table(image).map_err(Flaw::Image)?;
    let length = checker.header.trampolines_length.get();
    let mut windows = checker.detours(length as usize)?;
    windows.extend(checker.traps(rows)?);
    windows.sort_by_key(|window| window.start);
    checker.check_rows(rows, &windows)?;
    checker.check_each_probe(&windows)?;
    checker.check_disposals(&windows)?;
    check_apart(&windows)?;
    let changed = checker.check_changes(&windows)?;
    let graphs = model.graphs().map_err(WeaveError::from)?;
    let places = Places::of(&graphs, binary, &text);
    for window in &windows {
        let unit = &checker.plan.units[window.probe as usize];
        match window.filling {
            true => places.check_slot(window)?,
            false => places.check(window, unit)?,
        }
    }
    Ok(Checked {
        windows: windows.iter().filter(|window| !window.filling).count(),
        changed,
    })
}

fn belong_together(header: &Image, plan: &PlanView<'_>, text: &Text) -> Result<(), Flaw> {
    if header.plan.get() != plan.name || header.probes != plan.header.probes {
        return Err(Flaw::Mismatch("the image is of another plan"));
    }
    if header.module != plan.header.module {
        return Err(Flaw::Mismatch("image and plan are of different modules"));
    }
    let same = text.is_of(header);
    let below = (text.lowest as i64).wrapping_sub(text.origin() as i64);
    let distance = header.distance.get();
    let clear = distance >= 0 || distance + (header.companion_length() as i64) <= below;
    match (same, clear) {
        (false, _) => Err(Flaw::Mismatch(
            "the image's regions are not the module's text",
        )),
        (_, false) => Err(Flaw::Mismatch(
            "the trampolines lie on the module's first segments",
        )),
        _ => Ok(()),
    }
}

struct Checker<'a> {
    image: &'a [u8],
    header: Image,
    plan: PlanView<'a>,
    disposals: &'a [Disposal],
    is_gone: &'a dyn Fn(u32) -> bool,
    text: &'a Text,
}

impl Checker<'_> {
    /// The patched text from `address`.
    fn patched(&self, address: Address) -> Option<&[u8]> {
        self.text.patched((&self.header, self.image), address)
    }

    fn tactic(&self, probe: u32) -> Option<Tactic> {
        let unit = self.plan.units.get(probe as usize)?;
        Tactic::from_number(unit.tactic.get()).filter(|tactic| tactic.is_probe())
    }

    /// The windows that lead to trampolines, which take so many bytes, each proven to be restored.
    fn detours(&self, length: usize) -> Result<Vec<Found>, Flaw> {
        let start = self.header.trampolines.get() as usize;
        let code = self.image.get(start..start + length).unwrap_or_default();
        let mut found = Vec::new();
        let mut offset = 0;
        while offset < code.len() && code[offset] != 0xcc {
            if let Some(stays) = self.staying(code, offset)? {
                offset += stays.length;
                found.push(stays.window);
                continue;
            }
            let trampoline = Trampoline::read(code, offset, &self.header)?;
            found.extend(self.check_detour(&trampoline, offset)?);
            offset += trampoline.length;
        }
        match code[offset..].iter().all(|byte| *byte == 0xcc) {
            true => Ok(found),
            false => Err(Flaw::Trampoline {
                offset: offset as u64,
                what: "more code behind the last one",
            }),
        }
    }

    /// The window of a probe that stays, if that is what the trampoline at `offset` belongs to, and the
    /// trampoline's bytes.
    fn staying(&self, code: &[u8], offset: usize) -> Result<Option<Stays>, Flaw> {
        let Some((probe, marking)) = Trampoline::mark(code, offset, &self.header) else {
            return Ok(None);
        };
        if self.tactic(probe) != Some(Tactic::Staying) {
            return Ok(None);
        }
        self.check_staying(code, offset, (probe, marking))
            .map(Some)
            .map_err(|what| Flaw::Trampoline {
                offset: offset as u64,
                what,
            })
    }

    fn check_staying(
        &self,
        code: &[u8],
        offset: usize,
        (probe, marking): (u32, usize),
    ) -> Result<Stays, &'static str> {
        let here = self.header.distance.get() + offset as i64;
        let disposal = self.disposals.get(probe as usize);
        let window = disposal.ok_or("it cannot be disposed of")?.offset.get();
        let start = Address(self.text.origin().wrapping_add(window.into()));
        let mut found = Found {
            start,
            length: 5,
            probe,
            tactic: Tactic::Staying,
            filling: false,
            slot: 0,
            displaced: 0,
        };
        self.check_way(&found, here)?;
        let behind = (here + marking as i64, &code[offset + marking..]);
        let original = self.text.from(start).unwrap_or_default();
        let moved = moved::same(behind, (window.into(), original), 5)?;
        found.displaced = moved.displaced;
        Ok(Stays {
            window: found,
            length: marking + moved.length,
        })
    }

    /// The window that leads to a trampoline, and the filling by way of which it does.
    fn check_detour(&self, trampoline: &Trampoline, offset: usize) -> Result<Vec<Found>, Flaw> {
        let wrong = |what| Flaw::Trampoline {
            offset: offset as u64,
            what,
        };
        let probe = trampoline.mark;
        let tactic = self.tactic(probe);
        let tactic = tactic.ok_or(wrong("it marks what is no probe"))?;
        let window = match tactic {
            Tactic::Quadword => self.check_quadword(trampoline),
            Tactic::Prefixed => self.check_prefixed(trampoline),
            Tactic::Held => self.check_held(trampoline, 5),
            Tactic::Hop => self.check_hop(trampoline),
            Tactic::HeldHop => self.check_held(trampoline, 2),
            Tactic::Retarget => self.check_retarget::<4>(trampoline),
            Tactic::ShortRetarget => self.check_retarget::<1>(trampoline),
            _ => Err("its probe is no detour"),
        };
        let (start, length) = window.map_err(wrong)?;
        let hops = matches!(
            tactic,
            Tactic::Hop | Tactic::HeldHop | Tactic::ShortRetarget
        );
        let slot = self.disposals.get(probe as usize);
        let slot = slot.map_or(0, |disposal| disposal.slot.get());
        let window = Found {
            start,
            length,
            probe,
            tactic,
            filling: false,
            slot: if hops { slot } else { 0 },
            displaced: 0,
        };
        let here = self.header.distance.get() + offset as i64;
        if !hops {
            self.check_way(&window, here).map_err(wrong)?;
            return Ok(vec![window]);
        }
        self.check_way(&window, slot.into()).map_err(wrong)?;
        let jumps = self.check_filling(&window, here).map_err(wrong)?;
        Ok([&[window], jumps.as_slice()].concat())
    }

    /// The jumps in filling, from where the short one of the window leads to the one that leads to the trampoline at
    /// `here`.
    fn check_filling(&self, window: &Found, here: i64) -> Result<Vec<Found>, &'static str> {
        let mut jumps = Vec::new();
        let mut at = i64::from(window.slot);
        while jumps.len() <= MOST_RELAYS {
            let start = Address(self.text.origin().wrapping_add_signed(at));
            let relay = self.leads_to(start, 2, Tactic::Hop);
            jumps.push(Found {
                start,
                length: if relay.is_some() { 2 } else { 5 },
                tactic: Tactic::Trap,
                filling: true,
                ..*window
            });
            match relay {
                Some(next) => at = next,
                None if self.leads_to(start, 5, Tactic::Held) == Some(here) => return Ok(jumps),
                None => break,
            }
        }
        Err("its filling does not lead to it")
    }

    /// The window leads to `target`, from the first region's start; or it has been disposed of and is the
    /// module's.
    fn check_way(&self, window: &Found, target: i64) -> Result<(), &'static str> {
        let length = window.length as usize;
        let (tactic, start) = (window.tactic, window.start);
        if !(self.is_gone)(window.probe) {
            return match self.leads_to(start, window.length, tactic) == Some(target) {
                true => Ok(()),
                false => Err("its window does not lead to it"),
            };
        }
        let is = self.patched(start).and_then(|bytes| bytes.get(..length));
        match is.is_some() && is == self.original(start, length) {
            true => Ok(()),
            false => Err("its window is not the module's, though it was disposed of"),
        }
    }

    /// Where the patched bytes at `start` lead, as jump or displacement, from the first region's start.
    fn leads_to(&self, start: Address, length: u64, tactic: Tactic) -> Option<i64> {
        let bytes = self.patched(start)?.get(..length as usize)?;
        let displacement = match (tactic, bytes) {
            (Tactic::Retarget, bytes)
            | (Tactic::Quadword | Tactic::Held | Tactic::Staying, [0xe9, bytes @ ..])
            | (Tactic::Prefixed, [0x40..=0x4f, 0xe9, bytes @ ..]) => {
                i32::from_le_bytes(bytes.try_into().ok()?).into()
            }
            (Tactic::ShortRetarget, [byte]) | (Tactic::Hop | Tactic::HeldHop, [0xeb, byte]) => {
                i64::from(byte.cast_signed())
            }
            _ => return None,
        };
        Some(self.spot(start) + length as i64 + displacement)
    }

    fn spot(&self, address: Address) -> i64 {
        address.0.wrapping_sub(self.text.origin()) as i64
    }

    fn of_alias(&self, spot: i64) -> Option<Address> {
        trampolines::of_alias(&self.header, spot)
    }

    fn original(&self, address: Address, length: usize) -> Option<&[u8]> {
        self.text.from(address)?.get(..length)
    }

    fn back(&self, trampoline: &Trampoline) -> Address {
        Address(self.text.origin().wrapping_add_signed(trampoline.target))
    }

    fn check_quadword(&self, trampoline: &Trampoline) -> Result<(Address, u64), &'static str> {
        let [(alias, value)] = trampoline.stores.as_slice() else {
            return Err("a quadword is restored by one store");
        };
        let word = self
            .of_alias(*alias)
            .ok_or("it writes outside of the alias")?;
        let window = self.back(trampoline);
        if value.len() != 8 || !word.0.is_multiple_of(8) {
            return Err("its store is no aligned quadword");
        }
        if window < word || window.0 + 5 > word.0 + 8 {
            return Err("its window is not in its word");
        }
        match self.original(word, 8) == Some(value) {
            true => Ok((window, 5)),
            false => Err("it does not restore the module's bytes"),
        }
    }

    /// The prefix counts as part of the window, and is what it was.
    fn check_prefixed(&self, trampoline: &Trampoline) -> Result<(Address, u64), &'static str> {
        let [(alias, value)] = trampoline.stores.as_slice() else {
            return Err("a quadword is restored by one store");
        };
        let prefix = self.back(trampoline);
        let word = self
            .of_alias(*alias)
            .ok_or("it writes outside of the alias")?;
        if value.len() != 8 || !word.0.is_multiple_of(8) || word.0 != prefix.0 + 1 {
            return Err("its store is not of the word behind the prefix");
        }
        let was = self.original(prefix, 1);
        let is = self.patched(prefix).and_then(|bytes| bytes.get(..1));
        if was != is || !matches!(was, Some([0x40..=0x4f])) {
            return Err("its window is not behind a prefix of the module's");
        }
        match self.original(word, 8) == Some(value) {
            true => Ok((prefix, 6)),
            false => Err("it does not restore the module's bytes"),
        }
    }

    /// A jump of `size` bytes that is held.
    fn check_held(
        &self,
        trampoline: &Trampoline,
        size: u64,
    ) -> Result<(Address, u64), &'static str> {
        let [(hold, int3), (tail, rest), (first, byte)] = trampoline.stores.as_slice() else {
            return Err("a hold is restored by three stores");
        };
        let window = self.back(trampoline);
        let start = self
            .of_alias(*hold)
            .ok_or("it writes outside of the alias")?;
        if start != window || first != hold || *tail != hold + 1 {
            return Err("it restores something else than its window");
        }
        if int3.as_slice() != [0xcc] || window.0 % FETCH > FETCH - size {
            return Err("its window is not fetched at once");
        }
        let value = [byte.as_slice(), rest.as_slice()].concat();
        match self.original(window, size as usize) == Some(&value) {
            true => Ok((window, size)),
            false => Err("it does not restore the module's bytes"),
        }
    }

    fn check_hop(&self, trampoline: &Trampoline) -> Result<(Address, u64), &'static str> {
        let [(alias, value)] = trampoline.stores.as_slice() else {
            return Err("a short jump is restored by one store");
        };
        let window = self
            .of_alias(*alias)
            .ok_or("it writes outside of the alias")?;
        if value.len() != 2 || window.0 % 8 > 6 || window != self.back(trampoline) {
            return Err("its store is not that of its window, in one word");
        }
        match self.original(window, 2) == Some(value) {
            true => Ok((window, 2)),
            false => Err("it does not restore the module's bytes"),
        }
    }

    /// A displacement of `N` bytes.
    fn check_retarget<const N: usize>(
        &self,
        trampoline: &Trampoline,
    ) -> Result<(Address, u64), &'static str> {
        let [(alias, value)] = trampoline.stores.as_slice() else {
            return Err("a displacement is restored by one store");
        };
        let window = self
            .of_alias(*alias)
            .ok_or("it writes outside of the alias")?;
        if value.len() != N || window.0 % FETCH > FETCH - N as u64 {
            return Err("its displacement is not fetched at once");
        }
        let Some(original) = self
            .original(window, N)
            .filter(|original| original == value)
        else {
            return Err("it does not restore the module's bytes");
        };
        let negative = original.last().is_some_and(|byte| *byte >= 0x80);
        let mut wide = [if negative { 0xff } else { 0 }; 8];
        wide[..N].copy_from_slice(original);
        let target = self.spot(window) + N as i64 + i64::from_le_bytes(wide);
        match target == trampoline.target {
            true => Ok((window, N as u64)),
            false => Err("it goes elsewhere than the branch did"),
        }
    }

    fn check_each_probe(&self, windows: &[Found]) -> Result<(), Flaw> {
        let mut seen = vec![false; self.plan.header.probes.get() as usize];
        for window in windows.iter().filter(|window| !window.filling) {
            if std::mem::replace(&mut seen[window.probe as usize], true) {
                return Err(at(window.start, "a probe has two windows"));
            }
        }
        match seen.iter().position(|seen| !seen) {
            Some(probe) => Err(at(
                Address(self.plan.units[probe].from.get()),
                "a probe has no window",
            )),
            None => Ok(()),
        }
    }

    /// Each probe is disposed of by what its window asks for.
    fn check_disposals(&self, windows: &[Found]) -> Result<(), Flaw> {
        for window in windows.iter().filter(|window| !window.filling) {
            let wrong = |what| at(window.start, what);
            let disposal = self.disposals.get(window.probe as usize);
            let disposal = disposal.ok_or(wrong("a probe cannot be disposed of"))?;
            let (from, length) = match window.word() {
                Some(word) => (Address(word * 8), 8),
                None => (window.start, window.length as usize),
            };
            let manner = match window.tactic {
                Tactic::Held | Tactic::HeldHop => Manner::Held,
                Tactic::Staying => Manner::Still,
                _ => Manner::Once,
            };
            let bytes = self.original(from, length);
            let bytes = bytes.ok_or(wrong("a window is outside of the text"))?;
            let offset = self.spot(from) as u32;
            if *disposal != Disposal::of(manner, offset, window.slot, bytes) {
                return Err(wrong(
                    "what disposes of a probe does not restore its window",
                ));
            }
        }
        Ok(())
    }

    /// All bytes that differ lie in windows, which are known to be apart. Returns how many differ.
    fn check_changes(&self, windows: &[Found]) -> Result<usize, Flaw> {
        let mut windows = windows.iter().peekable();
        let mut changed = 0;
        for region in &self.text.regions {
            let patched = self.patched(Address(region.address)).unwrap_or_default();
            for (offset, (is, was)) in patched.iter().zip(&region.bytes).enumerate() {
                if is == was {
                    continue;
                }
                let here = Address(region.address + offset as u64);
                while windows
                    .peek()
                    .is_some_and(|w| w.start.0 + w.length <= here.0)
                {
                    windows.next();
                }
                if windows.peek().is_none_or(|window| window.start > here) {
                    return Err(at(here, "a byte outside of all windows differs"));
                }
                changed += 1;
            }
        }
        Ok(changed)
    }
}
