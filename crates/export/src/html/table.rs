//! Tables of totals.

use std::fmt::Write as _;

use crate::markup::Text;
use crate::{Tally, Totals};

/// The head of a table of totals.
pub(super) const HEAD: &str = "<div class=\"wide\"><table>\n<thead><tr><th></th><th>lines</th><th>branches</th>\
     <th>functions</th><th>blocks</th></tr></thead>\n<tbody>\n";

/// Its end.
pub(super) const END: &str = "</tbody></table></div>\n";

/// Appends a row; `link` is a page, relative to this one.
pub(super) fn row(out: &mut String, class: &str, name: &str, link: Option<&str>, totals: &Totals) {
    let _ = write!(out, "<tr class=\"{class}\"><td>");
    let _ = match link {
        Some(link) => write!(out, "<a href=\"{}\">{}</a>", Text(link), Text(name)),
        None => write!(out, "{}", Text(name)),
    };
    out.push_str("</td>");
    cell(out, &totals.lines, true);
    cell(out, &totals.branches, false);
    cell(out, &totals.functions, false);
    cell(out, &totals.blocks, false);
    out.push_str("</tr>\n");
}

fn cell(out: &mut String, tally: &Tally, with_bar: bool) {
    out.push_str("<td>");
    if tally.known() == 0 {
        out.push('–');
    } else {
        if with_bar {
            let width = tally.share() * 100.0;
            let _ = write!(
                out,
                "<span class=\"bar\"><i style=\"width:{width:.1}%\"></i></span>"
            );
        }
        let (percent, fraction) = (tally.percent(), tally.fraction());
        let _ = write!(out, "{percent} <span class=\"n\">{fraction}</span>");
    }
    if tally.unknown > 0 {
        let _ = write!(
            out,
            " <span class=\"n\" title=\"could not be observed\">+{}?</span>",
            tally.unknown
        );
    }
    out.push_str("</td>");
}
