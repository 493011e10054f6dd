//! How coverage grew, as a picture (DIS, Fig. 5): all instances together, and each by itself.

use tomo_lab::svg::{Layer, Plot, Shape};
use tomo_protocol::Growth;

use crate::saying;

/// The picture of the campaign of this name as an SVG file. Across are hours, or the smaller unit that the campaign's age asks for.
pub(super) fn growth(name: &str, growth: &Growth) -> String {
    let last = growth.all.last().map_or(0, |(at, _)| at - growth.created);
    let (unit, nanoseconds) = match last {
        ..120_000_000_000 => ("seconds", 1e9),
        120_000_000_000..7_200_000_000_000 => ("minutes", 60e9),
        _ => ("hours", 3600e9),
    };
    let points = |points: &[(i64, u32)]| -> Vec<(f64, f64)> {
        let points = points
            .iter()
            .map(|&(at, count)| ((at - growth.created) as f64 / nanoseconds, f64::from(count)));
        std::iter::once((0.0, 0.0)).chain(points).collect()
    };
    let each = growth.instances.iter().enumerate();
    let mut layers: Vec<Layer> = each
        .map(|(number, curve)| Layer {
            name: if number == 0 {
                "reported by each instance"
            } else {
                ""
            }
            .into(),
            colour: 1,
            shape: Shape::Faint(points(&curve.points)),
        })
        .collect();
    layers.push(Layer {
        name: "all together".into(),
        colour: 0,
        shape: Shape::Steps(points(&growth.all)),
    });
    let plot = Plot {
        title: format!("Coverage of campaign {}", saying::name(name)),
        x: format!("{unit} since it began"),
        y: format!("units seen, of {}", growth.units),
        names: Vec::new(),
        from_zero: true,
        layers,
    };
    plot.render()
}

#[cfg(test)]
mod tests {
    use tomo_protocol::{CampaignId, Curve, Growth, InstanceId};

    #[test]
    fn the_picture_has_a_curve_for_each_and_one_for_all() {
        let points = |speed: u32| -> Vec<(i64, u32)> {
            (1..9)
                .map(|step| (i64::from(step) * 3_600_000_000_000, speed * step))
                .collect()
        };
        let curve = |number: u8| Curve {
            instance: InstanceId([number; 16]),
            points: points(number.into()),
        };
        let growth = Growth {
            campaign: CampaignId([1; 16]),
            created: 0,
            units: 1000,
            all: points(7),
            instances: (1..4).map(curve).collect(),
        };
        let picture = super::growth("a <campaign>", &growth);
        let parsed = roxmltree::Document::parse(&picture).expect("a picture");
        let lines = parsed
            .descendants()
            .filter(|node| node.has_tag_name("path") || node.has_tag_name("polyline"));
        assert!(lines.count() >= 4, "{picture}");
        assert!(
            picture.contains("hours since it began") && picture.contains("of 1000"),
            "{picture}"
        );
        let none = Growth {
            all: Vec::new(),
            instances: Vec::new(),
            ..growth
        };
        roxmltree::Document::parse(&super::growth("none", &none)).expect("a picture of nothing");
    }
}
