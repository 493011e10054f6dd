//! The figures: how the best score grows with the sites that were seen (Figures 2 and 3), and how many it takes until
//! the best predictor is found (Figure 4).

use super::pages::{by_program, mean};
use super::results::{Results, Studied};
use crate::svg::{Layer, Plot, Shape};

/// A figure and where it goes.
pub(super) struct Figure {
    pub(super) file: String,
    pub(super) plot: Plot,
    /// What is to be said of it.
    pub(super) words: String,
}

/// Which curves are in one figure.
const FORWARD: [&str; 6] = [
    "failcount",
    "importance",
    "ttest",
    "ochiai",
    "bfs",
    "random",
];
const BACKWARD: [&str; 3] = ["ttest", "backward importance", "both importance"];
const BARS: [&str; 5] = ["bfs", "random", "ttest", "ochiai", "oracle"];

pub(super) fn all(results: &Results) -> Vec<Figure> {
    let mut figures = Vec::new();
    for one in results.studied.iter().filter(|one| !one.curves.is_empty()) {
        figures.extend(curves(one, &FORWARD, 2));
        if one
            .curves
            .iter()
            .any(|curve| curve.way.starts_with("backward"))
        {
            figures.extend(curves(one, &BACKWARD, 3));
        }
    }
    figures.push(shares(results));
    figures
}

fn curves(one: &Studied, ways: &[&str], number: u32) -> Option<Figure> {
    let mut layers = Vec::new();
    for (colour, way) in ways.iter().enumerate() {
        let curve = one.curves.iter().find(|curve| curve.way == *way);
        let Some(curve) = curve else { continue };
        let points = curve.points.iter().map(|point| (point.0 as f64, point.1));
        layers.push(Layer {
            name: (*way).into(),
            colour,
            shape: Shape::Steps(points.collect()),
        });
    }
    let plot = Plot {
        title: format!(
            "Score of the top predicate: {} {}",
            one.subject, one.variant
        ),
        x: "sites watched".into(),
        y: "Importance of the best".into(),
        from_zero: true,
        layers,
        ..Plot::default()
    };
    (!plot.layers.is_empty()).then(|| Figure {
        file: format!("figure-{number}-{}", one.subject),
        plot,
        words: format!(
            "Figure {number}, ours: the best Importance among the sites seen so far; {}, {}.",
            one.subject, one.variant
        ),
    })
}

/// Figure 4.
fn shares(results: &Results) -> Figure {
    let programs = by_program(results);
    let mut layers = Vec::new();
    for (colour, way) in BARS.iter().enumerate() {
        let points = programs
            .iter()
            .enumerate()
            .filter_map(|(at, (_, variants))| {
                let shares = variants.iter().filter_map(|one| {
                    let searched = one
                        .searched
                        .iter()
                        .find(|one| one.way == *way && one.found > 0)?;
                    Some(100.0 * searched.seen / one.observable.max(1) as f64)
                });
                Some((at as f64 + 0.15 * (colour as f64 - 1.5), mean(shares)?))
            });
        layers.push(Layer {
            name: (*way).into(),
            colour,
            shape: Shape::Points(points.collect()),
        });
    }
    Figure {
        file: "figure-4".into(),
        plot: Plot {
            title: "Sites seen until the best predictor was found".into(),
            x: "program".into(),
            y: "percent of the sites, mean".into(),
            names: programs.iter().map(|program| program.0.to_owned()).collect(),
            from_zero: true,
            layers,
        },
        words: "Figure 4, ours: the mean share of the sites that had been seen when a predictor as good as the best was found.".into(),
    }
}
