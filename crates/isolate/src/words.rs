//! What a predicate says, in words: of a branch, whether its condition held, where the lines to which it leads tell.

use tomo_export::predicates::{Site, Sources, case_name};
use tomo_wire::predicates::Kind;

/// A predicate in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// Where it is: a line of the source, or an address.
    pub place: String,
    /// What was so: `` `i < n` was false ``.
    pub what: String,
    /// How that is known, where it is not what was observed itself.
    pub inferred: Option<String>,
}

/// The words for one of a site's predicates.
pub fn words(site: &Site, case: u8, sources: &mut Sources) -> Words {
    let place = match &site.line {
        Some(line) => line.short(),
        None => format!("{} at {:#x}", site.function, site.address.0),
    };
    let text = site.line.as_ref().and_then(|line| sources.text(line));
    if site.kind == Kind::Result {
        let callee = site.callee.as_deref();
        let who = callee.map_or_else(|| "a call".to_owned(), |callee| format!("`{callee}()`"));
        let what = format!("{who} returned {}", sign(case));
        return Words {
            place,
            what,
            inferred: None,
        };
    }
    let condition = text.as_deref().and_then(condition);
    if let (Some(condition), Some(held)) = (condition, held(site, case)) {
        let lead = |case: u8| site.leads.get(usize::from(case)).and_then(Option::as_ref);
        let inferred = lead(case).zip(lead(1 - case)).map(|(to, other)| {
            format!("it went on at line {}, not at line {}", to.line, other.line)
        });
        return Words {
            place,
            what: format!("`{condition}` was {held}"),
            inferred,
        };
    }
    let lead = site.leads.get(usize::from(case)).cloned().flatten();
    let to = lead.map_or_else(String::new, |lead| format!(", to line {}", lead.line));
    let what = match text {
        Some(text) => format!("the branch in `{text}`"),
        None => "the branch".into(),
    };
    Words {
        place,
        what: format!(
            "{what} was {}{to}",
            case_name(Kind::Branch, case).replace('-', " ")
        ),
        inferred: None,
    }
}

fn sign(case: u8) -> &'static str {
    match case {
        0 => "a negative value",
        1 => "zero",
        _ => "a positive value",
    }
}

/// The condition of a line that begins with `if`, `while` or `for`, if all of it is there.
fn condition(text: &str) -> Option<&str> {
    let text = text.trim_start_matches(['}', ' ']);
    let text = text.strip_prefix("else ").unwrap_or(text);
    let (word, rest) = text.split_at(text.find(|c: char| !c.is_ascii_alphabetic())?);
    let inside = match rest.trim_start().strip_prefix('(') {
        Some(rest) => closed(rest)?,
        // Rust has no parentheses there.
        None => rest.trim().strip_suffix('{')?.trim(),
    };
    match word {
        "if" | "while" => Some(inside.trim()),
        "for" => inside.split(';').nth(1).map(str::trim),
        _ => None,
    }
    .filter(|condition| !condition.is_empty())
}

/// What comes before the parenthesis that closes.
fn closed(text: &str) -> Option<&str> {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return text.get(..at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Whether the condition held, if the lines tell: what is done if it holds stands behind it, before whatever comes
/// if it does not.
fn held(site: &Site, case: u8) -> Option<bool> {
    let here = site.line.as_ref()?;
    let lead = |case: usize| site.leads.get(case).and_then(Option::as_ref);
    let (this, other) = (lead(case.into())?, lead(usize::from(1 - case))?);
    if this.file != here.file || other.file != here.file {
        return None;
    }
    let behind = |line: u32| line > here.line;
    match (behind(this.line), behind(other.line)) {
        _ if this.line == here.line || other.line == here.line => None,
        (true, true) if this.line != other.line => Some(this.line < other.line),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::condition;

    #[test]
    fn conditions_are_taken_out_of_their_lines() {
        for (text, found) in [
            ("if (i < n) {", Some("i < n")),
            ("} else if (f(a) && b)", Some("f(a) && b")),
            ("while (*p++) ;", Some("*p++")),
            ("for (i = 0; i < n; i++)", Some("i < n")),
            ("if x.is_none() {", Some("x.is_none()")),
            ("if (a &&", None),
            ("return a ? b : c;", None),
            ("for (;;) {", None),
        ] {
            assert_eq!(condition(text), found, "{text}");
        }
    }
}
