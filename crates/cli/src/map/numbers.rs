//! Numbers as people read them.

pub(crate) use tomo_export::words::{counted, grouped};

/// The share that `part` is of `whole`: `98.5 %`. Only all is `100 %`, only nothing is `0 %`.
pub(crate) fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "–".into();
    }
    match part {
        0 => "0 %".into(),
        _ if part == whole => "100 %".into(),
        _ => {
            let percent = (part as f64 * 100.0 / whole as f64).clamp(0.01, 99.99);
            let decimals = if (0.1..=99.9).contains(&percent) {
                1
            } else {
                2
            };
            format!("{percent:.decimals$} %")
        }
    }
}

/// A size: `512 B`, `85.3 kB`, `110 MB`.
pub(crate) fn size(bytes: u64) -> String {
    scaled(bytes as f64, 1000.0, &["B", "kB", "MB", "GB", "TB"])
}

/// A time: `850 µs`, `12.3 ms`, `4.56 s`.
pub(crate) fn time(seconds: f64) -> String {
    scaled((seconds * 1e6).max(0.0), 1000.0, &["µs", "ms", "s"])
}

/// `amount` in the largest unit of which there is at least one, with three digits.
fn scaled(mut amount: f64, step: f64, units: &[&str]) -> String {
    let mut unit = 0;
    while amount >= step && unit + 1 < units.len() {
        amount /= step;
        unit += 1;
    }
    let decimals = match amount {
        _ if unit == 0 => 0,
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{amount:.decimals$} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_never_round_to_all_or_nothing() {
        assert_eq!(share(1, 3), "33.3 %");
        assert_eq!(share(99_999, 100_000), "99.99 %");
        assert_eq!(share(999_999, 1_000_000), "99.99 %");
        assert_eq!(share(1, 1_000_000), "0.01 %");
        assert_eq!(
            [share(0, 5), share(5, 5), share(0, 0)],
            ["0 %", "100 %", "–"]
        );
    }

    #[test]
    fn three_digits_and_a_unit() {
        assert_eq!(
            [0, 999, 1000, 85_300, 110_000_000].map(size),
            ["0 B", "999 B", "1.00 kB", "85.3 kB", "110 MB"]
        );
        assert_eq!(
            [0.000_85, 0.0123, 4.561, 123.4].map(time),
            ["850 µs", "12.3 ms", "4.56 s", "123 s"]
        );
        assert_eq!(counted(1, "block", "blocks"), "1 block");
    }
}
