//! Figures 14 and 15, with our numbers.

use super::super::distributed::{STRATEGIES, Weights, Whose};
use super::super::paper::FIGURE_14;
use super::super::{Pair, Results};
use super::{mean, named};
use crate::svg::{Layer, Plot, Shape};

/// All plots: their files, and what has to be known to read them.
pub(super) fn all(results: &Results) -> Vec<(String, Plot, String)> {
    let both = [Weights::Estimate, Weights::Trace];
    let mut plots: Vec<_> = both.map(|weights| figure_14(results, weights)).into();
    for weights in both {
        let firsts = results.pairs.iter().filter(|pair| pair.number == 1);
        plots.extend(firsts.map(|pair| figure_15(pair, weights)));
    }
    plots
}

const MACHINES: std::ops::RangeInclusive<u32> = 1..=7;

fn figure_14(results: &Results, weights: Weights) -> (String, Plot, String) {
    let mut programs: Vec<&str> = results
        .pairs
        .iter()
        .map(|pair| pair.program.as_str())
        .collect();
    programs.dedup();
    let mut layers = Vec::new();
    for (colour, program) in programs.iter().enumerate() {
        let own = results.pairs.iter().filter(|pair| pair.program == *program);
        let shares = MACHINES.filter_map(|n| {
            let shares = own
                .clone()
                .filter_map(|pair| pair.share(Whose::Ours, weights, n));
            Some((f64::from(n), mean(shares)?))
        });
        layers.push(Layer {
            name: (*program).to_owned(),
            colour,
            shape: Shape::Curve(shares.collect()),
        });
    }
    layers.push(Layer {
        name: "DPT, of nine".into(),
        colour: 5,
        shape: Shape::Points((2_u32..).map(f64::from).zip(FIGURE_14).collect()),
    });
    let plot = Plot {
        title: format!(
            "Hits of the busiest machine, weights by {} (Figure 14)",
            named(weights)
        ),
        x: "machines".into(),
        y: "% of one machine's".into(),
        from_zero: true,
        layers,
        ..Plot::default()
    };
    let words = "Figure 14: of each program the mean of its inputs; of each number of machines the best strategy.";
    (format!("figure-14-{}", named(weights)), plot, words.into())
}

fn figure_15(pair: &Pair, weights: Weights) -> (String, Plot, String) {
    let layer = |(at, (_, name)): (usize, &(_, &str))| {
        let hits = MACHINES.filter_map(|n| {
            let cost = pair.cost(Whose::Ours, weights, at, n)?;
            Some((f64::from(n), cost.collection as f64))
        });
        Layer {
            name: (*name).to_owned(),
            colour: at,
            shape: Shape::Curve(hits.collect()),
        }
    };
    let plot = Plot {
        title: format!(
            "Cost of collection: {}, weights by {} (Figure 15)",
            pair.title(),
            named(weights)
        ),
        x: "machines".into(),
        y: "hits of the busiest machine".into(),
        from_zero: true,
        layers: STRATEGIES.iter().enumerate().map(layer).collect(),
        ..Plot::default()
    };
    let file = format!("figure-15-{}-{}", pair.program, named(weights));
    (file, plot, format!("Figure 15: `{}`.", pair.input))
}
