//! The figures: gain against redundancy (Figure 2), times and throughput of instances (3, 4), coverage over
//! time (5).

use super::fleet::{Curve, Curves, Deployed, Source, Technique};
use super::pages::{collective, local, number, percent};
use super::{Fit, Mark, Results, Stay, Summary, Units, Way};
use crate::svg::{Boxed, Layer, Plot, Shape};

/// A figure and where it goes.
pub(super) struct Figure {
    pub(super) section: &'static str,
    pub(super) file: String,
    pub(super) plot: Plot,
    /// What is to be said of it.
    pub(super) words: String,
}

pub(super) fn all(results: &Results) -> Vec<Figure> {
    let mut figures: Vec<Figure> = redundancy(results).into_iter().collect();
    let mut seen: Vec<(&str, Source)> = Vec::new();
    for one in &results.fleets {
        let key = (one.program.as_str(), one.source);
        if !seen.contains(&key) {
            seen.push(key);
            figures.push(boxes(results, key, Measure::Time));
            figures.push(boxes(results, key, Measure::Throughput));
        }
    }
    figures.extend(results.curves.iter().map(coverage));
    figures
}

/// Figure 2: how much disposal gains, against how often probes are executed again and again.
fn redundancy(results: &Results) -> Option<Figure> {
    let mut layers = Vec::new();
    let mut words =
        String::from("Figure 2. Each point is a run of the tables at one level of probes. ");
    for (colour, stay) in Stay::ALL.into_iter().enumerate() {
        let points: Vec<(f64, f64)> = results
            .redundancy
            .iter()
            .filter_map(|one| {
                let timed = results.timed.iter().find(|timed| timed.task == one.task)?;
                let gain = timed.gain(Way::Lasting(one.units, stay), Way::Armed(one.units))?;
                Some((local::rate(results, one)? / 1e6, 100.0 * gain))
            })
            .collect();
        let name = format!("gain on {}", stay.name());
        let layer = |name: &str, shape| Layer {
            name: name.into(),
            colour,
            shape,
        };
        if let Some(fit) = Fit::of(&points) {
            let at = |x: f64| (x, fit.offset + fit.slope * x);
            let ends = [f64::min, f64::max].map(|pick: fn(f64, f64) -> f64| {
                points
                    .iter()
                    .map(|point| point.0)
                    .reduce(pick)
                    .unwrap_or(0.0)
            });
            layers.push(layer("", Shape::Line(ends.map(at).to_vec())));
            words += &format!(
                "{name}: {} points for each million a second, correlation {}. ",
                number(Some(fit.slope)),
                number(Some(fit.correlation))
            );
        }
        layers.push(layer(&name, Shape::Points(points)));
    }
    words +=
        "The paper calls its relation \"positive and linear\"; its points are not in our copy.";
    let is_empty = layers.iter().all(|layer| match &layer.shape {
        Shape::Points(points) => points.is_empty(),
        _ => true,
    });
    let plot = Plot {
        title: "Gain of disposal against redundant probe executions".into(),
        x: "redundant probe executions, millions a second".into(),
        y: "gain, points of No-I".into(),
        layers,
        ..Plot::default()
    };
    (!is_empty).then(|| Figure {
        section: local::TITLE,
        file: "figure-2".into(),
        plot,
        words: words.trim_end().into(),
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Measure {
    Time,
    Throughput,
}

/// Figures 3 and 4: "the line embedded in each box marks the mean value, the edges of the box are bounded by
/// the standard error, and the whiskers extend to the minimum and maximum observed values" (DIS §4.3).
fn boxes(results: &Results, (program, source): (&str, Source), measure: Measure) -> Figure {
    let same = |one: &&Deployed| one.program == program && one.source == source;
    let (mut layers, mut names) = (Vec::new(), Vec::new());
    for one in results.fleets.iter().filter(same) {
        let summary = match measure {
            Measure::Time => one.time(),
            Measure::Throughput => one.throughput(),
        };
        let Some(summary) = summary else { continue };
        layers.push(Layer {
            name: String::new(),
            colour: colour(one.technique),
            shape: Shape::Box(boxed(names.len(), &summary)),
        });
        names.push(collective::short_name(one));
    }
    let (number, what, y) = match measure {
        Measure::Time => (3, "Time of instances", "seconds"),
        Measure::Throughput => (4, "Throughput of instances", "operations a second"),
    };
    let from = collective::source_name(source);
    Figure {
        section: collective::TITLE,
        file: format!(
            "figure-{number}-{program}-{}",
            collective::source_file(source)
        ),
        plot: Plot {
            title: format!("{what}: {program}, {from}"),
            y: y.into(),
            names,
            layers,
            ..Plot::default()
        },
        words: format!(
            "Figure {number}, {program}, {from}: mean, standard error, least and most of all instances."
        ),
    }
}

fn boxed(at: usize, summary: &Summary) -> Boxed {
    let error = summary.standard_error();
    Boxed {
        at: at as f64,
        middle: summary.mean,
        edges: (summary.mean - error, summary.mean + error),
        ends: (summary.least, summary.most),
    }
}

fn colour(technique: Technique) -> usize {
    match technique {
        Technique::Bare => 5,
        Technique::Lasting(Stay::Woven) => 3,
        Technique::Lasting(Stay::Built(Mark::Flag)) => 4,
        Technique::Lasting(Stay::Built(Mark::Call)) => 1,
        Technique::Local => 0,
        Technique::Collective => 2,
    }
}

/// Figure 5: how fast instances cover the program, each for itself and all together.
fn coverage(curves: &Curves) -> Figure {
    let program = &curves.program;
    let points = |curve: &Curve| {
        curve
            .iter()
            .map(|&(at, seen)| (1e3 * at, seen as f64))
            .collect()
    };
    let faint = curves
        .instances
        .iter()
        .enumerate()
        .map(|(number, curve)| Layer {
            name: if number == 0 {
                "each instance".into()
            } else {
                String::new()
            },
            colour: 5,
            shape: Shape::Faint(points(curve)),
        });
    let together = Layer {
        name: "all together".into(),
        colour: 0,
        shape: Shape::Steps(points(&curves.together)),
    };
    let clock = match curves.source {
        Source::Collector => "the collector's clock",
        _ => "the instance's own time",
    };
    let mut words = format!("Figure 5, {program}, by {clock}: all instances start at once. ");
    for share in [0.8, 1.0] {
        if let Some(reached) = curves.reached(share) {
            words += &format!(
                "What is {} % of the best instance's coverage ({} blocks), all together have after {} ms, the first instance after {} ms. ",
                percent(Some(share)),
                reached.level,
                number(Some(1e3 * reached.together)),
                number(Some(1e3 * reached.first))
            );
        }
    }
    for (blocks, together, first) in super::paper::FIGURE_5 {
        words += &format!("The paper: {blocks} blocks after {together} s and {first} s. ");
    }
    Figure {
        section: collective::TITLE,
        file: format!(
            "figure-5-{program}-{}",
            collective::source_file(curves.source)
        ),
        plot: Plot {
            title: format!("Blocks covered over time: {program}, by {clock}"),
            x: format!("milliseconds of {clock}"),
            y: format!("probes of {} that were hit", Units::BlockDom.name()),
            from_zero: true,
            layers: faint.chain([together]).collect(),
            ..Plot::default()
        },
        words: words.trim_end().into(),
    }
}
