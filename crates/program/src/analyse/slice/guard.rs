//! What a conditional branch proves of a value.

use iced_x86::ConditionCode;

use super::value::{Atom, Linear, low_mask};

/// `value` modulo 2^`bits` lies in the cyclic interval of `count` numbers from `low` on.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Guard {
    /// What is bounded; never with a constant part.
    pub(crate) value: Linear,
    /// The width of the comparison.
    pub(crate) bits: u8,
    /// The numbers it can be.
    pub(crate) interval: Interval,
}

/// `count` numbers from `low` on, modulo some power of two.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Interval {
    /// The first.
    pub(crate) low: u64,
    /// How many; at most the modulus.
    pub(crate) count: u128,
}

impl Interval {
    /// The numbers common to both, modulo 2^`bits`; a superset where they are not one interval.
    pub(crate) fn intersect(self, other: Self, bits: u8) -> Self {
        let modulus = u128::from(low_mask(bits)) + 1;
        let shift = u128::from(other.low.wrapping_sub(self.low) & low_mask(bits));
        let first = overlap(0, self.count, shift, shift + other.count);
        let wrapped = overlap(
            0,
            self.count,
            0,
            (shift + other.count).saturating_sub(modulus),
        );
        let (start, count) = match (first, wrapped) {
            (Some(_), Some(_)) | (None, None) => return self,
            (Some(only), None) | (None, Some(only)) => only,
        };
        let low = u64::try_from(start).unwrap_or(0).wrapping_add(self.low) & low_mask(bits);
        Self { low, count }
    }
}

fn overlap(from: u128, to: u128, other_from: u128, other_to: u128) -> Option<(u128, u128)> {
    let (start, end) = (from.max(other_from), to.min(other_to));
    (start < end).then(|| (start, end - start))
}

/// What it means that `condition` holds after comparing `left` with `right`.
pub(crate) fn guard(
    condition: ConditionCode,
    left: &Linear,
    right: u64,
    bits: u8,
) -> Option<Guard> {
    let interval = interval(condition, right & low_mask(bits), bits)?;
    narrow(left.clone(), bits, interval)
}

/// The values of `x` for which `x condition right` holds.
fn interval(condition: ConditionCode, right: u64, bits: u8) -> Option<Interval> {
    let modulus = u128::from(low_mask(bits)) + 1;
    let smallest = 1_u64 << (bits - 1);
    let right_above_smallest = u128::from(right.wrapping_sub(smallest) & low_mask(bits));
    let (low, count) = match condition {
        ConditionCode::e => (right, 1),
        ConditionCode::ne => (right.wrapping_add(1), modulus - 1),
        ConditionCode::b => (0, u128::from(right)),
        ConditionCode::be => (0, u128::from(right) + 1),
        ConditionCode::a => (right.wrapping_add(1), modulus - u128::from(right) - 1),
        ConditionCode::ae => (right, modulus - u128::from(right)),
        ConditionCode::l => (smallest, right_above_smallest),
        ConditionCode::le => (smallest, right_above_smallest + 1),
        ConditionCode::g => (right.wrapping_add(1), modulus - right_above_smallest - 1),
        ConditionCode::ge => (right, modulus - right_above_smallest),
        ConditionCode::s if right == 0 => (smallest, modulus / 2),
        ConditionCode::ns if right == 0 => (0, modulus / 2),
        _ => return None,
    };
    (count > 0).then_some(Interval {
        low: low & low_mask(bits),
        count,
    })
}

/// The guard in its one form: on the innermost value that it bounds, without constants.
pub(crate) fn narrow(value: Linear, bits: u8, interval: Interval) -> Option<Guard> {
    let (value, bits, bias) = match value.as_atom() {
        Some(Atom::Zero(width, inner)) if *width == bits => (inner.clone(), bits, inner.constant),
        _ => (value.clone(), bits, value.constant),
    };
    let value = value.without_constant();
    let interval = Interval {
        low: interval.low.wrapping_sub(bias) & low_mask(bits),
        count: interval.count,
    };
    value.as_constant().is_none().then_some(())?;
    match value.as_atom() {
        Some(atom) if atom.width() < bits => {
            let natural = Interval {
                low: 0,
                count: u128::from(low_mask(atom.width())) + 1,
            };
            let within = natural.intersect(interval, bits);
            match atom {
                Atom::Zero(..) | Atom::Load { .. } => {
                    narrow(Linear::atom(atom.clone()), atom.width(), within)
                }
                _ => Some(Guard {
                    value,
                    bits,
                    interval: within,
                }),
            }
        }
        _ => Some(Guard {
            value,
            bits,
            interval,
        }),
    }
}

/// An atom as a guard may bound it: the value, its width, what is added, whether the sum is then
/// sign-extended.
pub(crate) fn view(atom: &Atom) -> (Linear, u8, u64, bool) {
    match atom {
        Atom::Zero(bits, inner) => (inner.without_constant(), *bits, inner.constant, false),
        Atom::Sign(bits, inner) => (inner.without_constant(), *bits, inner.constant, true),
        Atom::Load { size, .. } => (Linear::atom(atom.clone()), size.saturating_mul(8), 0, false),
        _ => (Linear::atom(atom.clone()), 64, 0, false),
    }
}

/// Whether the guard is one on the atom as [`view`] sees it.
pub(crate) fn is_bounded(atom: &Atom, guard: &Guard) -> bool {
    match atom {
        Atom::Zero(bits, inner) | Atom::Sign(bits, inner) => {
            *bits == guard.bits && inner.terms == guard.value.terms
        }
        Atom::Load { size, .. } => {
            size.saturating_mul(8) == guard.bits && guard.value.as_atom() == Some(atom)
        }
        _ => guard.bits == 64 && guard.value.as_atom() == Some(atom),
    }
}

/// The opposite condition.
pub(crate) fn negated(condition: ConditionCode) -> ConditionCode {
    use ConditionCode::{a, ae, b, be, e, g, ge, l, le, ne, no, np, ns, o, p, s};
    match condition {
        o => no,
        no => o,
        b => ae,
        ae => b,
        e => ne,
        ne => e,
        be => a,
        a => be,
        s => ns,
        ns => s,
        p => np,
        np => p,
        l => ge,
        ge => l,
        le => g,
        g => le,
        ConditionCode::None => ConditionCode::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(condition: ConditionCode, left: u8, right: u8) -> bool {
        let (signed_left, signed_right) = (left.cast_signed(), right.cast_signed());
        match condition {
            ConditionCode::e => left == right,
            ConditionCode::ne => left != right,
            ConditionCode::b => left < right,
            ConditionCode::be => left <= right,
            ConditionCode::a => left > right,
            ConditionCode::ae => left >= right,
            ConditionCode::l => signed_left < signed_right,
            ConditionCode::le => signed_left <= signed_right,
            ConditionCode::g => signed_left > signed_right,
            ConditionCode::ge => signed_left >= signed_right,
            _ => unreachable!("not tested"),
        }
    }

    /// Every condition on every pair of bytes, from the definition of the condition.
    #[test]
    fn intervals_hold_exactly_the_values_that_satisfy_the_condition() {
        use ConditionCode::{a, ae, b, be, e, g, ge, l, le, ne};
        for condition in [a, ae, b, be, e, g, ge, l, le, ne] {
            for right in 0..=255_u8 {
                let found = interval(condition, u64::from(right), 8);
                for left in 0..=255_u8 {
                    let inside = found.is_some_and(|interval| {
                        u128::from(u64::from(left).wrapping_sub(interval.low) & 0xff)
                            < interval.count
                    });
                    assert_eq!(
                        inside,
                        holds(condition, left, right),
                        "{left} {condition:?} {right}"
                    );
                    assert_eq!(
                        holds(negated(condition), left, right),
                        !holds(condition, left, right)
                    );
                }
            }
        }
    }

    #[test]
    fn intersections_lose_no_common_value() {
        for seed in 0..4096_u64 {
            let [low, count, other_low, other_count] =
                [seed * 7, seed / 3 * 5 + 1, seed * 13 + 2, seed * 11 + 1].map(|n| n % 16);
            let one = Interval {
                low,
                count: u128::from(count.max(1)),
            };
            let other = Interval {
                low: other_low,
                count: u128::from(other_count.max(1)),
            };
            let both = one.intersect(other, 4);
            let has = |interval: Interval, n: u64| {
                u128::from(n.wrapping_sub(interval.low) & 15) < interval.count
            };
            for n in 0..16 {
                assert!(
                    !(has(one, n) && has(other, n)) || has(both, n),
                    "{one:?} {other:?} {both:?} {n}"
                );
            }
            assert!(both.count <= one.count);
        }
    }

    #[test]
    fn a_bias_moves_the_interval() {
        // lea eax,[rdi-5]; cmp eax,10; not above: the low half of rdi is 5 to 15.
        let biased = Linear::register(7)
            .plus_constant(5_u64.wrapping_neg())
            .zero_extended(32);
        let guard = guard(ConditionCode::be, &biased, 10, 32).unwrap();
        assert_eq!((guard.value, guard.bits), (Linear::register(7), 32));
        assert_eq!(guard.interval, Interval { low: 5, count: 11 });
    }

    #[test]
    fn a_wide_compare_of_a_narrow_value_bounds_the_narrow_value() {
        let narrow = Linear::register(0).zero_extended(8);
        let guard = guard(ConditionCode::be, &narrow, 7, 32).unwrap();
        assert_eq!(
            (guard.value, guard.bits, guard.interval),
            (Linear::register(0), 8, Interval { low: 0, count: 8 })
        );
    }
}
