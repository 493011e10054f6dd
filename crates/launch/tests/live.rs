//! Probes are disposed of from outside while threads of several processes run into them: the program's
//! results are those that it has alone, what was hit is true, and what was disposed of stays away.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use tomo_launch::{
    Agent, Arming, Carried, Chosen, How, Images, Live, Master, Observed, Seen, Target, equip,
    masters, new_folder, private_folder, read_record,
};
use tomo_testkit::corpus::compiled;
use tomo_weave::Placement;
use tomo_wire::disposal::DisposalsView;
use tomo_wire::image::Image;
use tomo_wire::plan::Level;
use tomo_wire::record::RecordView;

/// A program with its master image.
struct Prepared {
    folder: TempDir,
    program: PathBuf,
    agent: Agent,
    stem: String,
    master: Master,
}

impl Prepared {
    fn new(level: Level) -> Self {
        let program = compiled("gcc", "racing.c", &["-O2", "-pthread"]).expect("built");
        let folder = tempfile::tempdir().expect("a folder");
        let cache = private_folder(&folder.path().join("cache")).expect("a cache");
        let images = Images::in_cache(&cache).expect("a cache");
        let target = Target::find_dynamic(program.as_os_str(), None).expect("a program");
        let module = Observed::of(&Chosen::executable(&target)).expect("a module");
        let how = How {
            level,
            placement: Placement::All,
            stays: false,
        };
        let master = masters([(&module, how)], &images, &()).expect("an image");
        Self {
            agent: Agent::in_cache(&cache).expect("the agent"),
            program,
            stem: module.stem.clone(),
            master: master.into_iter().next().expect("one"),
            folder,
        }
    }

    /// The image with only these probes, under this name, and how they are disposed of beside it.
    fn variant(&self, name: &str, wanted: impl Fn(u32) -> bool) -> Carried {
        let image = self.folder.path().join(format!("{name}.image"));
        let left = self.master.write(&image, wanted).expect("written");
        fs::write(image.with_extension("disposals"), left).expect("written");
        let (plan, probes) = (self.master.plan(), self.master.probes());
        Carried::of(&image, &self.stem, plan, probes).expect("an image")
    }

    /// Starts the program armed with it, its record in a folder of this name.
    fn start(&self, carried: &Carried, run: &str, threads: u32) -> (Child, PathBuf) {
        let folder = self.folder.path().join(run);
        new_folder(&folder).expect("a folder");
        let roster = equip(&folder, [0; 16], std::slice::from_ref(carried)).expect("a roster");
        let arming = Arming {
            agent: &self.agent,
            roster: &roster,
            outside: None,
        };
        let child = Command::new(&self.program)
            .arg(threads.to_string())
            .envs(arming.variables(|_| None))
            .stdout(Stdio::piped())
            .spawn();
        (child.expect("started"), carried.record(&folder))
    }

    fn alone(&self, threads: u32) -> Vec<u8> {
        let output = Command::new(&self.program)
            .arg(threads.to_string())
            .output();
        output.expect("run").stdout
    }
}

/// The probes that were hit; the program must have been armed. Who reads only what was written finds the same ones.
fn hits(record: &Path) -> BTreeSet<u32> {
    let seen = Seen::read(record).expect("a record");
    assert_eq!(seen.live.armed.get(), 1, "{:?}", seen.live);
    let all = |view: &RecordView<'_>| {
        let marks = (0u32..).zip(view.marks);
        let hit = marks.filter(|(_, mark)| **mark != 0);
        hit.map(|(probe, _)| probe).collect::<Vec<u32>>()
    };
    assert_eq!(read_record(record, all).expect("a record"), seen.hits);
    seen.hits.into_iter().collect()
}

/// The probes whose windows are not the module's bytes.
fn present(image: &Path, disposals: &Path) -> BTreeSet<u32> {
    let (image, disposals) = (fs::read(image).unwrap(), fs::read(disposals).unwrap());
    let header = Image::read(&image, image.len() as u64).expect("an image");
    let view = DisposalsView::read(&disposals, &header).expect("disposals");
    let there = |row: &tomo_wire::disposal::Disposal| {
        let start = header
            .text_at(row.offset.get(), row.length.into())
            .expect("text") as usize;
        image[start..start + row.bytes().len()] != *row.bytes()
    };
    let rows = view.iter().filter(|(_, row)| there(row));
    rows.map(|(probe, _)| probe).collect()
}

/// Numbers from 0 to `count`, in an order that looks random and differs with `seed`.
fn shuffled(count: u32, seed: u64) -> Vec<u32> {
    let mix = |number: u32| {
        let mixed = (u64::from(number) ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 7
    };
    let mut numbers: Vec<u32> = (0..count).collect();
    numbers.sort_by_key(|number| mix(*number));
    numbers
}

#[test]
fn a_variant_hits_what_it_has_of_what_all_probes_hit() {
    let prepared = Prepared::new(Level::Edge);
    let all = prepared.variant("all", |_| true);
    let (child, record) = prepared.start(&all, "run-all", 1);
    assert_eq!(child.wait_with_output().unwrap().stdout, prepared.alone(1));
    let truth = hits(&record);
    assert!(truth.len() > 1000, "{} hits", truth.len());
    for third in 0..3 {
        let carried = prepared.variant("third", |probe| probe % 3 == third);
        let (child, record) = prepared.start(&carried, &format!("run-{third}"), 1);
        assert_eq!(child.wait_with_output().unwrap().stdout, prepared.alone(1));
        let expected: BTreeSet<u32> = truth.iter().copied().filter(|p| p % 3 == third).collect();
        assert_eq!(hits(&record), expected);
        // What was hit is gone from the image, for whoever comes next.
        let (child, record) = prepared.start(&carried, &format!("again-{third}"), 1);
        assert_eq!(child.wait_with_output().unwrap().stdout, prepared.alone(1));
        assert_eq!(hits(&record), BTreeSet::new());
    }
}

#[test]
fn a_variant_is_disposed_of_by_what_was_written_beside_it() {
    let prepared = Prepared::new(Level::Edge);
    let all = prepared.master.disposals_path();
    let carried = prepared.variant("some", |probe| probe % 7 == 3);
    let own = carried.image.with_extension("disposals");
    let before = present(&carried.image, all);
    assert!(before.len() > 100 && before.iter().all(|probe| probe % 7 == 3));
    let live = Live::open(&carried.image, &own).expect("an image");
    let gone: BTreeSet<u32> = (0..live.probes()).filter(|p| live.dispose(*p)).collect();
    assert_eq!(gone, before, "these, and no others");
    assert_eq!(present(&carried.image, all), BTreeSet::new());
    let (child, record) = prepared.start(&carried, "run", 1);
    assert_eq!(child.wait_with_output().unwrap().stdout, prepared.alone(1));
    assert_eq!(hits(&record), BTreeSet::new());
}

/// Whether one of these programs has hit a probe, as its record says, or has ended.
fn is_any_under_way(children: &mut [(Child, PathBuf)]) -> bool {
    children.iter_mut().any(|(child, record)| {
        let has_hit = Seen::read(record).is_ok_and(|seen| !seen.hits.is_empty());
        has_hit || child.try_wait().expect("asked").is_some()
    })
}

/// Many rounds of two processes with threads that race into probes, while two threads of this process dispose
/// of all of them in different orders. In half of the rounds they race with the processes' starts, in the others with what is under way.
#[test]
fn programs_run_on_while_others_dispose_of_their_probes() {
    let prepared = Prepared::new(Level::Edge);
    let expected = prepared.alone(4);
    let whole = prepared.variant("truth", |_| true);
    let (child, record) = prepared.start(&whole, "truth", 4);
    assert_eq!(child.wait_with_output().unwrap().stdout, expected);
    let truth = hits(&record);
    let disposals = prepared.master.disposals_path();
    let mut hit = 0;
    for round in 0..60 {
        let carried = prepared.variant("shared", |_| true);
        let start = |number| prepared.start(&carried, &format!("run-{round}-{number}"), 4);
        let mut children: Vec<(Child, PathBuf)> = (0..2).map(start).collect();
        while round % 2 == 1 && !is_any_under_way(&mut children) {
            std::thread::yield_now();
        }
        std::thread::scope(|scope| {
            for side in 0..2 {
                let live = Live::open(&carried.image, disposals).expect("an image");
                let order = shuffled(live.probes(), 2 * round + side);
                scope.spawn(move || order.iter().filter(|probe| live.dispose(**probe)).count());
            }
        });
        for (child, record) in children {
            let output = child.wait_with_output().expect("ended");
            assert_eq!(output.status.code(), Some(0), "{:?}", output.status);
            assert_eq!(output.stdout, expected);
            let seen = hits(&record);
            assert!(
                seen.is_subset(&truth),
                "hits that never happen: {:?}",
                seen.difference(&truth)
            );
            hit += seen.len();
        }
        assert_eq!(present(&carried.image, disposals), BTreeSet::new());
    }
    assert!(hit > 0, "all was over before anything began");
}

#[test]
fn who_is_killed_in_the_midst_of_disposing_leaves_a_sound_image() {
    let prepared = Prepared::new(Level::Edge);
    let disposals = prepared.master.disposals_path();
    let carried = prepared.variant("half", |_| true);
    // As far as a process comes that is killed behind its first store: holds everywhere, nothing behind them.
    let mut image = fs::read(&carried.image).unwrap();
    let header = Image::read(&image, image.len() as u64).expect("an image");
    let rows = fs::read(disposals).unwrap();
    let view = DisposalsView::read(&rows, &header).expect("disposals");
    let held: Vec<_> = view.iter().filter(|(_, row)| row.manner == 2).collect();
    assert!(held.len() > 100, "{} held", held.len());
    for (_, row) in held {
        let start = header.text_at(row.offset.get(), 1).expect("text") as usize;
        image[start] = 0xcc;
    }
    fs::write(&carried.image, &image).unwrap();
    let (child, record) = prepared.start(&carried, "run", 4);
    let output = child.wait_with_output().expect("ended");
    assert_eq!(output.stdout, prepared.alone(4));
    let whole = prepared.variant("whole", |_| true);
    let (child, truth) = prepared.start(&whole, "truth", 4);
    child.wait_with_output().expect("ended");
    assert_eq!(hits(&record), hits(&truth));
}

#[test]
fn files_that_do_not_belong_together_are_refused_and_strange_probes_are_none() {
    let (edge, block) = (Prepared::new(Level::Edge), Prepared::new(Level::Block));
    let carried = edge.variant("all", |_| true);
    assert!(Live::open(&carried.image, block.master.disposals_path()).is_err());
    assert!(Live::open(&carried.image, Path::new("/nonexistent")).is_err());
    let before = fs::read(&carried.image).unwrap();
    let live = Live::open(&carried.image, edge.master.disposals_path()).expect("an image");
    assert!(!live.dispose(live.probes()) && !live.dispose(u32::MAX));
    assert_eq!(fs::read(&carried.image).unwrap(), before);
    assert!(live.dispose(0) && !live.dispose(0), "once is enough");
    assert!(
        Carried::of(&carried.image, "x", 0, live.probes()).is_none(),
        "another plan"
    );
}
