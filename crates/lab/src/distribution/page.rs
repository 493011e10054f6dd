//! The study's page: Figures 2 and 3, Table 3, and the paper's numbers beside ours.

use super::anova::Anova;
use super::trial::Way;
use super::{BOUNDS, Kind, Results, Studied, Technique, Trial};
use crate::disposal::StudyError;
use crate::disposal::numbers::{Summary, median};
use crate::sheet::Sheet;
use crate::svg::{Boxed, Layer, Plot, Shape};
use crate::table::{Table, count, number, percent};

/// Everything that the study gives to read: file names and contents. The page is `distribution.md`.
///
/// # Errors
/// Where the results cannot be put as JSON.
pub fn render(results: &Results) -> Result<Vec<(String, String)>, StudyError> {
    let mut sheet = Sheet::new(opening(results));
    sheet.tables(&[
        bounds(results),
        shares(results),
        falsely(results),
        table_3(results),
        pairs(results),
    ]);
    for studied in &results.studied {
        let mut figures: Vec<_> = BOUNDS
            .iter()
            .map(|bound| figure_2(studied, *bound))
            .collect();
        figures.push(figure_3(studied));
        for (file, plot) in figures {
            sheet.plot((&file, &plot.title), &plot, "");
        }
    }
    Ok(sheet.close("distribution", results)?)
}

fn opening(results: &Results) -> String {
    format!(
        "# Probes distributed over instances, to see chains of calls\n\n\
         After Diep, Cohen, Elbaum, *Probe Distribution Techniques to Profile Events in Deployed Software* (PDT); numbers of \
         tables and figures are those of the paper, whose subject was MyIE, a web browser: 1197 probes, 36 sites, 378 sessions. \
         Here {} instances make three runs each, every run with a configuration of its own, and every technique was tried {} times \
         at each bound. What runs did is known exactly, and masked with the probes that the instance's variant has: these say \
         which of them were hit in a run, and a chain is reported where all its probes were. Events \
         are the chains that twelve other runs showed in house, clusters are roots with all that they reach by direct calls. A \
         climb ends after {} bad moves in succession (the paper: 500,000). Made in {:.0} seconds.\n\n",
        results.instances,
        results.repetitions,
        count(results.frozen),
        results.seconds
    )
}

fn bounds(results: &Results) -> Table {
    let mut table = Table::new(
        "bounds",
        "Bounds",
        "The overhead of all probes is measured: the processor's time under `tomo chains` to that of the program alone. A \
         number of probes that is drawn at random costs its share of that on the average. The paper measured: 50, 75, 230 and \
         450 probes; by its 150 % for all, shares would be 40, 80, 200 and 399. *Best* is what the best distribution that was \
         found afterwards would have shown, *at most* what none can exceed.",
        &[
            "program",
            "#units",
            "#all cost, %",
            "#bound, %",
            "#probes",
            "#chains in the field",
            "#seen in house, too",
            "#best",
            "#at most",
            "#events that fit",
            "#clusters that fit",
            "#of",
        ],
    );
    for one in &results.studied {
        for bound in &one.bounds {
            let of = |value: usize| count(value as u64);
            table.rows.push(vec![
                one.program.clone(),
                of(one.units),
                percent(Some(one.overhead - 1.0)),
                number(Some(100.0 * bound.overhead)),
                of(bound.probes),
                of(one.chains[0]),
                of(one.chains[2]),
                of(bound.best),
                of(bound.upper),
                of(bound.fitting[0]),
                of(bound.fitting[1]),
                of(one.clusters[0]),
            ]);
        }
    }
    table
}

/// The trials of a technique at a bound.
fn of(studied: &Studied, technique: Technique, bound: f64) -> impl Iterator<Item = &Trial> {
    let trials = studied.trials.iter();
    trials.filter(move |one| one.technique == technique && (one.overhead - bound).abs() < 1e-9)
}

/// A table of all techniques at all bounds.
fn techniques(
    table: &mut Table,
    results: &Results,
    value: &dyn Fn(&Studied, Technique, f64) -> String,
) {
    for studied in &results.studied {
        for technique in Technique::all() {
            let cells = BOUNDS.iter().map(|bound| value(studied, technique, *bound));
            let head = [studied.program.clone(), technique.name()];
            table.rows.push(head.into_iter().chain(cells).collect());
        }
    }
}

const HEADS: [&str; 6] = ["program", "technique", "#5 %", "#10 %", "#25 %", "#50 %"];

fn shares(results: &Results) -> Table {
    let mut table = Table::new(
        "shares",
        "Chains correctly identified, in % of what the best distribution would have shown: medians (Figure 2)",
        "The paper says: techniques for probes are below all others at every bound; clusters are above events where the bound is \
         tight; events are as good where it is wide; balancing and packing gain 6 % over random clusters on the average.",
        &HEADS,
    );
    techniques(&mut table, results, &|studied, technique, bound| {
        percent(median(
            of(studied, technique, bound).map(|trial| trial.share),
        ))
    });
    table
}

fn falsely(results: &Results) -> Table {
    let mut table = Table::new(
        "falsely",
        "Chains falsely reported for each that was correctly: medians (Figure 3)",
        "The paper says: for probes it grows with the bound, for events and clusters it falls; events report ten times as many \
         as clusters at the tightest bound, eight times at the widest. It looks for chains in traces; here a chain is false where \
         its probes were hit by other chains of the same run. Nothing stands where nothing was identified.",
        &HEADS,
    );
    techniques(&mut table, results, &|studied, technique, bound| {
        let ratios: Option<Vec<f64>> = of(studied, technique, bound)
            .map(|trial| trial.false_ratio)
            .collect();
        number(ratios.and_then(median))
    });
    table
}

/// The shares of some techniques, by technique and bound.
fn cells(studied: &Studied, techniques: &[Technique]) -> Vec<Vec<Vec<f64>>> {
    let row = |technique: &Technique| {
        let cell = |bound: &f64| {
            of(studied, *technique, *bound)
                .map(|trial| trial.share)
                .collect()
        };
        BOUNDS.iter().map(cell).collect()
    };
    techniques.iter().map(row).collect()
}

fn of_kind(kind: Kind) -> Vec<Technique> {
    Technique::all().filter(|one| one.kind == kind).collect()
}

/// By type and bound: the random and the balanced technique, which each type has.
fn by_kind(studied: &Studied) -> Vec<Vec<Vec<f64>>> {
    let row = |kind: Kind| {
        let both = [Way::Random, Way::Balanced].map(|way| Technique { kind, way });
        let [random, balanced] = [0, 1].map(|at| cells(studied, &both[at..=at]).remove(0));
        let pairs = random.into_iter().zip(balanced);
        pairs.map(|(one, other)| [one, other].concat()).collect()
    };
    Kind::ALL.into_iter().map(row).collect()
}

/// Table 3, as it is printed.
const PRINTED: [(&str, &str, &str); 8] = [
    ("H1", "type", "0.00"),
    ("H2", "technique, Probes", "0.69"),
    ("H2", "technique, Events", "0.02"),
    ("H2", "technique, Clusters", "0.00"),
    ("H3", "bound", "0.00"),
    ("H4", "technique and bound, Probes", "0.51"),
    ("H4", "technique and bound, Events", "0.54"),
    ("H4", "technique and bound, Clusters", "0.00"),
];

fn table_3(results: &Results) -> Table {
    let mut heads = vec!["hypothesis", "effect", "#PDT"];
    let names: Vec<String> = results
        .studied
        .iter()
        .map(|one| format!("#{}", one.program))
        .collect();
    heads.extend(names.iter().map(String::as_str));
    let mut table = Table::new(
        "table-3",
        "Table 3: p-values of the analysis of variance",
        "Of the share of chains that were identified. Types are compared by the techniques that each has (random and balanced); \
         bounds together with types. Below 0.05 the paper calls an effect significant.",
        &heads,
    );
    let columns: Vec<Vec<f64>> = results.studied.iter().map(p_values).collect();
    for (at, (hypothesis, effect, printed)) in PRINTED.into_iter().enumerate() {
        let mut row: Vec<String> = [hypothesis, effect, printed].map(str::to_owned).to_vec();
        row.extend(
            columns
                .iter()
                .map(|column| column.get(at).map_or_else(String::new, |p| shown(*p))),
        );
        table.rows.push(row);
    }
    table
}

fn shown(p: f64) -> String {
    match p < 0.0005 {
        true => "< 0.001".into(),
        false => format!("{p:.3}"),
    }
}

/// In the order of Table 3.
fn p_values(studied: &Studied) -> Vec<f64> {
    let Some(kinds) = Anova::of(&by_kind(studied)) else {
        return Vec::new();
    };
    let each = Kind::ALL.map(|kind| Anova::of(&cells(studied, &of_kind(kind))));
    let techniques = each.iter().flatten().map(|anova| anova.first.p);
    let both = each.iter().flatten().map(|anova| anova.interaction.p);
    let all = [kinds.first.p].into_iter().chain(techniques);
    all.chain([kinds.second.p]).chain(both).collect()
}

/// Which techniques differ from the random one of their type.
fn pairs(results: &Results) -> Table {
    let mut table = Table::new(
        "bonferroni",
        "Bonferroni: techniques against the random one of their type, p-values",
        "Each type's comparisons at all bounds are paid for together. In parentheses is the difference of means, in points of the best. \
         The paper finds balanced and balanced-packed clusters significantly above random ones at its bounds of 5 % and 10 % alone.",
        &HEADS,
    );
    for studied in &results.studied {
        for kind in [Kind::Events, Kind::Clusters] {
            let techniques = of_kind(kind);
            let Some(anova) = Anova::of(&cells(studied, &techniques)) else {
                continue;
            };
            let (random, others) = (techniques[0], &techniques[1..]);
            let comparisons = others.len() * BOUNDS.len();
            for technique in others {
                let cell = |bound: &f64| {
                    let shares = |one| {
                        of(studied, one, *bound)
                            .map(|trial| trial.share)
                            .collect::<Vec<_>>()
                    };
                    let (own, other) = (shares(*technique), shares(random));
                    let means = Summary::of(&own).zip(Summary::of(&other));
                    means.map_or_else(String::new, |(mine, theirs)| {
                        let difference = mine.mean - theirs.mean;
                        let p = anova.bonferroni(difference, own.len(), comparisons);
                        format!("{} ({:+.1})", shown(p), 100.0 * difference)
                    })
                };
                let head = [studied.program.clone(), technique.name()];
                table
                    .rows
                    .push(head.into_iter().chain(BOUNDS.iter().map(cell)).collect());
            }
        }
    }
    table
}

/// A box of quartiles, with whiskers to the ends.
fn boxed(at: usize, values: &[f64]) -> Option<Boxed> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let quantile = |share: f64| {
        let place = share * (sorted.len() - 1) as f64;
        let (low, high) = (
            sorted[place.floor() as usize],
            sorted[place.ceil() as usize],
        );
        low + (high - low) * place.fract()
    };
    (!sorted.is_empty()).then(|| Boxed {
        at: at as f64,
        middle: quantile(0.5),
        edges: (quantile(0.25), quantile(0.75)),
        ends: (quantile(0.0), quantile(1.0)),
    })
}

fn layer(kind: Kind, at: usize, values: &[f64]) -> Option<Layer> {
    Some(Layer {
        name: String::new(),
        colour: kind as usize,
        shape: Shape::Box(boxed(at, values)?),
    })
}

fn figure_2(studied: &Studied, bound: f64) -> (String, Plot) {
    let techniques: Vec<Technique> = Technique::all().collect();
    let layers = techniques.iter().enumerate().filter_map(|(at, technique)| {
        let shares: Vec<f64> = of(studied, *technique, bound)
            .map(|trial| 100.0 * trial.share)
            .collect();
        layer(technique.kind, at, &shares)
    });
    let plot = Plot {
        title: format!(
            "Chains identified: {}, bound {:.0} % (Figure 2)",
            studied.program,
            100.0 * bound
        ),
        y: "% of what the best distribution shows".into(),
        names: techniques.iter().map(|one| one.name()).collect(),
        from_zero: true,
        layers: layers.collect(),
        ..Plot::default()
    };
    (
        format!("figure-2-{}-{:.0}", studied.program, 100.0 * bound),
        plot,
    )
}

fn figure_3(studied: &Studied) -> (String, Plot) {
    let (mut names, mut layers) = (Vec::new(), Vec::new());
    for kind in Kind::ALL {
        for bound in [BOUNDS[0], BOUNDS[3]] {
            for way in [Way::Random, Way::Balanced] {
                let technique = Technique { kind, way };
                let ratios: Vec<f64> = of(studied, technique, bound)
                    .filter_map(|trial| trial.false_ratio)
                    .collect();
                layers.extend(layer(kind, names.len(), &ratios));
                names.push(format!("{}\n{:.0} %", technique.name(), 100.0 * bound));
            }
        }
    }
    let plot = Plot {
        title: format!("Chains falsely reported: {} (Figure 3)", studied.program),
        y: "for each that was identified".into(),
        names,
        from_zero: true,
        layers,
        ..Plot::default()
    };
    (format!("figure-3-{}", studied.program), plot)
}

#[cfg(test)]
mod tests {
    use super::{BOUNDS, Results, Studied, Technique, Trial, boxed, render};

    fn results() -> Results {
        let trials = Technique::all().enumerate().flat_map(|(at, technique)| {
            BOUNDS.iter().flat_map(move |bound| {
                (0..3).map(move |repetition| Trial {
                    technique,
                    overhead: *bound,
                    share: 0.05 * at as f64 + bound / 2.0 + 0.01 * f64::from(repetition),
                    false_ratio: Some(0.5),
                    seen: 10,
                    falsely: 5,
                })
            })
        });
        Results {
            studied: vec![Studied {
                program: "p".into(),
                trials: trials.collect(),
                overhead: 1.5,
                ..Studied::default()
            }],
            ..Results::default()
        }
    }

    #[test]
    fn a_page_has_its_tables_and_figures() {
        let files = render(&results()).expect("files");
        let page = &files
            .iter()
            .find(|(name, _)| name == "distribution.md")
            .expect("a page")
            .1;
        assert!(
            page.contains("| p | R_Ev | 13.5 | 16.0 | 23.5 | 36.0 |"),
            "{page}"
        );
        assert!(page.contains("| H1 | type | 0.00 | < 0.001 |"), "{page}");
        assert!(
            page.contains("| H4 | technique and bound, Events | 0.54 | 1.000 |"),
            "{page}"
        );
        assert!(page.contains("| p | B_Cl | < 0.001 (+5.0) |"), "{page}");
        let figures = files.iter().filter(|(name, _)| name.ends_with(".svg"));
        assert_eq!(figures.count(), 5);
    }

    #[test]
    fn boxes_are_those_of_quartiles() {
        let one = boxed(0, &[4.0, 1.0, 2.0, 3.0, 10.0]).expect("a box");
        assert_eq!(
            (one.middle, one.edges, one.ends),
            (3.0, (2.0, 4.0), (1.0, 10.0))
        );
        assert!(boxed(0, &[]).is_none());
    }
}
