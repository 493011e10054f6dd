//! The study's page: tables, plots, and the paper's figures beside ours.

mod plots;

use tomo_plan::counting::SCALE;

use super::distributed::{Cost, STRATEGIES, Way, Weights, Whose};
use super::paper::{FIGURE_12, FIGURE_13, FIGURE_14, FIGURE_16, PROGRAMS};
use super::{Pair, Recorded, Results};
use crate::disposal::StudyError;
use crate::sheet::Sheet;
use crate::table::{Table, count, number};

/// Everything that the study gives to read: file names and contents. The page is `tracing.md`.
///
/// # Errors
/// Where the results cannot be put as JSON.
pub fn render(results: &Results) -> Result<Vec<(String, String)>, StudyError> {
    let mut sheet = Sheet::new(opening(results));
    let both = [Weights::Estimate, Weights::Trace];
    let mut tables = vec![figure_12(results)];
    tables.extend(both.map(|weights| figure_13(results, weights)));
    tables.extend(both.map(|weights| figure_14(results, weights)));
    tables.push(recorded(results));
    tables.push(winners(results));
    tables.extend(both.map(|weights| figure_16(results, weights)));
    tables.push(printed(results));
    tables.push(effort(results));
    sheet.tables(&tables);
    for (file, plot, words) in plots::all(results) {
        sheet.plot((&file, &plot.title), &plot, &words);
    }
    Ok(sheet.close("tracing", results)?)
}

fn opening(results: &Results) -> String {
    format!(
        "# Traces put together from several runs, on native programs\n\n\
         After Saha, Dhoolia, Paul, *Distributed Program Tracing* (DPT); numbers of figures are those of the paper, whose subjects \
         were 12 ABAP programs. Here they are {} pairs of a program and an input. Each cost is that of the busiest machine: \
         *distribution* is what its witnesses weigh, *collection* how often they are hit, which is counted, so it is the same on every machine and every \
         day. Weights are the estimate of Ball and Larus (the paper's BL-profile), or what ran in the very run (its trace profile), where \
         both costs are the same. Witnesses are at blocks or on ways of functions that are known exactly and that were \
         counted; every place can carry one. What arrives in such a function from elsewhere (callbacks, returns of libraries) takes further \
         witnesses, which are in what real runs recorded alone. Made in {:.0} seconds.\n\n",
        results.pairs.len(),
        results.seconds
    )
}

impl Pair {
    fn title(&self) -> String {
        format!("{} {}", self.program, self.number)
    }

    fn cost(
        &self,
        whose: Whose,
        weights: Weights,
        strategy: usize,
        machines: u32,
    ) -> Option<&Cost> {
        let way = Way {
            whose,
            weights,
            strategy,
            machines,
            bound: None,
        };
        self.costs.iter().find(|cost| cost.way == way)
    }

    /// Hits of the busiest of so many machines, by the best strategy.
    fn best(&self, whose: Whose, weights: Weights, machines: u32) -> Option<u64> {
        let costs = (0..STRATEGIES.len()).filter_map(|at| self.cost(whose, weights, at, machines));
        costs.map(|cost| cost.collection).min()
    }

    /// The same as a share of what one machine has.
    fn share(&self, whose: Whose, weights: Weights, machines: u32) -> Option<f64> {
        let (one, many) = (
            self.best(whose, weights, 1)?,
            self.best(whose, weights, machines)?,
        );
        (one > 0).then(|| 100.0 * many as f64 / one as f64)
    }

    fn bounded(&self, whose: Whose, weights: Weights, bound: u32) -> Option<&Cost> {
        let costs = self.costs.iter();
        let own = |cost: &&Cost| {
            (cost.way.whose, cost.way.weights, cost.way.bound) == (whose, weights, Some(bound))
        };
        costs.clone().find(own)
    }
}

/// How weights are called in titles and files.
fn named(weights: Weights) -> &'static str {
    match weights {
        Weights::Estimate => "estimate",
        Weights::Trace => "trace",
    }
}

fn three(counts: [u64; 3]) -> String {
    counts.map(count).join(" / ")
}

fn figure_12(results: &Results) -> Table {
    let mut table = Table::new(
        "figure-12",
        "Figure 12: programs and traces",
        "How many there are, how many the trace covers, how often it hits them. Diamonds, and cycles that pass none, are those of \
         functions that have few enough of them to be listed; the paper's cycles are all. A function is left out if it is not known exactly, or was not counted.",
        &[
            "program",
            "input",
            "#functions, of",
            "#blocks",
            "#listed",
            "#diamonds",
            "#cycles",
        ],
    );
    for (program, row) in PROGRAMS.iter().zip(FIGURE_12) {
        let [blocks, diamonds, cycles] = row.map(three);
        let row = [
            format!("*DPT: {program}*"),
            String::new(),
            String::new(),
            blocks,
        ];
        let row = row.into_iter().chain([String::new(), diamonds, cycles]);
        table.rows.push(row.collect());
    }
    for pair in &results.pairs {
        table.rows.push(vec![
            pair.title(),
            format!("`{}`", pair.input),
            format!("{} / {}", pair.functions[0], pair.functions[1]),
            three(pair.blocks),
            count(pair.shapes.listed as u64),
            three(pair.shapes.diamonds),
            three(pair.shapes.cycles),
        ]);
    }
    table
}

/// Machines of the table of costs, as in the paper.
const SHOWN: std::ops::RangeInclusive<u32> = 2..=5;

fn figure_13(results: &Results, weights: Weights) -> Table {
    let short = ["fine", "function", "optimized"];
    let mut columns = vec!["program".to_owned(), "#1".to_owned()];
    columns.extend(
        short
            .iter()
            .flat_map(|name| SHOWN.map(move |n| format!("#{name} {n}"))),
    );
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let (title, note) = match weights {
        Weights::Estimate => (
            "Figure 13: cost of distribution / cost of collection, weights by estimate",
            "The estimate takes each function to be entered once.",
        ),
        Weights::Trace => (
            "Figure 13, weights by trace: cost of collection",
            "The paper has these numbers in a report that we do not have.",
        ),
    };
    let mut table = Table::new(
        &format!("figure-13-{}", named(weights)),
        title,
        note,
        &columns,
    );
    if weights == Weights::Estimate {
        for (program, row) in PROGRAMS.iter().zip(FIGURE_13) {
            let name = format!("*DPT: {program}*");
            let cells = row.split(' ').map(str::to_owned);
            table.rows.push([name].into_iter().chain(cells).collect());
        }
    }
    let cell = |cost: Option<&Cost>| match (cost, weights) {
        (None, _) => String::new(),
        (Some(cost), Weights::Trace) => count(cost.collection),
        (Some(cost), Weights::Estimate) => {
            format!(
                "{}/{}",
                count(cost.distribution / SCALE),
                count(cost.collection)
            )
        }
    };
    for pair in &results.pairs {
        let mut row = vec![pair.title(), cell(pair.cost(Whose::Ours, weights, 1, 1))];
        for strategy in 0..STRATEGIES.len() {
            row.extend(SHOWN.map(|n| cell(pair.cost(Whose::Ours, weights, strategy, n))));
        }
        table.rows.push(row);
    }
    table
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn figure_14(results: &Results, weights: Weights) -> Table {
    let mut table = Table::new(
        &format!("figure-14-{}", named(weights)),
        &format!(
            "Figure 14: hits of the busiest machine, in % of one machine's, weights by {}",
            named(weights)
        ),
        "Of each number of machines the best strategy, as in the paper. The paper's means are those of its text; by its Figure 13 they are \
         65, 54, 46 and 41, and of all twelve 68, 58, 53 and 48.",
        &["program", "#2", "#3", "#4", "#5", "#6", "#7"],
    );
    let cells = |values: Vec<Option<f64>>| {
        values
            .into_iter()
            .map(|value| value.map_or_else(String::new, |value| format!("{value:.1}")))
    };
    if weights == Weights::Estimate {
        let said = FIGURE_14.map(|value| format!("{value:.0}"));
        let name = "*DPT: mean of nine*".to_owned();
        table.rows.push([name].into_iter().chain(said).collect());
    }
    let all = (2..=7).map(|n| {
        mean(
            results
                .pairs
                .iter()
                .filter_map(|pair| pair.share(Whose::Ours, weights, n)),
        )
    });
    let name = format!("**mean of all {}**", results.pairs.len());
    table
        .rows
        .push([name].into_iter().chain(cells(all.collect())).collect());
    for pair in &results.pairs {
        let own = (2..=7).map(|n| pair.share(Whose::Ours, weights, n));
        let row = [pair.title()].into_iter().chain(cells(own.collect()));
        table.rows.push(row.collect());
    }
    table
}

fn recorded(results: &Results) -> Table {
    let mut table = Table::new(
        "recorded",
        "What real runs recorded: words, weights by trace, optimized",
        "Runs of `tomo trace`, arrivals included, which are all in the first of several runs. Cycles that a register counts take three words each time control comes into them or leaves them, and none for going round; the paper has no such witnesses, nor have the tables above.",
        &[
            "program",
            "input",
            "#one run",
            "#each of several",
            "#busiest, %",
        ],
    );
    for recorded in &results.recorded {
        let shared: Vec<String> = recorded.shared.iter().map(|words| count(*words)).collect();
        let share = recorded.busiest();
        table.rows.push(vec![
            recorded.program.clone(),
            format!("`{}`", recorded.input),
            count(recorded.alone),
            shared.join(" + "),
            share.map_or_else(String::new, |share| format!("{share:.1}")),
        ]);
    }
    let mean = mean(results.recorded.iter().filter_map(Recorded::busiest));
    let mean = mean.map_or_else(String::new, |mean| format!("**{mean:.1}**"));
    let name = format!("**mean of all {}**", results.recorded.len());
    let nothing = String::new;
    table
        .rows
        .push(vec![name, nothing(), nothing(), nothing(), mean]);
    table
}

fn winners(results: &Results) -> Table {
    let mut table = Table::new(
        "winners",
        "Which strategy has the fewest hits in the busiest machine: how many pairs, and how many of these alone",
        "The paper says: by the trace, optimized is always better than function-wise, and fine-grained is best in half of the cases; by the \
         estimate it is best in four of twelve.",
        &[
            "weights",
            "machines",
            "#fine-grained",
            "#function-wise",
            "#optimized",
        ],
    );
    for weights in [Weights::Estimate, Weights::Trace] {
        for machines in [2, 3, 5, 7] {
            let mut row = vec![named(weights).to_owned(), machines.to_string()];
            for strategy in 0..STRATEGIES.len() {
                let (mut wins, mut alone) = (0, 0);
                for pair in &results.pairs {
                    let hits = |at| pair.cost(Whose::Ours, weights, at, machines);
                    let hits = |at| hits(at).map_or(u64::MAX, |cost| cost.collection);
                    let mut others = (0..STRATEGIES.len()).filter(|at| *at != strategy);
                    wins += u64::from(others.clone().all(|other| hits(strategy) <= hits(other)));
                    alone += u64::from(others.all(|other| hits(strategy) < hits(other)));
                }
                row.push(format!("{wins} ({alone})"));
            }
            table.rows.push(row);
        }
    }
    table
}

/// The paper's bounds.
const BOUNDS: [u32; 4] = [10, 20, 30, 40];

fn figure_16(results: &Results, weights: Weights) -> Table {
    let mut table = Table::new(
        &format!("figure-16-{}", named(weights)),
        &format!(
            "Figure 16: cost of collection with bounded profiles, three machines, function-wise, weights by {}",
            named(weights)
        ),
        "Ours / the printed algorithm, on functions whose diamonds can be listed; in parentheses is how many profiles that takes, all of \
         which are runs. Nothing stands where two ways of one branch take more witnesses than a profile may have; the printed algorithm then makes \
         larger ones.",
        &["program", "#10", "#20", "#30", "#40", "#unbounded"],
    );
    if weights == Weights::Estimate {
        for (program, row) in PROGRAMS.iter().zip(FIGURE_16) {
            let cells = row.map(count).into_iter().chain([String::new()]);
            let name = format!("*DPT: {program}*");
            table.rows.push([name].into_iter().chain(cells).collect());
        }
    }
    let one = |cost: Option<&Cost>| {
        let told = cost.map(|cost| format!("{} ({})", count(cost.collection), cost.profiles));
        told.unwrap_or_default()
    };
    for pair in &results.pairs {
        let both = |of: &dyn Fn(Whose) -> String| {
            format!("{} / {}", of(Whose::OursListed), of(Whose::PrintedListed))
        };
        let bounded = BOUNDS.map(|bound| both(&|whose| one(pair.bounded(whose, weights, bound))));
        let whole = both(&|whose| one(pair.cost(whose, weights, 1, 3)));
        let row = [pair.title()].into_iter().chain(bounded).chain([whole]);
        table.rows.push(row.collect());
    }
    table
}

fn printed(results: &Results) -> Table {
    let mut table = Table::new(
        "printed",
        "The printed algorithm (Figures 5 and 7) and ours, where diamonds can be listed: hits of the busiest machine, best strategy",
        "Witnesses on ways alone; calls are believed to come back. *Untold* is in how many of the listed functions the printed \
         witnesses on three machines do not tell two ways apart by our criterion: fine-grained, function-wise, optimized.",
        &[
            "program",
            "weights",
            "#printed 1",
            "#ours 1",
            "#printed 3",
            "#ours 3",
            "#printed 6",
            "#ours 6",
            "#listed",
            "#untold",
        ],
    );
    for pair in &results.pairs {
        for weights in [Weights::Estimate, Weights::Trace] {
            let mut row = vec![pair.title(), named(weights).to_owned()];
            for machines in [1, 3, 6] {
                for whose in [Whose::PrintedListed, Whose::OursListed] {
                    let hits = pair.best(whose, weights, machines);
                    row.push(hits.map_or_else(String::new, count));
                }
            }
            row.push(count(pair.shapes.listed as u64));
            let untold = (0..STRATEGIES.len()).map(|at| {
                let cost = pair.cost(Whose::PrintedListed, weights, at, 3);
                cost.map_or_else(String::new, |cost| cost.untold.to_string())
            });
            row.push(untold.collect::<Vec<_>>().join(", "));
            table.rows.push(row);
        }
    }
    table
}

fn effort(results: &Results) -> Table {
    let mut table = Table::new(
        "effort",
        "What planning takes, weights by trace",
        "Witnesses in all profiles together, optimized. Seconds are measured, and those of this machine: of placing all witnesses once, and of making all distributions of the tables from these, whatever the strategy.",
        &[
            "program",
            "#witnesses, one machine",
            "#three",
            "#seven",
            "#seconds, placing",
            "#seconds, all distributions",
        ],
    );
    for pair in &results.pairs {
        let witnesses = [1, 3, 7].map(|machines| {
            let cost = pair.cost(Whose::Ours, Weights::Trace, 2, machines);
            cost.map_or_else(String::new, |cost| count(cost.witnesses as u64))
        });
        let seconds = pair.seconds.map(|seconds| number(Some(seconds)));
        let row = [pair.title()].into_iter().chain(witnesses).chain(seconds);
        table.rows.push(row.collect());
    }
    table
}
