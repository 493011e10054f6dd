//! From values to places, and the round numbers that axes are marked with.

/// Values from the least to the most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    from: f64,
    to: f64,
}

/// A span on paper.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mapped {
    span: Span,
    first: f64,
    last: f64,
}

impl Span {
    /// Of these values, with a little room; never empty.
    pub(super) fn of(values: impl Iterator<Item = f64>, from_zero: bool) -> Self {
        let (mut from, mut to) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| value.is_finite()) {
            from = from.min(value);
            to = to.max(value);
        }
        if from > to {
            (from, to) = (0.0, 1.0);
        }
        if from_zero {
            (from, to) = (from.min(0.0), to.max(0.0));
        }
        let room = if to > from {
            (to - from) * 0.05
        } else {
            to.abs().max(1.0) * 0.5
        };
        let low = if from_zero && from == 0.0 {
            0.0
        } else {
            from - room
        };
        Self {
            from: low,
            to: to + room,
        }
    }

    pub(super) fn exactly(from: f64, to: f64) -> Self {
        Self { from, to }
    }

    pub(super) fn onto(self, first: f64, last: f64) -> Mapped {
        Mapped {
            span: self,
            first,
            last,
        }
    }
}

impl Mapped {
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = (value - self.span.from) / (self.span.to - self.span.from);
        self.first + share * (self.last - self.first)
    }

    pub(super) fn ticks(&self) -> Vec<f64> {
        ticks(self.span.from, self.span.to)
    }
}

/// Round numbers from `from` to `to`, four to ten of them: multiples of 1, 2 or 5 times a power of ten.
#[must_use]
pub fn ticks(from: f64, to: f64) -> Vec<f64> {
    let rough = (to - from) / 8.0;
    if rough.is_nan() || rough <= 0.0 || rough.is_infinite() {
        return vec![from];
    }
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .map(|times| times * power)
        .into_iter()
        .find(|step| *step >= rough);
    let step = step.unwrap_or(10.0 * power);
    let first = (from / step).ceil() as i64;
    let last = (to / step).floor() as i64;
    (first..=last).map(|number| number as f64 * step).collect()
}

/// A number as axes show it.
pub(super) fn label(value: f64) -> String {
    let size = value.abs();
    if size >= 1e5 {
        let power = size.log10().floor() as i32;
        let digits = (value / 10_f64.powi(power) * 100.0).round() / 100.0;
        return format!("{digits}·10^{power}");
    }
    // Sums of binary fractions end in dust that nobody wants to read.
    let rounded = (value * 1e6).round() / 1e6;
    if rounded == 0.0 {
        "0".into()
    } else {
        format!("{rounded}")
    }
}

#[cfg(test)]
mod tests {
    use super::{Span, label, ticks};

    #[test]
    fn ticks_are_round_and_neither_few_nor_many() {
        for (from, to) in [
            (0.0, 1.0),
            (-3.0, 7.0),
            (0.0, 123_456.0),
            (0.1, 0.12),
            (5.0, 5.5),
        ] {
            let ticks = ticks(from, to);
            assert!((4..=11).contains(&ticks.len()), "{ticks:?}");
            assert!(
                ticks.iter().all(|tick| (from..=to).contains(tick)),
                "{ticks:?}"
            );
        }
        assert_eq!(ticks(2.0, 2.0), [2.0]);
    }

    #[test]
    fn labels_have_no_dust() {
        let labels = [0.1 + 0.2, 0.0, 2_000.0, 250_000.0, -0.5].map(label);
        assert_eq!(labels, ["0.3", "0", "2000", "2.5·10^5", "-0.5"]);
    }

    #[test]
    fn spans_are_never_empty() {
        for values in [vec![], vec![3.0], vec![0.0, 0.0], vec![f64::NAN, 1.0]] {
            for from_zero in [false, true] {
                let mapped = Span::of(values.iter().copied(), from_zero).onto(0.0, 100.0);
                assert!(mapped.at(1.0).is_finite(), "{values:?}");
            }
        }
    }
}
