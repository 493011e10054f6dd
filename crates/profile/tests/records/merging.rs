//! Merging is a commutative, idempotent monoid, for marks and for findings.

use crate::sample::{hits, module, plan, record, with_live};
use proptest::prelude::*;
use tomo_profile::merge::{Counters, Finding, Marks};
use tomo_profile::records::{Kind, read_record};
use tomo_wire::record::Refusals;

fn marks() -> impl Strategy<Value = Marks> {
    let counters = (
        any::<(u8, (u8, u8, u8, u8), u8)>(),
        any::<(u8, u8, u8, (u8, u8))>(),
    );
    let seen = prop::collection::vec(any::<bool>(), 3);
    (seen, 0..3_u8, any::<i8>(), counters).prop_map(|(seen, run, created, (one, two))| Marks {
        hits: hits(&seen),
        run: [run; 16],
        created: created.into(),
        live: Counters {
            armed: one.0.into(),
            refused: Refusals {
                count: one.1.0.into(),
                last: one.1.1.into(),
                errno: one.1.2.into(),
                reasons: one.1.3.into(),
            },
            without: one.2.into(),
            traps: two.0.into(),
            foreign_traps: two.1.into(),
            process: two.2.into(),
            outcome: (two.3.0.into(), two.3.1.into()),
        },
    })
}

fn joined(one: &Marks, other: &Marks) -> Marks {
    let mut all = one.clone();
    assert!(all.join(other));
    all
}

proptest! {
    #[test]
    fn marks_merge_in_any_order_and_more_than_once(a in marks(), b in marks(), c in marks()) {
        prop_assert_eq!(joined(&a, &b), joined(&b, &a));
        prop_assert_eq!(joined(&joined(&a, &b), &c), joined(&a, &joined(&b, &c)));
        prop_assert_eq!(joined(&a, &a), a.clone());
        let both = joined(&a, &b);
        for probe in 0..3 {
            prop_assert_eq!(both.hits[probe], a.hits[probe] || b.hits[probe]);
        }
    }

    /// What is written is what is read back.
    #[test]
    fn marks_survive_their_file(marks in marks(), loose: bool) {
        let (plan, _) = plan();
        let kind = Kind {
            plan: plan.name(),
            cut: marks.live.outcome.0 == 2,
            loose,
        };
        let bytes = marks.to_record(module(), kind);
        let read = read_record(&bytes).expect("a sound record");
        prop_assert_eq!(read.marks, marks);
        prop_assert_eq!((read.module, read.kind), (module(), kind));
    }
}

#[test]
fn findings_merge_by_their_order() {
    for a in Finding::ALL {
        assert_eq!(a.or(a), a);
        assert_eq!(a.or(Finding::default()), a, "nothing ran in no run");
        for b in Finding::ALL {
            assert_eq!(a.or(b), b.or(a));
            for c in Finding::ALL {
                assert_eq!(a.or(b).or(c), a.or(b.or(c)));
            }
            // Truth by definition: it ran in both together if it ran in one.
            let expected = match (a.ran(), b.ran()) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (None, _) | (_, None) => None,
                _ => Some(false),
            };
            assert_eq!(a.or(b).ran(), expected, "{a:?} {b:?}");
        }
    }
}

#[test]
fn marks_of_other_plans_are_not_mixed() {
    let one = read_record(&record([true, false, false]))
        .expect("sound")
        .marks;
    let mut other = one.clone();
    other.hits.grow_and_insert(3);
    let mut all = one.clone();
    assert!(!all.join(&other));
    assert_eq!(all, one);
}

#[test]
fn counters_are_the_largest_of_any() {
    let with = |armed: u64, refused: u64| {
        let bytes = with_live(record([false; 3]), |live| {
            live.armed = armed.into();
            live.refused = refused.into();
        });
        read_record(&bytes).expect("sound").marks
    };
    let all = joined(&with(3, 0), &with(1, 2));
    assert_eq!((all.live.armed, all.live.refused.count), (3, 2));
    assert_eq!((all.run, all.created), ([7; 16], 42));
}
