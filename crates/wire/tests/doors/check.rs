//! Any bytes given to every reader: refused, or readable to the end without a panic. Unit tests,
//! property tests and fuzzing all call this.

use tomo_wire::counting::{Counters, Row, Slabs, sums};
use tomo_wire::crash::{Crash, Crashes, LENGTH, MOST_MODULES, MOST_STACK, SLOT, SLOTS, STATE};
use tomo_wire::cuts::{Cut, cuts};
use tomo_wire::disposal::{Disposal, Disposals, DisposalsView};
use tomo_wire::image::{Image, Window};
use tomo_wire::moved::{Place, copy_of, origin};
use tomo_wire::plan::{Entry, Level, Plan, PlanView};
use tomo_wire::predicates::{self, Predicates, Sinks, Told, values};
use tomo_wire::record::{Record, RecordView};
use tomo_wire::report::{Follows, Link, Report, ReportView};
use tomo_wire::roster::{self, Roster, RosterView};
use tomo_wire::tally::Tally;
use tomo_wire::{ModuleId, PAGE, Refusal, checksum};
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, IntoBytes};

use super::samples;

/// Reads `data` as each format, as it is and with a header that is made to agree with itself.
pub(crate) fn check(data: &[u8]) {
    image(data);
    plan(data);
    record(data);
    roster(data);
    reports(data);
    disposals(data);
    counting(data);
    predicates(data);
    crashes(data);
    tally(data);
    resealed(data);
}

fn told<T>(result: Result<T, Refusal>) -> Option<T> {
    result
        .inspect_err(|refusal| assert!(!refusal.to_string().contains('\n')))
        .ok()
}

fn image(data: &[u8]) {
    let Some(image) = told(Image::read(data, data.len() as u64)) else {
        return;
    };
    assert!(!image.regions().is_empty());
    let mut end = 0;
    for (index, region) in image.regions().iter().enumerate() {
        assert!(region.address.get() >= end, "regions ascend");
        end = region.address.get() + region.length.get();
        let last = region.offset.get() + region.length.get();
        assert!(last <= data.len() as u64);
        // Everything lies within the reach of a displacement from everything.
        let alias = image.alias_distance(index);
        assert_eq!(alias % PAGE as i64, 0);
        assert!(alias.unsigned_abs() < 1 << 31);
    }
    assert!(image.companion_length() < 1 << 31);
    let rows: &[Window] = told(image.window_table(data)).unwrap_or_default();
    assert!(size_of_val(rows) <= data.len());
    moved(&image, data);
    let table =
        told(image.relocations_in(&data[image.relocations.get() as usize..])).unwrap_or(data);
    let mut copy = data[..image.relocations.get() as usize].to_vec();
    let text = |offset: usize| {
        image.regions().iter().any(|region| {
            let start = region.offset.get() as usize;
            (start..start + region.length.get() as usize).contains(&offset)
        })
    };
    let trampolines = image.trampolines.get() as usize..;
    let distance = image.distance.get() - (1 << 20);
    if let Some(other) = told(image.relocate(table, &mut copy, distance, |_| [0; 4])) {
        assert_eq!(other.distance.get(), distance);
        assert_eq!(other.length.get(), copy.len() as u64);
        let changed = (0..copy.len()).filter(|at| copy[*at] != data[*at]);
        changed.for_each(|at| assert!(text(at) || trampolines.contains(&at)));
    }
}

/// Whatever a broken program wrote over what was kept, it is read within its bounds.
fn crashes(data: &[u8]) {
    let mut file = Crashes::sealed([1; 16]).to_vec();
    file.resize(LENGTH as usize, 0);
    for slot in 0..u64::from(SLOTS) {
        let start = (PAGE + slot * SLOT) as usize;
        let length = data.len().min(SLOT as usize);
        file[start..start + length].copy_from_slice(&data[..length]);
        file[start + STATE] = 2;
    }
    for file in [data, &file] {
        let Some((kept, _)) = told(Crash::all(file)) else {
            continue;
        };
        for crash in kept {
            assert!(crash.modules.len() <= MOST_MODULES && crash.stack.len() <= MOST_STACK);
            for module in crash.modules {
                assert!(module.id().len() <= 32 && module.path().len() <= 192);
            }
            let start = crash.head.stack_start.get();
            assert_eq!(crash.word(start.wrapping_sub(1)), None);
            let _ = (
                crash.word(start),
                crash.word(u64::MAX),
                crash.register(usize::MAX),
            );
        }
    }
}

/// Where moved instructions were is said of those alone that lie in the trampolines, and the way there leads back.
fn moved(image: &Image, data: &[u8]) {
    let runs = told(image.moved(data)).unwrap_or_default();
    assert!(size_of_val(runs) <= data.len());
    for run in runs.iter().take(64) {
        let offset = run.offset.get();
        let said = origin(runs, offset);
        assert_eq!(said.is_none(), run.place() == Place::Nowhere);
        if let Place::Own(from, _) = run.place() {
            let copy = copy_of(runs, from);
            let there = |copy| origin(runs, copy).map(|origin| origin.from);
            assert!(copy.is_none_or(|copy| there(copy) == Some(from)));
        }
    }
}

fn tally(data: &[u8]) {
    if let Some((header, units)) = told(Tally::read(data)) {
        assert_eq!(header.counters.get() as usize, units.len());
    }
}

fn plan(data: &[u8]) {
    if let Some(plan) = told(PlanView::read(data)) {
        assert!(plan.header.probes.get() as usize <= plan.units.len());
        assert!(size_of_val(plan.units) <= data.len());
    }
}

fn record(data: &[u8]) {
    if let Some(record) = told(RecordView::read(data)) {
        assert_eq!(record.marks.len(), record.header.probes.get() as usize);
        let (cuts, _) = told(cuts(data)).expect("a record has room for them");
        cuts.for_each(|cut| assert_eq!(Cut::of(cut.word()), cut));
    }
}

fn roster(data: &[u8]) {
    if let Some(roster) = told(RosterView::read(data)) {
        for entry in roster.entries {
            let _ = (roster.path(entry.image), roster.path(entry.record));
        }
    }
}

/// Every report of a body, and that they are all of it unless one was refused.
fn reports(data: &[u8]) {
    let (mut read, mut refused) = (0, false);
    for report in ReportView::all(data) {
        assert!(!refused, "what cannot be read ends the body");
        let Some(report) = told(report) else {
            refused = true;
            continue;
        };
        read += report.bytes.len();
        assert_eq!(report.hits.len(), report.header.hits.get() as usize);
        assert!(report.hits.is_sorted_by(|a, b| a.get() < b.get()));
        assert!([0, report.hits.len()].contains(&report.counts.len()));
        assert!(report.counts.iter().all(|count| count.get() > 0));
        let mut links = (0..).zip(report.links);
        assert!(links.all(|(at, link)| link.parent.get() <= at));
        assert!(report.header.version().len() <= 16);
    }
    assert_eq!(read == data.len(), !refused);
}

/// Whatever they say, they store within the text of the image that they are said to belong to.
fn disposals(data: &[u8]) {
    let (image, file) = samples::image(2, 9, -(1 << 28));
    if let Some(disposals) = told(DisposalsView::read(data, &image)) {
        assert_eq!(disposals.all().map_or(9, <[_]>::len), 9);
        let marks: Vec<u32> = disposals.iter().map(|(mark, _)| mark).collect();
        assert!(marks.windows(2).all(|two| two[0] < two[1]) && marks.iter().all(|mark| *mark < 9));
        for (_, row) in disposals.iter() {
            let length = row.bytes().len() as u64;
            let start = image
                .text_at(row.offset.get(), length)
                .expect("in the text");
            assert!(length > 0 && start + length <= file.len() as u64);
        }
    }
}

/// Counters are as many as they say; slabs are summed without a look beside the file.
fn counting(data: &[u8]) {
    if let Some((header, rows)) = told(Counters::read(data)) {
        assert_eq!(rows.len(), header.count.get() as usize);
    }
    if told(sums(data, 8, &mut [0; 3])).is_some() {
        assert!(data.len() as u64 >= Slabs::head());
    }
}

/// Predicates are whole sites; whatever tells of them is there, and values are found without a look beside the file.
fn predicates(data: &[u8]) {
    if let Some((header, rows)) = told(Predicates::read(data)) {
        assert_eq!(rows.len(), header.count.get() as usize);
        let mut found = vec![None; rows.len()];
        let probe = |probe: u32| {
            assert!(probe < header.probes.get());
            u64::from(probe)
        };
        values(rows, header.recorded(), probe, &mut found);
        let own = |row: &predicates::Row| row.told() == Some(Told::Itself);
        assert!(
            rows.iter()
                .zip(&found)
                .all(|(row, value)| !own(row) || value.is_some())
        );
    }
}

/// Headers with any content behind right checksums: what somebody would write who knows the formats.
fn resealed(data: &[u8]) {
    if let Ok((header, rest)) = Image::read_from_prefix(data) {
        image(&[header.sealed().as_slice(), rest].concat());
    }
    let rows = data.first_chunk::<{ 9 * size_of::<Disposal>() }>();
    if let Some(rows) = rows.and_then(|rows| <[Disposal]>::ref_from_bytes(rows).ok()) {
        let header = Disposals::sealed(samples::module(), 77, rows);
        disposals(&[header.as_slice(), rows.as_bytes()].concat());
        let marked = data.iter().map(|byte| u32::from(*byte)).zip(rows.to_vec());
        let marked: Vec<(u32, Disposal)> = marked.take(8).collect();
        disposals(&samples::some_disposals(9, &marked));
    }
    if let Ok((header, rest)) = Record::read_from_prefix(data) {
        record(&[header.sealed().as_slice(), rest].concat());
    }
    if let Ok((header, rest)) = Report::read_from_prefix(data) {
        let whole = rest.len() / 4 * 4;
        let hits = <[U32]>::ref_from_bytes(&rest[..whole]).unwrap_or_default();
        let sealed = [header.sealed(hits).as_slice(), hits.as_bytes()].concat();
        reports(&[sealed.as_slice(), &sealed, data].concat());
        counted(&header, rest);
        let header = Tally::sealed(1, 0, hits);
        tally(&[header.as_slice(), hits.as_bytes()].concat());
    }
    if let Ok((module, rest)) = ModuleId::read_from_prefix(data) {
        let whole = rest.len() / size_of::<Entry>() * size_of::<Entry>();
        if let Ok(units) = <[Entry]>::ref_from_bytes(&rest[..whole]) {
            let header = Plan::of(module, Level::Edge, 0, units);
            plan(&[header.as_bytes(), units.as_bytes()].concat());
        }
        let whole = rest.len() / size_of::<Row>() * size_of::<Row>();
        if let Ok(rows) = <[Row]>::ref_from_bytes(&rest[..whole]) {
            let header = Counters::of((module, 0), 0, 0, rows);
            counting(&[header.as_bytes(), rows.as_bytes()].concat());
        }
        let whole = rest.len() / size_of::<predicates::Row>() * size_of::<predicates::Row>();
        if let Ok(rows) = <[predicates::Row]>::ref_from_bytes(&rest[..whole]) {
            let header = Predicates::of(module, 0, Sinks::Counters { all: 7, at: 0 }, rows);
            predicates(&[header.as_bytes(), rows.as_bytes()].concat());
        }
        let entry = data.split_at_checked(size_of::<roster::Entry>());
        if let Some((entry, paths)) = entry {
            let entries = <[roster::Entry]>::ref_from_bytes(entry).unwrap_or_default();
            let header = Roster::sealed(entries, paths, (None, None), checksum(data));
            roster(&[header.as_slice(), data].concat());
        }
    }
}

/// Reports that say how often each unit was hit, and by which chains of calls.
fn counted(header: &Report, data: &[u8]) {
    let hits = (data.len() / 12) as u32;
    let body = &data[..hits as usize * 12];
    let follows = Follows {
        hits,
        counts: hits,
        ..Follows::default()
    };
    reports(&[header.sealed_over(follows, body).as_slice(), body].concat());
    let links = (data.len() / size_of::<Link>()) as u32;
    let body = &data[..links as usize * size_of::<Link>()];
    let follows = Follows {
        links,
        ..Follows::default()
    };
    reports(&[header.sealed_over(follows, body).as_slice(), body].concat());
}
