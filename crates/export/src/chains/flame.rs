//! A flame graph (Gregg, *The Flame Graph*, CACM 59(6), 2016), as one SVG file without a script: each frame is as wide as
//! the calls of all chains that have it there, callers below their callees. Pointing at a frame tells its
//! numbers. Frames that are too narrow to be seen are left out, and that is said.

use std::io::{self, Write};

use super::Stacks;
use super::stacks::Named;
use crate::markup::Text;

const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 10.0;
const TOP: f64 = 44.0;
/// The height of a frame.
const HEIGHT: f64 = 17.0;
/// What is narrower is not drawn.
const NARROWEST: f64 = 0.2;
/// The width of a letter.
const LETTER: f64 = 6.6;

/// Warm colours for functions; gaps are grey.
const COLOURS: [&str; 6] = [
    "#f4a261", "#e9c46a", "#f28482", "#e5989b", "#f6bd60", "#eeb58a",
];
const GAP: &str = "#b8b8b8";

/// A frame that is drawn.
struct Drawn {
    name: u32,
    depth: usize,
    left: f64,
    width: f64,
    own: u64,
    all: u64,
}

/// All frames that are wide enough, and how many are not. Chains may be long, so no function calls itself here.
fn drawn(named: &[Named]) -> (Vec<Drawn>, usize) {
    let scale = (WIDTH - 2.0 * MARGIN) / (named[0].all.max(1) as f64);
    let (mut all, mut narrow) = (Vec::new(), 0);
    let mut waiting = vec![(&named[0], 0, MARGIN)];
    while let Some((frame, depth, left)) = waiting.pop() {
        let mut left = left;
        let callees = frame.callees.iter().map(|(name, at)| (*name, &named[*at]));
        for (name, callee) in callees.filter(|(_, callee)| callee.all > 0) {
            let width = callee.all as f64 * scale;
            if width < NARROWEST {
                narrow += 1;
            } else {
                all.push(Drawn {
                    name,
                    depth,
                    left,
                    width,
                    own: callee.own,
                    all: callee.all,
                });
                waiting.push((callee, depth + 1, left));
            }
            left += width;
        }
    }
    (all, narrow)
}

/// Writes the chains.
///
/// # Errors
/// Those of `to`.
pub fn write(to: &mut impl Write, stacks: &Stacks, title: &str) -> io::Result<()> {
    let named = stacks.by_names();
    let (frames, narrow) = drawn(&named);
    let total = named[0].all;
    let depth = frames
        .iter()
        .map(|frame| frame.depth + 1)
        .max()
        .unwrap_or(0);
    let height = TOP + depth as f64 * HEIGHT + 2.0 * MARGIN;
    writeln!(
        to,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" font-family="ui-monospace, monospace" font-size="11">"#
    )?;
    writeln!(to, "<title>{}</title>", Text(title))?;
    writeln!(to, r##"<rect width="100%" height="100%" fill="#ffffff"/>"##)?;
    writeln!(
        to,
        r#"<text x="{MARGIN}" y="18" font-size="14">{}</text>"#,
        Text(title)
    )?;
    let said = match narrow {
        0 => String::new(),
        more => format!("; {more} frames with their callees are too narrow to be shown"),
    };
    writeln!(
        to,
        r##"<text x="{MARGIN}" y="34" fill="#555555">{} calls: as wide as it is called often, whatever it takes{said}</text>"##,
        total
    )?;
    for frame in &frames {
        let name = stacks.names.get(frame.name as usize);
        let bottom = height - MARGIN - (frame.depth + 1) as f64 * HEIGHT;
        one(to, frame, name.map_or("", String::as_str), bottom, total)?;
    }
    writeln!(to, "</svg>")
}

fn one(to: &mut impl Write, frame: &Drawn, name: &str, y: f64, total: u64) -> io::Result<()> {
    let share = 100.0 * frame.all as f64 / total.max(1) as f64;
    let Drawn {
        left,
        width,
        own,
        all,
        ..
    } = frame;
    let colour = match name.starts_with('[') {
        true => GAP,
        false => {
            let mixed = name.bytes().fold(0u32, |sum, byte| {
                sum.wrapping_mul(31).wrapping_add(byte.into())
            });
            COLOURS[mixed as usize % COLOURS.len()]
        }
    };
    let name = Text(name);
    write!(
        to,
        r#"<g><title>{name}: {all} calls ({share:.2} %), {own} of itself</title><rect x="{left:.2}" y="{y:.1}" width="{width:.2}" height="{:.1}" fill="{colour}" stroke="white" stroke-width="0.4"/>"#,
        HEIGHT - 1.0
    )?;
    let fits = ((width - 6.0) / LETTER).max(0.0) as usize;
    if fits >= 3 {
        let short: String = match name.0.chars().count() > fits {
            true => name.0.chars().take(fits - 1).chain(['…']).collect(),
            false => name.0.into(),
        };
        let (x, y) = (left + 3.0, y + HEIGHT - 5.0);
        write!(to, r#"<text x="{x:.2}" y="{y:.1}">{}</text>"#, Text(&short))?;
    }
    writeln!(to, "</g>")
}

#[cfg(test)]
mod tests {
    use super::write;
    use crate::chains::{Frame, Stacks};

    #[test]
    fn frames_lie_on_their_callers_and_are_as_wide_as_their_calls() {
        let frame = |name| Frame {
            name,
            function: 1,
            at: 0,
        };
        let frames = |names: &[u32]| names.iter().map(|name| frame(*name)).collect();
        let chains: [Vec<Frame>; 3] = [frames(&[0]), frames(&[0, 1]), frames(&[0, 2, 1])];
        let stacks = Stacks::of(
            &["main", "a<b>", "[qsort]"],
            &[(&chains[0], 1), (&chains[1], 2), (&chains[2], 1)],
        );
        let mut svg = Vec::new();
        write(&mut svg, &stacks, "x & y").expect("written");
        let svg = String::from_utf8(svg).expect("UTF-8");
        let document = roxmltree::Document::parse(&svg).expect("XML");
        let titles: Vec<_> = document
            .descendants()
            .filter(|node| node.has_tag_name("title"))
            .filter_map(|node| node.text())
            .collect();
        assert_eq!(
            titles,
            [
                "x & y",
                "main: 4 calls (100.00 %), 1 of itself",
                "a<b>: 2 calls (50.00 %), 2 of itself",
                "[qsort]: 1 calls (25.00 %), 0 of itself",
                "a<b>: 1 calls (25.00 %), 1 of itself",
            ]
        );
        let widths: Vec<_> = document
            .descendants()
            .filter(|node| node.has_tag_name("g"))
            .filter_map(|node| node.children().nth(1)?.attribute("width"))
            .collect();
        assert_eq!(widths, ["1180.00", "590.00", "295.00", "295.00"]);
    }
}
