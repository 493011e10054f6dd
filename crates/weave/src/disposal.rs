//! Probes are taken away from outside: which bytes that takes is stated for each when an image is woven,
//! and done here in an image that nobody runs. (In one that programs run, see `tomo_launch`.)
//!
//! What is stored, and in which steps, is what the probe's own trampoline or trap would do (see
//! `tactics/`), so all that is argued there holds whoever does it. The one thing that is not undone are the
//! jumps in filling by way of which a hop leads to its trampoline: nothing but the hop leads there.
//!
//! Source of the idea: DIS §4, collective disposal: what others have covered is not covered again.

use tomo_wire::disposal::{Disposal, Disposals, DisposalsView, Manner};
use tomo_wire::image::{Image, Window};
use tomo_wire::plan::Tactic;
use tomo_wire::{ModuleId, Refusal, checksum};
use zerocopy::IntoBytes;
use zerocopy::little_endian::U32;

use crate::place::Unit;
use crate::text::Text;
use crate::window::{WORD_BYTES, writes_word};

/// How each of `units`, those with a probe in the order of their marks, is disposed of. `None` where a window
/// does not lie in the text.
pub(crate) fn rows(text: &Text, units: &[Unit]) -> Option<Vec<Disposal>> {
    units.iter().map(|unit| row(text, unit)).collect()
}

fn row(text: &Text, unit: &Unit) -> Option<Disposal> {
    let tactic = unit.window.tactic;
    let start = unit.window.start;
    let spot = |address: u64| u32::try_from(address.wrapping_sub(text.origin())).ok();
    let (from, length) = if writes_word(tactic) {
        (start.0 - start.0 % WORD_BYTES, WORD_BYTES)
    } else {
        (start.0, unit.window.length())
    };
    let manner = match tactic {
        Tactic::Held | Tactic::HeldHop => Manner::Held,
        Tactic::Staying => Manner::Still,
        _ => Manner::Once,
    };
    let slot = match tactic {
        Tactic::Hop | Tactic::HeldHop | Tactic::ShortRetarget => spot(unit.stations().next()?.0)?,
        _ => 0,
    };
    let bytes = text.from(tomo_program::Address(from))?;
    let bytes = bytes.get(..length as usize)?;
    Some(Disposal::of(manner, spot(from)?, slot, bytes))
}

/// The file of these disposals.
pub(crate) fn file(module: ModuleId, plan: u64, rows: &[Disposal]) -> Vec<u8> {
    [&Disposals::sealed(module, plan, rows), rows.as_bytes()].concat()
}

/// Disposes of the probes that are not `wanted` in the image file `image`, which nobody has mapped;
/// `disposals` is the file that was woven with it. Probes that are gone already stay so, and no trap is expected
/// any more where they were, so that an image with few probes is armed as fast as if there were no others. Linear
/// in the number of probes. Gives the file of the disposals of those that are left.
///
/// # Errors
/// Where one of the files is damaged, or they do not belong together, or the disposals are not those of all probes.
pub fn dispose(
    image: &mut [u8],
    disposals: &[u8],
    wanted: impl Fn(u32) -> bool,
) -> Result<Vec<u8>, Refusal> {
    let header = Image::read(image, image.len() as u64)?;
    let view = DisposalsView::read(disposals, &header)?;
    let rows = view.all().ok_or(Refusal::Inconsistent)?;
    let left = view.iter().filter(|(probe, _)| wanted(*probe));
    let left: Vec<(u32, Disposal)> = left.map(|(probe, row)| (probe, *row)).collect();
    let is_met = |window: &Window| {
        let row = rows.get(window.probe.get() as usize);
        let own = row.filter(|row| {
            let within = window.offset.get().wrapping_sub(row.offset.get());
            (within as usize) < row.bytes().len()
        });
        own.is_none() || wanted(window.probe.get())
    };
    let table = header.window_table(image)?.iter();
    let met: Vec<Window> = table.filter(|window| is_met(window)).copied().collect();
    expect_traps(image, header, &met)?;
    for (_, row) in view.iter().filter(|(probe, _)| !wanted(*probe)) {
        let bytes = row.bytes();
        let start = header.text_at(row.offset.get(), bytes.len() as u64);
        let start = start.ok_or(Refusal::Inconsistent)? as usize;
        let place = image.get_mut(start..start + bytes.len());
        place.ok_or(Refusal::Inconsistent)?.copy_from_slice(bytes);
    }
    let (plan, probes) = (header.plan.get(), header.probes.get());
    Ok(some(header.module, plan, probes, &left))
}

/// The file of the disposals of these probes, of so many of the plan.
fn some(module: ModuleId, plan: u64, probes: u32, left: &[(u32, Disposal)]) -> Vec<u8> {
    let rows: Vec<Disposal> = left.iter().map(|(_, row)| *row).collect();
    if rows.len() as u64 == u64::from(probes) {
        return file(module, plan, &rows);
    }
    let marks: Vec<U32> = left.iter().map(|(probe, _)| U32::new(*probe)).collect();
    let body = [rows.as_bytes(), marks.as_bytes()].concat();
    let count = rows.len() as u32;
    let header = Disposals::sealed_over(module, plan, (probes, count), &body);
    [header.as_slice(), &body].concat()
}

/// From now on traps are met at these places of the image alone, fewer than there were.
fn expect_traps(image: &mut [u8], mut header: Image, met: &[Window]) -> Result<(), Refusal> {
    let start = header.windows.get() as usize;
    let end = start + header.window_count.get() as usize * size_of::<Window>();
    let table = image.get_mut(start..end).ok_or(Refusal::Inconsistent)?;
    let (kept, dropped) = table.split_at_mut(size_of_val(met));
    kept.copy_from_slice(met.as_bytes());
    dropped.fill(0);
    header.window_count = (met.len() as u64).into();
    header.windows_checksum = checksum(met.as_bytes()).into();
    let sealed = header.sealed();
    let head = image.get_mut(..sealed.len());
    head.ok_or(Refusal::Inconsistent)?.copy_from_slice(&sealed);
    Ok(())
}
