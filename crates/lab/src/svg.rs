//! Plots as SVG: curves, points and boxes over two axes, with a legend. One file, no script, no font of its
//! own; colours follow the reader's page, light or dark.

mod scale;

use std::fmt::Write as _;

pub use scale::ticks;
use scale::{Span, label};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 20.0;
/// What the legend takes on the right, where there is one.
const LEGEND: f64 = 130.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 58.0;
/// A line of the legend.
const LINE: f64 = 18.0;

/// Colours that the colour-blind can tell apart (Okabe, Ito, *Color Universal Design*, 2008), in the shade
/// that a light and a dark page need.
const COLOURS: [(&str, &str); 6] = [
    ("#0072b2", "#56b4e9"),
    ("#d55e00", "#ff8c3a"),
    ("#007a5a", "#2fc79b"),
    ("#a0528a", "#e39ac7"),
    ("#8a6d00", "#e8cf3f"),
    ("#555555", "#bbbbbb"),
];

/// A picture.
#[derive(Clone, Debug, Default)]
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// What is across.
    pub x: String,
    /// What is up.
    pub y: String,
    /// Names of places across, for boxes; the first is at 0. Numbers are across where there are none.
    pub names: Vec<String>,
    /// Whether the axis up starts at 0 whatever the values are.
    pub from_zero: bool,
    /// What is drawn, in this order.
    pub layers: Vec<Layer>,
}

/// Something to draw.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Its name in the legend; nothing for what is not named there.
    pub name: String,
    /// Which colour: a number, which wraps around.
    pub colour: usize,
    /// What it is.
    pub shape: Shape,
}

/// What can be drawn.
#[derive(Clone, Debug)]
pub enum Shape {
    /// A line that keeps its height until the next point.
    Steps(Vec<(f64, f64)>),
    /// The same, thin and faint.
    Faint(Vec<(f64, f64)>),
    /// A straight line from the first to the last point.
    Line(Vec<(f64, f64)>),
    /// Straight lines from point to point.
    Curve(Vec<(f64, f64)>),
    /// Dots.
    Points(Vec<(f64, f64)>),
    /// A box with a line in it and whiskers.
    Box(Boxed),
}

/// A box.
#[derive(Clone, Copy, Debug)]
pub struct Boxed {
    /// Where across.
    pub at: f64,
    /// The line in it.
    pub middle: f64,
    /// Its lower and upper edge.
    pub edges: (f64, f64),
    /// The ends of its whiskers.
    pub ends: (f64, f64),
}

impl Shape {
    fn extent(&self) -> Vec<(f64, f64)> {
        match self {
            Self::Steps(points) | Self::Faint(points) => points.clone(),
            Self::Line(points) | Self::Curve(points) | Self::Points(points) => points.clone(),
            Self::Box(one) => vec![(one.at, one.ends.0), (one.at, one.ends.1)],
        }
    }
}

impl Plot {
    /// The picture as a file.
    #[must_use]
    pub fn render(&self) -> String {
        let points: Vec<(f64, f64)> = self.layers.iter().flat_map(|l| l.shape.extent()).collect();
        let across = match self.names.len() {
            0 => Span::of(points.iter().map(|point| point.0), false),
            names => Span::exactly(-0.5, names as f64 - 0.5),
        };
        let up = Span::of(points.iter().map(|point| point.1), self.from_zero);
        let frame = Frame {
            across: across.onto(LEFT, self.right()),
            up: up.onto(HEIGHT - BOTTOM, TOP),
        };
        let mut svg = head(&self.title);
        self.axes(&frame, &mut svg);
        for layer in &self.layers {
            draw(layer, &frame, &mut svg);
        }
        self.legend(&mut svg);
        svg.push_str("</svg>\n");
        svg
    }

    fn axes(&self, frame: &Frame, svg: &mut String) {
        let (right, bottom) = (self.right(), HEIGHT - BOTTOM);
        for value in frame.up.ticks() {
            let (y, text) = (frame.up.at(value), label(value));
            let _ = writeln!(
                svg,
                r#"<line class="grid" x1="{LEFT}" x2="{right}" y1="{y:.1}" y2="{y:.1}"/><text class="end" x="{:.1}" y="{:.1}">{text}</text>"#,
                LEFT - 8.0,
                y + 4.0
            );
        }
        let named = self
            .names
            .iter()
            .enumerate()
            .map(|(n, name)| (n as f64, escaped(name)));
        let numbers = frame
            .across
            .ticks()
            .into_iter()
            .map(|value| (value, label(value)));
        let places: Vec<(f64, String)> = match self.names.len() {
            0 => numbers.collect(),
            _ => named.collect(),
        };
        for (value, text) in places {
            let x = frame.across.at(value);
            let _ = writeln!(
                svg,
                r#"<line class="tick" x1="{x:.1}" x2="{x:.1}" y1="{bottom}" y2="{:.1}"/>"#,
                bottom + 4.0
            );
            // A name may have two lines.
            for (line, part) in text.split('\n').enumerate() {
                let y = bottom + 18.0 + 14.0 * line as f64;
                let _ = writeln!(
                    svg,
                    r#"<text class="mid" x="{x:.1}" y="{y:.1}">{part}</text>"#
                );
            }
        }
        let (middle, x, y) = (
            f64::midpoint(LEFT, right),
            escaped(&self.x),
            escaped(&self.y),
        );
        let _ = writeln!(
            svg,
            r#"<path class="tick" d="M{LEFT} {TOP}V{bottom}H{right}"/>
<text class="mid" x="{middle}" y="{:.1}">{x}</text>
<text class="mid" transform="translate(16 {}) rotate(-90)">{y}</text>"#,
            HEIGHT - 10.0,
            f64::midpoint(TOP, bottom)
        );
    }

    /// Where the axes end.
    fn right(&self) -> f64 {
        let named = self.layers.iter().any(|layer| !layer.name.is_empty());
        WIDTH - if named { LEGEND } else { RIGHT }
    }

    /// One line for each named layer, beside the axes.
    fn legend(&self, svg: &mut String) {
        let named = self.layers.iter().filter(|layer| !layer.name.is_empty());
        for (line, layer) in named.enumerate() {
            let y = TOP + 12.0 + LINE * line as f64;
            let (x, name) = (self.right() + 10.0, escaped(&layer.name));
            let class = layer.colour % COLOURS.len();
            let _ = writeln!(
                svg,
                r#"<text class="c{class} word" x="{x}" y="{y}">{name}</text>"#
            );
        }
    }
}

struct Frame {
    across: scale::Mapped,
    up: scale::Mapped,
}

fn draw(layer: &Layer, frame: &Frame, svg: &mut String) {
    let class = format!("c{}", layer.colour % COLOURS.len());
    let (x, y) = (|value| frame.across.at(value), |value| frame.up.at(value));
    let name = escaped(&layer.name);
    let _ = match &layer.shape {
        Shape::Steps(points) => writeln!(svg, r#"<path class="{class} curve" d="{}"/>"#, steps(points, frame)),
        Shape::Faint(points) => writeln!(svg, r#"<path class="{class} faint" d="{}"/>"#, steps(points, frame)),
        Shape::Line(points) => {
            let ends = points.first().zip(points.last());
            ends.map_or(Ok(()), |(a, b)| {
                writeln!(svg, r#"<path class="{class} curve dashed" d="M{:.1} {:.1}L{:.1} {:.1}"/>"#, x(a.0), y(a.1), x(b.0), y(b.1))
            })
        }
        Shape::Curve(points) => {
            let corners = points.iter().map(|point| format!("{:.1} {:.1}", x(point.0), y(point.1)));
            let path = corners.collect::<Vec<_>>().join("L");
            writeln!(svg, r#"<path class="{class} curve" d="M{path}"><title>{name}</title></path>"#)
        }
        Shape::Points(points) => points.iter().try_for_each(|point| {
            writeln!(svg, r#"<circle class="{class} dot" cx="{:.1}" cy="{:.1}" r="4.5"><title>{name}</title></circle>"#, x(point.0), y(point.1))
        }),
        Shape::Box(one) => {
            let (low, high) = (y(one.edges.0), y(one.edges.1));
            let (left, right) = (x(one.at) - 16.0, x(one.at) + 16.0);
            // A box that is thinner than a line would not be seen.
            let (top, height) = (f64::midpoint(low, high), (low - high).max(2.0));
            writeln!(svg, r#"<path class="{class} whisker" d="M{0:.1} {1:.1}V{2:.1}M{3:.1} {1:.1}H{4:.1}M{3:.1} {2:.1}H{4:.1}"/><rect class="{class} box" x="{5:.1}" y="{6:.1}" width="32" height="{height:.1}"/><path class="{class} curve" d="M{5:.1} {7:.1}H{right:.1}"/>"#,
                x(one.at), y(one.ends.0), y(one.ends.1), x(one.at) - 8.0, x(one.at) + 8.0, left, top - height / 2.0, y(one.middle))
        }
    };
}

/// The path of a curve that only moves up or down at its points; points closer than half a pixel to the last
/// are left out.
fn steps(points: &[(f64, f64)], frame: &Frame) -> String {
    let mut path = String::new();
    let mut last: Option<(f64, f64)> = None;
    for (number, point) in points.iter().enumerate() {
        let (x, y) = (frame.across.at(point.0), frame.up.at(point.1));
        let is_last = number + 1 == points.len();
        match last {
            Some((a, b)) if (x - a).hypot(y - b) < 1.5 && !is_last => continue,
            Some(_) => {
                let _ = write!(path, "H{x:.1}V{y:.1}");
            }
            None => {
                let _ = write!(path, "M{x:.1} {y:.1}");
            }
        }
        last = Some((x, y));
    }
    path
}

fn head(title: &str) -> String {
    let colours = |dark: bool| {
        let rules = COLOURS.iter().enumerate().map(|(n, (light, night))| {
            let colour = if dark { night } else { light };
            format!(".c{n}{{stroke:{colour};fill:{colour}}}")
        });
        rules.collect::<String>()
    };
    let title = escaped(title);
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">
<title>{title}</title>
<style>
svg{{background:#ffffff;font:13px sans-serif}}text{{fill:#222222;stroke:none}}.end{{text-anchor:end}}.mid{{text-anchor:middle}}
.title{{font-weight:bold;font-size:15px}}.grid{{stroke:#e3e3e3}}.tick{{stroke:#777777;fill:none}}
path.curve{{fill:none;stroke-width:2.2}}path.faint{{fill:none;stroke-width:1;opacity:.35}}.dashed{{stroke-dasharray:6 4}}
circle.dot{{stroke:none}}.box{{fill-opacity:.25}}path.whisker{{fill:none}}
{}text.word{{stroke:none}}
@media (prefers-color-scheme:dark){{svg{{background:#0d1117}}text{{fill:#e6e6e6}}.grid{{stroke:#2b313a}}.tick{{stroke:#8a929c}}{}}}
</style>
<text class="mid title" x="{}" y="22">{title}</text>
"#,
        colours(false),
        colours(true),
        WIDTH / 2.0
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::{Boxed, Layer, Plot, Shape};

    fn plot(shape: Shape) -> String {
        let layer = Layer {
            name: "a < b".into(),
            colour: 9,
            shape,
        };
        Plot {
            title: "t & u".into(),
            layers: vec![layer],
            ..Plot::default()
        }
        .render()
    }

    #[test]
    fn every_shape_gives_a_well_formed_picture() {
        let points = vec![(0.0, 1.0), (2.0, 5.0), (9.0, 5.5)];
        let one = Boxed {
            at: 0.0,
            middle: 2.0,
            edges: (1.0, 3.0),
            ends: (0.0, 9.0),
        };
        for shape in [
            Shape::Steps(points.clone()),
            Shape::Faint(Vec::new()),
            Shape::Line(points.clone()),
            Shape::Curve(points.clone()),
            Shape::Points(points),
            Shape::Box(one),
        ] {
            let text = plot(shape);
            let document = roxmltree::Document::parse(&text).expect("well-formed");
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
            assert_eq!(document.root_element().tag_name().name(), "svg");
        }
    }
}
