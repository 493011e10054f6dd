//! How often units were hit: added up exactly, whatever order reports come in, how often, and over how many collectors
//! they were spread; and what cannot be is refused.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::Index;
use tomo_collector::Store;
use tomo_collector::state::{Keeps, State};
use tomo_protocol::{
    Bound, Campaign, CampaignId, Name, NewCampaign, PATHS, Plan, Profile, Strategy as By, Units,
    What, paths,
};
use tomo_wire::ModuleId;
use tomo_wire::paths::{Asked, Function, Paths, Rows};
use tomo_wire::report::{Outcome, ReportView};
use zerocopy::IntoBytes as _;

use crate::fleet::{Fleet, STEM, Word, request_for};
use crate::segments::{read_into, snapshot_of};

const ID: CampaignId = CampaignId([7; 16]);
const COUNTED: Keeps = Keeps {
    evidence: false,
    counts: true,
    chains: true,
};

fn state_of<'w>(words: impl IntoIterator<Item = &'w Word>) -> State {
    let mut state = State::of(COUNTED);
    for word in words {
        let bytes = word.report_for(ID, Name(0));
        let (report, _) = ReportView::read(&bytes).expect("a report");
        state.report(&report, 0);
        assert!(state.knows(&report));
    }
    state
}

/// Words of an instance whose runs hit ever more, and all of which but those in `running` end.
fn words(runs: u64, running: &[u64]) -> Vec<Word> {
    let of_run = |run: u64| {
        (1..=2u32).map(move |sequence| {
            let times = run * u64::from(sequence);
            Word {
                sequence,
                outcome: match sequence {
                    1 => Outcome::Running,
                    _ => Outcome::Exited,
                },
                hits: vec![run as u32 % 7, 7 + sequence],
                counts: vec![times, times + 1],
                ..Word::of(3, run, &[])
            }
        })
    };
    let all = (1..=runs).flat_map(of_run);
    all.filter(|word| word.sequence == 1 || !running.contains(&word.run))
        .collect()
}

/// How often each unit was hit, by the last word on each run.
fn naive(words: &[Word]) -> BTreeMap<u32, u64> {
    let mut last: BTreeMap<u64, &Word> = BTreeMap::new();
    for word in words {
        let known = last.entry(word.run).or_insert(word);
        if word.sequence > known.sequence {
            *known = word;
        }
    }
    let mut sums = BTreeMap::new();
    for word in last.values() {
        for (unit, count) in word.hits.iter().zip(&word.counts) {
            *sums.entry(*unit).or_default() += count;
        }
    }
    sums
}

fn counted(state: &State) -> BTreeMap<u32, u64> {
    let mut sums = BTreeMap::new();
    for (_, instance) in state.instances() {
        instance.counts.add_to(&mut sums);
    }
    sums
}

fn shuffled(words: &[Word], order: &[Index]) -> Vec<Word> {
    let mut words = words.to_vec();
    let length = words.len();
    for (at, index) in order.iter().enumerate().take(length) {
        words.swap(at, index.index(length));
    }
    words
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Two blocks of blocks and more, so that all sizes are folded.
    #[test]
    fn any_order_and_any_split_give_the_same_counts(
        runs in 4090u64..4300,
        running in prop::collection::vec(1u64..4300, 0..3),
        order in prop::collection::vec(any::<Index>(), 9000),
        cut in any::<Index>(),
        overlap in 0usize..2000,
    ) {
        let all = words(runs, &running);
        let expected = state_of(&all);
        prop_assert_eq!(counted(&expected), naive(&all));
        let mixed = shuffled(&all, &order);
        let cut = cut.index(mixed.len());
        let one = state_of(&mixed[..(cut + overlap).min(mixed.len())]);
        let other = state_of(&mixed[cut..]);
        let mut joined = one.clone();
        joined.join(other.clone());
        prop_assert_eq!(&joined, &expected);
        let mut joined = other;
        joined.join(one);
        joined.join(expected.clone());
        prop_assert_eq!(&joined, &expected);
        let read = read_into(State::of(COUNTED), ID, &snapshot_of(ID, &expected));
        prop_assert_eq!(read, expected);
    }
}

#[test]
fn runs_that_have_all_ended_are_kept_as_few_sums() {
    let rows = |state: &State| -> u64 {
        state
            .instances()
            .map(|(_, instance)| instance.counts.rows())
            .sum()
    };
    let whole = state_of(&words(64 * 64, &[]));
    assert_eq!(rows(&whole), 8, "one sum of all eight units");
    let held_up = state_of(&words(64 * 64, &[100]));
    // The runs beside the one that goes on, and the blocks beside theirs.
    assert_eq!(rows(&held_up), 64 * 2 + 63 * 8);
}

/// A plan of paths of functions with so many numbers each.
fn plan_of(numbers: &[u32]) -> (Name, Vec<u8>) {
    let module = ModuleId::by_build_id(&[0xab, 1], 0xff).expect("an id");
    let mut first = 0;
    let mut functions = Vec::new();
    for (at, &numbers) in numbers.iter().enumerate() {
        functions.push(Function {
            entry: (0x1000 + 16 * at as u64).into(),
            first: first.into(),
            numbers: numbers.into(),
            mark: 0.into(),
            marks: 0.into(),
            asked: (Asked::All as u32).into(),
            selective: 0.into(),
            named: 0.into(),
            names: 0.into(),
        });
        first += 1 + numbers;
    }
    let rows = Rows {
        functions: &functions,
        ..Rows::default()
    };
    let header = Paths::of(module, 1, 0, first, &rows);
    let bytes = [header.as_bytes(), functions.as_bytes()].concat();
    (Name(header.name()), bytes)
}

/// A fleet, and what to ask for so that it counts the paths of these functions.
fn fleet(folder: &std::path::Path, numbers: &[u32]) -> (Fleet, NewCampaign) {
    let fleet = Fleet::new(
        Store::local(&folder.join("store")).expect("a store"),
        folder,
        8,
        1,
        Bound::None,
    );
    let (name, bytes) = plan_of(numbers);
    let plan: Plan = fleet
        .admin
        .put_bytes(&paths::of_plan(name), &bytes)
        .expect("a plan");
    assert_eq!(
        (plan.level.as_str(), plan.probes),
        (PATHS, numbers.iter().sum())
    );
    let mut new = request_for(8, 1, Bound::None).1;
    new.modules[0].stem = STEM.into();
    new.modules[0].plan = name;
    new.modules[0].level = PATHS.into();
    (fleet, new)
}

#[test]
fn techniques_share_out_paths_and_functions() {
    let folder = tempfile::tempdir().expect("a folder");
    let (fleet, mut new) = fleet(folder.path(), &[3, 5, 2, 6]);
    new.modules[0].clusters = [0..3, 3..8, 8..10, 10..16].map(Units::of).to_vec();
    (new.variants, new.bound) = (4, Bound::Probes(8));
    for by in By::ALL {
        new.strategy = by;
        let campaign: Campaign = fleet
            .admin
            .post(paths::CAMPAIGNS, &new)
            .expect("a campaign");
        assert_eq!(campaign.units, 16, "{by:?}");
        for variant in &campaign.variants {
            assert!((1..=8).contains(&variant.units.len()), "{by:?}");
            let whole = |cluster: &Units| {
                let held = cluster
                    .iter()
                    .filter(|unit| variant.units.has(*unit))
                    .count() as u64;
                held == 0 || held == cluster.len()
            };
            assert!(!by.is_for_clusters() || new.modules[0].clusters.iter().all(whole));
        }
    }
    // Only what is asked for is shared out.
    new.strategy = By::BalancedProbes;
    new.modules[0].only = Some(Units::of([1, 4, 15]));
    let campaign: Campaign = fleet
        .admin
        .post(paths::CAMPAIGNS, &new)
        .expect("a campaign");
    assert!(
        campaign
            .variants
            .iter()
            .all(|one| one.units == Units::of([1, 4, 15]))
    );
    let refused = |new: &NewCampaign| -> String {
        let asked = fleet.admin.post::<Campaign>(paths::CAMPAIGNS, new);
        asked.expect_err("refused").to_string()
    };
    new.modules[0].only = Some(Units::of([99]));
    assert!(refused(&new).contains("can be observed"));
    new.modules[0].only = None;
    new.modules[0].placement = "reduced".into();
    assert!(refused(&new).contains("placement"));
    new.modules[0].placement = "all".into();
    new.modules.push(new.modules[0].clone());
    assert!(refused(&new).contains("one module"));
}

/// An installation that never ends its runs is not believed without end.
#[test]
fn an_instance_fills_no_memory_with_counts() {
    let units = 600_000;
    let folder = tempfile::tempdir().expect("a folder");
    let (fleet, new) = fleet(folder.path(), &[units]);
    let campaign: Campaign = fleet
        .admin
        .post(paths::CAMPAIGNS, &new)
        .expect("a campaign");
    let token = crate::fleet::token(&fleet.admin, campaign.id, tomo_protocol::Role::Instance);
    let client = crate::fleet::client(&fleet.url, Some(&token));
    let mut verdicts = Vec::new();
    for run in 1..=7 {
        let word = Word {
            outcome: Outcome::Running,
            hits: (0..units).collect(),
            counts: vec![1; units as usize],
            ..Word::of(1, run, &[])
        };
        let sent: Result<tomo_protocol::Answer, _> =
            client.post_bytes(paths::REPORTS, &word.report(&campaign));
        verdicts.extend(sent.expect("an answer").verdicts);
    }
    let refused = verdicts.iter().position(|one| one.what != What::Stored);
    assert_eq!(refused, Some(6), "{verdicts:?}");
    assert!(
        matches!(&verdicts[6].what, What::Refused { why, again: false } if why.contains("not all over") && why.contains("`instance`"))
    );
    let path = paths::of_campaign(paths::PROFILE, campaign.id);
    let profile: Profile = fleet.admin.get(&path).expect("a profile");
    assert!(profile.seen.iter().all(|seen| seen.count == Some(6)));
}
