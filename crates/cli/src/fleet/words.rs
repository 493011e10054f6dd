//! Shares, times, and what a profile says beside the report.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tomo_export::words::counted;
use tomo_protocol::{Growth, Profile};

/// Rows of the table of growth at most.
const ROWS: usize = 20;
/// Groups of unseen units that are shown.
const GROUPS: usize = 10;

/// A part of a whole, in percent.
pub(super) fn share(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

/// Nanoseconds as people say them.
pub(super) fn hours(nanoseconds: u64) -> String {
    let seconds = nanoseconds as f64 / 1e9;
    match seconds {
        ..120.0 => format!("{seconds:.1} s"),
        ..7200.0 => format!("{:.1} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

/// A time of the collector's clock, in UTC.
pub(crate) fn time(nanoseconds: i64) -> String {
    let since = u64::try_from(nanoseconds).map(Duration::from_nanos);
    let at = since.ok().and_then(|since| UNIX_EPOCH.checked_add(since));
    at.map_or_else(|| "an unknown time".into(), utc)
}

fn utc(at: SystemTime) -> String {
    humantime::format_rfc3339_seconds(at).to_string()
}

/// What is said below the report: who watched, when what was seen was seen, and what was not.
pub(super) fn profile(profile: &Profile) -> String {
    let totals = &profile.totals;
    let seen = profile.seen.len() as u64;
    let mut text = format!(
        "\nfleet: {}, {}, {} observed\nseen: {seen} of {} units ({})\n",
        counted(profile.instances, "instance", "instances"),
        counted(totals.runs, "run", "runs"),
        hours(totals.duration),
        profile.units,
        share(seen, profile.units.into())
    );
    let mut firsts: Vec<i64> = profile.seen.iter().map(|seen| seen.first).collect();
    firsts.sort_unstable();
    if let (Some(first), Some(last)) = (firsts.first(), firsts.last()) {
        let half = firsts.get(firsts.len() / 2).unwrap_or(last);
        text += &format!(
            "  first at {}, half of them by {}, the last at {}\n",
            time(*first),
            time(*half),
            time(*last)
        );
    }
    let by_one = profile
        .seen
        .iter()
        .filter(|seen| seen.instances == 1)
        .count() as u64;
    text += &format!(
        "  reported by one instance: {by_one} ({}); others need not look for what is known\n",
        share(by_one, seen)
    );
    text + &unseen(profile)
}

fn unseen(profile: &Profile) -> String {
    let count: u64 = profile.unseen.iter().map(|group| group.units.len()).sum();
    let mut text = format!("never seen: {}\n", counted(count, "unit", "units"));
    for group in profile.unseen.iter().take(GROUPS) {
        let units = if group.units.len() == 1 {
            "unit"
        } else {
            "units"
        };
        text += &match group.instances {
            0 => format!(
                "  {:>8} {units} that nobody has watched\n",
                group.units.len()
            ),
            instances => format!(
                "  {:>8} {units} in {}, with {} watching\n",
                group.units.len(),
                hours(group.duration),
                counted(instances, "instance", "instances")
            ),
        };
    }
    let more = profile.unseen.iter().skip(GROUPS);
    let rest: u64 = more.map(|group| group.units.len()).sum();
    if rest > 0 {
        text += &format!("  {rest:>8} units watched for less; --units FILE has them all\n");
    }
    text
}

/// How coverage grew: a row for each of some times, from the campaign's beginning on.
pub(super) fn growth(growth: &Growth) -> String {
    let Growth {
        created,
        units,
        all,
        instances,
        ..
    } = growth;
    let mut text = format!(
        "{:>12}  {:>9}  {:>8}  {:>29}\n",
        "after", "units", "share", "reported by one (least, most)"
    );
    let step = all.len().div_ceil(ROWS).max(1);
    let last = all.len().saturating_sub(1);
    let rows = all.iter().enumerate();
    for (_, &(at, count)) in rows.filter(|(row, _)| row % step == 0 || *row == last) {
        let own = instances.iter().map(|curve| at_time(&curve.points, at));
        let (least, most) = (own.clone().min().unwrap_or(0), own.max().unwrap_or(0));
        let after = u64::try_from(at.saturating_sub(*created)).unwrap_or(0);
        text += &format!(
            "{:>12}  {count:>9}  {:>8}  {:>29}\n",
            hours(after),
            share(count.into(), u64::from(*units)),
            format!("{least}, {most}")
        );
    }
    text
}

/// How many units a curve has at a time.
fn at_time(points: &[(i64, u32)], at: i64) -> u32 {
    let behind = points.partition_point(|(time, _)| *time <= at);
    let last = behind.checked_sub(1).and_then(|last| points.get(last));
    last.map_or(0, |(_, count)| *count)
}

#[cfg(test)]
mod tests {
    use tomo_protocol::{
        CampaignId, Curve, Growth, InstanceId, Profile, Seen, Totals, Units, Unseen,
    };

    const START: i64 = 1_700_000_000_000_000_000;

    #[test]
    fn a_profile_in_words() {
        let seen = |unit: u32| Seen {
            unit,
            first: START + 1_000_000_000 * i64::from(unit),
            instances: 1 + unit % 2,
            count: None,
        };
        let unseen = |first: u32, instances, duration| Unseen {
            units: Units::of(first..first + 100),
            instances,
            duration,
        };
        let profile = Profile {
            campaign: CampaignId([1; 16]),
            units: 410,
            instances: 7,
            totals: Totals {
                runs: 90,
                duration: 400_000_000_000,
                ..Totals::default()
            },
            variants: Vec::new(),
            seen: (0..110).map(seen).collect(),
            unseen: vec![
                unseen(110, 7, 9_000_000_000_000),
                unseen(210, 2, 30_000_000_000),
                unseen(310, 0, 0),
            ],
            chains: Vec::new(),
        };
        insta::assert_snapshot!(super::profile(&profile));
    }

    #[test]
    fn one_of_a_kind_is_not_several() {
        let profile = Profile {
            campaign: CampaignId([1; 16]),
            units: 1,
            instances: 1,
            totals: Totals {
                runs: 1,
                ..Totals::default()
            },
            variants: Vec::new(),
            seen: Vec::new(),
            unseen: vec![Unseen {
                units: Units::of(0..1),
                instances: 1,
                duration: 0,
            }],
            chains: Vec::new(),
        };
        let text = super::profile(&profile);
        for words in [
            "fleet: 1 instance, 1 run, ",
            "never seen: 1 unit\n",
            "1 unit in 0.0 s, with 1 instance watching",
        ] {
            assert!(text.contains(words), "{text}");
        }
    }

    #[test]
    fn growth_in_words() {
        let points = |speed: u32| -> Vec<(i64, u32)> {
            let point = |step: u32| (START + 10_000_000_000 * i64::from(step), speed * step);
            (1..100).map(point).collect()
        };
        let curve = |number: u8| Curve {
            instance: InstanceId([number; 16]),
            points: points(number.into()),
        };
        let growth = Growth {
            campaign: CampaignId([1; 16]),
            created: START,
            units: 1000,
            all: points(7),
            instances: (1..4).map(curve).collect(),
        };
        insta::assert_snapshot!(super::growth(&growth));
    }
}
