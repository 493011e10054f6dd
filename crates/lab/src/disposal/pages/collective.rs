//! Collective disposal: Table 5.

use super::{Section, Table, count, number, percent};
use crate::disposal::fleet::{Deployed, Deployment, Source, Technique};
use crate::disposal::{Results, paper};

pub(in crate::disposal) const TITLE: &str = "Collective disposal";

const TEXT: &str = "\
Instances are runs of a server of requests, each with one of 15 configurations drawn at random; every \
deployment is made twice. *In a pool*: processes on this machine that map one image, so that what one \
of them hits is gone for all at once, and nobody waits for a server. *With a collector*: `tomo serve`, and for each \
instance a new installation that runs the program by `tomo run`; it takes its assignment and what others have seen \
first, then reports each new hit and disposes of what it hears; LD is a campaign that tells no news. What the \
launcher spends is beside the program and stands in a column of its own. Times are of the processor, since all \
instances share it. *Simulated*: the paper's algorithm and policy (each new probe is reported by itself, and the \
instance waits for the answer) on what the same runs did, with the costs of probes as measured above, \
and a server that is assumed to take 0.2 ms a request, 0.3 ms away; once on the runs as they are, and once as if each \
went on for as long as the paper's did. Overheads are over *No-I* in the same deployment where there is one.";

pub(in crate::disposal) fn section(results: &Results) -> Section {
    let mut tables = vec![printed()];
    let mut seen = Vec::new();
    for one in &results.fleets {
        let key = (one.program.as_str(), one.source);
        if !seen.contains(&key) {
            seen.push(key);
            tables.push(table(results, key));
        }
    }
    if !results.costs.is_empty() {
        tables.push(costs(results));
    }
    Section {
        title: TITLE,
        text: TEXT.into(),
        tables,
    }
}

/// What people call where outcomes come from.
pub(in crate::disposal) fn source_name(source: Source) -> &'static str {
    match source {
        Source::Pool => "in a pool",
        Source::Collector => "with a collector",
        Source::Simulated => "simulated",
        Source::SimulatedLong => "simulated, long runs",
    }
}

/// What files call it.
pub(in crate::disposal) fn source_file(source: Source) -> &'static str {
    match source {
        Source::Pool => "pool",
        Source::Collector => "collector",
        Source::Simulated => "simulated",
        Source::SimulatedLong => "simulated-long",
    }
}

/// What the paper calls a technique in a deployment.
pub(in crate::disposal) fn name(one: &Deployed) -> String {
    let deployment = match one.deployment {
        Deployment::Concurrent => "concurrent",
        Deployment::Distributed => "distributed",
        Deployment::Sequential => "sequential",
    };
    let technique = match one.technique {
        Technique::Bare => "No-I",
        Technique::Lasting(stay) => return format!("Dom-I, {} - {deployment}", stay.name()),
        Technique::Local => "LD-Dom-I",
        Technique::Collective => "CD",
    };
    format!("{technique} - {deployment}")
}

/// The same in two short lines, for axes.
pub(in crate::disposal) fn short_name(one: &Deployed) -> String {
    let deployment = match one.deployment {
        Deployment::Concurrent => "conc.",
        Deployment::Distributed => "dist.",
        Deployment::Sequential => "seq.",
    };
    let technique = match one.technique {
        Technique::Bare => "No-I",
        Technique::Lasting(stay) => stay.name(),
        Technique::Local => "LD",
        Technique::Collective => "CD",
    };
    format!("{technique}\n{deployment}")
}

/// The deployment without probes that this one is held against.
pub(in crate::disposal) fn bare<'r>(results: &'r Results, one: &Deployed) -> Option<&'r Deployed> {
    let same = |other: &&Deployed| {
        let bare = other.technique == Technique::Bare;
        bare && other.program == one.program && other.source == one.source
    };
    let mut all = results.fleets.iter().filter(same);
    let here = all.clone().find(|other| other.deployment == one.deployment);
    here.or_else(|| all.find(|other| other.deployment == Deployment::Sequential))
}

/// By how much longer instances take than without probes.
pub(in crate::disposal) fn overhead(results: &Results, one: &Deployed) -> Option<f64> {
    let without = bare(results, one)?.time()?.mean;
    Some((one.time()?.mean - without) / without)
}

fn table(results: &Results, (program, source): (&str, Source)) -> Table {
    let title = format!("Table 5, ours: {program}, {}", source_name(source));
    let file = format!("table-5-{program}-{}", source_file(source));
    let columns = [
        "technique and deployment",
        "#instances",
        "#mean s",
        "#sd",
        "#% over No-I",
        "#probes executed %",
        "#contacts",
        "#beside it, s",
        "#operations / s",
        "#at once",
    ];
    let mut table = Table::new(&file, &title, "", &columns);
    for one in &results.fleets {
        if (one.program.as_str(), one.source) != (program, source) {
            continue;
        }
        let time = one.time();
        let contacts: Option<Vec<u64>> = one.instances.iter().map(|i| i.contacts).collect();
        let mean = contacts.map(|all| all.iter().sum::<u64>() as f64 / all.len().max(1) as f64);
        let over = match one.technique {
            Technique::Bare => None,
            _ => overhead(results, one),
        };
        table.rows.push(vec![
            name(one),
            one.instances.len().to_string(),
            number(time.map(|time| time.mean)),
            number(time.map(|time| time.deviation)),
            percent(over),
            percent(one.executed()),
            number(mean),
            number(one.beside()),
            number(one.throughput().map(|rate| rate.mean)),
            one.peak.to_string(),
        ]);
    }
    table
}

fn printed() -> Table {
    let note = "*Probes executed* are from DIS §4.3. The text says that the 20 % of the concurrent deployment are 278 seconds; \
                its own means give 378.";
    let columns = [
        "technique and scenario",
        "#mean s",
        "#sd",
        "#% over No-I",
        "#probes executed %",
    ];
    let mut table = Table::new(
        "table-5-paper",
        "Table 5, the paper's: Specjbb2000",
        note,
        &columns,
    );
    for row in paper::TABLE_5 {
        let optional = |value: Option<f64>| value.map(|v| v.to_string()).unwrap_or_default();
        let mut cells = vec![row.name.to_owned()];
        cells.extend([row.mean, row.deviation].map(|value| value.to_string()));
        cells.extend([row.overhead, row.executed].map(optional));
        table.rows.push(cells);
    }
    table
}

fn costs(results: &Results) -> Table {
    let columns = [
        "program",
        "#a mark that stays, ns",
        "#a probe that goes, µs",
        "#server, µs",
        "#way, µs",
    ];
    let mut table = Table::new("costs", "What the simulation is told", "", &columns);
    for (program, costs) in &results.costs {
        let scaled = [
            costs.mark * 1e9,
            costs.disposal * 1e6,
            costs.service * 1e6,
            costs.latency * 1e6,
        ];
        let cells = scaled.map(|value| number(Some(value))).to_vec();
        table.rows.push([vec![program.clone()], cells].concat());
    }
    let seen = results
        .fleets
        .iter()
        .filter(|one| one.technique == Technique::Collective);
    let seen: Vec<String> = seen
        .filter_map(|one| {
            let least = one.seen.iter().min()?;
            Some(format!(
                "{} {} {}: {}",
                one.program,
                source_name(one.source),
                name(one),
                count(*least)
            ))
        })
        .collect();
    table.note = format!(
        "Probes that recorded anything anywhere, least of the repetitions: {}.",
        seen.join("; ")
    );
    table
}
