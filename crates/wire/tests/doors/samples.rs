//! One sound file of each format, made from numbers.

use tomo_wire::disposal::{Disposal, Disposals, Manner};
use tomo_wire::image::{Image, Region, Window};
use tomo_wire::moved::{Place, Run};
use tomo_wire::plan::{Entry, Level, Plan, Tactic};
use tomo_wire::record::Record;
use tomo_wire::relocations::encode;
use tomo_wire::roster::{self, Roster};
use tomo_wire::{FileStamp, ModuleId, PAGE, checksum};
use zerocopy::IntoBytes;
use zerocopy::little_endian::U32;

pub(crate) fn module() -> ModuleId {
    ModuleId::by_build_id(b"twenty bytes of hash", 0x1234_5678_9abc_def0).expect("an id")
}

/// An image of `pages` pages of text with a trap table of `rows`.
pub(crate) fn image(pages: u64, rows: usize, distance: i64) -> (Image, Vec<u8>) {
    let windows: Vec<Window> = (0..rows as u32).map(window).collect();
    let stamp = FileStamp {
        device: 1.into(),
        inode: 2.into(),
        length: 3.into(),
        modified: 4.into(),
        changed: 5.into(),
    };
    let runs = runs();
    let tables = [windows.as_bytes(), runs.as_bytes()].concat();
    let table = tomo_wire::pages(tables.len() as u64).expect("few rows");
    let mut header = Image::of(module(), stamp);
    header.plan = 77.into();
    header.probes = (rows as u32).into();
    header.windows = PAGE.into();
    header.window_count = (rows as u64).into();
    header.windows_checksum = checksum(windows.as_bytes()).into();
    header.moved = (PAGE + windows.as_bytes().len() as u64).into();
    header.moved_count = (runs.len() as u64).into();
    header.moved_checksum = checksum(runs.as_bytes()).into();
    header.trampolines = (PAGE + table).into();
    header.trampolines_length = PAGE.into();
    header.region_count = 1.into();
    header.regions[0] = Region {
        address: (16 * PAGE).into(),
        length: (pages * PAGE).into(),
        offset: (2 * PAGE + table).into(),
        original: 5.into(),
    };
    header.distance = distance.into();
    let fields = [
        header.trampolines.get() + IN_TRAMPOLINES,
        (2 * PAGE + table) + IN_TEXT,
    ];
    let relocations: Vec<u8> = encode(fields[0])
        .chain(encode(fields[1] - fields[0]))
        .collect();
    header.relocations = ((2 + pages) * PAGE + table).into();
    header.relocations_length = (relocations.len() as u64).into();
    header.relocations_checksum = checksum(&relocations).into();
    header.length = (header.relocations.get() + header.relocations_length.get()).into();
    let mut file = header.sealed().to_vec();
    file.resize(PAGE as usize, 0);
    file.extend(tables);
    file.resize(header.relocations.get() as usize, 0xcc);
    let lead = (distance as i32).wrapping_add(LEADS as i32 - IN_TEXT as i32 - 4);
    file[fields[1] as usize..][..4].copy_from_slice(&lead.to_le_bytes());
    file.extend(relocations);
    (header, file)
}

/// Where in its trampolines an image has a displacement.
pub(crate) const IN_TRAMPOLINES: u64 = 7;
/// Where in its text, and where in the trampolines that leads.
pub(crate) const IN_TEXT: u64 = 1;
pub(crate) const LEADS: u64 = 40;

/// What is said of its trampolines.
pub(crate) fn runs() -> [Run; 4] {
    [
        Run::of(8, Place::Before(64, 136)),
        Run::of(20, Place::Own(64, 10)),
        Run::of(32, Place::Nowhere),
        Run::of(40, Place::Own(200, 0)),
    ]
}

fn window(number: u32) -> Window {
    Window {
        offset: (8 * number).into(),
        probe: number.into(),
        length: 5,
        original: [1, 2, 3, 4, 5, 0, 0],
    }
}

/// How to dispose of the probe with this mark of an image.
pub(crate) fn disposal(mark: u32) -> Disposal {
    let manners = [Manner::Once, Manner::Held];
    let manner = manners[mark as usize % 2];
    let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
    Disposal::of(manner, 8 * mark, 7 * (mark % 3), &bytes)
}

/// How to dispose of the probes of the image with so many rows.
pub(crate) fn disposals(rows: usize) -> Vec<u8> {
    let rows: Vec<Disposal> = (0..rows as u32).map(disposal).collect();
    [&Disposals::sealed(module(), 77, &rows), rows.as_bytes()].concat()
}

/// These disposals of a variant, with these marks, of so many.
pub(crate) fn some_disposals(probes: u32, some: &[(u32, Disposal)]) -> Vec<u8> {
    let rows: Vec<Disposal> = some.iter().map(|(_, row)| *row).collect();
    let marks: Vec<U32> = some.iter().map(|(mark, _)| U32::new(*mark)).collect();
    let body = [rows.as_bytes(), marks.as_bytes()].concat();
    let counts = (probes, rows.len() as u32);
    let header = Disposals::sealed_over(module(), 77, counts, &body);
    [header.as_slice(), &body].concat()
}

/// A plan with so many units of each tactic, those with probes first.
pub(crate) fn plan(each: usize) -> Vec<u8> {
    let unit = |(number, tactic): (usize, Tactic)| Entry {
        from: (number as u64).into(),
        to: 0.into(),
        tactic: (tactic as u32).into(),
        is_edge: 0.into(),
    };
    let tactics = Tactic::ALL.into_iter().flat_map(|t| vec![t; each]);
    let units: Vec<Entry> = tactics.enumerate().map(unit).collect();
    let header = Plan::of(module(), Level::Block, 3, &units);
    [header.as_bytes(), units.as_bytes()].concat()
}

pub(crate) fn record(probes: u32) -> (Record, Vec<u8>) {
    let record = Record::of(module(), 77, probes, [9; 16], -1);
    let mut file = record.sealed().to_vec();
    file.resize(record.length() as usize, 0);
    (record, file)
}

pub(crate) fn roster(modules: u32) -> Vec<u8> {
    let entries: Vec<roster::Entry> = (0..modules)
        .map(|number| roster::Entry {
            module: module(),
            image: (8 * number).into(),
            text: (8 * number).into(),
            record: (8 * number + 4).into(),
            late: (number % 2).into(),
            separate: (number % 3 / 2).into(),
            inode: u64::from(number).into(),
        })
        .collect();
    let paths: Vec<u8> = (0..modules).flat_map(|_| *b"img\0rec\0").collect();
    let body = [entries.as_bytes(), &paths].concat();
    let header = Roster::sealed(&entries, &paths, (None, None), checksum(&body));
    [header.as_slice(), &body].concat()
}
