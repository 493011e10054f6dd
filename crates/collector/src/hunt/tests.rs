//! A search over a small program, with instances that do as they should and one that does not.

use tomo_protocol::{
    Bound, CampaignId, Cause, Choice, InstanceId, Routine, Search, Terrain, Towards,
};
use tomo_wire::report::{Follows, Frame, Outcome, Report, ReportView};
use zerocopy::IntoBytes as _;
use zerocopy::little_endian::U32;

use super::{Change, Hunt};
use crate::state::{Keeps, State};

const SEARCHED: Keeps = Keeps {
    evidence: true,
    counts: false,
    chains: false,
};

/// A function of so many blocks, which is left at the last.
fn routine(blocks: u32, edges: Vec<(u32, u32)>) -> Routine {
    let start = |block: u32| 0x1000 + 16 * u64::from(block);
    Routine {
        blocks: (0..blocks).map(start).collect(),
        end: start(blocks),
        entry: 0,
        edges,
        exits: vec![blocks - 1],
        root: true,
        ..Routine::default()
    }
}

/// Two decisions, one after the other, so that there are four ways: a branch at block 0, and one at 1 or 2.
fn terrain() -> Terrain {
    let edges = vec![
        (0, 1),
        (0, 2),
        (1, 3),
        (1, 4),
        (2, 5),
        (2, 6),
        (3, 7),
        (4, 7),
        (5, 7),
        (6, 7),
    ];
    Terrain {
        routines: vec![routine(8, edges)],
        sites: vec![Some(0), Some(2), Some(4)],
        rows: (0..6).map(Some).collect(),
    }
}

fn spec() -> Search {
    Search {
        choice: Choice::Ttest,
        towards: Towards::Forward,
        most_sites: 1,
        most_runs: 40,
        instance_runs: 10,
        success: vec![0],
    }
}

fn hunt(spec: &Search, bound: Bound) -> Hunt {
    Hunt::new((spec, bound), terrain(), (vec![7; 20], 6)).expect("sound")
}

/// The predicates that are true on a way: first to the left or not, then to the left or not.
fn way(first: bool, second: bool) -> [u32; 2] {
    match (first, second) {
        (true, true) => [0, 2],
        (true, false) => [0, 3],
        (false, true) => [1, 4],
        (false, false) => [1, 5],
    }
}

/// A fleet and what its collector knows.
struct Fleet {
    hunt: Hunt,
    state: State,
    runs: u64,
}

impl Fleet {
    fn new(spec: &Search, bound: Bound) -> Self {
        Self {
            hunt: hunt(spec, bound),
            state: State::of(SEARCHED),
            runs: 0,
        }
    }

    /// A run of this instance, as it is reported: what it hit of what it carries, and how it ended.
    fn report(
        &mut self,
        instance: u8,
        hits: &[u32],
        (outcome, status): (Outcome, u32),
        frames: &[Frame],
    ) {
        let id = [instance; 16];
        self.runs += 1;
        let variant = self.hunt.variant_of(InstanceId(id), &self.state);
        let units = self.hunt.units(variant).expect("a variant");
        let hits: Vec<U32> = hits
            .iter()
            .filter(|hit| units.has(**hit))
            .map(|&hit| hit.into())
            .collect();
        let mut report = Report::empty();
        report.instance = id;
        report.run = self.runs.into();
        report.sequence = 1.into();
        report.variant = variant.into();
        report.armed = 1.into();
        report.outcome = (outcome as u32).into();
        report.status = status.into();
        report.signal = if frames.is_empty() {
            0.into()
        } else {
            status.into()
        };
        let follows = Follows {
            hits: hits.len() as u32,
            frames: frames.len() as u32,
            ..Follows::default()
        };
        let body = [hits.as_bytes(), frames.as_bytes()].concat();
        let head = report.sealed_over(follows, &body);
        let bytes = [head.as_slice(), &body].concat();
        let (view, _) = ReportView::read(&bytes).expect("a report");
        self.state
            .report(&view, i64::try_from(self.runs).expect("a time"));
    }

    /// Each of so many instances goes all four ways once; to the left twice fails.
    fn round(&mut self, instances: u8) {
        for instance in 1..=instances {
            for (first, second) in [(true, true), (true, false), (false, true), (false, false)] {
                let code = u32::from(first && second);
                self.report(instance, &way(first, second), (Outcome::Exited, code), &[]);
            }
        }
    }

    /// Goes on as far as what is known leads.
    fn decide(&mut self) {
        while let Some(edition) = self.hunt.decide(&self.state) {
            self.state.edition(edition.clone(), edition.number.into());
            assert!(self.hunt.apply(&edition));
        }
    }

    /// Rounds until the search for the exit code is over; how many.
    fn search(&mut self, instances: u8, mut other: impl FnMut(&mut Self)) -> usize {
        for round in 1..100 {
            self.round(instances);
            other(self);
            self.decide();
            if self.hunt.groups.iter().any(|group| group.done) {
                return round;
            }
        }
        panic!("the search does not end: {:?}", self.hunt.groups);
    }

    fn found(&self) -> tomo_protocol::Found {
        self.hunt.found(CampaignId([0; 16]), &self.state)
    }
}

/// Who carried a unit has watched it, in whichever edition that was, once.
#[test]
fn what_a_search_carried_was_watched() {
    let mut fleet = Fleet::new(&spec(), Bound::None);
    let mut carried = std::collections::BTreeSet::new();
    for _ in 0..6 {
        let one = InstanceId([1; 16]);
        let variant = fleet.hunt.variant_of(one, &fleet.state);
        carried.extend(fleet.hunt.units(variant).expect("a variant").iter());
        fleet.round(3);
        fleet.decide();
    }
    assert!(fleet.hunt.edition() > 0, "there was a second one");
    let variants = fleet.hunt.variants();
    let watch = crate::answers::watch_of(6, &fleet.state, |variant| variants.get(&variant));
    assert!(!carried.is_empty());
    for (unit, (_, instances)) in (0..).zip(watch) {
        let expected = if carried.contains(&unit) { 3 } else { 0 };
        assert_eq!(instances, expected, "{unit}");
    }
}

#[test]
fn what_fails_is_found_step_by_step() {
    let mut fleet = Fleet::new(&spec(), Bound::None);
    fleet.search(4, |_| {});
    let found = fleet.found();
    assert_eq!(found.groups.len(), 1);
    let group = &found.groups[0];
    assert_eq!(group.cause, Cause::Exit { code: 1 });
    assert!(group.done);
    assert_eq!((group.known[0].row, group.known[0].passed_true), (2, 0));
    assert_eq!(group.known[0].failed_true, group.known[0].failed);
    // The way to the right was never watched.
    assert_eq!((group.seen, fleet.hunt.carried()), (2, 4));
}

/// One failure begins no search; what predicts it was watched all the same.
#[test]
fn what_was_watched_is_told_without_a_search() {
    let mut fleet = Fleet::new(&spec(), Bound::None);
    for (instance, code) in [(1, 1), (2, 0)] {
        let hits = way(code == 1, true);
        fleet.report(instance, &hits, (Outcome::Exited, code), &[]);
    }
    fleet.decide();
    let group = &fleet.found().groups[0];
    assert!(fleet.hunt.groups.is_empty() && !group.known.is_empty());
    assert_eq!(group.seen, 1);
}

#[test]
fn plans_are_shared_out_under_a_bound() {
    let wide = Search {
        most_sites: 3,
        ..spec()
    };
    let mut fleet = Fleet::new(&wide, Bound::Probes(2));
    fleet.search(8, |_| {});
    assert!(
        fleet
            .hunt
            .editions
            .iter()
            .flatten()
            .all(|units| units.len() <= 2)
    );
    assert_eq!(fleet.found().groups[0].known[0].row, 2);
}

/// Two branches that always run, one after the other.
fn in_a_row() -> Terrain {
    let edges = vec![
        (0, 1),
        (0, 2),
        (1, 3),
        (2, 3),
        (3, 4),
        (3, 5),
        (4, 6),
        (5, 6),
    ];
    Terrain {
        routines: vec![routine(7, edges)],
        sites: vec![Some(0), Some(2)],
        rows: (0..4).map(Some).collect(),
    }
}

/// A lone instance carries all parts of a plan in time, whichever it begins with, and none is empty though a site has more
/// predicates than one is to carry.
#[test]
fn few_instances_carry_all_parts_in_time() {
    let spec = Search {
        most_sites: 3,
        ..spec()
    };
    for instance in 1..=8 {
        let hunt = Hunt::new((&spec, Bound::Probes(1)), in_a_row(), (vec![7; 20], 4));
        let mut fleet = Fleet {
            hunt: hunt.expect("sound"),
            state: State::of(SEARCHED),
            runs: 0,
        };
        assert_eq!(fleet.hunt.editions[0].len(), 2);
        for number in 0..200 {
            let (hits, code) = ([number % 2, 2 + number / 2 % 2], number / 2 % 2);
            fleet.report(instance, &hits, (Outcome::Exited, code), &[]);
            fleet.decide();
        }
        let group = &fleet.found().groups[0];
        assert_eq!((group.known[0].row, group.done), (3, true), "{instance}");
    }
}

/// Of an instance no more runs are kept than so many, and a search that asks for more goes on with these.
#[test]
fn a_search_does_not_wait_for_runs_that_are_not_kept() {
    let patient = Search {
        most_runs: 5000,
        ..spec()
    };
    let mut fleet = Fleet::new(&patient, Bound::None);
    for number in 0..600 {
        fleet.report(1, &[], (Outcome::Exited, number % 2), &[]);
    }
    let opened = fleet.hunt.decide(&fleet.state).expect("it begins");
    assert!(fleet.hunt.apply(&opened));
    for number in 0..600 {
        fleet.report(1, &[], (Outcome::Exited, number % 2), &[]);
    }
    assert!(fleet.hunt.decide(&fleet.state).is_some());
    let beyond = fleet.found().beyond_share;
    assert!(beyond >= 2 * (600 - 512), "{beyond}");
}

#[test]
fn what_was_decided_is_the_same_again() {
    let mut fleet = Fleet::new(&spec(), Bound::None);
    fleet.search(4, |_| {});
    let mut again = hunt(&spec(), Bound::None);
    again.replay(fleet.state.editions().map(|(_, edition)| edition));
    assert_eq!(again.edition(), fleet.hunt.edition());
    assert_eq!(again.editions, fleet.hunt.editions);
    // From the same evidence, in whatever order it was joined, the same is decided.
    let mut joined = State::of(SEARCHED);
    let instances: Vec<_> = fleet.state.instances().collect();
    for (id, known) in instances.into_iter().rev() {
        joined.join_instance(id, known.clone());
        joined.join_instance(id, known.clone());
    }
    let mut fresh = hunt(&spec(), Bound::None);
    let first = fresh.decide(&joined).expect("something to decide");
    let mut other = hunt(&spec(), Bound::None);
    assert_eq!(other.decide(&fleet.state), Some(first.clone()));
    assert!(fresh.apply(&first) && other.apply(&first));
    assert_eq!(fresh.editions, other.editions);
}

/// One instance reports without end that it fails, that this was true of it which is not so, and new causes all
/// the time. The search ends at the same answer, at the latest when it has watched everything: no predictor is perfect
/// any more.
#[test]
fn a_hostile_instance_neither_stops_nor_steers_the_search() {
    const HOSTILE: u8 = 99;
    let mut fleet = Fleet::new(&spec(), Bound::None);
    fleet.search(8, |fleet| {
        for number in 0..600 {
            // Right is said to fail, and left not to.
            let (hits, code) = match number % 2 {
                0 => (way(false, true), 1),
                _ => (way(true, true), 0),
            };
            fleet.report(HOSTILE, &hits, (Outcome::Exited, code), &[]);
            fleet.report(HOSTILE, &hits, (Outcome::Exited, 2 + number), &[]);
        }
    });
    let found = fleet.found();
    let group = found
        .groups
        .iter()
        .find(|group| group.cause == Cause::Exit { code: 1 });
    let group = group.expect("the group");
    assert_eq!(group.known[0].row, 2, "{found:#?}");
    assert!(group.steps.len() <= 3);
    // What it made up alone is not searched.
    assert_eq!(fleet.hunt.groups.len(), 1);
    assert!(found.beyond_share > 0);
    let kept = fleet
        .state
        .instance(InstanceId([HOSTILE; 16]))
        .expect("known");
    let kept = kept.evidence.all().count();
    assert!(kept <= 512 * fleet.hunt.editions.len());
}

#[test]
fn a_lone_instance_comes_to_an_end() {
    let mut fleet = Fleet::new(&spec(), Bound::None);
    fleet.search(1, |_| {});
    assert_eq!(fleet.found().groups[0].known[0].row, 2);
}

/// A thousand reports are no more than one where they are the same, and causes are told apart by where it crashed.
#[test]
fn crashes_are_grouped_by_place_and_searched_side_by_side() {
    let mut fleet = Fleet::new(&spec(), Bound::None);
    let frames = |address| [Frame::of(&[7; 20], address), Frame::of(&[7; 20], 0x1000)];
    for _ in 0..60 {
        for instance in 1..=4 {
            let crash = (Outcome::Signal, 11);
            fleet.report(instance, &way(true, true), crash, &frames(0x1031));
            fleet.report(instance, &way(false, true), crash, &frames(0x1051));
            fleet.report(instance, &way(true, false), (Outcome::Exited, 0), &[]);
            fleet.report(instance, &way(false, false), (Outcome::Exited, 0), &[]);
            // Somebody ends it from outside: that says nothing.
            fleet.report(instance, &way(true, true), (Outcome::Signal, 15), &[]);
        }
        fleet.decide();
        let over = fleet.hunt.groups.iter().filter(|group| group.done).count();
        if over == 2 {
            break;
        }
    }
    let found = fleet.found();
    assert_eq!(found.groups.len(), 2);
    assert!(found.unlabelled > 0);
    let mut best: Vec<u32> = found
        .groups
        .iter()
        .map(|group| group.known[0].row)
        .collect();
    best.sort_unstable();
    assert_eq!(best, [2, 4], "{found:#?}");
    assert!(
        matches!(&found.groups[0].cause, Cause::Crash { signal: 11, frames } if frames.len() == 2)
    );
}

/// Twenty causes: those by which most runs failed are searched first, and what waits is told and has its turn.
#[test]
fn causes_wait_until_a_search_is_over() {
    let spec = Search {
        instance_runs: 1000,
        ..spec()
    };
    let mut fleet = Fleet::new(&spec, Bound::None);
    for code in 1..=20 {
        for instance in (1..=2).cycle().take(1 + code as usize) {
            fleet.report(instance, &way(true, true), (Outcome::Exited, code), &[]);
        }
    }
    fleet.decide();
    let waiting = |fleet: &Fleet| {
        let groups = fleet.found().groups.into_iter();
        groups
            .filter(|group| group.waits)
            .map(|group| group.cause)
            .collect::<Vec<_>>()
    };
    let rare: Vec<Cause> = (1..=4).rev().map(|code| Cause::Exit { code }).collect();
    assert_eq!(waiting(&fleet), rare);
    fleet.hunt.groups[0].done = true;
    fleet.decide();
    assert_eq!(waiting(&fleet), rare[1..]);
    assert_eq!(fleet.hunt.groups.len(), 17);
}

#[test]
fn backward_searches_begin_where_runs_crash() {
    let backward = Search {
        towards: Towards::Backward,
        ..spec()
    };
    let mut fleet = Fleet::new(&backward, Bound::None);
    for instance in 1..=4 {
        for _ in 0..4 {
            let frames = [Frame::of(&[1], 5), Frame::of(&[7; 20], 0x1031)];
            fleet.report(instance, &way(true, true), (Outcome::Signal, 6), &frames);
            fleet.report(instance, &way(false, true), (Outcome::Exited, 0), &[]);
        }
    }
    let edition = fleet
        .hunt
        .decide(&fleet.state)
        .expect("something to decide");
    // Block 3 is the one at 0x1030; what decides about it is the branch at block 1.
    let place = edition.changes.iter().find_map(|change| match change {
        Change::Open { place, .. } => *place,
        Change::Step { .. } => None,
    });
    assert_eq!(place, Some((0, 3)));
    fleet.hunt.apply(&edition);
    let watched = &fleet.hunt.editions[1][0];
    assert!(watched.has(2) && !watched.has(4));
}

#[test]
fn terrains_that_contradict_themselves_are_refused() {
    type Broken = fn(&mut Terrain);
    let all: [Broken; 5] = [
        |terrain| terrain.sites.push(None),
        |terrain| terrain.rows[0] = Some(6),
        |terrain| terrain.sites[2] = Some(5),
        |terrain| terrain.routines[0].edges.push((0, 8)),
        |terrain| terrain.routines[0].entry = 9,
    ];
    for (number, broken) in all.into_iter().enumerate() {
        let mut terrain = terrain();
        broken(&mut terrain);
        let made = Hunt::new((&spec(), Bound::None), terrain, (Vec::new(), 6));
        assert!(made.is_none(), "{number}");
    }
}
