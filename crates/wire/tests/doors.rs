//! Every format: what is written is read again as it was; what was changed anywhere that a checksum
//! covers, or is cut anywhere, is refused; and nothing makes a reader panic.

#[path = "doors/check.rs"]
mod check;
#[path = "doors/relocated.rs"]
mod relocated;
#[path = "doors/reported.rs"]
mod reported;
#[path = "doors/samples.rs"]
mod samples;

use proptest::prelude::*;
use tomo_wire::counting::{Contents, Counters, LOST, Row, Slabs, Summed, USED, sums};
use tomo_wire::cuts::{CUTS, Cut, MOST, cuts};
use tomo_wire::disposal::{Disposal, Disposals, DisposalsView, Manner};
use tomo_wire::image::Image;
use tomo_wire::moved::{copy_of, origin};
use tomo_wire::plan::{Level, PlanView, Tactic};
use tomo_wire::predicates::{self, Kind, Predicates, Recorded, Sinks, Told, Width};
use tomo_wire::record::{MARKS, Record, RecordView, stem_of};
use tomo_wire::report::{Outcome, Report, ReportView, name_of_plans};
use tomo_wire::roster::RosterView;
use tomo_wire::{PAGE, Refusal, checksum, of_schema};
use zerocopy::{FromBytes, IntoBytes};

/// Where trampolines may lie, in bytes from the text of a sample.
const BELOW: i64 = -(1 << 28);

#[test]
fn an_image_is_read_as_it_was_written() {
    let (header, file) = samples::image(3, 40, BELOW);
    let read = Image::read(&file, file.len() as u64).expect("an image");
    let sealed = Image::read_from_bytes(&header.sealed()).expect("a header");
    assert_eq!(read.as_bytes(), sealed.as_bytes());
    let rows = read.window_table(&file).expect("a trap table");
    assert_eq!(rows.len(), 40);
    assert!(
        (0u32..)
            .zip(rows)
            .all(|(number, row)| row.probe.get() == number)
    );
    assert_eq!(read.marks_distance(), BELOW + PAGE as i64);
    assert_eq!(read.alias_distance(0), BELOW + 2 * PAGE as i64);
    assert_eq!(read.companion_length(), 5 * PAGE);
}

/// Those of single processes, and of others whose names only look like it.
#[test]
fn names_of_records_lead_to_their_plans() {
    for (name, stem) in [
        ("ab12-cd", "ab12-cd"),
        ("ab12-cd.4711", "ab12-cd"),
        ("ab12-cd.4711-2", "ab12-cd"),
        ("a.b.1", "a.b"),
        ("a.b", "a.b"),
        ("a.", "a."),
        ("a.1-", "a.1-"),
        ("a.-1", "a.-1"),
        ("a.1-2-3", "a.1-2-3"),
        (".1", ""),
        ("", ""),
    ] {
        assert_eq!(stem_of(name), stem, "{name}");
    }
}

/// Each place of the trampolines against what the table says, run by run.
#[test]
fn of_each_place_it_is_known_which_instruction_comes_next() {
    let (header, file) = samples::image(1, 9, BELOW);
    let runs = header.moved(&file).expect("the table");
    assert_eq!(runs, samples::runs());
    let said = |offset: u32| match offset {
        8..20 => Some((64, 136)),
        20..32 => Some((64 + offset - 20, 0)),
        40.. => Some((200 + offset - 40, 0)),
        _ => None,
    };
    for offset in 0..64 {
        let found = origin(runs, offset).map(|origin| (origin.from, origin.lower));
        assert_eq!(found, said(offset), "{offset}");
    }
    for from in 0..300 {
        let copy = (64..75).contains(&from).then(|| from - 64 + 20);
        assert_eq!(copy_of(runs, from), copy, "{from}");
    }
}

#[test]
fn runs_that_do_not_ascend_are_refused() {
    let (mut header, mut file) = samples::image(1, 9, BELOW);
    let at = header.moved.get() as usize;
    file[at..at + 4].copy_from_slice(&20_u32.to_le_bytes());
    header.moved_checksum = checksum(&file[at..at + size_of_val(&samples::runs())]).into();
    assert_eq!(header.moved(&file), Err(Refusal::Inconsistent));
    header.moved_checksum = 0.into();
    assert_eq!(header.moved(&file), Err(Refusal::Damaged));
}

#[test]
fn an_image_whose_parts_collide_or_lie_too_far_is_refused() {
    let refused = |distance| {
        let (_, file) = samples::image(3, 4, distance);
        Image::read(&file, file.len() as u64).err()
    };
    for distance in [
        0,
        1,
        PAGE as i64,
        -(PAGE as i64),
        1 << 31,
        -(1 << 31),
        i64::MIN,
        i64::MAX,
    ] {
        assert_eq!(
            refused(distance),
            Some(Refusal::Inconsistent),
            "{distance:#x}"
        );
    }
    assert_eq!(refused(3 * PAGE as i64), None, "directly behind the text");
    assert_eq!(refused(-5 * PAGE as i64), None, "directly before it");
}

#[test]
fn who_can_read_another_version_is_said() {
    let said = |found| Refusal::Version { found, known: 5 }.to_string();
    assert!(said(4).ends_with("make it anew with this version of tomo"));
    assert!(said(6).ends_with("a newer tomo has made it, and can read it"));
}

#[test]
fn documents_of_other_versions_are_refused() {
    let version = |found| Err(Refusal::Version { found, known: 3 });
    assert_eq!(of_schema("tomo.run/3", "tomo.run/3"), Ok(()));
    assert_eq!(of_schema("tomo.run/4", "tomo.run/3"), version(4));
    assert_eq!(of_schema("tomo.run/2", "tomo.run/3"), version(2));
    for other in [
        "",
        "tomo.run",
        "tomo.run/",
        "tomo.run/x",
        "tomo.pool/3",
        "/3",
    ] {
        assert_eq!(of_schema(other, "tomo.run/3"), Err(Refusal::Foreign));
    }
}

#[test]
fn regions_that_wrap_or_overlap_are_refused() {
    let (header, file) = samples::image(1, 0, BELOW);
    let refused = |change: &dyn Fn(&mut Image)| {
        let mut header = header;
        change(&mut header);
        let mut file = file.clone();
        file[..size_of::<Image>()].copy_from_slice(&header.sealed());
        Image::read(&file, file.len() as u64).err()
    };
    let last_page = u64::MAX - PAGE + 1;
    let inconsistent = Some(Refusal::Inconsistent);
    assert_eq!(refused(&|_| {}), None);
    assert_eq!(
        refused(&|h| h.regions[0].address = last_page.into()),
        inconsistent
    );
    assert_eq!(refused(&|h| h.region_count = 0.into()), inconsistent);
    assert_eq!(refused(&|h| h.region_count = 5.into()), inconsistent);
    assert_eq!(refused(&|h| h.regions[0].offset = 1.into()), inconsistent);
    assert_eq!(refused(&|h| h.windows = u64::MAX.into()), inconsistent);
    assert_eq!(refused(&|h| h.window_count = u64::MAX.into()), inconsistent);
    let twice = |h: &mut Image| {
        h.region_count = 2.into();
        h.regions[1] = h.regions[0];
    };
    assert_eq!(refused(&twice), inconsistent);
    let wrapping = |h: &mut Image| {
        twice(h);
        h.regions[0].address = last_page.into();
        h.regions[0].length = last_page.into();
    };
    assert_eq!(refused(&wrapping), inconsistent);
}

#[test]
fn a_plan_is_read_as_it_was_written() {
    let file = samples::plan(3);
    let plan = PlanView::read(&file).expect("a plan");
    let probes = Tactic::ALL
        .iter()
        .filter(|tactic| tactic.is_probe())
        .count();
    assert_eq!(plan.header.probes.get() as usize, 3 * probes);
    assert_eq!(plan.units.len(), 3 * Tactic::ALL.len());
    assert_eq!(plan.level, Level::Block);
    assert_eq!(plan.header.module, samples::module());
    assert_ne!(
        plan.name,
        PlanView::read(&samples::plan(2)).expect("a plan").name
    );
}

#[test]
fn a_record_is_read_as_it_was_written_and_its_marks_may_change() {
    let (header, mut file) = samples::record(5000);
    file[MARKS as usize + 4999] = 1;
    let record = RecordView::read(&file).expect("a record");
    assert_eq!(record.marks.len(), 5000);
    assert_eq!(record.marks.iter().filter(|mark| **mark != 0).count(), 1);
    assert_eq!(record.header.run, header.run);
    assert_eq!(record.header.created.get(), -1);
    assert_eq!(file.len() as u64, MARKS + 2 * PAGE);
}

/// Words that say nothing are passed over, those of one instruction stand side by side, and how many were missing is said.
#[test]
fn cuts_are_read_as_they_were_written() {
    let (_, mut file) = samples::record(3);
    let written = [(0, 3), (u32::MAX, -2), (0, i32::MIN), (7, i32::MAX)];
    let written = written.map(|(place, count)| Cut { place, count });
    for (at, cut) in [5, 6, 17, MOST - 1].into_iter().zip(written) {
        let start = CUTS as usize + 8 * at;
        file[start..start + 8].copy_from_slice(&cut.word().to_le_bytes());
    }
    let idle = Cut { place: 9, count: 0 };
    file[CUTS as usize..CUTS as usize + 8].copy_from_slice(&idle.word().to_le_bytes());
    let at = tomo_wire::cuts::LOST as usize;
    file[at..at + 8].copy_from_slice(&4_u64.to_le_bytes());
    let (read, lost) = cuts(&file).expect("a record");
    assert_eq!((read.collect::<Vec<_>>(), lost), (written.to_vec(), 4));
    assert!(cuts(&file[..at + 7]).is_err());
}

#[test]
fn disposals_are_read_as_they_were_written() {
    let (image, _) = samples::image(3, 40, BELOW);
    let file = samples::disposals(40);
    let disposals = DisposalsView::read(&file, &image).expect("disposals");
    let rows = disposals.all().expect("all");
    for (number, row) in (0u32..).zip(rows) {
        assert_eq!(*row, samples::disposal(number));
        assert_eq!(row.bytes(), [1, 2, 3, 4, 5, 6, 7, 8]);
    }
    let (other, _) = samples::image(3, 39, BELOW);
    assert_eq!(
        DisposalsView::read(&file, &other).err(),
        Some(Refusal::Inconsistent)
    );
}

#[test]
fn disposals_of_some_have_marks_that_ascend() {
    let (image, _) = samples::image(3, 40, BELOW);
    let of = |marks: &[u32], row: fn(u32) -> Disposal| {
        let some: Vec<_> = marks.iter().map(|mark| (*mark, row(*mark))).collect();
        (samples::some_disposals(40, &some), some)
    };
    for marks in [&[][..], &[0], &[39], &[3, 17, 18, 39]] {
        let (file, some) = of(marks, samples::disposal);
        let view = DisposalsView::read(&file, &image).expect("disposals");
        assert!(view.all().is_none(), "not all are there");
        let read: Vec<_> = view.iter().map(|(mark, row)| (mark, *row)).collect();
        assert_eq!(read, some);
        let cut = &file[..file.len() - 1];
        assert!(DisposalsView::read(cut, &image).is_err());
    }
    for marks in [&[40][..], &[3, 3], &[4, 3], &[0, u32::MAX]] {
        let (file, _) = of(marks, |_| samples::disposal(1));
        let refused = DisposalsView::read(&file, &image).err();
        assert_eq!(refused, Some(Refusal::Inconsistent), "{marks:?}");
    }
}

#[test]
fn disposals_that_store_outside_of_the_text_or_in_halves_are_refused() {
    let (image, _) = samples::image(1, 1, BELOW);
    let refused = |manner, offset, bytes: &[u8]| {
        let rows = [Disposal::of(manner, offset, 0, bytes)];
        let header = Disposals::sealed(samples::module(), 77, &rows);
        let file = [header.as_slice(), rows.as_bytes()].concat();
        DisposalsView::read(&file, &image).is_err()
    };
    let page = PAGE as u32;
    assert!(!refused(Manner::Once, page - 8, &[0; 8]) && refused(Manner::Once, page, &[0; 8]));
    assert!(!refused(Manner::Once, page - 1, &[0]) && refused(Manner::Once, page, &[0]));
    assert!(refused(Manner::Once, u32::MAX, &[0]));
    assert!(refused(Manner::Once, 4, &[0; 8]) && refused(Manner::Once, 7, &[0; 2]));
    assert!(!refused(Manner::Once, 6, &[0; 2]) && !refused(Manner::Once, 6, &[0; 4]));
    assert!(refused(Manner::Once, 62, &[0; 4]) && refused(Manner::Once, 0, &[0; 5]));
    assert!(!refused(Manner::Held, 7, &[0; 5]) && refused(Manner::Held, 60, &[0; 5]));
    assert!(refused(Manner::Held, 0, &[0]) && refused(Manner::Once, 0, &[]));
}

#[test]
fn a_roster_is_read_as_it_was_written() {
    let file = samples::roster(3);
    let roster = RosterView::read(&file).expect("a roster");
    for entry in roster.entries {
        assert_eq!(
            roster.path(entry.image).map(|path| path.to_bytes()),
            Some(&b"img"[..])
        );
        assert_eq!(
            roster.path(entry.record).map(|path| path.to_bytes()),
            Some(&b"rec"[..])
        );
    }
    assert_eq!(roster.path(24.into()), None, "behind the last path");
    assert_eq!(roster.path(u32::MAX.into()), None);
}

#[test]
fn reports_are_read_as_they_were_written_one_behind_the_other() {
    let (header, first) = reported::report(&[0, 5, u32::MAX]);
    let (_, second) = reported::report(&[]);
    let body = [first.as_slice(), &second].concat();
    let read: Vec<_> = ReportView::all(&body)
        .collect::<Result<_, _>>()
        .expect("reports");
    assert_eq!(read.len(), 2);
    let hits: Vec<u32> = read[0].hits.iter().map(|hit| hit.get()).collect();
    assert_eq!(hits, [0, 5, u32::MAX]);
    assert_eq!(read[0].outcome, Outcome::Exited);
    assert_eq!(read[0].bytes, first);
    assert_eq!(read[0].header.instance, header.instance);
    assert_eq!(read[0].header.started.get(), -1);
    assert_eq!(read[0].header.version(), "0.1.0");
    assert!(read[1].hits.is_empty());
    assert_eq!(first.len(), size_of::<Report>() + 12);
}

#[test]
fn a_report_whose_units_do_not_ascend_is_refused() {
    for hits in [&[5, 5][..], &[6, 5], &[0, 2, 1]] {
        let (_, file) = reported::report(hits);
        let refusal = ReportView::read(&file).map(|_| ()).unwrap_err();
        assert_eq!(refusal, Refusal::Inconsistent, "{hits:?}");
    }
}

#[test]
fn counts_are_of_all_units_or_of_none_and_never_zero() {
    let file = reported::counted(&[3, 5], &[7, u64::MAX]);
    let (report, rest) = ReportView::read(&file).expect("a report");
    assert!(
        report
            .counts
            .iter()
            .map(|count| count.get())
            .eq([7, u64::MAX])
            && rest.is_empty()
    );
    for counts in [&[7][..], &[7, 0], &[7, 8, 9]] {
        let file = reported::counted(&[3, 5], counts);
        let refusal = ReportView::read(&file).map(|_| ()).unwrap_err();
        assert_eq!(refusal, Refusal::Inconsistent, "{counts:?}");
    }
}

#[test]
fn chains_come_behind_those_above_them() {
    let none = u32::MAX;
    let file = reported::chained(&[[0, 3, 0, 5, 1], [1, 1, 9, 6, 2], [0, 0, 0, none, 4]]);
    let (report, _) = ReportView::read(&file).expect("a report");
    assert_eq!(report.links.len(), 3);
    for links in [
        &[[1, 3, 0, 5, 1]][..],
        &[[0, 3, 0, 5, 1], [3, 1, 9, 6, 2]],
        &[[0, 5, 0, 5, 1]],
        &[[0, 0, 0, 5, 1]],
        &[[0, 1, 0, none, 1]],
        &[[0, 3, 0, 5, 1], [1, 0, 0, none, 2]],
    ] {
        let file = reported::chained(links);
        let refusal = ReportView::read(&file).map(|_| ()).unwrap_err();
        assert_eq!(refusal, Refusal::Inconsistent, "{links:?}");
    }
}

#[test]
fn a_report_without_a_known_outcome_is_refused() {
    let (mut header, _) = reported::report(&[]);
    header.outcome = 4.into();
    let refusal = ReportView::read(&header.sealed(&[])).map(|_| ());
    assert_eq!(refusal.unwrap_err(), Refusal::Inconsistent);
    assert!(!Outcome::Running.is_final() && Outcome::Unseen.is_final());
}

#[test]
fn what_cannot_be_read_ends_a_body() {
    let (_, sound) = reported::report(&[1]);
    let mut damaged = sound.clone();
    damaged[30] ^= 1;
    let body = [sound.as_slice(), &damaged, &sound].concat();
    let read: Vec<_> = ReportView::all(&body).map(|one| one.is_ok()).collect();
    assert_eq!(read, [true, false]);
}

#[test]
fn versions_that_are_too_long_or_no_text_do_no_harm() {
    let mut report = Report::empty();
    assert_eq!(report.version(), "");
    report.version = Report::version_of("1.22.333-pre-release");
    assert_eq!(report.version(), "1.22.333-pre-rel");
    report.version = [0xff; 16];
    assert_eq!(report.version(), "?");
}

#[test]
fn the_name_of_plans_depends_on_their_order() {
    let [a, b] = [1, 2].map(Into::into);
    assert_ne!(name_of_plans(&[a, b]), name_of_plans(&[b, a]));
    assert_ne!(name_of_plans(&[a]), name_of_plans(&[a, b]));
}

#[test]
fn each_format_says_what_is_wrong() {
    let file = samples::plan(1);
    let read = |file: &[u8]| PlanView::read(file).map(|_| ()).unwrap_err();
    assert_eq!(read(&samples::roster(1)), Refusal::Foreign);
    assert_eq!(read(b""), Refusal::Foreign);
    let mut newer = file.clone();
    newer[8] = 9;
    assert_eq!(read(&newer), Refusal::Version { found: 9, known: 1 });
    let length = file.len() as u64;
    let cut = Refusal::CutShort {
        length: length - 1,
        promised: length,
    };
    assert_eq!(read(&file[..file.len() - 1]), cut);
}

/// How a reader takes a file.
type Reader = fn(&[u8]) -> Result<(), Refusal>;

fn image(file: &[u8]) -> Result<(), Refusal> {
    let image = Image::read(file, file.len() as u64)?;
    image.moved(file)?;
    image.window_table(file).map(|_| ())
}

/// Each format: a sound file, its reader, and how many of its bytes checksums cover.
fn formats() -> [(Vec<u8>, Reader, usize); 6] {
    let (_, armed) = samples::image(1, 9, BELOW);
    let plan = samples::plan(2);
    let (_, record) = samples::record(100);
    let roster = samples::roster(2);
    let (_, report) = reported::report(&[2, 3, 70]);
    let (plan_size, roster_size, report_size) = (plan.len(), roster.len(), report.len());
    let disposals = samples::disposals(9);
    let disposals_size = disposals.len();
    [
        (armed, image, size_of::<Image>()),
        (plan, |file| PlanView::read(file).map(|_| ()), plan_size),
        (
            record,
            |file| RecordView::read(file).map(|_| ()),
            size_of::<Record>(),
        ),
        (
            roster,
            |file| RosterView::read(file).map(|_| ()),
            roster_size,
        ),
        (
            report,
            |file| ReportView::read(file).map(|_| ()),
            report_size,
        ),
        (
            disposals,
            |file| DisposalsView::read(file, &samples::image(1, 9, BELOW).0).map(|_| ()),
            disposals_size,
        ),
    ]
}

#[test]
fn every_byte_that_a_checksum_covers_counts() {
    for (file, read, covered) in formats() {
        read(&file).expect("a sound file");
        for at in 0..covered {
            for change in [1, 0x80, 0xff] {
                let mut file = file.clone();
                file[at] ^= change;
                assert!(read(&file).is_err(), "byte {at} of {}", file.len());
            }
        }
    }
    let (header, file) = samples::image(1, 9, BELOW);
    let table = header.windows.get() as usize;
    for at in table..table + 9 * 16 {
        let mut file = file.clone();
        file[at] ^= 1;
        assert_eq!(
            image(&file),
            Err(Refusal::Damaged),
            "byte {at} of the trap table"
        );
    }
}

#[test]
fn every_cut_is_noticed() {
    for (file, read, _) in formats() {
        for length in 0..file.len() {
            assert!(read(&file[..length]).is_err(), "{length} of {}", file.len());
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(data in prop::collection::vec(any::<u8>(), 0..2048)) {
        check::check(&data);
    }

    #[test]
    fn no_change_of_a_sound_file_makes_a_reader_panic(
        format in 0..6usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u64>()), 1..8),
    ) {
        let (mut file, _, covered) = formats()[format].clone();
        for (at, value) in changes {
            let at = at.index(covered - 8);
            file[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        check::check(&file);
    }

    /// Numbers from the edges of what fits, behind right checksums.
    #[test]
    fn no_numbers_in_an_image_make_its_reader_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), edge_number()), 1..12),
    ) {
        let (_, mut file) = samples::image(2, 9, BELOW);
        for (at, value) in changes {
            let at = 24 + at.index((size_of::<Image>() - 32) / 4) * 4;
            file[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        check::check(&file);
    }

    #[test]
    fn the_checksum_tells_any_change(
        data in prop::collection::vec(any::<u8>(), 1..256),
        at in any::<prop::sample::Index>(),
        change in 1u8..,
    ) {
        let mut changed = data.clone();
        changed[at.index(data.len())] ^= change;
        prop_assert_ne!(checksum(&data), checksum(&changed));
    }
}

fn edge_number() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(1),
        Just(4096),
        Just(u64::MAX),
        Just(u64::MAX - 4095),
        Just(i64::MAX as u64),
        Just(i64::MIN as u64),
        Just(1 << 31),
        Just((1 << 31) - 4096),
        any::<u64>().prop_map(|number| number & !4095),
    ]
}

#[test]
fn counters_are_read_as_they_were_written_and_refused_when_changed() {
    let rows: Vec<Row> = (1u64..9)
        .map(|number| Row {
            from: number.into(),
            to: (number % 2).into(),
        })
        .collect();
    let header = Counters::of((samples::module(), 0x1000), 3, 64, &rows);
    let file = [header.as_bytes(), rows.as_bytes()].concat();
    let (read, same) = Counters::read(&file).expect("counters");
    assert_eq!((read.name(), same), (header.name(), rows.as_slice()));
    assert_eq!((read.at.get(), read.count.get()), (64, 8));
    for at in 0..file.len() {
        let mut changed = file.clone();
        changed[at] ^= 1;
        assert!(Counters::read(&changed).is_err(), "byte {at}");
        assert!(Counters::read(&file[..at]).is_err(), "cut at {at}");
    }
}

fn predicate(site: u64, kind: Kind, case: u8, (told, by): (Told, u32)) -> predicates::Row {
    predicates::Row {
        site: site.into(),
        block: 0x1000.into(),
        by: by.into(),
        kind: kind as u8,
        case,
        width: predicates::width(32, Width::Used),
        told: told as u8,
    }
}

#[test]
fn predicates_are_read_as_they_were_written_and_refused_when_changed() {
    let rows = [
        predicate(1, Kind::Branch, 0, (Told::BySite, 2)),
        predicate(1, Kind::Branch, 1, (Told::Itself, 0)),
        predicate(2, Kind::Branch, 0, (Told::BySite, 4)),
        predicate(2, Kind::Branch, 1, (Told::Itself, 1)),
        predicate(3, Kind::Result, 0, (Told::Itself, 2)),
        predicate(3, Kind::Result, 1, (Told::Itself, 3)),
        predicate(3, Kind::Result, 2, (Told::Itself, 4)),
        predicate(4, Kind::Branch, 0, (Told::NoPlace, 0)),
        predicate(4, Kind::Branch, 1, (Told::Unknown, 0)),
    ];
    let file = |rows: &[predicates::Row], sinks| {
        let header = Predicates::of(samples::module(), 3, sinks, rows);
        [header.as_bytes(), rows.as_bytes()].concat()
    };
    let marks = |vanish| Sinks::Marks { all: 5, vanish };
    let right = file(&rows, Sinks::Counters { all: 5, at: 64 });
    let (header, same) = Predicates::read(&right).expect("predicates");
    assert_eq!((same, header.recorded()), (&rows[..], Recorded::Counts));
    assert_eq!((rows[0].bits(), rows[0].known()), (32, Some(Width::Used)));
    for at in 0..right.len() {
        let mut changed = right.clone();
        changed[at] ^= 1;
        assert!(Predicates::read(&changed).is_err(), "byte {at}");
        assert!(Predicates::read(&right[..at]).is_err(), "cut at {at}");
    }
    let mut found = [None; 9];
    let probe = |probe: u32| u64::from(probe);
    predicates::values(&rows, Recorded::Counts, probe, &mut found);
    let known = [10, 0, 9, 1, 2, 3, 4].map(Some);
    assert_eq!(found, [&known[..], &[None, None]].concat()[..]);
    predicates::values(&rows, Recorded::Marks, probe, &mut found);
    assert_eq!(found[..4], [1, 0, 1, 1].map(Some));
    assert!(Predicates::read(&file(&rows, marks(5))).is_ok());
    let more = file(&rows, marks(6));
    assert_eq!(Predicates::read(&more).err(), Some(Refusal::Inconsistent));
    // A site cut short, one that tells of itself, a mark that there is not.
    let tells_of_itself = predicate(1, Kind::Branch, 0, (Told::BySite, 0));
    let no_mark = predicate(1, Kind::Branch, 0, (Told::Itself, 5));
    for wrong in [&rows[..1], &[tells_of_itself, rows[1]], &[no_mark, rows[1]]] {
        let read = file(wrong, marks(0));
        assert_eq!(Predicates::read(&read).err(), Some(Refusal::Inconsistent));
    }
}

#[test]
fn slabs_are_summed_and_those_without_room_pass_over() {
    let header = Slabs::of(5000, Contents::Counters).expect("slabs");
    assert_eq!(header.size.get(), 2 * PAGE);
    let mut file = header.as_bytes().to_vec();
    file.resize(header.start(2) as usize, 0);
    let mut put = |at: u64, value: u64| {
        file[at as usize..][..8].copy_from_slice(&value.to_le_bytes());
    };
    // Three were handed out, and there is room for two.
    put(USED, 3);
    put(LOST, 1);
    put(header.start(0) + 16, 5);
    put(header.start(1) + 16, 7);
    put(header.start(1) + 24, u64::MAX);
    let (mut values, lost) = ([0; 2], 1);
    let overflows = false;
    let summed = Summed { lost, overflows };
    assert_eq!(sums(&file, 16, &mut values), Ok(summed));
    assert_eq!(values, [12, u64::MAX]);
    let overflows = true;
    let summed = Summed { lost, overflows };
    assert_eq!(sums(&file, 16, &mut values), Ok(summed));
    assert_eq!(values, [24, u64::MAX]);
    assert!(
        Slabs::of(u64::MAX, Contents::Counters).is_none()
            && Slabs::of(1 << 40, Contents::Chains).is_none()
    );
}
