//! How a campaign stands, in words.

use tomo_export::words::counted;
use tomo_protocol::{Instance, Numbers};

use super::words::{hours, share, time};
use crate::saying;

/// A few lines on the campaign of this name and one for each instance.
pub(super) fn text(name: &str, numbers: &Numbers) -> String {
    let Numbers {
        campaign,
        retired,
        units,
        carried,
        seen,
        last_new,
        totals,
        instances,
    } = numbers;
    let state = if *retired { ", retired" } else { "" };
    let name = saying::name(name);
    let mut text = format!(
        "campaign {name} ({campaign}){state}\n\
         {seen} of {units} units seen ({}), {carried} carried by some variant\n\
         {}, {} ({} running, {} cut, {} unobserved), {} observed\n",
        share(u64::from(*seen), u64::from(*units)),
        counted(instances.len() as u64, "instance", "instances"),
        counted(totals.runs, "run", "runs"),
        totals.running,
        totals.cut,
        totals.unobserved,
        hours(totals.duration),
    );
    if let Some(at) = last_new {
        text += &format!("the last new unit was heard of at {}\n", time(*at));
    }
    if !instances.is_empty() {
        text += &format!(
            "\n{:<32}  {:>7}  {:>6}  {:>7}  {:>12}  {:<20}  {}\n",
            "instance", "variant", "runs", "hits", "observed", "last heard", "version"
        );
    }
    instances.iter().for_each(|one| text += &row(one));
    text
}

fn row(one: &Instance) -> String {
    let variant = one
        .variant
        .map_or_else(|| "-".to_owned(), |variant| variant.to_string());
    let mut row = format!(
        "{}  {variant:>7}  {:>6}  {:>7}  {:>12}  {:<20}  {}\n",
        one.instance,
        one.totals.runs,
        one.hits,
        hours(one.totals.duration),
        time(one.last_heard),
        saying::name(&one.version)
    );
    if one.refused > 0 {
        let why = saying::name(one.reason.as_deref().unwrap_or("for an unknown reason"));
        let processes = counted(
            one.refused,
            "process of its last run was",
            "processes of its last run were",
        );
        row += &format!("  {processes} not observed: {why}\n");
    }
    let reports = |count| counted(count, "of its reports was", "of its reports were");
    if one.dropped > 0 {
        let reports = reports(one.dropped);
        row += &format!("  {reports} dropped, since its spool was full\n");
    }
    if one.unfit > 0 {
        let reports = reports(one.unfit);
        row += &format!("  {reports} damaged on its disk, or refused for good\n");
    }
    row
}

#[cfg(test)]
mod tests {
    use super::text;
    use tomo_protocol::{CampaignId, Instance, InstanceId, Numbers, Totals};

    #[test]
    fn a_campaign_in_words() {
        let totals = Totals {
            runs: 12,
            running: 1,
            cut: 2,
            unobserved: 1,
            duration: 9_000_000_000_000,
            cpu: 0,
        };
        let instance = |number: u8| Instance {
            instance: InstanceId([number; 16]),
            variant: (number < 3).then_some(u32::from(number)),
            first_heard: 0,
            last_heard: 1_700_000_000_000_000_000 + i64::from(number),
            version: "0.1.0".into(),
            totals,
            hits: 40 * u32::from(number),
            refused: u64::from(number == 2),
            reason: Some("the program runs with raised privileges".into()),
            dropped: u64::from(number == 3) * 5,
            unfit: u64::from(number == 3),
        };
        let numbers = Numbers {
            campaign: CampaignId([7; 16]),
            retired: true,
            units: 1000,
            carried: 900,
            seen: 120,
            last_new: Some(1_700_000_000_000_000_000),
            totals,
            instances: (1..=3).map(instance).collect(),
        };
        insta::assert_snapshot!(text("checkout", &numbers));
    }
}
