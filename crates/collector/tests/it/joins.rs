//! The state is a join: whatever order reports come in, how often, and over how many collectors they
//! were spread, the same is known; and it is what a list of all reports says.

use proptest::prelude::*;
use proptest::sample::Index;
use tomo_collector::state::State;
use tomo_protocol::{CampaignId, InstanceId, Name};
use tomo_wire::report::{Outcome, ReportView};

use crate::fleet::Word;
use crate::naive::Naive;
use crate::segments::{read_into, snapshot_of};

const ID: CampaignId = CampaignId([7; 16]);

/// What happens to a state.
#[derive(Clone, Debug)]
enum Event {
    Word(Word, i64),
    Assigned(u8, u32, i64),
}

fn apply(state: &mut State, event: &Event) {
    match event {
        Event::Word(word, at) => {
            let bytes = word.report_for(ID, Name(0));
            let (report, _) = ReportView::read(&bytes).expect("a report");
            state.report(&report, *at);
            assert!(state.knows(&report));
        }
        Event::Assigned(instance, variant, at) => {
            state.assign(InstanceId([*instance; 16]), *variant, *at);
        }
    }
}

fn state_of<'e>(events: impl IntoIterator<Item = &'e Event>) -> State {
    let mut state = State::default();
    events
        .into_iter()
        .for_each(|event| apply(&mut state, event));
    state
}

fn joined(states: impl IntoIterator<Item = State>) -> State {
    states.into_iter().fold(State::default(), |mut all, state| {
        all.join(state);
        all
    })
}

/// Words of honest instances: hits and lengths of a run only grow, and its last word is its only final
/// one. Runs are many and short, so that whole blocks of them end.
fn words() -> impl Strategy<Value = Vec<Event>> {
    let run = (
        0u8..3,
        1u64..140,
        0u32..3,
        prop::collection::vec(0u32..40, 1..4),
        any::<bool>(),
    );
    let times = prop::collection::vec(-50i64..50, 8);
    (prop::collection::vec(run, 1..60), times).prop_map(|(runs, times)| {
        let mut events = Vec::new();
        let mut done = std::collections::BTreeSet::new();
        for (instance, run, variant, hits, ends) in runs {
            if !done.insert((instance, run)) {
                continue;
            }
            let (count, mut so_far) = (hits.len(), Vec::new());
            for (sequence, hit) in hits.into_iter().enumerate() {
                so_far.push(hit);
                so_far.sort_unstable();
                so_far.dedup();
                let last = sequence + 1 == count;
                let word = Word {
                    instance,
                    run,
                    sequence: sequence as u32 + 1,
                    variant,
                    outcome: if last && ends {
                        Outcome::Signal
                    } else {
                        Outcome::Running
                    },
                    duration: 100 * (sequence as u64 + 1) + run,
                    hits: so_far.clone(),
                    counts: Vec::new(),
                };
                let at = times[(run as usize + sequence) % times.len()];
                events.push(Event::Word(word, at));
            }
            events.push(Event::Assigned(
                instance,
                variant,
                times[run as usize % times.len()],
            ));
        }
        events
    })
}

/// All runs of two blocks and more of another instance, all ended.
fn full_blocks() -> Vec<Event> {
    let word = |run| Event::Word(Word::of(9, run, &[run as u32 % 50]), run as i64);
    (1..140).map(word).collect()
}

fn shuffled(events: &[Event], order: &[Index]) -> Vec<Event> {
    let mut events = events.to_vec();
    for (at, index) in order.iter().enumerate().take(events.len()) {
        let length = events.len();
        events.swap(at, index.index(length));
    }
    events
}

proptest! {
    #[test]
    fn any_order_and_any_repetition_give_the_same_state(
        events in words(),
        order in prop::collection::vec(any::<Index>(), 200),
        again in prop::collection::vec(any::<Index>(), 0..50),
    ) {
        let events = [full_blocks(), events].concat();
        let expected = state_of(&events);
        let mut others = shuffled(&events, &order);
        others.extend(again.iter().map(|index| index.get(&events).clone()));
        prop_assert_eq!(state_of(&others), expected);
    }

    #[test]
    fn joining_is_commutative_associative_and_idempotent(
        events in words(),
        order in prop::collection::vec(any::<Index>(), 200),
        cuts in prop::array::uniform2(any::<Index>()),
        overlap in 0usize..20,
    ) {
        let events = shuffled(&[full_blocks(), events].concat(), &order);
        let mut cuts = cuts.map(|cut| cut.index(events.len()));
        cuts.sort_unstable();
        let upto = |end: usize| (end + overlap).min(events.len());
        let a = state_of(&events[..upto(cuts[0])]);
        let b = state_of(&events[cuts[0]..upto(cuts[1])]);
        let c = state_of(&events[cuts[1]..]);
        let all = joined([a.clone(), b.clone(), c.clone()]);
        prop_assert_eq!(&all, &state_of(&events));
        prop_assert_eq!(&joined([c.clone(), a.clone(), b.clone()]), &all);
        let late = joined([b.clone(), c.clone()]);
        prop_assert_eq!(&joined([a.clone(), late]), &all);
        prop_assert_eq!(&joined([all.clone(), b, all.clone(), a]), &all);
    }

    #[test]
    fn the_state_is_what_a_list_of_all_reports_says(events in words()) {
        let state = state_of(&events);
        let words = events.iter().filter_map(|event| match event {
            Event::Word(word, at) => Some((word.clone(), *at)),
            Event::Assigned(..) => None,
        });
        let naive = Naive { words: words.collect() };
        let mut seen: std::collections::BTreeMap<u32, (i64, u32)> = Default::default();
        for (_, instance) in state.instances() {
            for &(unit, at) in instance.hits.rows() {
                let (first, count) = seen.entry(unit).or_insert((at, 0));
                *first = at.min(*first);
                *count += 1;
            }
        }
        prop_assert_eq!(seen, naive.seen());
        for instance in naive.instances() {
            let known = state.instance(InstanceId([instance; 16])).unwrap();
            let sums = known.runs.sums();
            let found = (sums.runs, sums.running, sums.duration);
            prop_assert_eq!(found, naive.sums(instance));
        }
    }

    #[test]
    fn a_snapshot_is_read_as_it_was_written(events in words()) {
        let state = state_of(&[full_blocks(), events].concat());
        let read = read_into(State::default(), ID, &snapshot_of(ID, &state));
        prop_assert_eq!(read, state);
    }
}

#[test]
fn runs_that_have_all_ended_cost_nothing_more() {
    let state = state_of(&full_blocks());
    let instance = state.instance(InstanceId([9; 16])).expect("an instance");
    assert_eq!(instance.runs.blocks(), 3);
    let size = |runs: u64| {
        let events: Vec<Event> = (1..=runs)
            .map(|run| Event::Word(Word::of(1, run, &[1]), 0))
            .collect();
        snapshot_of(ID, &state_of(&events)).len()
    };
    // Sixteen thousand runs more, two bytes of snapshot each at most.
    assert!(size(17 * 1024) - size(1024) < 2 * 16 * 1024);
}
