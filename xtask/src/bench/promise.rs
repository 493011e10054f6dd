//! A promise of a bench: a comparison with a number, as in `< 10 s`, `under 5 s for all` or
//! `over ten million`. What follows the number is for people, and says the unit in which the bench
//! measures. A number alone is the most that something may take, if it is measured in seconds or in
//! memory. Anything else is no promise but a remark.

use anyhow::{Context, Result};

const BELOW: [&str; 6] = ["<=", "<", "≤", "under ", "below ", "at most "];
const ABOVE: [&str; 6] = [">=", ">", "≥", "over ", "above ", "at least "];
const COSTS: [&str; 6] = ["s", "ms", "µs", "ns", "MB", "GB"];

/// What a measured value must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Promise {
    is_below: bool,
    limit: f64,
}

impl Promise {
    /// The promise that a text makes of a value in this unit; none if it is a remark.
    pub(super) fn read(text: &str, unit: &str) -> Result<Option<Self>> {
        let after = |words: &[&str]| words.iter().find_map(|word| text.strip_prefix(word));
        let (is_below, rest) = match (after(&BELOW), after(&ABOVE)) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ if COSTS.contains(&unit) && number(text).is_some() => (true, text),
            _ => return Ok(None),
        };
        let limit = number(rest).with_context(|| format!("a promise without a number: {text}"))?;
        Ok(Some(Self { is_below, limit }))
    }

    /// Whether a value is on the right side of the limit, or just there. What is not a number is
    /// not.
    pub(super) fn is_kept(self, value: f64) -> bool {
        if self.is_below {
            value <= self.limit
        } else {
            value >= self.limit
        }
    }
}

/// The number that a text begins with, in digits or in words, thousands and millions included.
fn number(text: &str) -> Option<f64> {
    let mut words = text.split_whitespace();
    let first = words.next()?;
    let count = match first {
        "a" | "one" => 1.0,
        "five" => 5.0,
        "ten" => 10.0,
        "hundred" => 100.0,
        digits => digits.replace([',', '_'], "").parse().ok()?,
    };
    let factor = match words.next() {
        Some("thousand") => 1e3,
        Some("million") => 1e6,
        _ => 1.0,
    };
    Some(count * factor).filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::Promise;

    #[test]
    fn promises_are_read_and_held() {
        let kept = |text, value| Promise::read(text, "s").unwrap().unwrap().is_kept(value);
        assert!(kept("< 10 s", 9.9) && !kept("< 10 s", 10.1));
        assert!(kept("under 5 s together with numbering", 4.0));
        assert!(kept("> 1,000,000 a second", 2e6) && !kept("> 1,000,000 a second", 9e5));
        assert!(kept("over ten million", 1.1e7) && !kept("over ten million", 9e6));
        assert!(kept("0.2", 0.1) && !kept("0.2", 0.3));
        assert!(!kept("< 10 s", f64::NAN) && !kept("> 10 s", f64::NAN));
    }

    #[test]
    fn remarks_promise_nothing_but_a_promise_without_a_number_is_refused() {
        for text in ["", "measure", "soon", "over"] {
            assert_eq!(Promise::read(text, "s").unwrap(), None, "{text}");
        }
        assert_eq!(Promise::read("30", "%").unwrap(), None);
        for text in ["< ten-ish s", "< inf", "<", "over many"] {
            assert!(Promise::read(text, "s").is_err(), "{text}");
        }
    }
}
